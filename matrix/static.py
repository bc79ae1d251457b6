"""The static check: every project that can be generated, as text."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass, field

from matrix.arrays import covering_array
from matrix.conditions import Conditions
from matrix.demands import check_choices
from matrix.faults import Fault, joined
from matrix.pieces import sources
from matrix.rules import check_rules
from matrix.samples import alone, everything, nothing
from matrix.space import Row, Space
from matrix.texts import check_texts
from matrix.typecheck import check_types


@dataclass
class Static:
    """What was checked, what it took, and what is wrong."""

    counts: dict[str, int]
    faults: list[Fault] = field(default_factory=list)
    seconds: dict[str, tuple[float, float]] = field(default_factory=dict)  # wall, CPU


def check(space: Space, types: bool = True) -> Static:
    """Checks all texts of all files, and what holds across them for all valid choices.

    Raises TooManyError when a file reads values in more combinations than can be looked at.
    """
    began = clock()
    conditions = Conditions(space)
    files = sources(conditions)
    counts = {"valid choices": space.count(), "files": len(files), "pieces": sum(len(file.pieces) for file in files)}
    result = Static(counts)
    rows = sample(space)
    result.seconds["space"], began = since(began), clock()
    result.faults, counts["texts looked at"] = check_texts(conditions, files, rows)
    result.seconds["texts"], began = since(began), clock()
    if not any("no valid Python" in fault.what for fault in result.faults):
        more, counts["rules across files"] = check_rules(conditions, files)
        result.faults += more
    result.faults += check_choices(conditions, files)
    result.seconds["rules"], began = since(began), clock()
    if types:
        counts["type-checked projects"] = len(rows)
        result.faults += check_types(conditions, files, rows)
        result.seconds["types"] = since(began)
    result.faults = joined(result.faults)
    return result


def sample(space: Space) -> list[Row]:
    """Nothing, everything, each option alone, all pairs; every other one with free texts other than the default."""
    whole = [everything(space, task) for task in space.options["task"].values]
    rows = [nothing(space), *whole, *alone(space).values(), *covering_array(space, 2)]
    return [row | {name: texts[place % 2] for name, texts in space.texts.items()} for place, row in enumerate(rows)]


def clock() -> tuple[float, float]:
    used = os.times()
    return time.perf_counter(), used.user + used.system + used.children_user + used.children_system


def since(began: tuple[float, float]) -> tuple[float, float]:
    now = clock()
    return now[0] - began[0], now[1] - began[1]


def report(result: Static) -> str:
    """The tables, and each fault in a line."""
    lines = [f"{name:<24}{number:>14,}" for name, number in result.counts.items()]
    lines += [f"  {name:<10} {wall:>6.1f} s, CPU {cpu:.1f} s" for name, (wall, cpu) in result.seconds.items()]
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    lines.append(f"  memory     {peak / 1024:>6.0f} MB at most, of the largest process")
    lines += [f"FAULT {fault}" for fault in result.faults]
    lines.append(f"static: {len(result.faults)} faults")
    return "\n".join(lines)
