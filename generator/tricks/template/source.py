"""Where the template comes from, and what a project records about it so that an update finds it again."""

from __future__ import annotations

import io
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tricks import UserError, __version__
from tricks.git import GitError
from tricks.git import git as run_git

# THE PUBLIC ADDRESS of this repository: the owner sets it, here and in the README.
PUBLIC_SOURCE = "gh:org/tricks-template"

PACKAGE = Path(__file__).resolve().parent.parent
BUNDLE = PACKAGE / "bundle"  # in an installed wheel only: copier.yml and template/
CHECKOUT = PACKAGE.parent.parent


@dataclass(frozen=True)
class Source:
    """A folder with copier.yml and template/, and what is recorded of it: its address and version."""

    root: Path
    url: str
    commit: str
    warning: str = ""


def copier_yml() -> Path:
    """The questions as they lie on disk; in a changed checkout not quite those that are rendered."""
    return (BUNDLE if BUNDLE.is_dir() else CHECKOUT) / "copier.yml"


@contextmanager
def template() -> Iterator[Source]:
    """The template to render: what the wheel carries, or the last commit of the checkout.

    A checkout's uncommitted changes stay out: Copier would render them as a commit that exists nowhere, which
    no later update could find.
    """
    if BUNDLE.is_dir():
        yield Source(BUNDLE, PUBLIC_SOURCE, f"v{__version__}")
    elif not (CHECKOUT / ".git").exists():  # an unpacked archive of the repository
        yield Source(CHECKOUT, PUBLIC_SOURCE, f"v{__version__}")
    elif shutil.which("git") is None:
        warning = f"git is not installed: the files in {CHECKOUT} are taken for version v{__version__}."
        yield Source(CHECKOUT, PUBLIC_SOURCE, f"v{__version__}", warning)
    else:
        with tempfile.TemporaryDirectory(prefix="tricks-template-") as folder:
            commit = git("describe", "--tags", "--always", "HEAD").decode().strip()
            unpack(CHECKOUT, "HEAD", Path(folder))
            yield Source(Path(folder), address(), commit, dirty(commit))


def git(*arguments: str) -> bytes:
    """Output of a git command in the checkout."""
    try:
        return run_git(CHECKOUT, *arguments)
    except GitError as error:
        raise UserError(f"git cannot read the last commit of the checkout {CHECKOUT} ({error}).") from error


def unpack(repository: Path, revision: str, folder: Path) -> None:
    """Write copier.yml and template/ of a revision of a repository into the folder. Raises GitError."""
    # The bytes of the commit: no line endings of this system, no permissions of this user.
    settings = ("-c", "core.autocrlf=false", "-c", "core.eol=lf", "-c", "tar.umask=user")
    archive = run_git(repository, *settings, "archive", "--format=tar", revision, "copier.yml", "template")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        # Python before 3.10.12 has no filters.
        tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        tar.extractall(folder)


def dirty(commit: str) -> str:
    """A sentence that names the uncommitted changes of the template; empty when there are none."""
    only = ("--", "copier.yml", "template")
    status = git("-c", "core.quotePath=false", "status", "--porcelain", "--no-renames", *only)
    names = [line[3:] for line in status.decode(errors="replace").splitlines()]
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"The checkout {CHECKOUT} has uncommitted changes in {', '.join(names[:3])}{more}: "
        f"they are left out, the project is made from its last commit, {commit}."
    )


def address() -> str:
    """The checkout's remote when it has the commit too, so that other machines find it; else the folder."""
    remotes = git("remote").decode().split()
    if "origin" in remotes and git("for-each-ref", "--count=1", "--contains=HEAD", "refs/remotes/origin"):
        url = git("remote", "get-url", "origin").decode().strip()
        if public := copier_url(url):
            return public
    return CHECKOUT.as_posix()


def copier_url(url: str) -> str | None:
    """A git remote as Copier reads it, without a password in it; None for a folder on this machine."""
    if re.match(r"(https?|ssh|git)://", url):
        url = re.sub(r"^(https?://)[^/@]*@", r"\1", url)
        return url if url.endswith(".git") or url.startswith("git://") else f"git+{url}"
    if re.match(r"[\w.-]+@[\w.-]+:", url):
        return url if url.endswith(".git") or url.startswith("git@") else f"git+{url}"
    return None
