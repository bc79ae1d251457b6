"""Generated projects in children of one warm process (matrix/process.py)."""

import os
import runpy
import socket
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from matrix import process


def train(folder: Path, *arguments: str, timeout: float = 120) -> tuple[int, str]:
    """`python train.py ARGUMENTS` in a project; returns exit code and output."""
    return script(folder, "train.py", *arguments, timeout=timeout)


def script(folder: Path, *arguments: str, timeout: float = 120) -> tuple[int, str]:
    """`python ARGUMENTS` in a project; returns exit code and output."""
    return process.start(_script, folder, arguments, log=log(folder), limit=timeout).end()


def prove(folder: Path, *arguments: str, timeout: float = 300) -> tuple[int, str]:
    """`pytest ARGUMENTS` in a project; returns exit code and output."""
    return process.start(_pytest, folder, arguments, log=log(folder), limit=timeout).end()


def start(folder: Path, *arguments: str, name: str = "") -> tuple[ForkServerProcess, Path]:
    """`python ARGUMENTS` in a project, not waited for: the process, and the file `name`.log with its output."""
    child = process.start(_script, folder, arguments, log=log(folder, name), limit=600)
    return child.process, child.log


def ranks(folder: Path, *arguments: tuple[str, ...], timeout: float = 120) -> list[tuple[int, str]]:
    """`python train.py` as one process per tuple of arguments, joined as torchrun would; exit code and output of each.

    Unlike torchrun it lets each process end by itself.
    """
    number = str(len(arguments))
    shared = {"WORLD_SIZE": number, "LOCAL_WORLD_SIZE": number, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    places = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(len(arguments))]
    commands = [(("train.py", *own), shared | place) for own, place in zip(arguments, places, strict=True)]
    return launched(folder, *commands, timeout=timeout)


def launched(
    folder: Path, *commands: tuple[tuple[str, ...], dict[str, str]], timeout: float = 120
) -> list[tuple[int, str]]:
    """`python ARGUMENTS` for each pair of them and an environment, all at once; exit code and output of each."""
    children = []
    for number, (arguments, variables) in enumerate(commands):
        output = log(folder, f"{folder.name}-{number}")
        children.append(process.start(_rank, folder, arguments, variables, log=output, limit=timeout))
    return [child.end() for child in children]


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def log(folder: Path, name: str = "") -> Path:
    return folder.parent / f"{name or folder.name}.log"


def _script(folder: Path, arguments: tuple[str, ...]) -> None:
    process.enter(folder)
    sys.argv = list(arguments)
    runpy.run_path(arguments[0], run_name="__main__")


def _rank(folder: Path, arguments: tuple[str, ...], variables: dict[str, str]) -> None:
    os.environ.update(variables)
    _script(folder, arguments)


def _pytest(folder: Path, arguments: tuple[str, ...]) -> None:
    raise SystemExit(process.run_tests(folder, *arguments))
