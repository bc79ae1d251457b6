"""Runs plans of jobs: takes over what passed before, shrinks a failure and tells the command that repeats it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from matrix.jobs import Job, Outcome, Project, digest, environment
from matrix.pool import TIMEOUT, outcomes
from matrix.results import Results
from matrix.samples import smaller
from matrix.space import Space


@dataclass
class Tally:
    """What became of a plan."""

    name: str
    ran: list[Outcome] = field(default_factory=list)
    kept: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> list[Outcome]:
        return [outcome for outcome in self.ran if outcome.problem]

    def line(self) -> str:
        rate = len(self.ran) / self.seconds if self.seconds and self.ran else 0.0
        return (
            f"{self.name:<22} {len(self.ran) + self.kept:>6} projects {self.kept:>6} kept {len(self.failed):>4} failed "
            f"{self.seconds:>8.1f} s {rate:>6.2f} a second"
        )


def run(
    name: str,
    jobs: Iterable[Job],
    space: Space,
    results: Results,
    processes: int = 2,
    timeout: float = TIMEOUT,
    until: float | None = None,
    tell: Callable[[str], None] = print,
) -> Tally:
    """Runs the jobs that have not passed before, and shrinks the first failures.

    until: the time (time.monotonic) after which no further job begins.
    """
    tally, surroundings = Tally(name), environment()
    keys: dict[str, str] = {}
    began = time.monotonic()

    def fresh() -> Iterator[tuple[Job, Project]]:
        for job in jobs:
            if until is not None and time.monotonic() >= until:
                return
            project = space.template.render(job.choice)
            key = digest(project, job, surroundings)
            if key in results.seconds or key in keys.values():
                tally.kept += 1
                continue
            keys[job.text()] = key
            yield job, project

    for outcome in outcomes(fresh(), processes, timeout):
        tally.ran.append(outcome)
        if outcome.problem:
            tell(f"FAILED {outcome.problem}\n  {outcome.job.command()}")
            if len(tally.failed) <= 3:
                tell(f"  smallest that fails: {shrink(outcome, space, timeout).job.command()}")
        else:
            results.add(keys[outcome.job.text()], outcome.seconds)
    tally.seconds = time.monotonic() - began
    return tally


def shrink(outcome: Outcome, space: Space, timeout: float = TIMEOUT) -> Outcome:
    """The smallest choice that still fails: no group of options can be made smaller without its passing.

    A project that hangs is given up sooner than the first time.
    """
    row = space.row_of(outcome.job.choice)
    limit = min(timeout, max(10.0, outcome.seconds if outcome.seconds < timeout else 0.0) * 2)
    again = True
    while again:
        again = False
        for candidate in smaller(space, row):
            amp = outcome.job.amp if candidate["amp"] else ""
            job = replace(outcome.job, choice=space.choice(candidate), amp=amp)
            tried = next(outcomes([(job, space.template.render(job.choice))], 1, limit))
            if tried.problem:
                row, outcome, again = candidate, tried, True
                break
    return outcome


def table(tallies: list[Tally]) -> str:
    """Counts and rates of all plans, and the slowest projects."""
    lines = [tally.line() for tally in tallies]
    ran = [outcome for tally in tallies for outcome in tally.ran]
    slowest = sorted(ran, key=lambda outcome: -outcome.seconds)[:5]
    lines += [f"slowest {outcome.seconds:>7.1f} s {outcome.job.text()}" for outcome in slowest]
    failed = sum(len(tally.failed) for tally in tallies)
    lines.append(f"dynamic: {sum(tally.kept for tally in tallies) + len(ran)} projects, {failed} failed")
    return "\n".join(lines)
