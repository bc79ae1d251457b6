"""The commands that change a project: add, remove, set, update, undo."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tricks import UserError

# The exit status of a change that was made but needs the owner: 1 is for a change that was refused.
UNRESOLVED = 3


def complete_techniques(incomplete: str) -> list[str]:
    from tricks.template import questions, source

    names = questions.load(source.copier_yml())["techniques"].choices
    return [name for name in names if name.startswith(incomplete)]


Words = Annotated[
    list[str],
    typer.Argument(metavar="TECHNIQUE... [DEST]", autocompletion=complete_techniques, help="Names, and the project."),
]
Folder = Annotated[Path, typer.Argument(metavar="[DEST]", help="The project's folder; by default this one.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the difference that it would make; change nothing.")]
Defaults = Annotated[bool, typer.Option("--defaults", help="Ask nothing: take the defaults of new questions.")]
Data = Annotated[
    list[str] | None, typer.Option("--data", "-d", metavar="KEY=VALUE", help="Answer a new question (repeatable).")
]


def add(words: Words, data: Data = None, defaults: Defaults = False, dry_run: DryRun = False) -> None:
    """Add techniques to a project, and keep what its owner changed."""
    from tricks.project.plan import with_techniques

    names, folder = split(words)
    change(folder, f"add {' '.join(names)}", with_techniques(names), data or [], defaults, dry_run)


def remove(words: Words, data: Data = None, defaults: Defaults = False, dry_run: DryRun = False) -> None:
    """Remove techniques from a project, and keep what its owner changed."""
    from tricks.project.plan import without_techniques

    names, folder = split(words)
    change(folder, f"remove {' '.join(names)}", without_techniques(names), data or [], defaults, dry_run)


def set_answers(
    words: Annotated[list[str], typer.Argument(metavar="KEY=VALUE... [DEST]", help="Answers, and the project.")],
    defaults: Defaults = False,
    dry_run: DryRun = False,
) -> None:
    """Change answers of a project, for example schedule=plateau or techniques=amp,ddp."""
    from tricks.project.plan import with_answers

    last = words[-1]
    folder, pairs = (Path(last), words[:-1]) if "=" not in last or Path(last).is_dir() else (Path(), words)
    if not pairs:
        raise typer.BadParameter("name an answer, for example schedule=plateau")
    change(folder, f"set {' '.join(pairs)}", with_answers(pairs), [], defaults, dry_run, pairs)


def update(
    folder: Folder = Path(),
    to: Annotated[str | None, typer.Option(metavar="VERSION", help="This version; by default the newest.")] = None,
    data: Data = None,
    defaults: Defaults = False,
    dry_run: DryRun = False,
) -> None:
    """Bring a newer version of the template into a project, and keep what its owner changed."""
    change(folder, "update", lambda known, answers: answers, data or [], defaults, dry_run, to=to or "newest")


def undo(
    folder: Folder = Path(),
    force: Annotated[
        bool, typer.Option("--force", help="Also in files that were edited since; a patch keeps those edits.")
    ] = False,
) -> None:
    """Take back the last add, remove, set or update of a project."""
    from tricks.cli.main import plain_errors
    from tricks.project import read as existing
    from tricks.project import undo as undoing

    with plain_errors():
        undone = undoing.take_back(existing.locate(folder), force)
        typer.echo(f"`tricks {undone.command}` is taken back: {len(undone.files)} files are as they were.")
        if undone.patch:
            typer.echo(f"Your edits since are in {undone.patch}: `git apply --3way {shlex.quote(str(undone.patch))}`.")


def change(
    folder: Path,
    command: str,
    revise: Callable[[Any, Any], dict[str, Any]],
    data: list[str],
    defaults: bool,
    dry_run: bool,
    given: list[str] | None = None,
    to: str | None = None,
) -> None:
    """What the commands share: check, merge, and show or apply the result."""
    from tricks.cli import outcome
    from tricks.cli import prompts as asking
    from tricks.cli.main import plain_errors
    from tricks.project import apply as applying
    from tricks.project import plan as changing
    from tricks.project import read as existing
    from tricks.template import versions

    with plain_errors():
        project = existing.read(folder)
        with versions.origin(project.address) as origin:
            version = None
            if to is not None:
                existing.check_clean(project)
                version = versions.target(origin, project.version, to)
                if version is None:
                    typer.echo(f"Nothing to update: the project is at {project.version}, the newest version.")
                    return
                command = f"update --to {version}"
            complete = asking.completion(data, defaults)
            planned = changing.prepare(project, origin, command, revise, complete, version)
        idle = [pair for pair in given or [] if pair.partition("=")[0] not in {*planned.answers, "preset"}]
        if idle:
            raise UserError(f"{idle[0].partition('=')[0]} has no effect with these techniques: nothing was changed.")
        if not planned.steps:
            typer.echo("Nothing to change: the project has that already.")
            return
        if dry_run:
            outcome.preview(planned)
        else:
            applying.apply(project.place, planned.steps, command)
            outcome.show(planned)
        if planned.merged.conflicts:
            raise typer.Exit(UNRESOLVED)


def split(words: list[str]) -> tuple[list[str], Path]:
    """Techniques, and the project's folder: a last word that is no technique but a path or a folder."""
    last = words[-1]
    is_folder = "/" in last or "\\" in last or last in (".", "..") or Path(last).is_dir()
    if is_folder and last not in complete_techniques(last):
        words, folder = words[:-1], Path(last)
    else:
        folder = Path()
    names = [name for word in words for name in word.split(",") if name]
    if not names:
        raise typer.BadParameter("name a technique; `tricks list` shows them")
    return names, folder


def status(folder: Folder = Path()) -> None:
    """Show a project's version and answers, what its owner changed, conflicts left, and whether there is news."""
    from tricks.cli import outcome
    from tricks.cli.main import plain_errors
    from tricks.project import read as existing
    from tricks.project import status as standing
    from tricks.template import versions

    with plain_errors():
        project = existing.read(folder)
        with versions.origin(project.address) as origin:
            found = standing.stand(project, origin, patience=10)
        outcome.show_standing(project, found)
        if found.conflicts:
            raise typer.Exit(UNRESOLVED)
