"""Which choices a condition of the template holds for: Jinja tests as binary decision diagrams over the options.

A diagram has one variable for each value of an option other than its first; with none of them true the option has its
first value. Two conditions that hold for the same choices are the same diagram, whatever they are written like.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jinja2
from jinja2 import meta, nodes

from matrix.diagrams import Diagram, Diagrams
from matrix.space import Choice, Row, Space, TooManyError

Values = dict[str, Any]
MOST = 2**13  # combinations of values that are looked at one by one


class Conditions:
    """The conditions of one space. Those that no valid choice meets are not the same as `false`: see `possible`."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.domains = {name: option.values for name, option in space.options.items()} | space.texts
        self.variables = {
            f"{name}={value}": (name, value) for name, values in self.domains.items() for value in values[1:]
        }
        self.diagrams = Diagrams(self.variables)
        self.true, self.false = self.diagrams.true, self.diagrams.false
        self._values: dict[str, list[tuple[Any, Diagram]]] = {}
        self.valid = self.all(
            self.any(
                self.all(self.exactly(*pair) for pair in zip(group.options, assignment, strict=True))
                for assignment in group.allowed
            )
            for group in space.groups
        )

    def all(self, conditions: Iterable[Diagram]) -> Diagram:
        found = self.true
        for condition in conditions:
            found = found & condition
        return found

    def any(self, conditions: Iterable[Diagram]) -> Diagram:
        found = self.false
        for condition in conditions:
            found = found | condition
        return found

    def option(self, name: str, value: Any) -> Diagram:
        """The choices whose option, or free text, has this value."""
        values = self.domains[name]
        if value not in values:
            return self.false
        if value == values[0]:
            return ~self.any(self.diagrams.variable(f"{name}={other}") for other in values[1:])
        return self.diagrams.variable(f"{name}={value}")

    def exactly(self, name: str, value: Any) -> Diagram:
        others = (other for other in self.domains[name] if other != value)
        return self.all([self.option(name, value), *(~self.option(name, other) for other in others)])

    def possible(self, condition: Diagram) -> bool:
        """Whether some valid choice meets a condition."""
        return condition is not self.false and condition & self.valid is not self.false

    def smallest(self, condition: Diagram) -> Row:
        """The valid choice that meets a condition with the fewest options, and free texts, away from their first value.

        Raises ValueError when there is none.
        """
        number, names = least(condition & self.valid, {})
        if number == float("inf"):
            raise ValueError("No valid choice meets this condition.")
        changed = dict(self.variables[name] for name in names)
        return {name: changed.get(name, values[0]) for name, values in self.domains.items()}

    def choice(self, row: Row) -> Choice:
        """The answers of a row, with its free texts where they are not the default."""
        texts = {name: row[name] for name, values in self.space.texts.items() if row[name] != values[0]}
        return self.space.choice(row) | texts

    def holds(self, condition: Diagram, row: Row) -> bool:
        node = condition
        while node.variable:
            name, value = self.variables[node.variable]
            node = node.high if row[name] == value else node.low
        return node is self.true

    def values_of(self, row: Row, names: Iterable[str]) -> Values:
        """What files read under these names in the project of a row."""
        return {name: next(value for value, when in self.values(name) if self.holds(when, row)) for name in names}

    # ------------------------------------------------------------------------------------------------- from Jinja

    def truth(self, test: nodes.Node) -> Diagram:
        """The choices for which a Jinja test is true."""
        questions = self.space.template.questions
        match test:
            case nodes.And():
                return self.truth(test.left) & self.truth(test.right)
            case nodes.Or():
                return self.truth(test.left) | self.truth(test.right)
            case nodes.Not():
                return ~self.truth(test.node)
            case nodes.Compare(
                expr=nodes.Const(value=member), ops=[nodes.Operand(op="in" | "notin" as op, expr=nodes.Name(name=name))]
            ) if questions.get(name, {}).get("multiselect"):
                inside = self.member(member, name)
                return inside if op == "in" else ~inside
            case nodes.Compare(
                expr=nodes.Filter(name="length", node=nodes.Name(name=name)),
                ops=[nodes.Operand(op="gt", expr=nodes.Const(value=0))],
            ) if questions.get(name, {}).get("multiselect"):
                return self.any(self.member(value, name) for value in questions[name]["choices"].values())
        check = nodes.If(test, [nodes.Output([nodes.TemplateData("yes")])], [], [])
        environment = self.space.template.environment
        template = compiled(environment, [check])
        cases = self.cases(names_in(environment, [check]))
        return self.any(condition for values, condition in cases if template.render(values))

    def member(self, value: str, question: str) -> Diagram:
        """The choices for which a question that takes several has this value; its default's where it is not asked."""
        asked = self.space.template.questions[question].get("when", True)
        chosen = self.option(value, True) if value in self.space.options else self.false
        if not isinstance(asked, str):
            return chosen
        is_asked = self.text(asked)
        default = self.space.template.default(self.space.template.questions[question], {})
        return (is_asked & chosen) | (~is_asked if value in default else self.false)

    def text(self, text: str) -> Diagram:
        """The choices for which a text of copier.yml, `{{ test }}`, is true."""
        tree = self.space.template.environment.parse(text)
        match tree.body:
            case [nodes.Output(nodes=[nodes.TemplateData(), *_] | [_, _, *_])]:
                raise ValueError(f"{text!r} of copier.yml is not one expression.")
            case [nodes.Output(nodes=[test])]:
                return self.truth(test)
        raise ValueError(f"{text!r} of copier.yml is not one expression.")

    def values(self, name: str) -> list[tuple[Any, Diagram]]:
        """What files read under a name, each with the choices that give it; free text has two samples."""
        if name not in self._values:
            self._values[name] = self._values_of(name)
        return self._values[name]

    def _values_of(self, name: str) -> list[tuple[Any, Diagram]]:
        template, space = self.space.template, self.space
        if name not in template.questions:
            raise ValueError(f"{name} is read, and copier.yml has no such question or derived value.")
        question = template.questions[name]
        if name in space.texts:
            return [(text, self.option(name, text)) for text in space.texts[name]]
        if name in space.options:
            found = [(value, self.option(name, value)) for value in space.options[name].values]
            if found[0][0] is None:  # not asked: the default
                found = [(template.default(question, {}), found[0][1]), *found[1:]]
            return merged(self, found)
        default = question.get("default")
        if question.get("multiselect"):
            members = [(value, self.member(value, name)) for value in question["choices"].values()]
            lists: list[tuple[Any, Diagram]] = [([], self.true)]
            for value, chosen in members:
                lists = [pair for so_far, condition in lists
                         for pair in ((so_far, condition & ~chosen), ([*so_far, value], condition & chosen))
                         if self.possible(pair[1])]  # fmt: skip
                limit(name, lists)
            return lists
        if question["type"] == "bool" and isinstance(default, str):
            condition = self.text(default)
            return [(True, condition), (False, ~condition)]
        if not isinstance(default, str):
            return [(default, self.true)]
        read = names_in(template.environment, template.environment.parse(default).body)
        return merged(self, [(template.default(question, values), when) for values, when in self.cases(read)])

    def cases(self, names: Iterable[str]) -> list[tuple[Values, Diagram]]:
        """All combinations of these values that some valid choice gives, each with the choices that give it.

        Raises TooManyError when there are more than 2^13.
        """
        found: list[tuple[Values, Diagram]] = [({}, self.true)]
        for name in sorted(names):
            found = [
                (values | {name: value}, both)
                for values, condition in found
                for value, when in self.values(name)
                if self.possible(both := condition & when)
            ]
            limit(", ".join(names), found)
        return found


