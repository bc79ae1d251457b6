"""What is wrong with the template: one mistake, one line of output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matrix.conditions import Conditions
from matrix.space import Row


@dataclass(frozen=True)
class Fault:
    """What is wrong, the line of the template, and what is chosen in the smallest known project that shows it."""

    where: str  # file:line
    what: str
    chosen: tuple[str, ...] = ()

    @classmethod
    def of(cls, conditions: Conditions, where: str, what: str, row: Row) -> Fault:
        return cls(where, what, changed(conditions, row))

    def __str__(self) -> str:
        return f"{self.where}: {self.what} [{', '.join(self.chosen) or 'with nothing chosen'}]"


def changed(conditions: Conditions, row: Row) -> tuple[str, ...]:
    """The options, and free texts, that are not at their first value: `amp`, `schedule=plateau`."""
    return tuple(
        name if row[name] is True else f"{name}={row[name]}"
        for name, values in conditions.domains.items()
        if row[name] != values[0]
    )


def joined(faults: Iterable[Fault]) -> list[Fault]:
    """One fault a line of the template, and one for what is said in the same words of several lines of a file."""
    said: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        said.setdefault((fault.where.partition(":")[0], fault.what), []).append(fault)
    lines: dict[str, list[Fault]] = {}
    for same in said.values():
        first = min(same, key=lambda fault: (len(fault.chosen), line(fault)))
        more = sorted({line(fault) for fault in same} - {line(first)})
        also = f" (and in line {', '.join(map(str, more))})" if more else ""
        lines.setdefault(first.where, []).append(Fault(first.where, f"{first.what}{also}", first.chosen))
    return [
        Fault(where, "; ".join(fault.what for fault in here), min((fault.chosen for fault in here), key=len))
        for where, here in sorted(lines.items(), key=lambda item: (item[0].partition(":")[0], line(item[1][0])))
    ]


def line(fault: Fault) -> int:
    number = fault.where.partition(":")[2]
    return int(number) if number.isdigit() else 0
