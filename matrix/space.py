"""The option space, read from copier.yml: what can be chosen, and which choices are valid.

An option is a question with choices, or one member of a question that takes several. Options that meet in a `when`
or in a validator form a group, whose valid assignments are enumerated. Groups are independent of each other, so
the valid choices are the product of their groups: counted without walking through them, and drawn uniformly.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import nodes

from tricks.template.rendering import GIVEN, Template

ROOT = Path(__file__).resolve().parent.parent
# Assignments of one group that are walked through.
LIMIT = 2**17

Row = dict[str, Any]  # option -> value
Choice = dict[str, Any]  # question -> answer


@dataclass(frozen=True)
class Option:
    """A dimension of the space. A member of a multiselect is False or True; None: the question is not asked."""

    name: str
    question: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Group:
    """Options that constrain each other, with all their valid assignments."""

    options: tuple[str, ...]
    allowed: tuple[tuple[Any, ...], ...]


class TooManyError(Exception):
    """More combinations than can be walked through: the template's design has to change."""


class Space:
    """All valid choices of a template, names and descriptions aside."""

    def __init__(self, template: Template, only: Mapping[str, Iterable[Any]] | None = None) -> None:
        """`only` reduces the space: the values that an option may have."""
        self.template = template
        self.only = {name: tuple(values) for name, values in (only or {}).items()}

    @cached_property
    def options(self) -> dict[str, Option]:
        found: dict[str, Option] = {}
        for name, question in self.template.questions.items():
            if "choices" not in question or question.get("when") is False or self._is_shortcut(name):
                continue
            values = tuple(question["choices"].values())
            if question.get("multiselect"):
                new = [Option(value, name, (False, True)) for value in values]
            else:
                hidden = (None,) if isinstance(question.get("when"), str) else ()
                new = [Option(name, name, (*hidden, *values))]
            for option in new:
                if option.name in found:
                    raise ValueError(f"copier.yml offers {option.name!r} twice: an option needs a name of its own.")
                found[option.name] = option
        if unknown := self.only.keys() - found:
            raise ValueError(f"There is no option {', '.join(sorted(unknown))}: choose from {', '.join(found)}.")
        return {
            name: Option(name, option.question, self.only.get(name, option.values)) for name, option in found.items()
        }

    def _is_shortcut(self, name: str) -> bool:
        """Whether a question is asked only where a later one has no answer yet (`preset`): no option of its own."""
        asked = self.template.questions[name].get("when")
        if not isinstance(asked, str):
            return False
        tree = self.template.environment.parse(asked)
        return any(test.name in ("defined", "undefined") for test in tree.find_all(nodes.Test))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        parent = {name: name for name in self.options}

        def root(name: str) -> str:
            while parent[name] != name:
                name = parent[name]
            return name

        for name in {option.question for option in self.options.values()}:
            scope = sorted(self._constrained(name))
            for other in scope[1:]:
                parent[root(other)] = root(scope[0])
        members: dict[str, list[str]] = {}
        for name in self.options:
            members.setdefault(root(name), []).append(name)
        return tuple(self._group(tuple(names)) for names in members.values())

    def _constrained(self, question: str) -> set[str]:
        """The options that a question's condition or validator ties together."""
        entry = self.template.questions[question]
        own = {option.name for option in self.options.values() if option.question == question}
        asked = entry.get("when")
        tied = self.scope_of_text(asked) | own if isinstance(asked, str) else set()
        if validator := self.scope_of_text(entry.get("validator", "")):
            tied |= validator
        return tied

    def _group(self, names: tuple[str, ...]) -> Group:
        values = [self.options[name].values for name in names]
        if math.prod(map(len, values)) > LIMIT:
            raise TooManyError(f"The options {', '.join(names)} constrain each other in more than {LIMIT} ways.")
        rest = {name: option.values[0] for name, option in self.options.items()}
        rows = (dict(zip(names, combination, strict=True)) for combination in itertools.product(*values))
        questions = {self.options[name].question for name in names}
        return Group(names, tuple(tuple(row.values()) for row in rows if self._agrees(rest | row, questions)))

    def _agrees(self, row: Row, questions: set[str]) -> bool:
        """Whether copier.yml takes a row, as far as these questions are concerned."""
        choice = self.choice(row)
        answered = self.template.answer(choice)
        for name in questions:
            given, asked = choice.get(name), name in answered.recorded
            if given is None:  # not to be asked
                if asked and name not in choice:
                    return False
            elif not asked and given != []:
                return False
            if asked and self.refusal(name, answered.values):
                return False
        return True

    def refusal(self, question: str, values: Mapping[str, Any]) -> str:
        """What the validator of a question says to its value; empty when it is taken."""
        text = self.template.questions[question].get("validator", "")
        return self.template.evaluate(text, dict(values)).strip() if text else ""

    def count(self) -> int:
        """The number of valid choices."""
        return math.prod(len(group.allowed) for group in self.groups)

    def row(self, assignments: Iterable[tuple[Any, ...]]) -> Row:
        """A row from one assignment per group, in the order of the options."""
        found: Row = {}
        for group, assignment in zip(self.groups, assignments, strict=True):
            found.update(zip(group.options, assignment, strict=True))
        return {name: found[name] for name in self.options}

    def rows(self) -> Iterator[Row]:
        """Every valid row: for reduced spaces."""
        for assignments in itertools.product(*(group.allowed for group in self.groups)):
            yield self.row(assignments)

    def draw(self, source: random.Random) -> Row:
        """A valid row, each with the same probability."""
        return self.row(source.choice(group.allowed) for group in self.groups)

    def valid(self, row: Row) -> bool:
        return all(tuple(row[name] for name in group.options) in group.allowed for group in self.groups)

    def choice(self, row: Row) -> Choice:
        """The answers that a row stands for."""
        found: Choice = {}
        for name, option in self.options.items():
            if self.template.questions[option.question].get("multiselect"):
                members = found.setdefault(option.question, [])
                if row[name]:
                    members.append(name)
            elif row[name] is not None:
                found[option.question] = row[name]
        return found

    def row_of(self, choice: Choice) -> Row:
        """The row of a choice. What it does not answer has copier.yml's default.

        Raises ValueError when a value is none of the choices or is not valid.
        """
        answered = self.template.answer(choice)
        found: Row = {}
        for name, option in self.options.items():
            asked = option.question in answered.recorded
            if self.template.questions[option.question].get("multiselect"):
                found[name] = asked and name in answered.values[option.question]
            else:
                found[name] = answered.values[option.question] if asked else None
        for question, value in choice.items():
            offered = {str(item) for item in self.template.questions.get(question, {}).get("choices", {}).values()}
            if offered and (odd := set(value if isinstance(value, list) else [value]) - offered):
                raise ValueError(f"{question} has no value {', '.join(sorted(map(str, odd)))}.")
        if not self.valid(found):
            raise ValueError("This choice is not valid: copier.yml refuses it.")
        return found

    # ------------------------------------------------------------------------------- values that files read

    @cached_property
    def texts(self) -> dict[str, tuple[str, str]]:
        """Free text, which is no option: the default of each such question, and another text."""
        return {
            name: (str(question.get("default", "")), "Some words")
            for name, question in self.template.questions.items()
            if question["type"] == "str" and "choices" not in question and question.get("when") is not False
        }

    def scope_of_text(self, text: str) -> set[str]:
        """The options that a Jinja text depends on, through the values that it reads."""
        return self._scope(self.template.environment.parse(text)) if "{" in text else set()

    def _scope(self, tree: nodes.Template) -> set[str]:
        found = set()
        # `'amp' in techniques` depends on that member alone.
        members = []
        for compare in tree.find_all(nodes.Compare):
            operand = compare.ops[0]
            if len(compare.ops) == 1 and operand.op in ("in", "notin") and isinstance(compare.expr, nodes.Const):
                name = operand.expr
                member = self.options.get(str(compare.expr.value))
                if isinstance(name, nodes.Name) and member is not None and member.question == name.name:
                    found.add(member.name)
                    members.append(name)
        for name in tree.find_all(nodes.Name):
            if name.ctx == "load" and not any(name is member for member in members):
                found |= self.scope_of(name.name)
        return found

    def scope_of(self, name: str) -> set[str]:
        """The options that a value depends on: the question's own, or those that its default is computed from."""
        if name in GIVEN or name in self.texts:
            return set()
        own = {option.name for option in self.options.values() if option.question == name}
        if own:
            return own | {other for option in own for other in self._asked_by(option)}
        question = self.template.questions.get(name)
        default = question.get("default") if question else None
        return self.scope_of_text(default) if isinstance(default, str) else set()

    def _asked_by(self, option: str) -> set[str]:
        asked = self.template.questions[self.options[option].question].get("when")
        return self.scope_of_text(asked) if isinstance(asked, str) else set()
