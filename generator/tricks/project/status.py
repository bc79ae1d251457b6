"""`tricks status`: where a project stands."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import Any

from tricks import UserError
from tricks.git import git
from tricks.project import undo
from tricks.project.plan import read_answers, render
from tricks.project.read import ANSWERS, Place, Project, marked
from tricks.template.versions import Origin


@dataclass(frozen=True)
class Edit:
    """How a file of the template's differs from what was generated; `now` is empty for a file that was deleted."""

    path: str
    now: str
    added: int
    removed: int


@dataclass
class Status:
    """Version, answers, the owner's edits and what is left to do; sentences where something cannot be told."""

    newer: str  # "" when there is none
    edits: list[Edit] = field(default_factory=list)
    own_files: int = 0
    conflicts: list[str] = field(default_factory=list)
    undoable: str = ""
    untold: list[str] = field(default_factory=list)


def examine(project: Project, origin: Origin, patience: float) -> Status:
    """Looks at the work tree, and for `patience` seconds for newer versions. Nothing that is out of reach raises."""
    found = Status("", conflicts=open_conflicts(project.place))
    last = undo.last_change(project.place)
    if last:
        with contextlib.suppress(UserError):
            undo.check_fits(project.place, last)
            found.undoable = last.command
    try:
        found.newer = newer(origin, project.version, patience)
    except UserError as error:
        found.untold.append(f"Whether there is a newer version is not known: {error}")
    try:
        template = origin.template(project.version)
        read_answers(template, project.answers)
        old = render(template, project.answers, project.address, project.version)
        executable = {path.as_posix() for path in template.executable}
        found.edits, found.own_files = edits(project.place, old, executable)
    except UserError as error:
        found.untold.append(f"What you changed is not known: {error}")
    return found


def newer(origin: Origin, present: str, patience: float) -> str:
    releases = origin.releases(refresh=True, timeout=patience)
    return releases[-1] if releases and origin.is_older(present, releases[-1]) else ""


def open_conflicts(place: Place) -> list[str]:
    """Each marker as file:line, and each file that git still holds as unmerged without one."""
    markers = marked(place)
    unmerged = git(place.folder, "ls-files", "--unmerged", "-z").split(b"\0")[:-1]
    names = dict.fromkeys(os.fsdecode(row.partition(b"\t")[2]) for row in unmerged)
    without = [name for name in names if name not in {path for path, _ in markers}]
    return [f"{path}:{line}" for path, line in markers] + [f"{name} (not added to git yet)" for name in without]


def edits(place: Place, old: dict[str, str], executable: set[str]) -> tuple[list[Edit], int]:
    """What differs between the rendering and the work tree, and how many tracked files are the owner's own."""
    generated = place.store.add_files({path: text.encode() for path, text in old.items()}, executable)
    (tree,) = place.store.add_trees({place.prefix + path: entry for path, entry in generated.items()})
    asked = ("diff", "--no-ext-diff", "--numstat", "-z", "-M50%", "--no-rename-empty", tree, "--", place.prefix or ".")
    fields = iter(place.store.git(*asked).split(b"\0")[:-1])
    found: list[Edit] = []
    own = 0

    def name(raw: bytes) -> str:
        return os.fsdecode(raw).removeprefix(place.prefix)

    for row in fields:
        added, removed, path = row.split(b"\t", 2)
        before = now = name(path)
        if not path:  # renamed: the names follow
            before, now = name(next(fields)), name(next(fields))
        counts = [int(count) if count.isdigit() else 0 for count in (added, removed)]
        if before not in old:
            own += 1
        elif before != ANSWERS:
            found.append(Edit(before, now if os.path.lexists(place.folder / now) else "", *counts))
    return found, own


def describe(answers: dict[str, Any]) -> list[str]:
    """The answers, a line each."""
    return [
        f"{name}: {', '.join(map(str, value)) or 'none' if isinstance(value, list) else value}"
        for name, value in answers.items()
        if value not in ("", None)
    ]
