"""The commands that only look: list, explain, show, diff, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tricks import UserError
from tricks.cli.command import GRAMMAR, NONE, Command, Data, DataFile, Preset, app, given_words, plain
from tricks.template import questions, source

if TYPE_CHECKING:
    from tricks.template.explain import Addition, Technique
    from tricks.template.questions import Question
    from tricks.template.rendering import Template

CHANGES = ("add", "remove", "set", "update")


@app.command("list", cls=Command)
def list_all() -> None:
    """List what can be chosen."""
    from tricks.cli import output

    with source.template() as found:
        output.notice(found.warning)
        known = questions.load(found.root / "copier.yml")
    presets = questions.presets(known)
    width = max(map(len, [*known["techniques"].choices, *questions.asked(known)])) + 2
    typer.echo("Techniques (`tricks explain NAME` tells more):")
    for name, line in known["techniques"].choices.items():
        typer.echo(f"  {name:{width}}{line.partition(': ')[2]}")
    typer.echo("\nPresets:")
    for name, members in presets.items():
        typer.echo(f"  {name:{width}}{', '.join(members) or 'none'}")
    typer.echo("\nOther questions (KEY=VALUE):")
    for question in known.values():
        if question.choices and not question.hidden and question.name not in ("techniques", "preset"):
            typer.echo(f"  {question.name:{width}}{', '.join(question.choices)}")


def complete_names(incomplete: str) -> list[str]:
    known = questions.load(source.copier_yml())
    asked = [question for question in known.values() if not question.hidden]
    names = [*known["techniques"].choices, *(question.name for question in asked)]
    names += [value for question in asked for value in question.choices]
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


@app.command(cls=Command)
def explain(name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete_names)]) -> None:
    """Explain a technique, a question, one of its values, or a preset.

    For a technique: what it does, when it helps, what it costs, its knobs, and the lines that it adds.
    """
    from tricks.cli import output
    from tricks.template import explain as explaining
    from tricks.template.rendering import Template

    with source.template() as found:
        output.notice(found.warning)
        template = Template(found.root)
        known = questions.parse(template.config)
        asked = {name: question for name, question in known.items() if not question.hidden}
        holders = [question for question in asked.values() if name in question.choices]
        if name in known["techniques"].choices:
            describe_technique(explaining.technique(template, name))
        elif name in questions.presets(known):
            members = questions.presets(known)[name]
            typer.secho(known["preset"].choices[name], bold=True)
            typer.echo(f"\nIts techniques: {', '.join(members) or 'none'}.\nThe code: `tricks show {name}`.")
        elif name in asked:
            describe_question(template, asked[name])
        elif holders:
            for question in holders:
                describe_value(template, question, name)
        else:
            names = [
                *known["techniques"].choices,
                *asked,
                *(value for each in asked.values() for value in each.choices),
            ]
            raise UserError(f"There is no {name!r}: {near_or_list(name, names)}")


def near_or_list(name: str, names: list[str]) -> str:
    sentence = questions.nearest(name, names)
    return sentence if sentence.startswith("did") else "`tricks list` shows what there is."


def describe_technique(found: Technique) -> None:
    typer.secho(f"{found.name}: {found.summary}", bold=True)
    typer.echo(f"\n{found.about}\n\nPick it: {found.when}.\nCosts: {found.costs}")
    for question in found.asks:
        typer.echo(f"\n{question.help} ({question.name})")
        for line in question.choices.values():
            typer.echo(f"  {line}")
    describe_addition(found.adds, "in a project with nothing else")


def describe_question(template: Template, question: Question) -> None:
    from tricks.template import explain as explaining

    technique = explaining.owner(template, question.name)
    typer.secho(f"{question.name}: {question.help}", bold=True)
    if technique:
        typer.echo(f"Asked with the technique {technique}.")
    base = {"techniques": [technique]} if technique else {}
    default = template.answer(base).values[question.name]
    typer.echo(f"By default: {', '.join(default) or 'none' if isinstance(default, list) else default or 'empty'}.")
    if question.choices:
        typer.echo("\nValues (`tricks explain VALUE` shows what each adds):")
    for line in question.choices.values():
        typer.echo(f"  {line}")


def describe_value(template: Template, question: Question, name: str) -> None:
    from tricks.template import explain as explaining

    typer.secho(question.choices[name], bold=True)
    technique = explaining.owner(template, question.name)
    arises = f", which is asked with the technique {technique}" if technique else ""
    typer.echo(f"A value of {question.name} ({question.help}){arises}.")
    if question.name != "preset":
        beside, addition = explaining.value(template, question, name)
        describe_addition(addition, f"beside {question.name}={beside or 'none'}")


def describe_addition(found: Addition, beside: str) -> None:
    from tricks.cli import output

    if found.knobs:
        typer.echo("\nKnobs of the generated project:")
    for knob in found.knobs:
        typer.echo(f"  {knob.name}  {knob.kind} = {knob.default}\n      {knob.help}")
    files = ", ".join(f"{path} ({lines} lines)" for path, lines in found.new_files.items())
    typer.echo(f"\nNew files: {files or 'none'}.\nLines elsewhere, {beside}:\n")
    typer.echo(output.colored(found.difference) or "  none\n", nl=False)


@app.command(
    cls=Command,
    help=f"""Show the code that would be generated: train.py, or the files that are named. Nothing is written.

