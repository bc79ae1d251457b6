"""The three-way merge: from the old rendering to the new one, with what the owner made of the old.

Which file is which is decided here, by name; only a file that both sides changed reaches git's merge, which then
decides nothing but the lines. docs/changing-a-project.md says what comes out in every case.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tricks.git import GitError
from tricks.project.objects import FILE, LINK, Entry, Files, Store

# Least similarity of two files for one to be the other under a new name, as in git.
SIMILAR = "-M50%"
SETTINGS = ("-c", "merge.renames=false", "-c", "merge.renormalize=false", "-c", "core.quotePath=false")


@dataclass(frozen=True)
class Conflict:
    """A file that needs the owner. `places` are the lines with markers, `stages` what the index is to hold."""

    path: str
    reason: str
    places: tuple[tuple[int, int], ...] = ()
    stages: tuple[Entry | None, Entry | None, Entry | None] = (None, None, None)  # base, yours, the template's


@dataclass
class Merged:
    """The project's files after the change, what needs the owner, and sentences about what was decided."""

    files: Files
    conflicts: list[Conflict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge(
    store: Store,
    ours: Files,
    old: Mapping[str, str],
    new: Mapping[str, str],
    moved: Mapping[str, str],
    label: str,
    always_new: str,
    executable: Container[str] = (),
) -> Merged:
    """Merge the way from the old rendering to the new one into the owner's files.

    `moved` maps the old path of a file that the template renamed to its new one; `label` names the change in the
    markers; `always_new` is the answers file, which is never merged; `executable` holds files of the renderings.
    Nothing is written into the repository.
    """
    base = store.add_files({path: text.encode() for path, text in old.items()}, executable)
    theirs = store.add_files({path: text.encode() for path, text in new.items()}, executable)
    merged = Merged({})
    followed = templates_names(base, ours, theirs, moved, merged.notes)
    back = {new_name: path for path, new_name in moved.items()}
    by_owner = {
        path: name
        for path, name in owners_renames(store, base, ours).items()
        if name not in theirs or back.get(name) == path
    }
    names = followed | by_owner
    base = {names.get(path, path): entry for path, entry in base.items()}
    ours = {names.get(path, path): entry for path, entry in ours.items()}
    theirs = {names.get(back.get(path, path), path): entry for path, entry in theirs.items()}
    theirs = into_moved_folders(base, ours, theirs, by_owner)
    keep_line_endings(store, base, ours, theirs)
    merged.notes += [
        f"{path}: followed to its new name {name}."
        for path, name in by_owner.items()
        if name in theirs and theirs[name].oid != base[name].oid
    ]

    both: list[str] = []
    for path in sorted(base.keys() | ours.keys() | theirs.keys()):
        its_base, its_ours, its_theirs = base.get(path), ours.get(path), theirs.get(path)
        result = its_ours
        if path == always_new or its_base == its_ours:
            result = its_theirs
        elif its_theirs in (its_base, its_ours):
            pass
        elif its_ours is None:
            merged.notes.append(f"{path}: you deleted it, so its changes are left out.")
        elif its_theirs is None or LINK in (its_ours.mode, its_theirs.mode):
            reason = (
                "is no longer part of the project, but you edited it: it is kept"
                if its_theirs is None
                else "is a link of yours, and the template changes the file: the link is kept"
            )
            merged.conflicts.append(Conflict(path, reason, (), (its_base, its_ours, its_theirs)))
        else:
            mode = its_ours.mode if its_base is None or its_ours.mode != its_base.mode else its_theirs.mode
            if its_base and its_base.oid == its_ours.oid:
                result = Entry(mode, its_theirs.oid)
            else:
                result = Entry(mode, its_ours.oid)
                if its_ours.oid != its_theirs.oid and not (its_base and its_theirs.oid == its_base.oid):
                    both.append(path)
        if result is not None:
            merged.files[path] = result
    if both:
        merge_lines(store, base, ours, theirs, both, label, merged)
    merged.conflicts.sort(key=lambda conflict: conflict.path)
    return merged


def templates_names(
    base: Files, ours: Files, theirs: Files, moved: Mapping[str, str], notes: list[str]
) -> dict[str, str]:
    """The old and new names of files that the template renamed, but for those whose new name the owner has taken."""
    names = {}
    for path, name in moved.items():
        if path not in base or name not in theirs:
            continue
        if name not in ours:
            names[path] = name
        elif path in ours:
            notes.append(f"{path}: the template calls it {name} now, a name that is taken by a file of yours.")
    return names


def owners_renames(store: Store, base: Files, ours: Files) -> dict[str, str]:
    """Old to new names of files that the owner renamed: the same bytes, or half of them, and the same suffix."""
    gone = {path: entry for path, entry in base.items() if path not in ours}
    kinds = {PurePosixPath(path).suffix for path in gone}
    own = {path: entry for path, entry in ours.items() if path not in base and PurePosixPath(path).suffix in kinds}
    if not gone or not own:
        return {}
    trees = store.add_trees(gone, own)
    detect = ("diff-tree", "-r", "-z", "-l0", SIMILAR, "--no-rename-empty", "--diff-filter=R", "--name-status")
    fields = [os.fsdecode(text) for text in store.git(*detect, *trees).split(b"\0")[:-1]]
    pairs = zip(fields[1::3], fields[2::3], strict=True)
    return {old: new for old, new in pairs if PurePosixPath(old).suffix == PurePosixPath(new).suffix}


def into_moved_folders(base: Files, ours: Files, theirs: Files, by_owner: Mapping[str, str]) -> Files:
    """The new rendering, with its new files in the folder to which the owner moved all that was beside them."""
    targets: dict[PurePosixPath, set[PurePosixPath]] = {}
    for path, name in by_owner.items():
        targets.setdefault(PurePosixPath(path).parent, set()).add(PurePosixPath(name).parent)
    left = {PurePosixPath(path).parent for path in ours}
    found = {}
    for path, entry in theirs.items():
        folder, name = PurePosixPath(path).parent, PurePosixPath(path).name
        if path not in base and folder.name and folder not in left and len(targets.get(folder, ())) == 1:
            beside = str(next(iter(targets[folder])) / name)
            path = path if beside in ours or beside in theirs else beside
        found[path] = entry
    return found


def keep_line_endings(store: Store, base: Files, ours: Files, theirs: Files) -> None:
    """Gives both renderings of a file CRLF where every line of the owner's has it."""
    edited = [path for path in base if path in ours and ours[path].oid != base[path].oid]
    contents = store.read(files[path].oid for path in edited for files in (ours, base, theirs) if path in files)
    crlf = [path for path in edited if all_crlf(contents[ours[path].oid])]
    for files in (base, theirs):
        files |= store.add_files({path: with_crlf(contents[files[path].oid]) for path in crlf if path in files})


def all_crlf(data: bytes) -> bool:
    return b"\r\n" in data and data.count(b"\n") == data.count(b"\r\n")


def with_crlf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def merge_lines(
    store: Store, base: Files, ours: Files, theirs: Files, paths: list[str], label: str, merged: Merged
) -> None:
    """git's merge of files that both sides changed, into `merged`."""

    # Without modes: those are decided already.
    plain = [{path: Entry(FILE, files[path].oid) for path in paths if path in files} for files in (base, ours, theirs)]
    trees = store.add_trees(*plain)
    root = store.add_commit(trees[0])
    sides = store.add_commit(trees[1], root), store.add_commit(trees[2], root)
    try:
        output = store.git(*SETTINGS, "merge-tree", "--write-tree", "-z", *sides)
    except GitError as error:
        if error.code != 1:
            raise
        output = error.output
    tree, _, rest = output.partition(b"\0")
    in_conflict = set()
    for row in rest.partition(b"\0\0")[0].split(b"\0"):
        if row:
            in_conflict.add(os.fsdecode(row.partition(b"\t")[2]))
    for row in store.git("ls-tree", "-r", "-z", tree.decode()).split(b"\0")[:-1]:
        about, _, name = row.partition(b"\t")
        path = os.fsdecode(name)
        merged.files[path] = Entry(merged.files[path].mode, about.decode().split()[2])
    contents = store.read(merged.files[path].oid for path in in_conflict)
    labelled = {path: label_markers(contents[merged.files[path].oid], root, *sides, label) for path in in_conflict}
    added = store.add_files({path: data for path, (data, _) in labelled.items()})
    for path, (_, places) in sorted(labelled.items()):
        merged.files[path] = Entry(merged.files[path].mode, added[path].oid)
        reason = "your lines and the template's meet" if places else "cannot be merged by lines: yours is kept"
        merged.conflicts.append(Conflict(path, reason, places, (base.get(path), ours[path], theirs[path])))


def label_markers(
    data: bytes, root: str, ours: str, theirs: str, label: str
) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    """A file with conflicts, its markers in words; and the first and last line of each conflict, counted from 1."""
    names = {ours: "yours", root: "before", theirs: f"tricks: {label}"}
    lines, places, start = data.split(b"\n"), [], 0
    for index, line in enumerate(lines):
        found = re.fullmatch(rb"([<>|])\1{6,} ([0-9a-f]{4,})(\r?)", line)
        full = [oid for oid in names if found and oid.startswith(found[2].decode())]
        if not found or not full:
            continue
        if found[1] == b"<":
            start = index + 1
        elif found[1] == b">":
            places.append((start, index + 1))
        lines[index] = line.partition(b" ")[0] + b" " + names[full[0]].encode() + found[3]
    return b"\n".join(lines), tuple(places)


def templates_renames(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Old to new paths of the files that a version of the template renamed, from the texts of both versions' files."""
    gone = {path: old[path].splitlines() for path in old.keys() - new.keys()}
    added = {path: new[path].splitlines() for path in new.keys() - old.keys()}
    ratios = []
    for path, lines in gone.items():
        for other, others in added.items():
            if PurePosixPath(path).suffix == PurePosixPath(other).suffix:
                ratio = difflib.SequenceMatcher(None, lines, others, autojunk=False).ratio()
                ratios.append((ratio, path, other))
    renames: dict[str, str] = {}
    for ratio, path, other in sorted(ratios, reverse=True):
        if ratio >= 0.5 and path not in renames and other not in renames.values():
            renames[path] = other
    return renames
