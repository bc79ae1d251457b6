"""git, called with bytes and answering with bytes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tricks import UserError

# `merge-tree --write-tree` is from 2.38.
OLDEST = (2, 38)
# In a git hook they name another repository.
INHERITED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")


class GitError(Exception):
    """git failed; the text is the first line that it said."""

    def __init__(self, code: int, output: bytes, complaint: str) -> None:
        super().__init__(complaint)
        self.code = code
        self.output = output


def git(
    folder: Path, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None, timeout: float = 0
) -> bytes:
    """Output of a git command in a folder. Raises GitError when it fails or takes longer than `timeout` seconds."""
    environment = {name: value for name, value in os.environ.items() if name not in INHERITED}
    environment |= {"LC_ALL": "C", **(variables or {})}
    if not (sys.stdin and sys.stdin.isatty()):
        environment["GIT_TERMINAL_PROMPT"] = "0"  # nobody could answer it
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, input=stdin, env=environment, timeout=timeout or None)
    except subprocess.TimeoutExpired as error:
        raise GitError(-1, b"", f"no answer after {timeout:.0f} seconds") from error
    except FileNotFoundError as error:
        raise UserError("git is not installed: install git 2.38 or newer.") from error
    if result.returncode:
        raise GitError(result.returncode, result.stdout, first_line(result.stderr))
    return result.stdout


def describe(repository: Path, revision: str) -> str:
    """How a project records a revision: v1.2.0, v1.2.0-3-g1a2b3c4, or 1a2b3c4 before any release. Raises GitError."""
    versions = ("--match=v[0-9]*", "--match=[0-9]*")
    return git(repository, "describe", "--tags", "--always", *versions, revision).decode().strip()


def first_line(complaint: bytes) -> str:
    """What git says went wrong, without its prefix."""
    lines = complaint.decode(errors="replace").strip().splitlines() or ["no reason given"]
    named = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines
    return named[0].removeprefix("fatal: ").removeprefix("error: ").rstrip(".")


def check_version() -> None:
    """Raises UserError where git is missing or cannot merge without a work tree."""
    if shutil.which("git") is None:
        raise UserError("git is not installed: install git 2.38 or newer.")
    text = git(Path(), "version").decode()
    found = re.search(r"(\d+)\.(\d+)", text)
    if found and (int(found[1]), int(found[2])) < OLDEST:
        raise UserError(f"git is too old ({text.strip()}): install git 2.38 or newer.")
