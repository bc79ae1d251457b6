"""The warm parent: has imported what takes long to import, and forks a child for each job.

One torch thread before the fork, as torch's thread pool does not survive it. Each child is the leader of a process
group of its own, which is killed whole when its time is over.
"""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

from matrix import child, codes, cold, inside, memory, pages, rehearsal
from matrix.jobs import Job, Outcome, Project

TIMEOUT = 120.0  # seconds for a warm job; proofs and cold ones have eight times as many


@functools.cache
def warm_up() -> None:
    """Imports all that projects import, and uses it once."""
    inside.imports()
    rehearsal.fewer_digits()
    memory.keep()
    rehearsal.each_task(rehearsal.train)
    settle()


@functools.cache
def warm_up_exports() -> None:
    """Before the first job that exports: it takes seconds."""
    rehearsal.each_task(rehearsal.export)
    settle()


def settle() -> None:
    """Leaves what is there to the children as it is: nothing of it is collected, and a fork copies few pages."""
    gc.collect()
    gc.freeze()
    pages.collapse()


def in_memory() -> str | None:
    """A folder in memory, where there is one: checkpoints wait for the disk otherwise."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass
class Running:
    job: Job
    pid: int
    folder: Path
    log: Path
    alive: Connection  # ends with the child
    began: float
    limit: float
    status: int | None = None


def outcomes(jobs: Iterable[tuple[Job, Project]], processes: int = 2, timeout: float = TIMEOUT) -> Iterator[Outcome]:
    """Runs jobs, so many at a time; yields how each ended, in the order in which they end."""
    warm_up()
    pending, number = iter(jobs), 0
    running: list[Running] = []
    with tempfile.TemporaryDirectory(prefix="tricks-matrix-", dir=in_memory()) as scratch:
        text = child.write_text(Path(scratch, "text.txt"))
        try:
            while True:
                while len(running) < processes and (taken := next(pending, None)) is not None:
                    job, project = taken
                    number += 1
                    limit = timeout * 8 if job.proofs or job.cold else timeout
                    running.append(start(job, project, Path(scratch, str(number)), text, limit))
                if not running:
                    return
                while (ended := next((each for each in running if over(each)), None)) is None:
                    wait([each.alive for each in running], timeout=1)
                running.remove(ended)
                yield finish(ended)
        finally:
            for each in running:
                inside.kill(each.pid)
                os.waitpid(each.pid, 0)


def start(job: Job, project: Project, folder: Path, text: Path, limit: float) -> Running:
    folder.mkdir()
    if "export" in job.choice["techniques"]:
        warm_up_exports()
    codes.keep(project)
    log = folder / "log"
    log.touch()
    sys.stdout.flush()
    sys.stderr.flush()
    began = time.monotonic()
    alive, held = multiprocessing.Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        live(job, project, folder, text, log)
    held.close()
    return Running(job, pid, folder, log, alive, began, limit)


def live(job: Job, project: Project, folder: Path, text: Path, log: Path) -> None:
    """The child's whole life; it never returns."""
    code = 1
    try:
        inside.enter(log)
        work = cold.run if job.cold else child.run
        if job.proofs:  # they begin in a process that no training has changed
            apart(lambda: work(job, project, folder / "project", text))
        else:
            work(job, project, folder / "project", text)
        sys.stdout.flush()
        child.check_output(log.read_text(encoding="utf-8", errors="replace"))
        if job.proofs:
            rehearsal.all_digits()
            child.prove(folder / "project")
        code = 0
    except child.Problem as problem:
        print(f"PROBLEM {problem}", file=sys.stderr)
    except BaseException as error:
        traceback.print_exc()
        print(f"PROBLEM {type(error).__name__}: {' '.join(str(error).split())[:300]}", file=sys.stderr)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def apart(function: Callable[[], None]) -> None:
    """Calls a function in a fork, and raises Problem if it raised."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function()
            code = 0
        except child.Problem as problem:
            print(f"PROBLEM {problem}", file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    if os.waitpid(pid, 0)[1]:
        raise child.Problem("training failed, see above")


def over(each: Running) -> bool:
    """Whether a child has ended; one whose time is over is killed with all that it started."""
    if time.monotonic() - each.began > each.limit:
        inside.kill(each.pid)
        os.waitpid(each.pid, 0)
        with each.log.open("a", encoding="utf-8") as log:
            log.write(f"\nPROBLEM still running after {each.limit:.0f} s\n")
        each.status = -signal.SIGKILL
        return True
    pid, status = os.waitpid(each.pid, os.WNOHANG)
    if pid:
        each.status = os.waitstatus_to_exitcode(status)
        inside.kill_group(each.pid)
    return bool(pid)


def finish(ended: Running) -> Outcome:
    output = ended.log.read_text(encoding="utf-8", errors="replace")
    problems = [line.removeprefix("PROBLEM ") for line in output.splitlines() if line.startswith("PROBLEM ")]
    problem = "" if ended.status == 0 else (problems[0] if problems else f"the process ended with {ended.status}")
    seconds = time.monotonic() - ended.began
    ended.alive.close()
    shutil.rmtree(ended.folder, ignore_errors=True)
    return Outcome(ended.job, problem, seconds, output)
