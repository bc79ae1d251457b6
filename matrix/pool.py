"""Jobs in children of the warm process (process.py), several at a time."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from matrix import process
from matrix.jobs import Job, Outcome, Project

TIMEOUT = 120.0  # seconds for a warm job; proofs and cold ones have eight times as many


def rehearse(exports: bool) -> None:
    """Lets the warm process use what projects use once before its first fork; exports take seconds more."""
    process.preload("matrix.rehearsal", *(["matrix.rehearsal_exports"] if exports else []))


def in_memory() -> str | None:
    """A folder in memory, where there is one: checkpoints wait for the disk otherwise."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass
class Running:
    job: Job
    child: process.Child
    folder: Path


def outcomes(jobs: Iterable[tuple[Job, Project]], processes: int = 2, timeout: float = TIMEOUT) -> Iterator[Outcome]:
    """Runs jobs, so many at a time; yields how each ended, in the order in which they end."""
    pending, number = iter(jobs), 0
    running: list[Running] = []
    with tempfile.TemporaryDirectory(prefix="tricks-matrix-", dir=in_memory()) as scratch:
        try:
            while True:
                while len(running) < processes and (taken := next(pending, None)) is not None:
                    number += 1
                    limit = timeout * 8 if taken[0].proofs or taken[0].cold else timeout
                    running.append(start(*taken, Path(scratch, str(number)), limit))
                if not running:
                    return
                while (ended := next((each for each in running if each.child.over()), None)) is None:
                    wait([each.child.process.sentinel for each in running], min(each.child.left() for each in running))
                outcome = finish(ended)
                running.remove(ended)
                yield outcome
        finally:
            for each in running:
                each.child.kill()


def start(job: Job, project: Project, folder: Path, limit: float) -> Running:
    folder.mkdir()
    log = folder / "log"
    return Running(job, process.start(live, job, project, folder, log, log=log, limit=limit), folder)


def live(job: Job, project: Project, folder: Path, log: Path) -> None:
    """The child's whole life."""
    from matrix import child, cold  # the runner itself does without torch

    try:
        (cold.run if job.cold else child.run)(job, project, folder / "project")
        sys.stdout.flush()
        child.check_output(log.read_text(encoding="utf-8", errors="replace"))
        if job.proofs:
            child.run_tests(folder / "project")
    except child.Problem as problem:
        sys.exit(f"PROBLEM {problem}")
    except BaseException as error:
        traceback.print_exc()
        sys.exit(f"PROBLEM {type(error).__name__}: {' '.join(str(error).split())[:300]}")


def finish(ended: Running) -> Outcome:
    code, output = ended.child.end()
    problems = [line.removeprefix("PROBLEM ") for line in output.splitlines() if line.startswith("PROBLEM ")]
    seconds = time.monotonic() - ended.child.began
    problem = ""
    if code == -1:
        problem = f"still running after {ended.child.limit:.0f} s"
    elif code:
        problem = problems[0] if problems else f"the process ended with {code}"
    shutil.rmtree(ended.folder, ignore_errors=True)
    return Outcome(ended.job, problem, seconds, output)