{GRAMMAR}
For example: tricks show minimal +ddp distributed.py""",
)
def show(
    words: Annotated[list[str], given_words("[WORD | FILE]...")] = NONE,
    preset: Preset = None,
    data: Data = NONE,
    data_file: DataFile = None,
) -> None:
    from tricks.cli import output
    from tricks.template import choice
    from tricks.template import explain as explaining
    from tricks.template.rendering import Template

    with source.template() as found:
        output.notice(found.warning)
        template = Template(found.root)
        known = questions.parse(template.config)
        names = {path.as_posix() for path in template.files}
        files = [word for word in words if is_file(known, word, names)]
        rest = [word for word in words if word not in files]
        answers = choice.read(template, known, [*rest, *([preset] if preset else []), *data], data_file)
        wanted = files or ["train.py"]
        project = explaining.texts(template, answers, only=wanted)
        for name in wanted:
            if name not in project:
                raise UserError(f"With these answers there is no file {name!r}: {questions.nearest(name, project)}")
        for name in wanted:
            if len(wanted) > 1:
                typer.secho(f"# {name}", bold=True)
            output.highlight(name, project[name])
        if not files:
            others = ", ".join(name for name in sorted(project) if name != "train.py")
            typer.echo(f"Other files: {others}.", err=True)


def is_file(known: dict[str, Question], word: str, names: set[str]) -> bool:
    """Whether a word names a file and not a choice: one of the template's, or what looks like one."""
    choices = {*known["techniques"].choices, *questions.presets(known)}
    if word in choices or "=" in word or word.startswith(("+", "-")):
        return False
    return word in names or "." in word or "/" in word


@app.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True},
    help=f"""Show the difference between two choices, or the one that a change would make to a project.

A bare name begins a choice, what follows belongs to it; of one choice with changes, the two are without and with them.

\b
  tricks diff minimal everything
  tricks diff amp,ddp recommended schedule=plateau
  tricks diff minimal +ddp
  tricks diff add ddp        in a project: also remove, set, update

{GRAMMAR}
A file with answers is a choice too.""",
)
def diff(
    ctx: typer.Context,
    words: Annotated[list[str], given_words("CHOICE CHOICE | add|remove|set|update ...")] = NONE,
    before: Annotated[
        list[str], typer.Option("--from", metavar="WORD", callback=plain, help="A word of the first choice.")
    ] = NONE,
    after: Annotated[
        list[str], typer.Option("--to", metavar="WORD", callback=plain, help="A word of the second choice.")
    ] = NONE,
) -> None:
    from tricks.cli import output
    from tricks.template import choice
    from tricks.template import explain as explaining
    from tricks.template.rendering import Template

    if words and words[0] in CHANGES:
        arguments = [*words[1:], *(["--to", after[0]] if after else []), "--dry-run"]
        assert ctx.parent is not None and isinstance(ctx.parent.command, TyperGroup)
        command = ctx.parent.command.commands[words[0]]
        with command.make_context(words[0], arguments, parent=ctx.parent) as inner:
            command.invoke(inner)
        return
    option = next((word for word in words if word.startswith("--")), None)
    if option:
        ctx.fail(f"No such option: {option}")
    if (before or after) and (words or not before or not after):
        raise UserError("Name both choices: write for example `tricks diff minimal amp,ddp`.")
    with source.template() as found:
        template = Template(found.root)
        known = questions.parse(template.config)
        pair = (before, after) if before else choice.sides(words)
        sides = [explaining.texts(template, answers_of(template, known, side)) for side in pair]
        output.notice(found.warning)
        difference = explaining.difference(*sides)
        typer.echo(output.colored(difference), nl=False)
        if not difference:
            typer.echo("There is no difference.", err=True)


def answers_of(template: Template, known: dict[str, Question], side: list[str]) -> dict[str, Any]:
    """The answers of one side's words, among which may be a file."""
    from tricks.template import choice

    files = [word for word in side if word.endswith((".yml", ".yaml")) and "=" not in word]
    file = Path(files[-1]) if files else None
    return choice.read(template, known, [word for word in side if word not in files], file)


@app.command(cls=Command)
def doctor(
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The Python that trains; by default one that has PyTorch.")
    ] = None,
) -> None:
    """Tell what this machine's device is, and what each technique would do on it."""
    from tricks.cli import doctor as examination
    from tricks.cli import output
    from tricks.template.rendering import Template

    with source.template() as found:
        output.notice(found.warning)
        chosen = python or examination.with_torch()
        with output.working(f"Asking {chosen} what each technique does on this machine"):
            lines = list(examination.examine(Template(found.root), chosen))
    for line in lines:
        typer.echo(line)
