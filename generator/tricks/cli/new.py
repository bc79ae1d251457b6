"""`tricks new`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from tricks import UserError
from tricks.cli.command import DATA, DATA_FILE, DEFAULTS, GRAMMAR, PRESET, Command, words


@click.command(
    cls=Command,
    help=f"""Write a new project to the folder DEST, which gives it its name; ask what the WORDs leave open.

{GRAMMAR}
Without any, it starts from the preset recommended.""",
)
@click.argument("dest", type=click.Path(path_type=Path))
@words("[WORD]...")
@PRESET
@DATA
@DATA_FILE
@DEFAULTS
@click.option("--git/--no-git", default=None, help="Make it a git repository with a first commit, or not.")
@click.option("--dry-run", is_flag=True, help="Name the files that would be written; write nothing.")
@click.option("--train", is_flag=True, help="Make the project's own .venv with PyTorch in it, and train at once.")
def new(
    dest: Path,
    words: list[str],
    preset: str | None,
    data: list[str],
    data_file: str | None,
    defaults: bool,
    git: bool | None,
    dry_run: bool,
    train: bool,
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
        given = choice.read(template, known, [*words, *([preset] if preset else []), *data], as_path(data_file))
        check(template, given)
        output.notice(found.warning)
        suggested = name_of(dest)
        if defaults:
            answers = suggested | given if not template.refusals(suggested) else given
        else:
            if prompts.terminal():
                click.echo(
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
            click.echo("Nothing was written.", err=True)
            return
        names, untold = project.write(found, template, dest, answers, around is None if git is None else git)
        output.files(dest, names)
        click.echo(f"\n{template.message(answers, shlex.quote(str(dest))).rstrip()}")
        output.notice(untold)
        asked = template.answer(answers).asked
        for name in given:
            if name not in asked and name != "preset":
                click.echo(f"Note: {name} has no effect with these techniques.", err=True)
    if train:
        raise SystemExit(training.train(dest, lambda line: click.echo(line, err=True)))


def as_path(name: str | None) -> Path | None:
    return Path(name) if name is not None else None


def name_of(destination: Path) -> dict[str, str]:
    """The folder's name, which is the project's by default."""
    return {"project_name": destination.resolve().name}


def check(template: Any, answers: dict[str, Any]) -> None:
    refusals = template.refusals(answers)
    if refusals:
        raise UserError(refusals[0])
