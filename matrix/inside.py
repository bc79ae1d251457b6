"""A forked child's surroundings: its output, its folder, its end. For the runner (warm.py) and for tests/warm.py."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
from pathlib import Path


def imports() -> None:
    """Imports what projects import, in the process that forks. One thread: torch's pool does not survive a fork."""
    for name in (
        "matplotlib.figure", "onnxruntime", "onnxscript", "safetensors.torch", "sklearn.datasets", "tensorboard",
        "torch._dynamo", "torch._inductor", "torch.distributed", "torch.export", "torch.onnx", "torch.profiler",
        "torch.utils.data", "torch.utils.tensorboard", "tqdm", "tyro",
    ):  # fmt: skip
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)


def enter(log: Path) -> None:
    """Makes this child the leader of a process group that writes into a file, its own children forks of it."""
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


def project(folder: Path) -> None:
    """Makes a project's folder the current one and the first to import from; this repository hides nothing of it."""
    os.chdir(folder)
    sys.path[:] = [str(folder), *(entry for entry in sys.path if not Path(entry or ".", "copier.yml").exists())]
    sys.modules.pop("tests", None)


def prove(folder: Path, *arguments: str) -> int:
    """`pytest ARGUMENTS` of a project, in this process; returns pytest's exit code."""
    import pytest

    for name in list(os.environ):
        if name.startswith("PYTEST_"):
            del os.environ[name]
    project(folder)
    return int(pytest.main(["-p", "no:cacheprovider", "-x", *arguments]))


def kill(pid: int) -> None:
    """Kills a child that nobody has waited for, with what it started: torchrun gives its ranks groups of their own."""
    for each in (*descendants(pid), pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    kill_group(pid)


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    pairs = []
    # Not by ps, which small systems lack. Where there is no /proc the group alone is killed.
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended since
            pairs.append((int(path.parent.name), int(path.read_text().rpartition(")")[2].split()[1])))
    found = [pid]
    for parent in found:
        found += [child for child, its_parent in pairs if its_parent == parent]
    return found[1:]


def kill_group(pid: int) -> None:
    """Kills what a child has left of its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
