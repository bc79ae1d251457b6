"""Which projects are trained: all combinations of the headline techniques, covering arrays, a cold sample, a walk."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from matrix.arrays import covering_array
from matrix.jobs import Job, amp_dtypes
from matrix.samples import alone, everything, nothing, presets
from matrix.space import Row, Space

# The techniques that meet in the loop. Each is taken with all its kinds.
HEADLINE = ("amp", "accumulation", "ddp", "scheduler", "export", "profiler")


def headline(space: Space) -> list[Job]:
    """All combinations of the headline techniques and their kinds, for every task.

    Of a kind of which several may be chosen (export formats), each is taken by itself.
    """
    base = nothing(space)
    axes = []
    for name in (*HEADLINE, "task"):
        group = next(group for group in space.groups if name in group.options)
        place = group.options.index(name)
        members = [i for i, option in enumerate(group.options) if space.options[option].values == (False, True)]
        # Besides the technique itself, one member at most.
        wanted = [row for row in group.allowed if sum(row[i] for i in members if i != place) <= 1]
        axes.append([dict(zip(group.options, row, strict=True)) for row in wanted])
    dtypes = [name for name in amp_dtypes(space.template) if name != "off"]
    found = []
    for parts in itertools.product(*axes):
        row = dict(base)
        for part in parts:
            row |= part
        choice = space.choice(row)
        found += [Job(choice, amp=name) for name in (dtypes if row["amp"] else [""])]
    return found


def spread(space: Space, rows: list[Row], proofs: bool = False) -> list[Job]:
    """Jobs of these rows, which take turns with the types of --amp.dtype."""
    dtypes = itertools.cycle(amp_dtypes(space.template))
    return [Job(space.choice(row), amp=next(dtypes) if row["amp"] else "", proofs=proofs) for row in rows]


def pairs(space: Space, proofs: bool = False) -> list[Job]:
    return spread(space, covering_array(space, 2), proofs)


def triples(space: Space) -> list[Job]:
    return spread(space, covering_array(space, 3))


def basics(space: Space) -> list[Job]:
    """Nothing, everything for each task, and each value of each option with nothing more than it needs."""
    whole = [everything(space, task) for task in space.options["task"].values]
    return spread(space, [nothing(space), *whole, *alone(space).values()])


def cold(space: Space) -> list[Job]:
    """Fresh interpreters, torchrun, real compilation, curves and AOTInductor's compiler."""
    every = [space.choice(space.row_of(choice)) for choice in presets(space).values()]
    tasks, each = len(space.options["task"].values), len(every) // len(space.options["task"].values)
    # Each preset with one task, in turn: compiling takes minutes.
    chosen = [every[index % tasks * each + index] for index in range(each)]
    single = alone(space)
    chosen += [space.choice(single[name]) for name in ("compile", "ddp", "aotinductor") if name in single]
    return [Job(choice, cold=True) for choice in chosen]


def walk(space: Space, seed: int) -> Iterator[Job]:
    """Random valid choices without end."""
    source = random.Random(seed)
    dtypes = amp_dtypes(space.template)
    while True:
        row = space.draw(source)
        yield Job(space.choice(row), amp=source.choice(dtypes) if row["amp"] else "")
