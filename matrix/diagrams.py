"""Binary decision diagrams: functions of many booleans, of which two that are equal are the same object.

The library dd counts references by hand, and raises an error where Python frees a manager before its nodes.
Algorithm: R. E. Bryant, Graph-Based Algorithms for Boolean Function Manipulation, 1986.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Diagram:
    """A function: `low` where its first variable is false, `high` where it is true. The constants have no variable."""

    __slots__ = ("high", "low", "owner", "variable")

    def __init__(self, owner: Diagrams, variable: str, low: Diagram | None, high: Diagram | None) -> None:
        self.owner, self.variable = owner, variable
        self.low, self.high = low or self, high or self

    def __and__(self, other: Diagram) -> Diagram:
        return self.owner.choose(self, other, self.owner.false)

    def __or__(self, other: Diagram) -> Diagram:
        return self.owner.choose(self, self.owner.true, other)

    def __invert__(self) -> Diagram:
        return self.owner.choose(self, self.owner.false, self.owner.true)

    def fixed(self, values: Mapping[str, bool]) -> Diagram:
        """What is left when these variables have these values."""
        known: dict[Diagram, Diagram] = {}

        def walk(node: Diagram) -> Diagram:
            if not node.variable:
                return node
            if node not in known:
                if node.variable in values:
                    known[node] = walk(node.high if values[node.variable] else node.low)
                else:
                    known[node] = self.owner.choose(self.owner.variable(node.variable), walk(node.high), walk(node.low))
            return known[node]

        return walk(self)

    def support(self) -> set[str]:
        """The variables that it depends on."""
        found, pending = set[Diagram](), [self]
        while pending:
            node = pending.pop()
            if node.variable and node not in found:
                found.add(node)
                pending += [node.low, node.high]
        return {node.variable for node in found}


class Diagrams:
    """All functions of these variables, which are looked at in this order."""

    def __init__(self, variables: Iterable[str]) -> None:
        self.level = {name: place for place, name in enumerate(variables)}
        self.level[""] = len(self.level)
        self.true, self.false = Diagram(self, "", None, None), Diagram(self, "", None, None)
        self._nodes: dict[tuple[str, Diagram, Diagram], Diagram] = {}
        self._chosen: dict[tuple[Diagram, Diagram, Diagram], Diagram] = {}

    def variable(self, name: str) -> Diagram:
        return self._node(name, self.false, self.true)

    def _node(self, name: str, low: Diagram, high: Diagram) -> Diagram:
        if low is high:
            return low
        key = name, low, high
        if key not in self._nodes:
            self._nodes[key] = Diagram(self, *key)
        return self._nodes[key]

    def choose(self, test: Diagram, yes: Diagram, no: Diagram) -> Diagram:
        """`yes` where `test` holds, `no` elsewhere."""
        if test is self.true or yes is no:
            return yes
        if test is self.false:
            return no
        if yes is self.true and no is self.false:
            return test
        key = test, yes, no
        if key not in self._chosen:
            first = min((part.variable for part in key), key=self.level.__getitem__)
            low, high = (
                self.choose(*(getattr(part, side) if part.variable == first else part for part in key))
                for side in ("low", "high")
            )
            self._chosen[key] = self._node(first, low, high)
        return self._chosen[key]
