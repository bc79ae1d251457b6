"""Writes a merged change into the work tree and the index."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tricks import UserError
from tricks.git import GitError
from tricks.project import undo, worktree
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
    entries = (entry for step in todo for entry in (step.after, *step.stages))
    place.store.keep(entry.oid for entry in entries if entry)
    previous = undo.record_file(place).read_bytes() if undo.record_file(place).exists() else None
    record = undo.Record(
        command,
        *undo.branch_and_head(place),
        {
            step.path: undo.Before(
                worktree.captured(place.folder / step.path) if step.before else None,
                step.before,
                step.after,
                step.stages,
            )
            for step in todo
        },
    )
    undo.write(place, record)
    try:
        worktree.remove(place, [step.path for step in todo if step.after is None and step.before is not None])
        worktree.check_out(place, {step.path: step.after for step in todo if step.after and step.after != step.before})
        worktree.set_index(place, {step.path: step.stages or step.after for step in todo})
    except BaseException as error:
        with contextlib.suppress(GitError):  # an index that is locked was not changed either
            undo.put_back(place, record)
        undo.record_file(place).unlink(missing_ok=True)
        if previous is not None:
            undo.record_file(place).write_bytes(previous)
        if isinstance(error, OSError | GitError):
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            raise UserError(f"The change could not be written ({reason}): everything is as it was.") from error
        raise
