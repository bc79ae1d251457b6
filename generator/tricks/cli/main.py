"""The command line. The commands import what is heavy, so that help and completion answer at once."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from tricks import UserError
from tricks.cli import change as cli_change
from tricks.cli import look as cli_look


class Quick:
    """typer imports pydantic, a fifth of a second, for every option that is left at None: --help is False instead."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.default = False
        return option


class QuickCommand(Quick, TyperCommand):
    """A command without options of its own."""


class Commands(Quick, TyperGroup):
    """Does without the options of completion where a command is called."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-"):
            completion = ("install_completion", "show_completion")
            self.params = [option for option in self.params if option.name not in completion]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def main() -> None:
    """Entry point of `tricks`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a title may hold what the terminal cannot show
    app(prog_name="tricks")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turns an error of the person at the keyboard into one sentence, and Ctrl-C into exit status 130."""
    from tricks.git import GitError
    from tricks.project.new import Interrupted

    try:
        yield
    except GitError as error:
        typer.secho(f"Error: git failed, and nothing was changed: {error}.", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    except UserError as error:
        typer.secho(f"Error: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    except (Interrupted, KeyboardInterrupt) as error:
        nothing = ": nothing was written" if isinstance(error, Interrupted) else ""
        typer.echo(f"Stopped{nothing}.", err=True)
        raise typer.Exit(130) from None


def show_version(wanted: bool) -> None:
    from tricks.template import source

    if wanted:
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


def complete_preset(incomplete: str) -> list[str]:
    from tricks.template import questions, source

    names = questions.presets(questions.load(source.copier_yml()))
    return [name for name in names if name.startswith(incomplete)]


def complete_data(incomplete: str) -> list[str]:
    """`KEY=VALUE`; after a comma the next value of the list."""
    from tricks.template import questions, source

    found = []
    for question in questions.load(source.copier_yml()).values():
        if question.hidden:
            continue
        start = f"{question.name}="
        if question.multiselect and incomplete.startswith(start) and "," in incomplete:
            start = incomplete[: incomplete.rindex(",") + 1]
        given = start.partition("=")[2].split(",")
        found += [start + value for value in question.choices if value not in given] or [start]
    return [text for text in found if text.startswith(incomplete)]


class NewCommand(TyperCommand):
    """Names the presets in its help; they are read from copier.yml only when it is shown."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            if isinstance(parameter, TyperOption) and parameter.name == "preset":
                parameter.help = f"Start from this set of techniques: {', '.join(complete_preset(''))}."
        super().format_help(ctx, formatter)


@app.command(cls=NewCommand)
def new(
    dest: Annotated[Path, typer.Argument(metavar="DEST", help="The folder to write: new, or empty.")],
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", autocompletion=complete_preset, help="Start from this set.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            metavar="KEY=VALUE",
            autocompletion=complete_data,
            help="Answer a question, for example -d techniques=amp,ddp (repeatable).",
        ),
    ] = None,
    data_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Answers from a YAML file, also a project's .copier-answers.yml."),
    ] = None,
    defaults: Annotated[bool, typer.Option("--defaults", help="Ask nothing: take the defaults.")] = False,
    train: Annotated[bool, typer.Option("--train", help="Train at once, with this Python.")] = False,
) -> None:
    """Ask what you want and write the project."""
    from tricks.cli import report
    from tricks.project import new as project
    from tricks.project import train as training
    from tricks.template import questions, source

    with plain_errors():
        project.check_destination(dest)
        with source.template() as template:
            known = questions.load(template.root / "copier.yml")
            answers = questions.gather(known, preset, data or [], data_file)
            if template.warning:
                typer.secho(f"Warning: {template.warning}", fg=typer.colors.YELLOW, err=True)
            if not defaults and sys.stdin.isatty():
                report.introduce(dest)
            written = project.write(template, dest, answers, defaults)
        report.show(dest, written)
        for name in written.unused:
            typer.echo(f"Note: {name} has no effect with these techniques.", err=True)
        if train:
            raise typer.Exit(training.train(dest))


app.command("list", cls=QuickCommand)(cli_look.list_techniques)
app.command()(cli_look.explain)
app.command()(cli_look.show)
# What it does not know are the options of the command whose difference is wanted.
app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(cli_look.diff)
app.command()(cli_look.doctor)
app.command()(cli_change.add)
app.command()(cli_change.remove)
app.command("set")(cli_change.set_answers)
app.command()(cli_change.update)
app.command()(cli_change.undo)
app.command()(cli_change.status)
