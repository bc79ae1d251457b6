"""The commands that change a project, and those that look at one: add, remove, set, update, undo, status."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from tricks import UserError
from tricks.cli.command import GRAMMAR, NONE, Command, Data, Defaults, app, given_words, plain
from tricks.template import questions, source

# The exit status of a change that was made but needs the owner: 1 is for a change that was refused.
UNRESOLVED = 3
ANSWERS = ".copier-answers.yml"

Words = Annotated[list[str], given_words("WORD... [DEST]")]
Folder = Annotated[Path, typer.Argument(metavar="[DEST]")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the difference that it would make; change nothing.")]

WHERE = "The project is the one around this folder, or that of the last word: p, or ./p where a technique is called so."


def its_words(what: str, examples: str) -> str:
    return f"{what}\n\n{GRAMMAR}\n{WHERE}\n\n{examples}"


@app.command(
    cls=Command,
    help=its_words(
        "Add techniques to a project, and keep what its owner changed.",
        "For example: tricks add ddp export export_formats=onnx",
    ),
)
def add(words: Words = NONE, data: Data = NONE, defaults: Defaults = False, dry_run: DryRun = False) -> None:
    change("add", words, "+", data, defaults, dry_run)


@app.command(
    cls=Command,
    help=its_words(
        "Remove techniques from a project, and keep what its owner changed.",
        "For example: tricks remove ddp",
    ),
)
def remove(words: Words = NONE, data: Data = NONE, defaults: Defaults = False, dry_run: DryRun = False) -> None:
    change("remove", words, "-", data, defaults, dry_run)


@app.command(
    "set",
    cls=Command,
    help=its_words(
        "Change the answers of a project, and keep what its owner changed. Bare names replace its techniques.",
        "For example: tricks set schedule=plateau +ddp -amp",
    ),
)
def set_answers(words: Words = NONE, data: Data = NONE, defaults: Defaults = False, dry_run: DryRun = False) -> None:
    change("set", words, "", data, defaults, dry_run)


@app.command(cls=Command)
def update(
    words: Annotated[list[str], typer.Argument(metavar="[KEY=VALUE]... [DEST]", callback=plain)] = NONE,
    to: Annotated[str | None, typer.Option(metavar="VERSION", help="This version; by default the newest.")] = None,
    data: Data = NONE,
    defaults: Defaults = False,
    dry_run: DryRun = False,
) -> None:
    """Bring a newer version of the template into a project, and keep what its owner changed.

    KEY=VALUE answers a question that is new.
    """
    change("update", words, "", data, defaults, dry_run, to=to or "newest")


def change(
    command: str, words: list[str], sign: str, data: list[str], defaults: bool, dry_run: bool, to: str | None = None
) -> None:
    """What the commands share: read the words, merge, and show or apply the result."""
    from tricks.cli import output, prompts
    from tricks.project import apply, plan, read
    from tricks.template import choice, versions

    words, folder = split(words)
    words = [*words, *data]
    example = "schedule=plateau" if command == "set" else "ddp"
    if to is None and not words:
        raise UserError(
            f"Name what to {command}, for example `tricks {command} {example}`; `tricks list` shows what there is."
        )
    if to is not None and any("=" not in word for word in words):
        raise UserError("`tricks update` takes KEY=VALUE alone: choose techniques by `tricks add` before or after it.")
    project = read.read(project_around(folder))
    with versions.origin(project.address) as origin:
        version = None
        label = " ".join([command, *words])
        if to is not None:
            read.check_clean(project)
            version = versions.target(origin, project.version, to)
            if version is None:
                typer.echo(f"Nothing to update: the project is at {project.version}, the newest version.")
                return
            label = f"update --to {version}"
        template = origin.template(version or project.version)

        def revise(known: Any, answers: dict[str, Any]) -> dict[str, Any]:
            try:
                return choice.revise(template, known, words, sign, answers)
            except choice.UnknownName as error:
                raise UserError(
                    f"This project's version of the template has no technique {error.name!r}: {error.hint} "
                    "(`tricks update` brings newer ones.)"
                ) from error

        def complete(template: Any, known: Any, answers: dict[str, Any]) -> dict[str, Any]:
            complete_answers = answers if defaults else prompts.ask_open(template, known, answers, {})
            asked = template.answer(complete_answers).asked
            idle = [name for name in choice.parse(known, words, sign).answers if name not in asked]
            if idle:
                raise UserError(f"{idle[0]} has no effect with these techniques: leave it out.")
            return complete_answers

        planned = plan.prepare(project, origin, label, revise, complete, version)
    if not planned.steps:
        typer.echo("Nothing to change: the project has that already.")
        return
    if dry_run:
        output.preview(planned)
    else:
        apply.apply(project.place, planned.steps, label)
        output.show(planned)
    if planned.merged.conflicts:
        raise typer.Exit(UNRESOLVED)


def split(words: list[str]) -> tuple[list[str], Path | None]:
    """The words, and the project's folder: a last word that is a path or a folder, and no name of the template."""
    if not words or ("=" in words[-1] and not Path(words[-1]).is_dir()):
        return words, None
    last = words[-1]
    known = questions.load(source.copier_yml())
    names = {
        *questions.presets(known),
        *(value for each in known.values() if each.multiselect for value in each.choices),
    }
    if last not in names and (last in (".", "..") or "/" in last or "\\" in last or Path(last).is_dir()):
        return words[:-1], Path(last)
    return words, None


def project_around(folder: Path | None) -> Path:
    """The folder of the project that a folder is or lies in; itself where it lies in none."""
    start = folder or Path()
    here = start.absolute()
    for parent in (here, *here.parents):
        if (parent / ANSWERS).is_file():
            return start if parent == here else parent
        if (parent / ".git").exists():
            break
    return start


@app.command(cls=Command)
def undo(
    dest: Folder = Path(),
    force: Annotated[
        bool, typer.Option("--force", help="Also in files that were edited since; a patch keeps those edits.")
    ] = False,
) -> None:
    """Take back the last add, remove, set or update of a project."""
    from tricks.project import read
    from tricks.project import undo as undoing

    undone = undoing.take_back(read.locate(project_around(dest)), force)
    typer.echo(f"`tricks {undone.command}` is taken back: {len(undone.files)} files are as they were.")
    if undone.patch:
        typer.echo(f"Your later edits are kept: `git apply --3way {shlex.quote(str(undone.patch))}` brings them back.")


@app.command(cls=Command)
def status(dest: Folder = Path()) -> None:
    """Show a project's version and answers, what its owner changed, conflicts left, and whether there is news."""
    from tricks.cli import output
    from tricks.project import read
    from tricks.project.status import examine
    from tricks.template import versions

    project = read.read(project_around(dest))
    with versions.origin(project.address) as origin:
        found = examine(project, origin, patience=10)
    output.show_status(project, found)
    if found.conflicts:
        raise typer.Exit(UNRESOLVED)
