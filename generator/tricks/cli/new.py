"""`tricks new`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from tricks import UserError
from tricks.cli.command import GRAMMAR, NONE, Command, Data, DataFile, Defaults, Preset, app, given_words


@app.command(
    cls=Command,
    help=f"""Write a new project to the folder DEST, which gives it its name; ask what the WORDs leave open.

{GRAMMAR}
Without any, it starts from the preset recommended.""",
)
def new(
    dest: Annotated[Path, typer.Argument(metavar="DEST")],
    words: Annotated[list[str], given_words("[WORD]...")] = NONE,
    preset: Preset = None,
    data: Data = NONE,
    data_file: DataFile = None,
    defaults: Defaults = False,
    git: Annotated[
        bool | None, typer.Option("--git/--no-git", help="Make it a git repository with a first commit, or not.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Name the files that would be written; write nothing.")
    ] = False,
    train: Annotated[
        bool, typer.Option("--train", help="Make the project's own .venv with PyTorch in it, and train at once.")
    ] = False,
) -> None:
    # Start-up time: none of these is needed for help or completion.
    from tricks.cli import output, prompts
    from tricks.project import new as project
    from tricks.project import train as training
    from tricks.template import choice, questions, source
    from tricks.template.rendering import Template

    project.check_destination(dest)
    with source.template() as found:
        template = Template(found.root)
        known = questions.parse(template.config)
        given = choice.read(template, known, [*words, *([preset] if preset else []), *data], data_file)
        check(template, given)
        output.notice(found.warning)
        suggested = name_of(dest)
        if defaults:
            answers = suggested | given if not template.refusals(suggested) else given
        else:
            if prompts.terminal():
                typer.echo(
                    f"A few questions, then a training project is written to {dest}.\n"
                    "Enter takes what is shown. In a list the arrow keys move, the space bar ticks a box.\n"
                    "Ctrl-C leaves without writing anything.\n"
                )
            answers = prompts.ask_open(template, known, given, suggested if not template.refusals(suggested) else {})
        check(template, answers)
        around = project.repository_of(dest)
        if git is None and around is None and not defaults and not dry_run and prompts.terminal():
            git = prompts.confirm("Make it a git repository with a first commit? (`tricks add` needs one)")
        if dry_run:
            output.files(dest, template.render(answers, only=()))
            typer.echo("Nothing was written.", err=True)
            return
        names, untold = project.write(found, template, dest, answers, around is None if git is None else git)
        output.files(dest, names)
        typer.echo(f"\n{template.message(answers, shlex.quote(str(dest))).rstrip()}")
        output.notice(untold)
        asked = template.answer(answers).asked
        for name in given:
            if name not in asked and name != "preset":
                typer.echo(f"Note: {name} has no effect with these techniques.", err=True)
    if train:
        raise typer.Exit(training.train(dest, lambda line: typer.echo(line, err=True)))


def name_of(destination: Path) -> dict[str, str]:
    """The folder's name, which is the project's by default."""
    return {"project_name": destination.resolve().name}


def check(template: Any, answers: dict[str, Any]) -> None:
    refusals = template.refusals(answers)
    if refusals:
        raise UserError(refusals[0])
