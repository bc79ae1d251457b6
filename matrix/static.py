"""The static check: every project that can be generated, as text."""

from __future__ import annotations

import gc
import os
import time
from dataclasses import dataclass, field

from matrix.arrays import covering_array
from matrix.rules import check_rules
from matrix.samples import alone, everything, nothing
from matrix.space import Row, Space
from matrix.texts import Fault, check_texts
from matrix.typecheck import check_types
from matrix.variants import Unit, units


@dataclass
class Static:
    """What was checked, what it took, and what is wrong."""

    choices: int
    units: list[Unit]
    faults: list[Fault] = field(default_factory=list)
    rules: int = 0
    typed: int = 0  # projects that the type checker saw
    seconds: dict[str, tuple[float, float]] = field(default_factory=dict)  # wall, CPU

    def variants(self) -> dict[str, tuple[int, int]]:
        """Per file its variants and its distinct texts; of a Markdown file those of all its sections."""
        found: dict[str, tuple[int, int]] = {}
        for unit in self.units:
            name = unit.path.as_posix()
            before = found.get(name, (0, 0))
            found[name] = (before[0] + len(unit.variants), before[1] + len(unit.texts))
        return found


def check(space: Space) -> Static:
    """Checks all variants of all files, and what holds across them for all valid choices.

    Raises TooManyError when a file has more variants than can be looked at.
    """
    gc.freeze()  # hundreds of thousands of syntax trees come and go, with no cycle that lasts
    began = clock()
    result = Static(space.count(), units(space))
    result.seconds["render"], began = since(began), clock()
    result.faults = check_texts(space, result.units)
    result.seconds["texts"], began = since(began), clock()
    try:
        more, result.rules = check_rules(space, result.units)
    except SyntaxError as error:  # ruff has named the file
        more = [Fault(str(error.filename), f"cannot be read for the rules across files: {error}")]
    result.faults += more
    result.seconds["rules"], began = since(began), clock()
    projects = [space.choice(row) for row in type_checked(space)]
    result.typed = len(projects)
    result.faults += check_types(space, projects)
    result.seconds["types"] = since(began)
    return result


def type_checked(space: Space) -> list[Row]:
    """The projects that the type checker sees: nothing, everything, each option alone, all pairs."""
    whole = [everything(space, task) for task in space.options["task"].values]
    return [nothing(space), *whole, *alone(space).values(), *covering_array(space, 2)]


def clock() -> tuple[float, float]:
    used = os.times()
    return time.perf_counter(), used.user + used.system + used.children_user + used.children_system


def since(began: tuple[float, float]) -> tuple[float, float]:
    now = clock()
    return now[0] - began[0], now[1] - began[1]


def report(result: Static) -> str:
    """The tables, and each fault in a line."""
    lines = [f"valid choices     {result.choices:>10,}"]
    table = result.variants()
    for name, (variants, texts) in sorted(table.items(), key=lambda item: -item[1][0]):
        lines.append(f"  {name:<34} {variants:>6} variants {texts:>6} texts")
    lines.append(f"files             {len(table):>10,}")
    lines.append(f"variants          {sum(pair[0] for pair in table.values()):>10,}")
    lines.append(f"distinct texts    {sum(pair[1] for pair in table.values()):>10,}")
    lines.append(f"rules across files{result.rules:>10,}")
    lines.append(f"type-checked      {result.typed:>10,} projects")
    for name, (wall, cpu) in result.seconds.items():
        lines.append(f"  {name:<10} {wall:>6.1f} s, CPU {cpu:.1f} s")
    lines += [f"FAULT {fault}" for fault in result.faults]
    lines.append(f"static: {len(result.faults)} faults")
    return "\n".join(lines)
