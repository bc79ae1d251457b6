"""What each choice of copier.yml must bring with it: docs/adding-a-technique.md lists the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from matrix.conditions import Conditions
from matrix.diagrams import Diagram
from matrix.faults import Fault
from matrix.pieces import Source

FILE = "copier.yml"
TECHNIQUES = "techniques"


def check_choices(conditions: Conditions, sources: list[Source]) -> list[Fault]:
    """The choices that lack something, and the pieces of files that no choice has."""
    found = [Fault(FILE, what) for what in (*without_entry(conditions), *without_test(conditions, sources))]
    if not conditions.space.only:
        found += [Fault(FILE, what) for what in (*outside_everything(conditions), *without_effect(conditions, sources))]
        found += [
            Fault(f"{piece.file}:{piece.line}", "no choice has this line")
            for source in sources
            for piece in source.pieces
            if not piece.blank and not conditions.possible(piece.condition & source.present)
        ]
    return found


def without_entry(conditions: Conditions) -> Iterator[str]:
    """Choices without their derived boolean or their words under _tricks.

    The kinds of a technique (clip, schedule) are read by their own name in its module.
    """
    questions = conditions.space.template.questions
    tricks: dict[str, Any] = conditions.space.template.config.get("_tricks", {})
    for option in conditions.space.options.values():
        question = questions[option.question]
        kinds = isinstance(question.get("when"), str) and not question.get("multiselect")
        for value in [option.name] if option.values == (False, True) or question.get("multiselect") else option.values:
            if kinds or value in (None, "none"):
                continue
            if questions.get(value, {}).get("type") != "bool":
                yield f"{value} is offered, and there is no boolean {value} that follows from it"
            if not tricks.get("tokens", {}).get(value):
                yield f"{value} is offered, and _tricks.tokens has no words that a project with it holds"
            if option.question != TECHNIQUES:
                continue
            if not any(str(token).startswith("### ") for token in tricks.get("tokens", {}).get(value, [])):
                yield f"{value} is offered, and _tricks.tokens has no heading (### ...) of its section of the README"
            for entry in ("about", "costs"):
                if not tricks.get(TECHNIQUES, {}).get(value, {}).get(entry):
                    yield f"{value} is offered, and _tricks.techniques.{value} has no `{entry}`"


def without_test(conditions: Conditions, sources: list[Source]) -> Iterator[str]:
    """Techniques without a test file that is there if and only if they are chosen."""
    own = [source.present for source in sources if source.path.name.startswith("test_")]
    for name, option in conditions.space.options.items():
        if option.question == TECHNIQUES and len(option.values) > 1 and conditions.option(name, True) not in own:
            yield f"{name} is offered, and no file of tests/ is there exactly with it"


def outside_everything(conditions: Conditions) -> Iterator[str]:
    """Techniques that the preset `everything` could have and has not."""
    space = conditions.space
    everything = space.template.questions["presets"]["default"]["everything"]
    having = conditions.all(conditions.option(name, True) for name in everything)
    for name, option in space.options.items():
        missing = option.question == TECHNIQUES and name not in everything
        if missing and conditions.possible(having & conditions.option(name, True)):
            yield f"{name} is offered, and the preset `everything` does not hold it"


def without_effect(conditions: Conditions, sources: Iterable[Source]) -> Iterator[str]:
    """Choices that change no file of the project."""
    deciding: set[str] = set()
    for condition in decisions(conditions, sources):
        deciding |= condition.support()
    for variable, (name, value) in conditions.variables.items():
        if variable not in deciding:
            yield f"{name if value is True else value} is offered, and changes no file"


def decisions(conditions: Conditions, sources: Iterable[Source]) -> Iterator[Diagram]:
    for source in sources:
        yield source.present
        for piece in source.pieces:
            yield piece.condition
        for _, when in conditions.cases(source.shows):
            yield when
