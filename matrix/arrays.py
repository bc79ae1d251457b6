"""Covering arrays: few rows in which every combination of values of any `strength` options occurs.

Greedy, a row at a time: each new row starts from a combination that is still missing and is improved group by group
until no other assignment of a group covers more. Rows are made of valid assignments only, so constraints hold.

Compared: allpairspy has strength 2 only; covertable has more. Both take constraints as a filter over rows, where here
the valid assignments of each group are known beforehand, so no row is ever thrown away.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np

from matrix.space import Row, Space

TRIES = 4


def covering_array(space: Space, strength: int, seed: int = 0) -> list[Row]:
    """Rows that cover every valid combination of `strength` options, 2 or 3; the same for the same seed."""
    if strength not in (2, 3):
        raise ValueError(f"The strength of a covering array is 2 or 3, not {strength}.")
    literals = {
        literal: index
        for index, literal in enumerate(
            (name, value) for name, option in space.options.items() for value in option.values
        )
    }
    # Per group the literals of each valid assignment.
    encoded = [
        np.array([[literals[pair] for pair in zip(group.options, row, strict=True)] for row in group.allowed])
        for group in space.groups
    ]
    missing = uncovered(encoded, len(literals), strength)
    source = random.Random(seed)
    rows: list[Row] = []
    while len(found := np.argwhere(missing)):
        best: list[int] = []
        most = -1
        for _ in range(TRIES):
            start = found[source.randrange(len(found))]
            picked, covered = improve(encoded, missing, start, source)
            if covered > most:
                best, most = picked, covered
        rows.append(space.row(group.allowed[index] for group, index in zip(space.groups, best, strict=True)))
        row = np.concatenate([part[index] for part, index in zip(encoded, best, strict=True)])
        missing[np.ix_(*[row] * strength)] = False
    return rows


def uncovered(encoded: list[np.ndarray], size: int, strength: int) -> np.ndarray:
    """A table over tuples of literals, ascending: true where a valid row holds all of them."""
    together = np.zeros((size,) * strength, dtype=bool)
    for groups in itertools.combinations_with_replacement(range(len(encoded)), strength):
        distinct = sorted(set(groups))
        for parts in itertools.product(*(encoded[index] for index in distinct)):
            row = np.concatenate(parts)
            together[np.ix_(*[row] * strength)] = True
    places = np.indices(together.shape)
    ascending = np.all(places[:-1] < places[1:], axis=0)
    return np.logical_and(together, ascending)


def improve(
    encoded: list[np.ndarray], missing: np.ndarray, start: np.ndarray, source: random.Random
) -> tuple[list[int], int]:
    """A row, as an assignment of each group, that holds the literals of `start`; and how much that is new it covers."""
    wanted = set(start.tolist())
    free: list[list[int]] = []
    for part in encoded:
        own = wanted & set(part.flatten().tolist())
        free.append([index for index, row in enumerate(part) if own <= set(row.tolist())])
    picked = [source.choice(indices) for indices in free]
    order = list(range(len(encoded)))
    covered, improved = -1, True
    while improved:
        improved = False
        source.shuffle(order)
        for place in order:
            scores = []
            for index in free[place]:
                trial = [encoded[g][index if g == place else picked[g]] for g in range(len(encoded))]
                row = np.concatenate(trial)
                scores.append(int(missing[np.ix_(*[row] * missing.ndim)].sum()))
            if scores and max(scores) > covered:
                covered, improved = max(scores), True
                picked[place] = free[place][scores.index(covered)]
    return picked, covered


def covers(space: Space, rows: list[Row], strength: int) -> bool:
    """Whether rows cover every combination that a valid row has: by a walk over all valid rows, for small spaces."""

    def combinations(row: Row) -> Any:
        return itertools.combinations(row.items(), strength)

    found = {combination for row in rows for combination in combinations(row)}
    return all(combination in found for row in space.rows() for combination in combinations(row))
