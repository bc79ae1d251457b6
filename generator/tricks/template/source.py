"""Where the template comes from, and what a project records about it so that an update finds it again."""

from __future__ import annotations

import io
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tricks import UserError
from tricks.git import GitError
from tricks.git import describe
from tricks.git import git as run_git

# THE PUBLIC ADDRESS of this repository: the owner sets it, here and in the README.
PUBLIC_SOURCE = "gh:org/tricks-template"

PACKAGE = Path(__file__).resolve().parent.parent
BUNDLE = PACKAGE / "bundle"  # in an installed wheel only: copier.yml and template/
CHECKOUT = PACKAGE.parent.parent


@dataclass(frozen=True)
class Source:
    """A folder with copier.yml and template/, and what is recorded of it: its address and version.

    The version is what `git describe` says, "" where that is not known; `warning` says what is not as recorded.
    """

    root: Path
    url: str
    commit: str
    warning: str = ""


def copier_yml() -> Path:
    """The questions, for completion: without asking git."""
    return (BUNDLE if BUNDLE.is_dir() else CHECKOUT) / "copier.yml"


@contextmanager
def template() -> Iterator[Source]:
    """The template that everything shows and renders: what the wheel carries, or the checkout as it lies there.

    Of a checkout's uncommitted changes the last commit is recorded: Copier would record a commit that exists nowhere.
    An update then takes them for the owner's edits, and once they are committed for what both sides have.
    """
    commit, changes = installed_version()
    if outside_git():
        url, root = PUBLIC_SOURCE, BUNDLE if BUNDLE.is_dir() else CHECKOUT
        if not commit:
            warning = (
                f"The version of the template in {root} is not known, since it came without git: the project records "
                "none, and `tricks add` and `tricks update` need one (_commit in .copier-answers.yml)."
            )
        elif changes:
            warning = (
                f"This tricks was built from {commit} with uncommitted changes: the project records {commit}, and an "
                "update takes the changes for your own."
            )
        else:
            warning = ""
    else:
        url, root = address(), CHECKOUT
        warning = (
            f"The checkout {CHECKOUT} has uncommitted changes in {changes}: they are rendered, but the version that is "
            f"recorded is the last commit, {commit}, so an update takes them for your own edits until they are committed."
            if changes
            else ""
        )
    try:
        yield Source(root, url, commit, warning)
    except Exception as error:
        import jinja2  # start-up time

        if not isinstance(error, jinja2.TemplateError):
            raise
        where = f", line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
        name = getattr(error, "filename", None) or root
        raise UserError(f"The template cannot be rendered: {name}{where}: {error.message}") from error


def outside_git() -> bool:
    """Whether the template was installed or unpacked, so that git cannot be asked about it."""
    return BUNDLE.is_dir() or not (CHECKOUT / ".git").exists() or shutil.which("git") is None


def installed_version() -> tuple[str, str]:
    """What `git describe` says of the template here ("" where nothing is known), and what differs from that version."""
    if outside_git():
        return built_version()
    try:
        return describe(CHECKOUT, "HEAD"), uncommitted()
    except GitError as error:
        raise UserError(f"git cannot read the last commit of the checkout {CHECKOUT} ({error}).") from error


def built_version() -> tuple[str, str]:
    """The version that hatch-vcs wrote at the build: 0.1.0.post1.dev3+g1a2b3c4 is v0.1.0-3-g1a2b3c4."""
    try:
        text = (PACKAGE / "version.txt").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return "", ""
    return as_described(text)


def as_described(version: str) -> tuple[str, str]:
    """What `git describe` says of a version in hatch-vcs's words, and a word on uncommitted changes."""
    found = re.fullmatch(r"(.+?)(?:\.post1\.dev(\d+))?(?:\+(?:g([0-9a-f]+))?\.?(d\d+)?)?", version)
    if not found:
        return "", ""
    base, distance, node, date = found.groups()
    changes = "some files" if date else ""
    if base == "0.0" and node:  # no tag yet
        return node, changes
    if base == "0.0":
        return "", changes
    return f"v{base}-{distance}-g{node}" if node and distance != "0" else f"v{base}", changes


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


def uncommitted() -> str:
    """The names of the template's files that differ from the last commit; "" when there are none."""
    only = ("--", "copier.yml", "template")
    status = git("-c", "core.quotePath=false", "status", "--porcelain", "--no-renames", *only)
    names = [line[3:] for line in status.decode(errors="replace").splitlines()]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


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
