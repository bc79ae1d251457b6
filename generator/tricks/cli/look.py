"""The commands that only look: list, explain, show, diff, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tricks import UserError
from tricks.cli.command import DATA, DATA_FILE, GRAMMAR, PRESET, Command, complete_words, plain, words
from tricks.template import questions, source

if TYPE_CHECKING:
    from tricks.template.explain import Addition, Technique
    from tricks.template.questions import Question
    from tricks.template.rendering import Template

CHANGES = ("add", "remove", "set", "update")


@click.command("list", cls=Command)
def list_all() -> None:
    """List what can be chosen."""
    from tricks.cli import output

    with source.template() as found:
        output.notice(found.warning)
        known = questions.load(found.root / "copier.yml")
    presets = questions.presets(known)
    width = max(map(len, [*known["techniques"].choices, *questions.asked(known)])) + 2
    click.echo("Techniques (`tricks explain NAME` tells more):")
    for name, line in known["techniques"].choices.items():
        click.echo(f"  {name:{width}}{line.partition(': ')[2]}")
    click.echo("\nPresets:")
    for name, members in presets.items():
        click.echo(f"  {name:{width}}{', '.join(members) or 'none'}")
    click.echo("\nOther questions (KEY=VALUE):")
    for question in known.values():
        if question.choices and not question.hidden and question.name not in ("techniques", "preset"):
            click.echo(f"  {question.name:{width}}{', '.join(question.choices)}")


def complete_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    known = questions.load(source.copier_yml())
    asked = [question for question in known.values() if not question.hidden]
    names = [*known["techniques"].choices, *(question.name for question in asked)]
    names += [value for question in asked for value in question.choices]
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


@click.command(cls=Command)
@click.argument("name", shell_complete=complete_names)
def explain(name: str) -> None:
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
            click.secho(known["preset"].choices[name], bold=True)
            click.echo(f"\nIts techniques: {', '.join(members) or 'none'}.\nThe code: `tricks show {name}`.")
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
    click.secho(f"{found.name}: {found.summary}", bold=True)
    click.echo(f"\n{found.about}\n\nPick it: {found.when}.\nCosts: {found.costs}")
    for question in found.asks:
        click.echo(f"\n{question.help} ({question.name})")
        for line in question.choices.values():
            click.echo(f"  {line}")
    describe_addition(found.adds, "in a project with nothing else")


def describe_question(template: Template, question: Question) -> None:
    from tricks.template import explain as explaining

    technique = explaining.owner(template, question.name)
    click.secho(f"{question.name}: {question.help}", bold=True)
    if technique:
        click.echo(f"Asked with the technique {technique}.")
    base = {"techniques": [technique]} if technique else {}
    default = template.answer(base).values[question.name]
    click.echo(f"By default: {', '.join(default) or 'none' if isinstance(default, list) else default or 'empty'}.")
    if question.choices:
        click.echo("\nValues (`tricks explain VALUE` shows what each adds):")
    for line in question.choices.values():
        click.echo(f"  {line}")


def describe_value(template: Template, question: Question, name: str) -> None:
    from tricks.template import explain as explaining

    click.secho(question.choices[name], bold=True)
    technique = explaining.owner(template, question.name)
    arises = f", which is asked with the technique {technique}" if technique else ""
    click.echo(f"A value of {question.name} ({question.help}){arises}.")
    if question.name != "preset":
        beside, addition = explaining.value(template, question, name)
        describe_addition(addition, f"beside {question.name}={beside or 'none'}")


def describe_addition(found: Addition, beside: str) -> None:
    from tricks.cli import output

    if found.knobs:
        click.echo("\nKnobs of the generated project:")
    for knob in found.knobs:
        click.echo(f"  {knob.name}  {knob.kind} = {knob.default}\n      {knob.help}")
    files = ", ".join(f"{path} ({lines} lines)" for path, lines in found.new_files.items())
    click.echo(f"\nNew files: {files or 'none'}.\nLines elsewhere, {beside}:\n")
    click.echo(output.colored(found.difference) or "  none\n", nl=False)


@click.command(
    cls=Command,
    help=f"""Show the code that would be generated: train.py, or the files that are named. Nothing is written.

{GRAMMAR}
For example: tricks show minimal +ddp distributed.py""",
)
@words("[WORD | FILE]...")
@PRESET
@DATA
@DATA_FILE
def show(words: list[str], preset: str | None, data: list[str], data_file: str | None) -> None:
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
        answers = choice.read(
            template, known, [*rest, *([preset] if preset else []), *data], Path(data_file) if data_file else None
        )
        wanted = files or ["train.py"]
        project = explaining.texts(template, answers, only=wanted)
        for name in wanted:
            if name not in project:
                raise UserError(f"With these answers there is no file {name!r}: {questions.nearest(name, project)}")
        for name in wanted:
            if len(wanted) > 1:
                click.secho(f"# {name}", bold=True)
            output.highlight(name, project[name])
        if not files:
            others = ", ".join(name for name in sorted(project) if name != "train.py")
            click.echo(f"Other files: {others}.", err=True)


def is_file(known: dict[str, Question], word: str, names: set[str]) -> bool:
    """Whether a word names a file and not a choice: one of the template's, or what looks like one."""
    choices = {*known["techniques"].choices, *questions.presets(known)}
    if word in choices or "=" in word or word.startswith(("+", "-")):
        return False
    return word in names or "." in word or "/" in word


@click.command(
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
@click.argument(
    "words",
    nargs=-1,
    metavar="CHOICE CHOICE | add|remove|set|update ...",
    callback=plain,
    shell_complete=complete_words,
)
@click.option("--from", "before", metavar="WORD", multiple=True, callback=plain, help="A word of the first choice.")
@click.option("--to", "after", metavar="WORD", multiple=True, callback=plain, help="A word of the second choice.")
@click.pass_context
def diff(ctx: click.Context, words: list[str], before: list[str], after: list[str]) -> None:
    from tricks.cli import output
    from tricks.template import choice
    from tricks.template import explain as explaining
    from tricks.template.rendering import Template

    if words and words[0] in CHANGES:
        arguments = [*words[1:], *(["--to", after[0]] if after else []), "--dry-run"]
        assert ctx.parent is not None and isinstance(ctx.parent.command, click.Group)
        command = ctx.parent.command.commands[words[0]]
        with command.make_context(words[0], arguments, parent=ctx.parent) as inner:
            command.invoke(inner)
        return
    option = next((word for word in words if word.startswith("--")), None)
    if option:
        raise click.NoSuchOption(option, ctx=ctx)
    if (before or after) and (words or not before or not after):
        raise UserError("Name both choices: write for example `tricks diff minimal amp,ddp`.")
    with source.template() as found:
        template = Template(found.root)
        known = questions.parse(template.config)
        pair = (before, after) if before else choice.sides(words)
        sides = [explaining.texts(template, answers_of(template, known, side)) for side in pair]
        output.notice(found.warning)
        difference = explaining.difference(*sides)
        click.echo(output.colored(difference), nl=False)
        if not difference:
            click.echo("There is no difference.", err=True)


def answers_of(template: Template, known: dict[str, Question], side: list[str]) -> dict[str, Any]:
    """The answers of one side's words, among which may be a file."""
    from tricks.template import choice

    files = [word for word in side if word.endswith((".yml", ".yaml")) and "=" not in word]
    file = Path(files[-1]) if files else None
    return choice.read(template, known, [word for word in side if word not in files], file)


@click.command(cls=Command)
@click.option("--python", metavar="PATH", help="The Python that trains; by default one that has PyTorch.")
def doctor(python: str | None) -> None:
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
        click.echo(line)
