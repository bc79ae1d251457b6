"""What the commands say: about a new project, a change, where a project stands, and differences in color."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from tricks.project.apply import Step
    from tricks.project.merge import Conflict
    from tricks.project.plan import Change
    from tricks.project.read import Project
    from tricks.project.status import Status


def in_color() -> bool:
    """Whether standard output takes colors: a terminal, and nobody asked for none (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def notice(sentence: str) -> None:
    """A sentence beside the result, on standard error."""
    if sentence:
        typer.secho(sentence, fg="yellow", err=True)


@contextlib.contextmanager
def working(sentence: str) -> Iterator[None]:
    """Shows at a terminal that something goes on."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # a tenth of a second

    with Console(stderr=True).status(sentence):
        yield


def files(project: Path, names: Iterable[Path]) -> None:
    """The files of a project, a paragraph per folder."""
    folders: dict[Path, list[str]] = {}
    for name in sorted(names):
        folders.setdefault(name.parent, []).append(name.name)
    typer.secho(f"{project} ({sum(map(len, folders.values()))} files)", bold=True)
    width = max(shutil.get_terminal_size().columns, 30)
    for folder in sorted(folders):
        start = "  " if folder == Path() else f"  {folder.as_posix()}/  "
        text = "  ".join(folders[folder])
        wrapped = textwrap.TextWrapper(
            width, initial_indent=start, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False
        )
        typer.echo(wrapped.fill(text))


def colored(difference: str) -> str:
    """A unified difference as git colors it, at a terminal."""
    if not in_color():
        return difference
    colors = {"+": "green", "-": "red", "@": "cyan"}
    lines = []
    for line in difference.splitlines(keepends=True):
        head = line.startswith(("+++", "---"))
        lines.append(typer.style(line, bold=True) if head else typer.style(line, fg=colors.get(line[:1])))
    return "".join(lines)


def highlight(name: str, text: str) -> None:
    """The text in color at a terminal, and byte for byte elsewhere."""
    if not in_color():
        typer.echo(text, nl=False)
        return
    from rich.console import Console  # a tenth of a second
    from rich.syntax import Syntax

    lexer = Syntax.guess_lexer(Path(name).name, text)
    Console().print(Syntax(text.rstrip("\n"), lexer, theme="ansi_dark", background_color="default"))


def preview(change: Change) -> None:
    """The difference that would be made, and on standard error what else there is to know."""
    from tricks.project.plan import difference  # start-up time: `tricks list` shares this module

    typer.echo(difference(change.project.place, change.steps, in_color()), nl=False)
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
        ("+", "added", "green", added),
        ("~", "changed", "yellow", changed),
        ("-", "removed", "red", removed),
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
    typer.secho("There would be conflicts:" if would else "Conflicts:", fg="red", err=True)
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


def show_status(project: Project, found: Status) -> None:
    """What `tricks status` prints."""
    news = f"; {found.newer} is out: `tricks update`" if found.newer else ""
    typer.echo(f"Made from {project.address} at {project.version}{news}.")
    from tricks.project.status import describe

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
        typer.secho("Conflicts left:", fg="red")
        for conflict in found.conflicts:
            typer.echo(f"  {conflict}")
