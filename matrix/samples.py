"""Choices that stand for many: nothing, everything, each option alone, the presets, random ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from matrix.space import Choice, Group, Row, Space


def nothing(space: Space) -> Row:
    """Every option at its first value, as far as that is valid."""
    return space.row(least(group, space) for group in space.groups)


def everything(space: Space, task: str) -> Row:
    """Every option at another value than its first."""
    row = space.row(
        max(group.allowed, key=lambda assignment: weight(group, assignment, space)) for group in space.groups
    )
    return row | {"task": task}


def least(group: Group, space: Space) -> tuple[Any, ...]:
    return min(group.allowed, key=lambda assignment: weight(group, assignment, space))


def weight(group: Group, assignment: tuple[Any, ...], space: Space) -> int:
    """How many options of a group are not at their first value."""
    pairs = zip(group.options, assignment, strict=True)
    return sum(value != space.options[name].values[0] for name, value in pairs)


def alone(space: Space) -> dict[str, Row]:
    """Each value of each option, with nothing more than it needs."""
    base = nothing(space)
    found: dict[str, Row] = {}
    for group in space.groups:
        for name in group.options:
            for value in space.options[name].values:
                place = group.options.index(name)
                having = [assignment for assignment in group.allowed if assignment[place] == value]
                if value == base[name] or not having:
                    continue
                smallest = min(having, key=lambda assignment: weight(group, assignment, space))
                row = base | dict(zip(group.options, smallest, strict=True))
                if row not in found.values():  # the first schedule is that of the technique by itself
                    found[name if value is True else f"{name}-{value}"] = row
    return found


def presets(space: Space) -> dict[str, Choice]:
    """Each preset of each task; what it does not say has copier.yml's default."""
    return {
        f"{task}-{preset}": {"task": task, "techniques": techniques}
        for task in space.options["task"].values
        for preset, techniques in space.template.questions["presets"]["default"].items()
    }


def smaller(space: Space, row: Row) -> Iterator[Row]:
    """Rows that differ in one group, which has fewer options away from their first value; the smallest first."""
    for group in space.groups:
        now = tuple(row[name] for name in group.options)
        lighter = [item for item in group.allowed if weight(group, item, space) < weight(group, now, space)]
        for assignment in sorted(lighter, key=lambda item: weight(group, item, space)):
            yield row | dict(zip(group.options, assignment, strict=True))


def drawn(space: Space, number: int, seed: int) -> list[Row]:
    """Random rows, the same for the same seed."""
    source = random.Random(seed)
    return [space.draw(source) for _ in range(number)]
