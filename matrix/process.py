"""Children of one warm process, which has imported what takes long to import. The runner and the tests use them.

multiprocessing's fork server is that process: neither pytest nor the runner, which may have threads, is forked. A
child is the leader of a process group, writes into a file, and is killed with all that it started: at its time limit,
when its caller is interrupted, and by reaper.py when its caller has ended without a word.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from matrix import reaper

ROOT = Path(__file__).resolve().parent.parent
CONTEXT = multiprocessing.get_context("forkserver")
_REAPERS: list[subprocess.Popen[bytes]] = []  # one, once there is a child; its standard input ends with this process


def preload(*modules: str) -> None:
    """What the warm process imports besides imports.py. Without effect once there was a child."""
    CONTEXT.set_forkserver_preload(["matrix.imports", *modules])


preload()


@dataclass
class Child:
    process: ForkServerProcess
    log: Path
    limit: float  # seconds
    began: float

    def end(self) -> tuple[int, str]:
        """Waits; exit code and output. One that runs on after its limit is killed, and its code is -1."""
        try:
            self.process.join(self.left())
        finally:  # also at Ctrl-C, which a child with a group of its own does not hear
            running = self.process.exitcode is None
            self.kill()
        output = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return (-1, f"still running at its time limit\n{output}") if running else (self.process.exitcode or 0, output)

    def left(self) -> float:
        """Seconds until its limit."""
        return max(self.began + self.limit - time.monotonic(), 0.0)

    def over(self) -> bool:
        """Whether it has ended or has to."""
        return self.process.exitcode is not None or not self.left()

    def kill(self) -> None:
        """Kills it, or what an ended one has left of its group."""
        assert self.process.pid is not None
        if self.process.exitcode is None:
            reaper.kill(self.process.pid)
            self.process.join()
        else:
            reaper.kill_group(self.process.pid)


def start(function: Callable[..., None], *arguments: Any, log: Path, limit: float) -> Child:
    """Calls a function in a child that may take so many seconds; what it prints goes into the log."""
    _start_server()
    process = CONTEXT.Process(target=_live, args=(log, function, arguments))
    process.start()
    assert process.pid is not None
    server = reaper.parents().get(process.pid) if not _REAPERS else None
    if server is not None:
        command = [sys.executable, "-ES", reaper.__file__, str(server)]
        # A session of its own: Ctrl-C and a terminal that closes are not for it.
        _REAPERS.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))
    return Child(process, log, limit, time.monotonic())


@atexit.register
def _kill_all() -> None:
    """At an end in good order (Ctrl-C is one), multiprocessing would wait for what still runs."""
    for each in multiprocessing.active_children():
        if each.pid is not None:
            reaper.kill(each.pid)


def _start_server() -> None:
    """Starts the fork server with this repository on its path, which Python 3.11's server does not take over."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "generator")])
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def _live(log: Path, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """In the child: a group, an output and an environment of its own."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", buffering=1, closefd=False) for stream in (1, 2))
    # The fork server told this process its own way of starting others; a project's workers start in the system's.
    multiprocessing.set_start_method("fork", force=True)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.pop("PYTHONPATH", None)
    function(*arguments)


def enter(folder: Path) -> None:
    """In a child: a project's folder is the current one and the first to import from; nothing here hides it."""
    os.chdir(folder)
    sys.path[:] = [str(folder), *(entry for entry in sys.path if not Path(entry or ".", "copier.yml").exists())]
    sys.modules.pop("tests", None)


def run_tests(folder: Path, *arguments: str) -> int:
    """In a child: `pytest ARGUMENTS` of a project; returns pytest's exit code."""
    import pytest  # the runner itself does without

    for name in list(os.environ):
        if name.startswith("PYTEST_"):
            del os.environ[name]
    enter(folder)
    return int(pytest.main(["-p", "no:cacheprovider", "-x", *arguments]))
