"""What a change to a project says about itself."""

from __future__ import annotations

import sys

import typer

from tricks.project.apply import Step
from tricks.project.merge import Conflict
from tricks.project.plan import Change, difference
from tricks.project.read import Project
from tricks.project.status import Standing, describe


def preview(change: Change) -> None:
    """The difference that would be made, and on standard error what else there is to know."""
    typer.echo(difference(change.project.place, change.steps, sys.stdout.isatty()), nl=False)
    typer.echo(f"{summary(change.steps)}. Nothing was written.", err=True)
    explain(change, would=True)


def show(change: Change) -> None:
    """What was done to which file, and how to go on."""
    for sign, verb, color, names in kinds(change.steps):
        for name in names:
            typer.echo(typer.style(f"  {sign} {name}", fg=color) + f"  ({verb})")
    typer.echo(f"{summary(change.steps)}.")
    explain(change)
    if not change.merged.conflicts:
        typer.echo("Look at it with `git diff --cached`, then `git commit`; `tricks undo` takes it back.")


def kinds(steps: list[Step]) -> list[tuple[str, str, str, list[str]]]:
    """Sign, verb, color and files of what was added, changed and removed."""
    added = [step.path for step in steps if step.before is None and step.after]
    removed = [step.path for step in steps if step.before and step.after is None]
    changed = [step.path for step in steps if step.before and step.after and step.before != step.after]
    return [
        ("+", "added", typer.colors.GREEN, added),
        ("~", "changed", typer.colors.YELLOW, changed),
        ("-", "removed", typer.colors.RED, removed),
    ]


def summary(steps: list[Step]) -> str:
    counts = [f"{len(names)} {verb}" for _, verb, _, names in kinds(steps) if names]
    return f"Files: {', '.join(counts) or 'none changed'}"


def explain(change: Change, would: bool = False) -> None:
    """Notes and conflicts, with how to resolve them."""
    for note in change.merged.notes:
        typer.echo(f"Note: {note}", err=True)
    conflicts = change.merged.conflicts
    if not conflicts:
        return
    typer.secho("There would be conflicts:" if would else "Conflicts:", fg=typer.colors.RED, err=True)
    for line in (line for conflict in conflicts for line in lines(conflict)):
        typer.echo(f"  {line}", err=True)
    if not would:
        typer.echo(
            "Edit each place to what it should be and take the markers out (or `git rm` a file that you do not keep), "
            "then `git add` the file and commit. `tricks status` shows what is left, `tricks undo` takes it all back.",
            err=True,
        )


def lines(conflict: Conflict) -> list[str]:
    if not conflict.places:
        return [f"{conflict.path}: {conflict.reason}."]
    return [f"{conflict.path}:{first}-{last}: {conflict.reason}" for first, last in conflict.places]


def show_standing(project: Project, found: Standing) -> None:
    """What `tricks status` prints."""
    news = f"; {found.newer} is out: `tricks update`" if found.newer else ""
    typer.echo(f"Made from {project.address} at {project.version}{news}.")
    for line in describe(project.answers):
        typer.echo(f"  {line}")
    if found.edits:
        typer.echo("Changed by you:")
    for edit in found.edits:
        if not edit.now:
            typer.echo(f"  {edit.path}: deleted")
        else:
            name = edit.path if edit.now == edit.path else f"{edit.path} -> {edit.now}"
            typer.echo(f"  {name}: +{edit.added} -{edit.removed}")
    if found.own_files:
        typer.echo(f"Files of your own: {found.own_files}.")
    if found.undoable:
        typer.echo(f"`tricks undo` takes back `tricks {found.undoable}`.")
    for sentence in found.untold:
        typer.echo(sentence, err=True)
    if found.conflicts:
        typer.secho("Conflicts left:", fg=typer.colors.RED)
        for conflict in found.conflicts:
            typer.echo(f"  {conflict}")
