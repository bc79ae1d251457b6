"""The commands that only look: list, explain, show, diff, doctor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tricks.cli import change as cli_change

if TYPE_CHECKING:
    from tricks.template.explain import Technique


def list_techniques() -> None:
    """List what can be picked."""
    from tricks.template import questions, source

    known = questions.load(source.copier_yml())
    presets = questions.presets(known)
    width = max(map(len, [*known["techniques"].choices, *questions.asked(known)])) + 2
    typer.echo("Techniques (`tricks explain NAME` tells more):")
    for name, line in known["techniques"].choices.items():
        typer.echo(f"  {name:{width}}{line.partition(': ')[2]}")
    typer.echo("\nPresets:")
    for name, members in presets.items():
        typer.echo(f"  {name:{width}}{', '.join(members) or 'none'}")
    typer.echo("\nOther questions (-d KEY=VALUE):")
    for question in known.values():
        if question.choices and not question.hidden and question.name not in ("techniques", "preset"):
            typer.echo(f"  {question.name:{width}}{', '.join(question.choices)}")


def explain(
    name: Annotated[
        str, typer.Argument(metavar="TECHNIQUE", autocompletion=cli_change.complete_techniques, help="Its name.")
    ],
) -> None:
    """Explain a technique: what it does, when it helps, what it costs, its knobs, and the lines that it adds."""
    from tricks.cli.main import plain_errors
    from tricks.template import explain as looking
    from tricks.template import source
    from tricks.template.rendering import Template

    with plain_errors(), source.template() as found:
        describe(looking.technique(Template(found.root), name))


def describe(found: Technique) -> None:
    typer.secho(f"{found.name}: {found.summary}", bold=True)
    typer.echo(f"\n{found.about}\n\nPick it: {found.when}.\nCosts: {found.costs}")
    for question in found.asks:
        typer.echo(f"\n{question.help} ({question.name})")
        for line in question.choices.values():
            typer.echo(f"  {line}")
    if found.knobs:
        typer.echo("\nKnobs of the generated project:")
    for knob in found.knobs:
        typer.echo(f"  {knob.name}  {knob.kind} = {knob.default}\n      {knob.help}")
    files = ", ".join(f"{path} ({lines} lines)" for path, lines in found.new_files.items())
    typer.echo(f"\nNew files: {files or 'none'}.\nLines elsewhere, in a project with nothing else:\n")
    typer.echo(colored(found.difference) or "  none\n", nl=False)


def show(
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="By default train.py.")] = None,
    preset: Annotated[str | None, typer.Option(metavar="NAME", help="A set of techniques.")] = None,
    data: Annotated[
        list[str] | None, typer.Option("--data", "-d", metavar="KEY=VALUE", help="An answer (repeatable).")
    ] = None,
) -> None:
    """Show the code that would be generated; nothing is written."""
    from tricks import UserError
    from tricks.cli.main import plain_errors
    from tricks.template import explain as looking
    from tricks.template import questions, source
    from tricks.template.rendering import Template

    with plain_errors(), source.template() as found:
        template = Template(found.root)
        known = questions.parse(template.config)
        wanted = files or ["train.py"]
        project = looking.texts(template, questions.gather(known, preset, data or [], None), only=wanted)
        for name in wanted:
            if name not in project:
                where = questions.nearest(name, project)
                raise UserError(f"With these answers there is no file {name!r}: {where}")
        for name in wanted:
            if len(wanted) > 1:
                typer.secho(f"# {name}", bold=True)
            highlight(name, project[name])
        if not files:
            others = ", ".join(name for name in sorted(project) if name != "train.py")
            typer.echo(f"Other files: {others}.", err=True)


def diff(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[add|remove|set|update ...]", help="A change to a project, to be looked at first."),
    ] = None,
    before: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="CHOICE", help="A preset, techniques (amp,ddp), KEY=VALUE, or a file."),
    ] = None,
    after: Annotated[list[str] | None, typer.Option("--to", metavar="CHOICE", help="The same (repeatable).")] = None,
) -> None:
    """Show the difference between two choices, or the one that a change would make to a project."""
    from tricks.cli.main import app, plain_errors
    from tricks.template import explain as looking
    from tricks.template import questions, source
    from tricks.template.rendering import Template

    if words and words[0] in ("add", "remove", "set", "update"):
        command = [*words, *context.args, *(["--to", after[0]] if after else []), "--dry-run"]
        app(command, prog_name="tricks", standalone_mode=True)
    if words or not before or not after:
        raise typer.BadParameter(
            "write for example `tricks diff --from minimal --to amp,ddp`, or in a project `tricks diff add ddp`"
        )
    with plain_errors(), source.template() as found:
        template = Template(found.root)
        known = questions.parse(template.config)
        sides = [looking.texts(template, looking.choice(known, words)) for words in (before, after)]
        typer.echo(colored(looking.difference(*sides)), nl=False)


def doctor(
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The Python that trains; by default one that has PyTorch.")
    ] = None,
) -> None:
    """Tell what this machine's device is, and what each technique would do on it."""
    from tricks.cli import doctor
    from tricks.cli.main import plain_errors
    from tricks.template import source
    from tricks.template.rendering import Template

    with plain_errors(), source.template() as found:
        for line in doctor.examine(Template(found.root), python):
            typer.echo(line)


def colored(difference: str) -> str:
    """A unified difference as git colors it, at a terminal."""
    if not sys.stdout.isatty():
        return difference
    colors = {"+": typer.colors.GREEN, "-": typer.colors.RED, "@": typer.colors.CYAN}
    lines = []
    for line in difference.splitlines(keepends=True):
        head = line.startswith(("+++", "---"))
        lines.append(typer.style(line, bold=True) if head else typer.style(line, fg=colors.get(line[:1])))
    return "".join(lines)


def highlight(name: str, text: str) -> None:
    """The text in color at a terminal, and byte for byte elsewhere."""
    if not sys.stdout.isatty():
        typer.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.syntax import Syntax

    lexer = Syntax.guess_lexer(Path(name).name, text)
    Console().print(Syntax(text.rstrip("\n"), lexer, theme="ansi_dark", background_color="default"))
