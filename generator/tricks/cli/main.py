"""The entry point of `tricks`."""

from __future__ import annotations

import io
import sys

import click

from tricks.cli import change, look, new
from tricks.cli.command import Tool
from tricks.template import source


def show_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Which template this tool has. A checkout asks git for it."""
    if wanted:
        version, changes = source.installed_version()
        click.echo(f"tricks {version or 'of an unknown version'}{', with uncommitted changes' if changes else ''}")
        context.exit()


@click.group(
    cls=Tool,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
    epilog='Completion of words: eval "$(_TRICKS_COMPLETE=bash_source tricks)", or zsh_source, or fish_source.',
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=show_version, help="Print the version."
)
def app() -> None:
    """Make a PyTorch training project that holds just the techniques you pick."""


for command in (
    new.new,
    look.list_all,
    look.explain,
    look.show,
    look.diff,
    look.doctor,
    change.add,
    change.remove,
    change.set_answers,
    change.update,
    change.undo,
    change.status,
):
    app.add_command(command)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a title may hold what the terminal cannot show
    app(prog_name="tricks")
