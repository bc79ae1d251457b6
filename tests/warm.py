"""Runs generated projects in children of one warm process, which has imported what takes long to import.

multiprocessing's fork server is that process: pytest itself may have threads, and must not be forked. What a child
finds around it is what the runner's children find, matrix/inside.py.
"""

import multiprocessing
import os
import runpy
import socket
import sys
import time
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from matrix import inside

ROOT = Path(__file__).resolve().parent.parent
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.warm_imports"])


def train(folder: Path, *arguments: str, timeout: float = 120) -> tuple[int, str]:
    """`python train.py ARGUMENTS` in a project; returns exit code and output."""
    return script(folder, "train.py", *arguments, timeout=timeout)


def script(folder: Path, *arguments: str, timeout: float = 120) -> tuple[int, str]:
    """`python ARGUMENTS` in a project; returns exit code and output."""
    return end(*start(folder, *arguments), timeout)


def prove(folder: Path, *arguments: str, timeout: float = 300) -> tuple[int, str]:
    """`pytest ARGUMENTS` in a project; returns exit code and output."""
    return end(*begin(_pytest, folder, arguments, folder.name), timeout)


def start(folder: Path, *arguments: str, name: str = "") -> tuple[ForkServerProcess, Path]:
    """`python ARGUMENTS` in a project, not waited for: the process, and the file `name`.log with its output."""
    return begin(_script, folder, arguments, name or folder.name)


def ranks(folder: Path, *arguments: tuple[str, ...], timeout: float = 120) -> list[tuple[int, str]]:
    """`python train.py` as one process per tuple of arguments, joined as torchrun would; exit code and output of each.

    Unlike torchrun it lets each process end by itself.
    """
    number = str(len(arguments))
    shared = {"WORLD_SIZE": number, "LOCAL_WORLD_SIZE": number, "MASTER_PORT": free_port()}
    processes = []
    for rank, own in enumerate(arguments):
        variables = shared | {"MASTER_ADDR": "127.0.0.1", "RANK": str(rank), "LOCAL_RANK": str(rank)}
        processes.append(begin(_rank, folder, ("train.py", *own), f"{folder.name}-{rank}", variables))
    deadline = time.monotonic() + timeout
    return [end(process, log, deadline - time.monotonic()) for process, log in processes]


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def start_server() -> None:
    """Starts the fork server with this repository on its path, which Python 3.11's server does not take over."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "generator")])
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def begin(
    function: object, folder: Path, arguments: tuple[str, ...], name: str, *more: object
) -> tuple[ForkServerProcess, Path]:
    """A process that runs, and the file that its output goes to."""
    start_server()
    log = folder.parent / f"{name}.log"
    process = CONTEXT.Process(target=function, args=(folder, arguments, log, *more))
    process.start()
    return process, log


def end(process: ForkServerProcess, log: Path, timeout: float) -> tuple[int, str]:
    """Exit code and output; a process that runs on is killed, and its code is -1."""
    try:
        process.join(max(timeout, 0))
    except BaseException:  # Ctrl-C, which a child with a group of its own does not hear
        inside.kill(process.pid)
        raise
    if process.exitcode is None:
        inside.kill(process.pid)
        process.join()
        return -1, f"still running at its time limit\n{log.read_text(errors='replace')}"
    inside.kill_group(process.pid)
    return process.exitcode, log.read_text(errors="replace")


def _script(folder: Path, arguments: tuple[str, ...], log: Path) -> None:
    inside.enter(log)
    inside.project(folder)
    sys.argv = list(arguments)
    runpy.run_path(arguments[0], run_name="__main__")


def _rank(folder: Path, arguments: tuple[str, ...], log: Path, variables: dict[str, str]) -> None:
    os.environ.update(variables)
    _script(folder, arguments, log)


def _pytest(folder: Path, arguments: tuple[str, ...], log: Path) -> None:
    inside.enter(log)
    raise SystemExit(inside.prove(folder, *arguments))
