"""Ends processes with all that they started, torchrun's ranks in groups of their own among them.

As a program, `python reaper.py PID`, it waits until its standard input is closed, which is when the process that
started it has ended, in whatever way, and then ends PID. It imports little and is run by its path: it is there soon.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path


def kill(pid: int) -> None:
    """Kills a process that nobody has waited for, what it started, and its group."""
    for each in (*descendants(pid), pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    kill_group(pid)


def kill_group(pid: int) -> None:
    """Kills what a process has left of its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def parents() -> dict[int, int]:
    """The parent of each process. Not by ps, which small systems lack; empty where there is no /proc."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended since
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    return found


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    pairs, found = parents().items(), [pid]
    for parent in found:
        found += [child for child, its_parent in pairs if its_parent == parent]
    return found[1:]


if __name__ == "__main__":
    sys.stdin.read()
    kill(int(sys.argv[1]))
