"""git objects that are named before they are written: a merge that is only looked at writes no more than it reads."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tricks.git import git

FILE, EXECUTABLE, LINK, FOLDER = "100644", "100755", "120000", "40000"


class Entry(NamedTuple):
    """A file as a tree or an index has it."""

    mode: str
    oid: str


Files = dict[str, Entry]  # by path, with slashes


class Pending(NamedTuple):
    """An object that is not stored yet."""

    kind: str
    data: bytes
    parts: tuple[str, ...]  # the objects that it names


@dataclass
class Store:
    """The object store of a repository, and what may be written to it."""

    folder: Path
    algorithm: str = "sha1"
    _pending: dict[str, Pending] = field(default_factory=dict, repr=False)

    def add(self, kind: str, data: bytes, *parts: str) -> str:
        """The id of an object, which `write` can store."""
        oid = hashlib.new(self.algorithm, b"%s %d\0" % (kind.encode(), len(data)) + data).hexdigest()
        self._pending[oid] = Pending(kind, data, parts)
        return oid

    def add_blob(self, data: bytes) -> Entry:
        """A plain file of this content."""
        return Entry(FILE, self.add("blob", data))

    def add_tree(self, files: Mapping[str, Entry]) -> str:
        """The id of the tree of these files."""
        inside: dict[str, Files] = {}
        rows: list[tuple[bytes, str, str]] = []
        for path, entry in files.items():
            head, slash, rest = path.partition("/")
            if slash:
                inside.setdefault(head, {})[rest] = entry
            else:
                rows.append((os.fsencode(head), entry.mode, entry.oid))
        rows += [(os.fsencode(name), FOLDER, self.add_tree(content)) for name, content in inside.items()]
        # git sorts folders as if their names ended in a slash.
        rows.sort(key=lambda row: row[0] + b"/" * (row[1] == FOLDER))
        data = b"".join(b"%s %s\0" % (mode.encode(), name) + bytes.fromhex(oid) for name, mode, oid in rows)
        return self.add("tree", data, *(oid for _, _, oid in rows))

    def add_commit(self, tree: str, *parents: str) -> str:
        """The id of a commit that no branch ever has."""
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines += [f"{who} tricks <> 0 +0000" for who in ("author", "committer")]
        return self.add("commit", "\n".join([*lines, "", ""]).encode(), tree, *parents)

    def write(self, *oids: str) -> None:
        """Stores the objects that were added under these ids, and all that they name. Raises GitError."""
        needed: dict[str, Pending] = {}
        queue = list(oids)
        while queue:
            pending = self._pending.pop(oid := queue.pop(), None)
            if pending:
                needed[oid] = pending
                queue += pending.parts
        with tempfile.TemporaryDirectory(prefix="tricks-objects-") as scratch:
            for kind in ("blob", "tree", "commit"):
                names = [oid for oid, pending in needed.items() if pending.kind == kind]
                for oid in names:
                    Path(scratch, oid).write_bytes(needed[oid].data)
                if names:
                    command = ("hash-object", "-w", "-t", kind, "--no-filters", "--stdin-paths")
                    paths = (os.fsencode(str(Path(scratch, oid))) for oid in names)
                    git(self.folder, *command, stdin=b"\n".join(paths))

    def read(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The contents of objects. Raises GitError."""
        wanted = list(dict.fromkeys(oids))
        found = {oid: self._pending[oid].data for oid in wanted if oid in self._pending}
        asked = [oid for oid in wanted if oid not in found]
        if not asked:
            return found
        output = git(self.folder, "cat-file", "--batch", stdin="\n".join([*asked, ""]).encode())
        position = 0
        for oid in asked:
            end = output.index(b"\n", position)
            size = int(output[position:end].split()[2])
            found[oid] = output[end + 1 : end + 1 + size]
            position = end + size + 2
        return found


def read_tree(folder: Path, revision: str) -> Files:
    """The files of a commit below the folder, by path relative to it; submodules are left out. Raises GitError."""
    files = {}
    for row in git(folder, "ls-tree", "-r", "-z", revision).split(b"\0")[:-1]:
        about, _, path = row.partition(b"\t")
        mode, kind, oid = about.decode().split()
        if kind == "blob":
            files[os.fsdecode(path)] = Entry(mode, oid)
    return files
