"""A generated project as it stands, and what must hold before anything in it is changed."""

from __future__ import annotations

import importlib.metadata
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version

from tricks import UserError
from tricks.git import GitError, check_version, git
from tricks.project.objects import Files, Store, read_tree

ANSWERS = ".copier-answers.yml"
# The first or last line of a conflict that this tool, `copier update` or git left. The generated pre-commit
# configuration and workflow look for the same.
MARKER = "^(<<<<<<<|>>>>>>>) [^ ]"


@dataclass(frozen=True)
class Place:
    """A folder inside a git repository."""

    folder: Path
    top: Path  # of the repository
    prefix: str  # of the folder in the repository: "" or "a/b/"
    git_dir: Path
    nothing: str  # the id that stands for no object: as many zeros as the repository's ids have digits
    store: Store


@dataclass(frozen=True)
class Project:
    """A project at its last commit, and what its answers file records."""

    place: Place
    files: Files
    answers: dict[str, Any]
    address: str
    version: str


def locate(folder: Path) -> Place:
    """Raises UserError where there is no git repository with a commit, or no git that can merge."""
    check_version()
    if not folder.is_dir():
        raise UserError(f"There is no folder {str(folder)!r}: name the folder of a project.")
    asked = ("rev-parse", "--show-toplevel", "--absolute-git-dir", "--show-prefix")
    try:
        top, git_dir, prefix = os.fsdecode(git(folder, *asked)).split("\n")[:3]
    except GitError as error:
        if "not a git repository" not in str(error):
            raise UserError(f"git cannot read {str(folder)!r} ({error}).") from error
        raise UserError(
            f"{str(folder)!r} is not in a git repository, so nothing could be taken back: "
            "run `git init`, `git add -A` and `git commit` in it first."
        ) from error
    try:
        tree = git(folder, "rev-parse", "--verify", "HEAD^{tree}").decode().strip()
    except GitError as error:
        raise UserError(
            f"The git repository of {str(folder)!r} has no commit: run `git add -A` and `git commit` first."
        ) from error
    return Place(folder, Path(top), prefix, Path(git_dir), "0" * len(tree), Store(Path(top)))


def read(folder: Path) -> Project:
    """Raises UserError where there is no repository, or no answers file of this kind of template."""
    if folder.is_dir() and not (folder / ANSWERS).is_file():
        raise UserError(f"{str(folder)!r} holds no {ANSWERS}: is it the folder of a generated project?")
    place = locate(folder)
    try:
        answers = yaml.safe_load((folder / ANSWERS).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{ANSWERS} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise UserError(
            f"{ANSWERS} is not valid YAML{where}: take it back with `git checkout HEAD -- {ANSWERS}`."
        ) from error
    if not isinstance(answers, dict) or not isinstance(answers.get("_src_path"), str):
        raise UserError(f"{ANSWERS} does not say which template the project came from (_src_path).")
    if not isinstance(answers.get("_commit"), str | int | float):
        raise UserError(
            f"{ANSWERS} does not say which version of the template the project came from (_commit): it was made from a "
            "folder outside git. Put in a version that the template has, and commit that."
        )
    given = {str(name): value for name, value in answers.items() if not str(name).startswith("_")}
    files = read_tree(folder, "HEAD")
    return Project(place, files, given, answers["_src_path"], str(answers["_commit"]))


def check_clean(project: Project) -> None:
    """Raises UserError for changes that are not committed, and for conflicts of an earlier change."""
    place = project.place
    unmerged = git(place.folder, "ls-files", "--unmerged", "-z").split(b"\0")[:-1]
    left = list(dict.fromkeys(os.fsdecode(row.partition(b"\t")[2]) for row in unmerged)) or [
        path for path, _ in marked(place)
    ]
    if left:
        raise UserError(
            f"There are conflicts left in {some(left)}: resolve them and commit, or take the change back by"
            " `tricks undo`."
        )
    status = git(place.folder, "status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", "--", ".")
    changed = [os.fsdecode(row[3:]).removeprefix(place.prefix) for row in status.split(b"\0")[:-1]]
    if changed:
        raise UserError(f"There are uncommitted changes in {some(changed)}: commit or stash them first.")
    if ANSWERS not in project.files:
        raise UserError(f"{ANSWERS} is not committed: run `git add {ANSWERS}` and `git commit` first.")


def check_copier(least: str) -> None:
    """Raises UserError where Copier is older than a version of the template asks for."""
    installed = importlib.metadata.version("copier")
    if Version(installed) < Version(least):
        raise UserError(
            f"Copier is too old ({installed}): this version of the template asks for {least}. "
            "Run `pip install --upgrade copier`."
        )


def marked(place: Place) -> list[tuple[str, int]]:
    """File and line of each conflict marker that stands in the work tree."""
    try:
        output = git(place.folder, "grep", "-n", "-z", "-I", "-E", MARKER, "--", ".")
    except GitError as error:
        if error.code == 1:  # nothing found
            return []
        raise
    # Each line: name NUL number NUL text.
    rows = [line.split(b"\0") for line in output.splitlines()]
    return [(os.fsdecode(row[0]), int(row[1])) for row in rows if len(row) == 3]


def some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
