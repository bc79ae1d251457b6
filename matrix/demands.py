"""What each choice of copier.yml must bring with it: docs/adding-a-technique.md lists the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from matrix.conditions import Conditions
from matrix.diagrams import Diagram
from matrix.faults import Fault
from matrix.pieces import Source

FILE = "copier.yml"
TECHNIQUES = "techniques"


def without_choice(conditions: Conditions, sources: list[Source]) -> list[Fault]:
    """Lines that no choice has. One that a filter changes in some choices is two pieces."""
    lines: dict[str, Diagram] = {}
    for source in sources:
        for piece in source.pieces:
            if not piece.blank:
                where = f"{piece.file}:{piece.line}"
                lines[where] = lines.get(where, ~conditions.true) | (piece.condition & source.present)
    return [Fault(where, "no choice has this line") for where, when in lines.items() if not conditions.possible(when)]


def check_choices(conditions: Conditions, sources: list[Source]) -> list[Fault]:
    """The choices that lack something, and the pieces of files that no choice has."""
    found = [Fault(FILE, what) for what in (*without_entry(conditions), *without_test(conditions, sources))]
    if not conditions.space.only:
        found += [Fault(FILE, what) for what in (*outside_everything(conditions), *without_effect(conditions, sources))]
        found += without_choice(conditions, sources)
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
    having = conditions.all(conditions.member(name, TECHNIQUES) for name in everything)
    for name, option in space.options.items():
        missing = option.question == TECHNIQUES and name not in everything
        if missing and conditions.possible(having & conditions.option(name, True)):
            yield f"{name} is offered, and the preset `everything` does not hold it"


def without_effect(conditions: Conditions, sources: Iterable[Source]) -> Iterator[str]:
    """Choices that change no file of the project: members that nothing depends on, values that all do the same with."""
    by_variable: dict[str, set[Diagram]] = defaultdict(set)
    for condition in set(decisions(conditions, sources)):
        for variable in condition.support():
            by_variable[variable].add(condition)
    space = conditions.space
    for name, option in space.options.items():
        values = [value for value in option.values if value is not None]
        fixed = {value: {f"{name}={other}": other == value for other in option.values[1:]} for value in values}
        reading = set().union(*(by_variable[variable] for variable in fixed[values[-1]]))
        if option.values == (False, True):
            # Not only that something is chosen at all, which every other member says as well.
            others = {
                f"{other.name}=True": True for other in space.options.values() if other.question == option.question
            }
            del others[f"{name}=True"]
            if not any(f"{name}=True" in condition.fixed(others).support() for condition in reading):
                yield f"{name} is offered, and changes no file"
            continue
        behaviour = {value: [condition.fixed(fixed[value]) for condition in reading] for value in values}
        for place, value in enumerate(values):
            for other in values[:place]:
                if behaviour[value] == behaviour[other]:
                    yield f"{other} and {value} are offered, and their projects do not differ"


def decisions(conditions: Conditions, sources: Iterable[Source]) -> Iterator[Diagram]:
    for source in sources:
        yield source.present
        yield from (piece.condition & source.present for piece in source.pieces)
        yield from (when & source.present for _, when in conditions.cases(source.shows))
