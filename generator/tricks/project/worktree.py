"""Files and index entries of a project's work tree: read as they lie there, written, removed."""

from __future__ import annotations

import base64
import contextlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tricks.git import git
from tricks.project.objects import PLAIN_INDEX, Entry
from tricks.project.read import Place

# What the index is to hold of a file: an entry, the three stages of a conflict, or nothing.
Indexed = Entry | tuple[Entry | None, ...] | None


def captured(path: Path) -> dict[str, Any] | None:
    """A file as it lies in the work tree, for `restore`; None where there is none."""
    try:
        if path.is_symlink():
            return {"link": os.readlink(path)}
        mode = stat.S_IMODE(path.stat().st_mode)
        return {"mode": mode, "data": base64.b64encode(path.read_bytes()).decode("ascii")}
    except (FileNotFoundError, NotADirectoryError):
        return None


def restore(path: Path, as_it_was: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        path.unlink()
    if "link" in as_it_was:
        path.symlink_to(as_it_was["link"])
    else:
        path.write_bytes(base64.b64decode(as_it_was["data"]))
        path.chmod(as_it_was["mode"])


def remove(place: Place, paths: Iterable[str]) -> None:
    """Removes files, and the folders that this empties."""
    for path in paths:
        target = place.folder / path
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            target.unlink()
        for parent in list(target.parents)[: len(Path(path).parts) - 1]:
            with contextlib.suppress(OSError):  # not empty, or gone
                parent.rmdir()


def check_out(place: Place, files: Mapping[str, Entry]) -> None:
    """Writes files as git would check them out, with this repository's filters and line endings. Raises GitError."""
    if not files:
        return
    index = place.git_dir / "tricks" / "index"
    variables = {"GIT_INDEX_FILE": str(index)}
    try:
        index.unlink(missing_ok=True)
        rows = index_rows(place, files)
        git(place.top, *PLAIN_INDEX, "update-index", "-z", "--index-info", stdin=rows, variables=variables)
        names = b"".join(os.fsencode(place.prefix + path) + b"\0" for path in files)
        git(place.top, *PLAIN_INDEX, "checkout-index", "--force", "-z", "--stdin", stdin=names, variables=variables)
    finally:
        index.unlink(missing_ok=True)


def set_index(place: Place, files: Mapping[str, Indexed]) -> None:
    """Raises GitError."""
    git(place.top, "update-index", "-z", "--index-info", stdin=index_rows(place, files))
    # Without the files' times in the index `git apply` takes them for changed.
    git(place.top, "update-index", "-q", "--unmerged", "--refresh")


def index_rows(place: Place, files: Mapping[str, Indexed]) -> bytes:
    """Input of `update-index --index-info`."""
    rows = []
    for path, entry in files.items():
        name = os.fsencode(place.prefix + path)
        rows.append(f"0 {place.nothing}\t".encode() + name)
        if isinstance(entry, Entry):
            rows.append(f"{entry.mode} {entry.oid}\t".encode() + name)
        else:
            stages = enumerate(entry or (), start=1)
            rows += [f"{part.mode} {part.oid} {stage}\t".encode() + name for stage, part in stages if part]
    return b"".join(row + b"\0" for row in rows)
