"""What a technique is made of, read from copier.yml and from renderings with and without it."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tricks import UserError
from tricks.template import questions
from tricks.template.questions import Question
from tricks.template.rendering import Template

Answers = dict[str, Any]
Texts = Mapping[str, str]


@dataclass(frozen=True)
class Knob:
    """A value of the command line: `--amp.dtype`, its type, its default and its help."""

    name: str
    kind: str
    default: str
    help: str


@dataclass(frozen=True)
class Addition:
    """What a choice adds to another one: knobs, files with their number of lines, and the lines in other modules."""

    knobs: list[Knob]
    new_files: dict[str, int]
    difference: str


@dataclass(frozen=True)
class Technique:
    """A technique with what it adds to a project that has no other."""

    name: str
    summary: str
    when: str
    about: str
    costs: str
    asks: list[Question]
    adds: Addition


def texts(template: Template, answers: Answers, only: Container[str] | None = None) -> dict[str, str]:
    """The files of a choice, by path with slashes; those that `only` does not hold are empty.

    Raises UserError for a choice that the template refuses.
    """
    refusals = template.refusals(answers)
    if refusals:
        raise UserError(refusals[0])
    return {path.as_posix(): text for path, text in template.render(answers, only=only).items()}


def technique(template: Template, name: str) -> Technique:
    """Everything about a technique."""
    known = questions.parse(template.config)
    without, with_it = ({"techniques": techniques} for techniques in ([], [name]))
    new_questions = template.answer(with_it).recorded.keys() - template.answer(without).recorded.keys()
    told = template.config.get("_tricks", {}).get("techniques", {}).get(name, {})
    summary, _, when = known["techniques"].choices[name].partition(": ")[2].partition("; ")
    return Technique(
        name=name,
        summary=summary,
        when=when,
        about=told.get("about", ""),
        costs=told.get("costs", ""),
        asks=[question for question in known.values() if question.name in new_questions],
        adds=addition(template, without, with_it),
    )


def addition(template: Template, without: Answers, with_it: Answers) -> Addition:
    """What the second choice has and the first has not. Raises UserError for a choice that the template refuses."""
    before, after = texts(template, without), texts(template, with_it)
    shared = [path for path in after if path in before and path.endswith(".py") and not path.startswith("tests/")]
    old_knobs = knobs(before)
    return Addition(
        knobs=[knob for knob in knobs(after) if knob not in old_knobs],
        new_files={path: after[path].count("\n") for path in sorted(after) if path not in before},
        difference=difference({path: before[path] for path in shared}, {path: after[path] for path in shared}),
    )


def owner(template: Template, question: str) -> str:
    """The technique with which a question arises; empty for one that always does."""
    for techniques in ([], *([name] for name in template.values["techniques"])):
        if question in template.answer({"techniques": techniques}).asked:
            return "".join(techniques)
    return ""


def value(template: Template, question: Question, name: str) -> tuple[str, Addition]:
    """What a value adds, and the value beside which it was seen: the default, or the next one where it is the default."""
    base: Answers = {"techniques": [technique] if (technique := owner(template, question.name)) else []}
    default = template.answer(base).values[question.name]
    other = next(choice for choice in question.choices if choice != name)
    if not question.multiselect:
        beside = other if default == name else default
        return beside, addition(template, base | {question.name: beside}, base | {question.name: name})
    without = [choice for choice in default if choice != name]
    if template.refusals(base | {question.name: without}):
        without = [other]
    added = addition(template, base | {question.name: without}, base | {question.name: [*without, name]})
    return ", ".join(without), added


def knobs(project: Texts) -> list[Knob]:
    """The values that a project's command line takes, by its config dataclasses."""
    classes: dict[str, ast.ClassDef] = {}
    for path, text in project.items():
        if path.endswith(".py") and "/" not in path:
            found = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
            classes |= {node.name: node for node in found if node.name.endswith("Config")}
    return list(_knobs(classes, "Config", "--"))


def _knobs(classes: Mapping[str, ast.ClassDef], name: str, prefix: str) -> Iterable[Knob]:
    body = classes[name].body
    for index, node in enumerate(body):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        option = prefix + node.target.id.replace("_", "-")
        kind = ast.unparse(node.annotation)
        if kind in classes:
            yield from _knobs(classes, kind, f"{option}.")
            continue
        after = body[index + 1] if index + 1 < len(body) else None
        described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        text = str(after.value.value) if described else ""  # type: ignore[union-attr]
        yield Knob(option, kind, ast.unparse(node.value) if node.value else "", text)


def difference(before: Texts, after: Texts) -> str:
    """The unified difference of two projects."""
    parts: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = (side.get(path, "").splitlines(keepends=True) for side in (before, after))
        old_name = f"a/{path}" if path in before else "/dev/null"
        new_name = f"b/{path}" if path in after else "/dev/null"
        parts += difflib.unified_diff(old, new, old_name, new_name)
    return "".join(parts)