def least(node: Diagram, kept: dict[Diagram, tuple[float, tuple[str, ...]]]) -> tuple[float, tuple[str, ...]]:
    """The fewest variables that are true where a diagram is; infinitely many where it never is."""
    if not node.variable:
        return (0 if node is node.owner.true else float("inf")), ()
    if node not in kept:
        low, high = least(node.low, kept), least(node.high, kept)
        kept[node] = min(low, (high[0] + 1, (node.variable, *high[1])), key=lambda found: found[0])
    return kept[node]


def merged(conditions: Conditions, found: Iterable[tuple[Any, Diagram]]) -> list[tuple[Any, Diagram]]:
    """Each value once."""
    by_value: dict[str, tuple[Any, Diagram]] = {}
    for value, condition in found:
        before = by_value.get(repr(value), (value, conditions.false))
        by_value[repr(value)] = (value, before[1] | condition)
    return list(by_value.values())


def limit(what: str, found: list[Any]) -> None:
    if len(found) > MOST:
        raise TooManyError(f"{what} are read together in more than {MOST} combinations: read fewer, or booleans.")


def fragment(environment: jinja2.Environment, body: list[nodes.Node]) -> nodes.Template:
    tree = nodes.Template(body, lineno=1)
    tree.set_environment(environment)
    return tree.set_lineno(1, override=False)  # type: ignore[return-value]


def names_in(environment: jinja2.Environment, body: list[nodes.Node]) -> set[str]:
    return meta.find_undeclared_variables(fragment(environment, body))


def compiled(environment: jinja2.Environment, body: list[nodes.Node]) -> jinja2.Template:
    code = environment.compile(fragment(environment, body))
    return jinja2.Template.from_code(environment, code, environment.make_globals(None))
