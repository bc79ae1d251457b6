"""Writes a merged change into the work tree and the index, and takes the last one back.

The record of the last change lies in the repository's git folder and holds the files' bytes as they were, so that they
come back whatever filters and line endings git is set to.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tricks import UserError
from tricks.git import GitError, git
from tricks.project.merge import Conflict
from tricks.project.objects import Entry, Files
from tricks.project.read import Place, some


@dataclass(frozen=True)
class Step:
    """What happens to one file: its entry before and after, and the index's stages where it is in conflict."""

    path: str
    before: Entry | None
    after: Entry | None
    stages: tuple[Entry | None, ...] = ()


def steps(before: Files, after: Files, conflicts: Iterable[Conflict]) -> list[Step]:
    """The files that a change touches, by name."""
    stages = {conflict.path: conflict.stages for conflict in conflicts}
    paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} | stages.keys()
    return [Step(path, before.get(path), after.get(path), stages.get(path, ())) for path in sorted(paths)]


def check_room(place: Place, todo: list[Step]) -> None:
    """Raises UserError where a file or folder that git does not track stands in the way of a new file."""
    blocked = []
    for step in todo:
        if step.before is not None or step.after is None:
            continue
        target = place.folder / step.path
        parents = list(target.parents)[: len(Path(step.path).parts) - 1]
        barred = [parent for parent in parents if parent.is_symlink() or (parent.exists() and not parent.is_dir())]
        if barred or os.path.lexists(target):
            blocked.append(str((barred[-1] if barred else target).relative_to(place.folder)))
    if blocked:
        raise UserError(
            f"{some(sorted(set(blocked)))} would be written over: rename or remove what stands there first."
        )


def apply(place: Place, todo: list[Step], command: str) -> None:
    """Changes the files and the index; after an error everything is as it was. Raises UserError."""
    entries = (entry for step in todo for entry in (step.before, step.after, *step.stages))
    place.store.write(*(entry.oid for entry in entries if entry))
    record = {
        "command": command,
        "files": {
            step.path: {
                "before": _captured(place.folder / step.path) if step.before else None,
                "entry": step.before,
                "after": step.after,
                "stages": step.stages,
            }
            for step in todo
        },
    }
    previous = record_file(place).read_bytes() if record_file(place).exists() else None
    _write_record(place, record)
    try:
        _remove(place, [step.path for step in todo if step.after is None and step.before is not None])
        _check_out(place, {step.path: step.after for step in todo if step.after and step.after != step.before})
        _set_index(place, {step.path: step.stages or step.after for step in todo})
    except BaseException as error:
        take_back(place, force=True)
        if previous is not None:
            record_file(place).write_bytes(previous)
        if isinstance(error, OSError | GitError):
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            raise UserError(f"The change could not be written ({reason}): everything is as it was.") from error
        raise


def take_back(place: Place, force: bool = False) -> tuple[str, list[str]]:
    """Undoes the last change; returns its command and the files that were put back.

    Raises UserError when there is none, or when a file was edited since (not with `force`).
    """
    record = last_change(place)
    if record is None:
        raise UserError("There is nothing to undo: no add, remove, set or update is recorded here.")
    files: dict[str, dict[str, Any]] = record["files"]
    if not force:
        edited = _edited_since(place, files)
        if edited:
            raise UserError(
                f"{some(edited)} {'was' if len(edited) == 1 else 'were'} edited since `tricks {record['command']}`: "
                "undo would lose that. Stash it, or give it up by `git checkout HEAD -- FILE`, and undo again."
            )
    _remove(place, [path for path, file in files.items() if file["before"] is None])
    for path, file in files.items():
        if file["before"] is not None and _captured(place.folder / path) != file["before"]:
            _restore(place.folder / path, file["before"])
    with contextlib.suppress(*[GitError] if force else []):  # an index that is locked was not changed either
        _set_index(place, {path: Entry(*file["entry"]) if file["entry"] else None for path, file in files.items()})
    record_file(place).unlink()
    return record["command"], sorted(files)


def record_file(place: Place) -> Path:
    """Where the last change of a project is recorded: per work tree, and per project in it."""
    return place.git_dir / "tricks" / f"undo-{hashlib.sha256(os.fsencode(place.prefix)).hexdigest()[:12]}.json"


