"""git objects of a merge that is only looked at: git makes them in a folder of their own, which goes away.

What a change needs of them is put into the repository when it is applied, and not before.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tricks.git import git

FILE, EXECUTABLE, LINK = "100644", "100755", "120000"
# A temporary index is whole and alone, whatever the repository's settings are.
PLAIN_INDEX = ("-c", "core.splitIndex=false", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false")
# The author of commits that no branch ever has.
NOBODY = {
    f"GIT_{who}_{name}": value
    for who in ("AUTHOR", "COMMITTER")
    for name, value in (("NAME", "tricks"), ("EMAIL", "tricks"), ("DATE", "@0 +0000"))
}


class Entry(NamedTuple):
    """A file as a tree or an index has it."""

    mode: str
    oid: str


Files = dict[str, Entry]  # by path, with slashes


@dataclass
class Store:
    """The objects of the repository around a folder, and beside them new ones that it does not have yet."""

    folder: Path
    _scratch: Path = field(init=False, repr=False)

    def __post_init__(self) -> None:
        objects = git(self.folder, "rev-parse", "--path-format=absolute", "--git-path", "objects")
        self._scratch = Path(tempfile.mkdtemp(prefix="tricks-objects-"))
        weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        (self._scratch / "objects" / "info").mkdir(parents=True)
        (self._scratch / "objects" / "info" / "alternates").write_bytes(objects)

    def git(self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None) -> bytes:
        """Output of a git command that sees all the objects and adds its own to the new ones. Raises GitError."""
        where = {"GIT_OBJECT_DIRECTORY": str(self._scratch / "objects")}
        return git(self.folder, *arguments, stdin=stdin, variables=where | dict(variables or {}))

    def add_files(self, contents: Mapping[str, bytes], executable: Container[str] = ()) -> Files:
        """Files of these contents, by the same names."""
        distinct = list(dict.fromkeys(contents.values()))
        if not distinct:
            return {}
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            paths = [os.path.join(folder, str(number)) for number in range(len(distinct))]
            for path, data in zip(paths, distinct, strict=True):
                with open(path, "wb") as file:
                    file.write(data)
            output = self.git("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=os.fsencode("\n".join(paths)))
        oids = dict(zip(distinct, output.decode().split(), strict=True))
        return {name: Entry(EXECUTABLE if name in executable else FILE, oids[data]) for name, data in contents.items()}

    def add_trees(self, *sides: Mapping[str, Entry]) -> list[str]:
        """The ids of the trees of these files."""
        index = {"GIT_INDEX_FILE": str(self._scratch / "index")}
        # One index holds them all, each in a folder: a process less for each.
        rows = b"".join(
            f"{mode} {oid}\t{side}/".encode() + os.fsencode(path) + b"\0"
            for side, files in enumerate(sides)
            for path, (mode, oid) in files.items()
        )
        self.git(*PLAIN_INDEX, "update-index", "-z", "--index-info", stdin=rows, variables=index)
        write = (*PLAIN_INDEX, "write-tree", "--missing-ok")
        trees = [
            self.git(*write, f"--prefix={side}/", variables=index) if files else self.git("mktree")
            for side, files in enumerate(sides)
        ]
        (self._scratch / "index").unlink(missing_ok=True)
        return [tree.decode().strip() for tree in trees]

    def add_commit(self, tree: str, *parents: str) -> str:
        """The id of a commit of this tree."""
        named = [word for parent in parents for word in ("-p", parent)]
        return self.git("-c", "commit.gpgSign=false", "commit-tree", tree, *named, variables=NOBODY).decode().strip()

    def read(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The contents of objects. Raises GitError."""
        wanted = list(dict.fromkeys(oids))
        if not wanted:
            return {}
        output = self.git("cat-file", "--batch", stdin="\n".join([*wanted, ""]).encode())
        found, position = {}, 0
        for oid in wanted:
            end = output.index(b"\n", position)
            size = int(output[position:end].split()[2])
            found[oid] = output[end + 1 : end + 1 + size]
            position = end + size + 2
        return found

    def keep(self, oids: Iterable[str]) -> None:
        """Puts those of these files into the repository that it lacks. Raises GitError."""
        names = "\n".join([*dict.fromkeys(oids), ""]).encode()
        pack = self.git("pack-objects", "--quiet", "--local", "--stdout", stdin=names)
        git(self.folder, "unpack-objects", "-q", stdin=pack)


def read_tree(folder: Path, revision: str) -> Files:
    """The files of a commit below the folder, by path relative to it; submodules are left out. Raises GitError."""
    files = {}
    for row in git(folder, "ls-tree", "-r", "-z", revision).split(b"\0")[:-1]:
        about, _, path = row.partition(b"\t")
        mode, kind, oid = about.decode().split()
        if kind == "blob":
            files[os.fsdecode(path)] = Entry(mode, oid)
    return files
