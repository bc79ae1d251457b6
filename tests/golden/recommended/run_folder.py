"""The folder of a run, which one process at a time writes into."""

import itertools
import json
import os
import socket
import time
import zipfile
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: nothing there keeps a second run out of a folder
    fcntl = None  # type: ignore[assignment]


def open_folder(run_dir: Path | None, resume: bool) -> Path:
    """Takes the folder of a run, by default a new runs/<time>, for this process alone.

    Raises SystemExit where it cannot be made, where another process uses it, and where it holds a run that `resume`
    does not go on with.
    """
    try:
        if run_dir is None:
            run_dir = new_folder(Path("runs"))
        else:
            run_dir.mkdir(parents=True, exist_ok=True)
        lock(run_dir)
    except OSError as error:
        raise SystemExit(f"Cannot make the run folder {error.filename or run_dir}: {error.strerror}.") from None
    if not resume and (run_dir / "checkpoints").exists():
        raise SystemExit(f"{run_dir} holds a run already: go on with it by --resume, or name another --run-dir.")
    return run_dir


def new_folder(runs: Path) -> Path:
    """A folder that nobody else got: <time>, or <time>-2 and so on for runs that begin in the same second."""
    now = time.strftime("%Y-%m-%d_%H-%M-%S")
    for number in itertools.count(1):
        run_dir = runs / (now if number == 1 else f"{now}-{number}")
        try:
            run_dir.mkdir(parents=True)
        except FileExistsError:
            continue
        return run_dir
    raise AssertionError


def lock(run_dir: Path) -> None:
    """Holds the folder until this process ends, however it ends. Raises SystemExit where another one holds it.

    A shared disk whose server has locks holds it against other machines too; where there are none, that is said.
    """
    if fcntl is None:
        return
    # Never closed, since that would give the lock back. Unlike flock's it does not pass on to workers, which may
    # outlive a run that was killed.
    file = os.open(run_dir / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        holder = os.read(file, 1000).decode(errors="replace") or "another process"
        raise SystemExit(f"{run_dir} is in use by {holder}: stop that run first, or name another --run-dir.") from None
    except OSError as error:
        print(f"The disk of {run_dir} has no locks ({error.strerror}): nothing keeps a second run out of it.")
        return
    os.ftruncate(file, 0)
    os.write(file, f"process {os.getpid()} on {socket.gethostname()}".encode())


def newest_run(runs: Path) -> Path:
    """The run that was begun or gone on with last. Raises SystemExit when there is none."""
    found = list(runs.glob("*/config.json"))
    if not found:
        raise SystemExit(f"Nothing to resume: there is no run in {runs}. Name one with --run-dir.")
    return max(found, key=lambda path: path.stat().st_mtime).parent


def undamaged(path: Path) -> bool:
    """Whether each part of what torch.save wrote is as its checksum says, which torch.load does not look at."""
    with zipfile.ZipFile(path) as archive:
        # A part that is marked as a folder becomes, without an error, a tensor of whatever was in memory.
        return archive.testzip() is None and not any(part.external_attr for part in archive.infolist())


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Writes a file of the folder. Raises SystemExit when it cannot; what was there before is still there then."""
    unfinished = path.with_name(f".{path.stem}.unfinished")
    try:
        unfinished.write_text(json.dumps(content, indent=2) + "\n")
        unfinished.replace(path)
    except OSError as error:
        raise SystemExit(f"Cannot write into the run folder {path.parent}: {error.strerror}.") from None