def last_change(place: Place) -> dict[str, Any] | None:
    try:
        return dict(json.loads(record_file(place).read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"The record of the last change, {record_file(place)}, cannot be read ({error}).") from error


def _write_record(place: Place, record: Mapping[str, Any]) -> None:
    path = record_file(place)
    try:
        path.parent.mkdir(exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(record), encoding="ascii")
        unfinished.replace(path)
    except OSError as error:
        raise UserError(f"The change cannot be recorded in {path} ({error.strerror}): nothing was changed.") from error


def _captured(path: Path) -> dict[str, Any] | None:
    """A file as it lies in the work tree; None where there is none."""
    try:
        if path.is_symlink():
            return {"link": os.readlink(path)}
        mode = stat.S_IMODE(path.stat().st_mode)
        return {"mode": mode, "data": base64.b64encode(path.read_bytes()).decode("ascii")}
    except (FileNotFoundError, NotADirectoryError):
        return None


def _restore(path: Path, captured: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        path.unlink()
    if "link" in captured:
        path.symlink_to(captured["link"])
    else:
        path.write_bytes(base64.b64decode(captured["data"]))
        path.chmod(captured["mode"])


def _edited_since(place: Place, files: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The files that are neither as the change left them nor as they were before it, on disk or in the index."""
    there = {path: _captured(place.folder / path) for path in files}
    asked = [path for path, captured in there.items() if captured and "link" not in captured]
    # Paths and not contents: git applies its filters, and line endings do not count as an edit.
    names = b"\n".join(os.fsencode(place.prefix + path) for path in asked)
    output = git(place.top, "hash-object", "--stdin-paths", stdin=names).decode()
    oids = dict(zip(asked, output.split(), strict=True))
    edited = []
    for path, file in files.items():
        as_left = oids.get(path) == file["after"][1] if file["after"] else there[path] is None
        if not as_left and there[path] != file["before"]:
            edited.append(path)
    staged: dict[str, set[str]] = {}
    listing = git(place.folder, "ls-files", "--stage", "-z", "--", *(f":(literal){path}" for path in files))
    for row in listing.split(b"\0")[:-1]:
        about, _, name = row.partition(b"\t")
        staged.setdefault(os.fsdecode(name), set()).add(about.decode().split()[1])
    for path, file in files.items():
        known = {entry[1] for entry in (file["entry"], file["after"], *file["stages"]) if entry}
        if path not in edited and staged.get(path, set()) - known:
            edited.append(path)
    return edited


def _remove(place: Place, paths: Iterable[str]) -> None:
    """Removes files, and the folders that this empties."""
    for path in paths:
        target = place.folder / path
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            target.unlink()
        for parent in list(target.parents)[: len(Path(path).parts) - 1]:
            with contextlib.suppress(OSError):  # not empty, or gone
                parent.rmdir()


def _check_out(place: Place, files: Mapping[str, Entry]) -> None:
    """Writes files as git would check them out, with this repository's filters and line endings."""
    if not files:
        return
    index = place.git_dir / "tricks" / "index"
    variables = {"GIT_INDEX_FILE": str(index)}
    try:
        index.unlink(missing_ok=True)
        rows = _rows(place, files)
        git(place.top, "update-index", "-z", "--index-info", stdin=rows, variables=variables)
        names = b"".join(os.fsencode(place.prefix + path) + b"\0" for path in files)
        git(place.top, "checkout-index", "--force", "-z", "--stdin", stdin=names, variables=variables)
    finally:
        index.unlink(missing_ok=True)


def _set_index(place: Place, files: Mapping[str, Entry | tuple[Entry | None, ...] | None]) -> None:
    git(place.top, "update-index", "-z", "--index-info", stdin=_rows(place, files))


def _rows(place: Place, files: Mapping[str, Entry | tuple[Entry | None, ...] | None]) -> bytes:
    """Input of `update-index --index-info`: an entry, the three stages of a conflict, or None to take a file out."""
    rows = []
    none = "0" * len(place.store.add("blob", b""))
    for path, entry in files.items():
        name = os.fsencode(place.prefix + path)
        rows.append(f"0 {none}\t".encode() + name)
        if isinstance(entry, Entry):
            rows.append(f"{entry.mode} {entry.oid}\t".encode() + name)
        else:
            stages = enumerate(entry or (), start=1)
            rows += [f"{part.mode} {part.oid} {stage}\t".encode() + name for stage, part in stages if part]
    return b"".join(row + b"\0" for row in rows)
