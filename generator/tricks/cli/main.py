"""The entry point of `tricks`."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from tricks.cli import change, look, new  # noqa: F401  # each adds its commands to the app
from tricks.cli.command import app

__all__ = ["app", "main"]


def show_version(wanted: bool) -> None:
    """Which template this tool has. A checkout asks git for it."""
    if wanted:
        from tricks.template import source  # start-up time

        version, changes = source.installed_version()
        typer.echo(f"tricks {version or 'of an unknown version'}{', with uncommitted changes' if changes else ''}")
        raise typer.Exit


@app.callback()
def tricks(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Make a PyTorch training project that holds just the techniques you pick."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a title may hold what the terminal cannot show
    app(prog_name="tricks")
