"""Facts of all projects at once: each is a truth table over the values that its file reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from matrix.facts import Fact, Words, facts
from matrix.space import Space
from matrix.variants import Unit, Values


@dataclass(frozen=True)
class Table:
    """Where a fact holds: the combinations of the values under `names`. Nothing else decides it."""

    names: tuple[str, ...]
    true: frozenset[tuple[Any, ...]]

    def holds(self, values: Values) -> bool:
        return tuple(key(values[name]) for name in self.names) in self.true


def key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def chosen(name: str) -> Table:
    """The table of a boolean of copier.yml."""
    return Table((name,), frozenset({(True,)}))


@dataclass
class Facts:
    """For each fact its table in each file, or section, that has it."""

    tables: dict[Fact, dict[str, Table]]

    def kind(self, kind: str) -> list[Fact]:
        return [fact for fact in self.tables if fact[0] == kind]


def tabulate(units: Iterable[Unit], words: Words) -> Facts:
    """The truth tables of all facts, each reduced to the values that it depends on."""
    tables: dict[Fact, dict[str, Table]] = defaultdict(dict)
    for unit in units:
        known: dict[str, set[Fact]] = {}
        holding: dict[Fact, int] = defaultdict(int)  # a bit for each variant
        for index, (_, text) in enumerate(unit.variants):
            if text is None:
                continue
            if text not in known:
                known[text] = facts(unit.path, text, words)
            for fact in known[text]:
                holding[fact] |= 1 << index
        reduced: dict[int, Table] = {}
        for fact, bits in holding.items():
            if bits not in reduced:
                reduced[bits] = reduce(unit, bits)
            tables[fact][unit.label] = reduced[bits]
    return Facts(dict(tables))


def reduce(unit: Unit, bits: int) -> Table:
    """The table without the names that the fact does not depend on."""
    truth = [bool(bits >> index & 1) for index in range(len(unit.variants))]
    names = list(unit.names)
    columns = {name: [key(values[name]) for values, _ in unit.variants] for name in names}

    def rows(kept: list[str]) -> dict[tuple[Any, ...], bool] | None:
        """The table by the kept names; None where they do not decide the fact."""
        found: dict[tuple[Any, ...], bool] = {}
        for index, holds in enumerate(truth):
            row = tuple(columns[name][index] for name in kept)
            if found.setdefault(row, holds) != holds:
                return None
        return found

    for name in list(names):
        fewer = [other for other in names if other != name]
        if rows(fewer) is not None:
            names = fewer
    decided = rows(names) or {}
    return Table(tuple(names), frozenset(row for row, holds in decided.items() if holds))


def counterexample(space: Space, premise: Table, conclusions: list[Table]) -> Values | None:
    """Values that some valid choice gives, where the premise holds and no conclusion does; None when there are none.

    Conclusions that depend on nothing more are tried first: the fewer names, the fewer combinations.
    """
    for names in growing(premise, conclusions):
        able = [table for table in conclusions if set(table.names) <= names]
        against = next(
            (
                values
                for values in space.project(names)
                if premise.holds(values) and not any(table.holds(values) for table in able)
            ),
            None,
        )
        if against is None:
            return None
    return against


def growing(premise: Table, conclusions: list[Table]) -> list[set[str]]:
    """The premise's own names, and with more and more of the conclusions' until they have all."""
    names = [set(premise.names)]
    for table in sorted(conclusions, key=lambda table: len(table.names)):
        if not set(table.names) <= names[-1]:
            names.append(names[-1] | set(table.names))
    return names
