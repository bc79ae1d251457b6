"""Takes the last change of a project back.

Its record lies in the repository's git folder and holds the files' bytes as they were, so that they come back whatever
filters and line endings git is set to. It says where it holds: on its branch, after its commit.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tricks import UserError
from tricks.git import GitError, git
from tricks.project import worktree
from tricks.project.objects import Entry
from tricks.project.read import Place, some


@dataclass(frozen=True)
class Before:
    """A file before a change, on disk and as an entry, and what the change made of it."""

    captured: dict[str, Any] | None
    entry: Entry | None
    after: Entry | None
    stages: tuple[Entry | None, ...]


@dataclass(frozen=True)
class Record:
    """A change, the branch ("" for none) and the commit that it was made on, and its files."""

    command: str
    branch: str
    head: str
    files: dict[str, Before]


@dataclass(frozen=True)
class Undone:
    """What was taken back; `patch` is the file that keeps the edits made since, if there were any."""

    command: str
    files: list[str]
    patch: Path | None


def take_back(place: Place, force: bool = False) -> Undone:
    """Undoes the last change. With `force` also in files that were edited since; a patch keeps those edits.

    Raises UserError when there is none, when it is not one of this branch, or when a file was edited since.
    """
    record = last_change(place)
    if record is None:
        raise UserError("There is nothing to undo: no add, remove, set or update is recorded here.")
    check_fits(place, record)
    edited = edited_since(place, record)
    if edited and not force:
        raise UserError(
            f"{some(edited)} {'was' if len(edited) == 1 else 'were'} edited since `tricks {record.command}`. "
            "`tricks undo --force` takes the change back and keeps those edits as a patch."
        )
    patch = save_edits(place, record, edited) if edited else None
    put_back(place, record)
    return Undone(record.command, sorted(record.files), patch)


def check_fits(place: Place, record: Record) -> None:
    """Raises UserError unless the work tree is where the change was made, and holds some of it."""
    branch, head = branch_and_head(place)
    made = f"`tricks {record.command}` was made on {f'branch {record.branch}' if record.branch else record.head[:10]}"
    if head != record.head:
        if branch != record.branch:
            there = record.branch or f"--detach {record.head[:10]}"
            raise UserError(f"{made}, and this is another: run `git switch {there}`, and undo there.")
        try:
            git(place.folder, "merge-base", "--is-ancestor", record.head, head)
        except GitError as error:
            raise UserError(f"{made} at {record.head[:10]}, which is no longer part of it: nothing to undo.") from error
    if all(worktree.captured(place.folder / path) == file.captured for path, file in record.files.items()):
        raise UserError(f"{made}, and nothing of it is in these files: there is nothing to undo.")


def put_back(place: Place, record: Record) -> None:
    """The files and the index as they were before the change; the record goes."""
    worktree.remove(place, [path for path, file in record.files.items() if file.captured is None])
    for path, file in record.files.items():
        if file.captured is not None and worktree.captured(place.folder / path) != file.captured:
            worktree.restore(place.folder / path, file.captured)
    worktree.set_index(place, {path: file.entry for path, file in record.files.items()})
    record_file(place).unlink()


def branch_and_head(place: Place) -> tuple[str, str]:
    """The branch that is checked out ("" for none) and the id of the last commit."""
    head = git(place.folder, "rev-parse", "HEAD").decode().strip()
    try:
        return git(place.folder, "symbolic-ref", "--quiet", "--short", "HEAD").decode().strip(), head
    except GitError:
        return "", head


def record_file(place: Place) -> Path:
    """Where the last change of a project is recorded: per work tree, and per project in it."""
    return place.git_dir / "tricks" / f"undo-{hashlib.sha256(os.fsencode(place.prefix)).hexdigest()[:12]}.json"


def last_change(place: Place) -> Record | None:
    """Raises UserError for a record that cannot be read."""
    path = record_file(place)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"The record of the last change, {path}, cannot be read ({error.strerror}).") from error
    try:
        data = json.loads(text)
        files = {
            name: Before(
                file["captured"],
                entry_of(file["entry"]),
                entry_of(file["after"]),
                tuple(entry_of(stage) for stage in file["stages"]),
            )
            for name, file in data["files"].items()
        }
        return Record(data["command"], data["branch"], data["head"], files)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"The record of the last change, {path}, is broken or from another version of tricks: remove it."
        ) from error


def entry_of(data: list[str] | None) -> Entry | None:
    return Entry(*data) if data else None


def write(place: Place, record: Record) -> None:
    """Raises UserError when the change cannot be recorded."""
    path = record_file(place)
    try:
        path.parent.mkdir(exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(record)), encoding="ascii")
        unfinished.replace(path)
    except OSError as error:
        raise UserError(f"The change cannot be recorded in {path} ({error.strerror}): nothing was changed.") from error


def edited_since(place: Place, record: Record) -> list[str]:
    """The files that are neither as the change left them nor as they were before it, on disk or in the index."""
    oids = oids_on_disk(place, record.files)
    edited = []
    for path, file in record.files.items():
        as_left = path in oids and file.after is not None and oids[path] == file.after.oid
        there = worktree.captured(place.folder / path)
        if not (as_left or there == file.captured or (there is None and file.after is None)):
            edited.append(path)
    staged: dict[str, set[str]] = {}
    listing = git(place.folder, "ls-files", "--stage", "-z", "--", *(f":(literal){path}" for path in record.files))
    for row in listing.split(b"\0")[:-1]:
        about, _, name = row.partition(b"\t")
        staged.setdefault(os.fsdecode(name), set()).add(about.decode().split()[1])
    for path, file in record.files.items():
        known = {entry.oid for entry in (file.entry, file.after, *file.stages) if entry}
        if path not in edited and staged.get(path, set()) - known:
            edited.append(path)
    return edited


def oids_on_disk(place: Place, paths: Iterable[str], keep: bool = False) -> dict[str, str]:
    """The ids that git gives to files (links left out) as they lie there; with `keep` the store has them too."""
    names = [path for path in paths if (place.folder / path).is_file() and not (place.folder / path).is_symlink()]
    # Paths and not contents: git applies its filters, and line endings do not count as an edit.
    stdin = b"\n".join(os.fsencode(place.prefix + path) for path in names)
    output = place.store.git("hash-object", *(["-w"] if keep else []), "--stdin-paths", stdin=stdin).decode()
    return dict(zip(names, output.split(), strict=True))


def save_edits(place: Place, record: Record, edited: list[str]) -> Path:
    """Writes what was edited since the change as a patch into the git folder."""
    store = place.store
    left = {place.prefix + path: file.after for path in edited if (file := record.files[path]).after}
    now = {
        place.prefix + path: Entry(entry.mode if (entry := record.files[path].after) else "100644", oid)
        for path, oid in oids_on_disk(place, edited, keep=True).items()
    }
    trees = store.add_trees(left, now)
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--binary", "--full-index", "--no-renames")
    folder = record_file(place).parent
    patch = folder / f"edits-{sum(1 for _ in folder.glob('edits-*.patch')) + 1}.patch"
    patch.write_bytes(store.git("-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "diff", *plain, *trees))
    return patch
