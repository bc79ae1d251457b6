"""Runs generated projects in children of one warm process, which has imported what takes long to import.

multiprocessing's fork server is that process: it imports this module once and forks a child for each project. One torch
thread before the fork: torch's thread pool does not survive it.
"""

import contextlib
import multiprocessing
import os
import runpy
import socket
import sys
import time
from collections.abc import Iterator
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.warm_imports"])


def train(folder: Path, *arguments: str, timeout: float = 120) -> tuple[int, str]:
    """`python train.py ARGUMENTS` in a project; returns exit code and output."""
    return child(_script, folder, ("train.py", *arguments), timeout)


def script(folder: Path, *arguments: str, timeout: float = 120) -> tuple[int, str]:
    """`python ARGUMENTS` in a project; returns exit code and output."""
    return child(_script, folder, arguments, timeout)


def prove(folder: Path, *arguments: str, timeout: float = 300) -> tuple[int, str]:
    """`pytest ARGUMENTS` in a project; returns exit code and output."""
    return child(_pytest, folder, arguments, timeout)


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
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def child(function: object, folder: Path, arguments: tuple[str, ...], timeout: float) -> tuple[int, str]:
    return end(*begin(function, folder, arguments, folder.name), timeout)


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
    process.join(max(timeout, 0))
    if process.exitcode is None:
        process.kill()
        process.join()
        return -1, f"still running at its time limit\n{log.read_text(errors='replace')}"
    return process.exitcode, log.read_text(errors="replace")


@contextlib.contextmanager
def _inside(folder: Path, log: Path) -> Iterator[None]:
    with log.open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    # The fork server's own path holds this repository, whose tests must not hide the project's.
    sys.path[:] = [
        str(folder),
        *(entry for entry in sys.path if not Path(entry or ".", "copier.yml").exists()),
    ]
    sys.modules.pop("tests", None)
    os.chdir(folder)
    # This process was told the server's way of starting processes; a project's workers start in the system's own way.
    multiprocessing.set_start_method("fork", force=True)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.pop("PYTHONPATH", None)
    yield
    sys.stdout.flush()


def _script(folder: Path, arguments: tuple[str, ...], log: Path) -> None:
    with _inside(folder, log):
        sys.argv = list(arguments)
        runpy.run_path(arguments[0], run_name="__main__")


def _rank(folder: Path, arguments: tuple[str, ...], log: Path, variables: dict[str, str]) -> None:
    os.environ.update(variables)
    _script(folder, arguments, log)


def _pytest(folder: Path, arguments: tuple[str, ...], log: Path) -> None:
    import pytest

    for name in list(os.environ):
        if name.startswith("PYTEST_"):
            del os.environ[name]
    with _inside(folder, log):
        code = pytest.main(["-p", "no:cacheprovider", "-x", *arguments])
    raise SystemExit(int(code))
