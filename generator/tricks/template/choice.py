"""A choice as people type it: presets and techniques by name, +NAME, -NAME and KEY=VALUE, the same in every command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tricks import UserError
from tricks.template import questions
from tricks.template.questions import Question
from tricks.template.rendering import Template

Answers = dict[str, Any]
Questions = Mapping[str, Question]


class UnknownName(UserError):
    """A word that is no name of this version of the template; `hint` says what it may mean."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"There is no {name!r}: {hint}")
        self.name = name
        self.hint = hint


@dataclass
class Choice:
    """Words, checked one by one. `more` and `less` hold pairs of a question and a value of its list."""

    preset: str = ""
    names: list[str] = field(default_factory=list)  # techniques that are named outright
    more: list[tuple[str, str]] = field(default_factory=list)
    less: list[tuple[str, str]] = field(default_factory=list)
    answers: Answers = field(default_factory=dict)


def parse(known: Questions, words: Iterable[str], sign: str = "") -> Choice:
    """What the words say; `sign` is that of a bare name, which without one is named outright.

    Raises UserError for words that contradict each other, and UnknownName.
    """
    choice = Choice()
    presets = questions.presets(known)
    pairs = []
    for word in words:
        if "=" in word:
            pairs.append(word)
            continue
        its_sign = word[:1] if word[:1] in ("+", "-") else sign
        for name in filter(None, (part.strip() for part in word.removeprefix(its_sign or " ").split(","))):
            if its_sign:
                listed = choice.more if its_sign == "+" else choice.less
                listed.append((_list_that_holds(known, name), name))
            elif name in known["techniques"].choices:
                choice.names.append(name)
            elif name in presets:
                if choice.preset not in ("", name):
                    raise UserError(f"{choice.preset} and {name} are two presets: name one.")
                choice.preset = name
            else:
                raise unknown(known, name, [*presets, *known["techniques"].choices])
    choice.answers = questions.from_arguments(known, pairs)
    if "preset" in choice.answers and not choice.preset:
        choice.preset = choice.answers.pop("preset")
    if "preset" in choice.answers:
        raise UserError("Two presets are given: name one.")
    if "techniques" in choice.answers and (choice.preset or choice.names):
        raise UserError(f"{choice.preset or choice.names[0]} and techniques= are both given: leave out one.")
    both = [pair[1] for pair in choice.more if pair in choice.less]
    if both:
        raise UserError(f"{both[0]} is both added and taken away: leave out one.")
    return choice


def _list_that_holds(known: Questions, name: str) -> str:
    lists = [question for question in known.values() if question.multiselect and not question.hidden]
    for question in lists:
        if name in question.choices:
            return question.name
    raise unknown(known, name, [value for question in lists for value in question.choices])


def unknown(known: Questions, name: str, names: Iterable[str]) -> UserError:
    """The error for a word that is none of the names: how to say what it probably means."""
    for question in known.values():
        if name in question.choices and not question.hidden and question.name != "preset":
            sign = f" or +{name}" if question.multiselect else ""
            return UserError(f"{name!r} is a value of {question.name}: write {question.name}={name}{sign}.")
    if name in known and not known[name].hidden:
        return UserError(f"{name!r} is a question: write {name}=VALUE.")
    if name in questions.presets(known):
        return UserError(f"{name!r} is a preset: it has no sign and stands alone.")
    near = questions.nearest(name, names)
    return UnknownName(name, near if near.startswith("did") else questions.nearest(name, known["techniques"].choices))


def answers(template: Template, known: Questions, choice: Choice, present: Answers, where: str) -> Answers:
    """The answers that a choice gives, on top of those that are present; what it leaves open is not in them.

    A preset alone stays a preset, so that its techniques can still be asked for. `where` names what is present in an
    error. Raises UserError for a value that is taken away and not there.
    """
    given = present | choice.answers
    if choice.preset or choice.names:
        given.pop("techniques", None)
        given.pop("preset", None)
    if choice.names:
        base = questions.presets(known)[choice.preset] if choice.preset else []
        given["techniques"] = [*base, *(name for name in choice.names if name not in base)]
    elif choice.preset:
        given["preset"] = choice.preset
    touched = {question for question, _ in choice.more + choice.less}
    for question in sorted(touched, key=list(known).index):
        there = list(template.answer(given).values[question])
        more = [value for its, value in choice.more if its == question]
        less = [value for its, value in choice.less if its == question]
        missing = [value for value in less if value not in there]
        if missing:
            has = ", ".join(there) or "none"
            raise UserError(f"{missing[0]} is not in {where}: its {question} are {has}.")
        kept = [value for value in there if value not in less]
        given[question] = kept + [value for value in dict.fromkeys(more) if value not in kept]
    if "techniques" in given and touched:
        given.pop("preset", None)
    return in_order(known, given)


def in_order(known: Questions, given: Answers) -> Answers:
    """The same answers, each list in the order of its choices, as Copier records it."""
    return {
        name: [item for item in known[name].choices if item in value] if isinstance(value, list) else value
        for name, value in given.items()
    }


def read(
    template: Template, known: Questions, words: Iterable[str], file: Path | None = None, where: str = "the choice"
) -> Answers:
    """The answers of words, and of a file with answers below them. Raises UserError."""
    filed = {} if file is None else questions.from_file(known, file)
    return answers(template, known, parse(known, words), filed, where)


def revise(template: Template, known: Questions, words: Iterable[str], sign: str, present: Answers) -> Answers:
    """A project's answers as the words change them. Raises UserError."""
    given = answers(template, known, parse(known, words, sign), present, "the project")
    preset = given.pop("preset", None)
    return given if preset is None else given | {"techniques": questions.presets(known)[preset]}


def sides(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """The words of the two choices that are compared: a bare name begins one, and what follows belongs to it.

    Of one name with changes after it, the two are without and with them. Raises UserError where there are not two.
    """
    found: list[list[str]] = []
    for word in words:
        if word[:1] not in ("+", "-") and "=" not in word:
            found.append([])
        if not found:
            raise UserError(f"Name the choice to which {word} is a change, for example `tricks diff recommended {word}`.")
        found[-1].append(word)
    if len(found) == 1 and len(found[0]) > 1:
        return found[0][:1], found[0]
    if len(found) != 2:
        raise UserError(
            "Name two choices, for example `tricks diff minimal recommended`, `tricks diff minimal +ddp`, or in a "
            "project `tricks diff add ddp`. Techniques of one choice have commas between them: amp,ddp."
        )
    return found[0], found[1]
