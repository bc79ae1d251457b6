"""The versions of the template that a project was made from: where they are found, which is newest, their files.

A folder on this machine is read where it is. A remote repository is cloned once into the user's cache folder, and works
without a network from then on. The version that is installed needs neither.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.version import InvalidVersion, Version

from tricks import UserError
from tricks.git import GitError, describe, git
from tricks.template import source
from tricks.template.rendering import Template

# Copier's shortcuts.
HOSTS = {"gh:": "https://github.com/", "gl:": "https://gitlab.com/"}


@dataclass
class Origin:
    """The repository that a project's `_src_path` names."""

    address: str
    scratch: Path  # an empty folder for the files of the versions
    _repositories: list[Path] = field(default_factory=list, repr=False)
    _templates: dict[str, Template] = field(default_factory=dict, repr=False)

    def installed(self, version: str) -> Path | None:
        """The folder of a version that is installed here, outside git, from this address."""
        if self.address != source.PUBLIC_SOURCE or not source.outside_git():
            return None
        if version != source.installed_version()[0]:
            return None
        return source.BUNDLE if source.BUNDLE.is_dir() else source.CHECKOUT

    def repository(self, refresh: bool = False, timeout: float = 0) -> Path:
        """The folder of the repository; a remote one is cloned, or with `refresh` brought up to date, first.

        Raises UserError when it is gone or cannot be reached.
        """
        if self._repositories and not refresh:
            return self._repositories[0]
        url = expand(self.address)
        local = local_folder(url)
        try:
            if local is not None:
                git(local, "rev-parse", "--git-dir")
                found = local
            else:
                found = clone(url, refresh, timeout)
        except (GitError, FileNotFoundError, NotADirectoryError) as error:
            reason = error if isinstance(error, GitError) else "there is no such folder"
            raise UserError(
                f"The template {self.address} is gone or cannot be reached ({reason}): if it moved, put its address "
                "as _src_path into .copier-answers.yml and commit that."
            ) from error
        self._repositories[:] = [found]
        return found

    def template(self, version: str) -> Template:
        """The template at a version as a project records it. Raises UserError when that version is not to be had."""
        if version not in self._templates:
            if here := self.installed(version):
                self._templates[version] = Template(here)
            else:
                commit = self.commit(version)
                folder = self.scratch / commit
                try:
                    source.unpack(self.repository(), commit, folder)
                except GitError as error:
                    raise UserError(
                        f"{version} of {self.address} holds no template: is it the address that the project came from?"
                    ) from error
                self._templates[version] = Template(folder)
        return self._templates[version]

    def commit(self, version: str) -> str:
        """The commit of a version. Raises UserError when the repository does not have it."""
        found = resolve(self.repository(), version)
        if found is None and local_folder(expand(self.address)) is None:
            found = resolve(self.repository(refresh=True), version)
        if found is None:
            raise UserError(
                f"The template {self.address} has no version {version}: "
                f"{known(self.releases()) or 'it has no release yet.'}"
            )
        return found

    def releases(self, refresh: bool = False, timeout: float = 0) -> list[str]:
        """The tags that are versions, oldest first, without those before a release (1.0rc1)."""
        tags = git(self.repository(refresh, timeout), "tag", "--list").decode(errors="replace").split()
        numbers = {tag: found for tag in tags if (found := number(tag)) and not found.is_prerelease}
        return sorted(numbers, key=numbers.__getitem__)

    def newest(self) -> str:
        """The newest release, or where there is none the last commit, as a project records it."""
        releases = self.releases(refresh=True)
        return releases[-1] if releases else self.name("HEAD")

    def name(self, revision: str) -> str:
        """How a project records a revision: a tag's own name, or what `git describe` says."""
        if self.installed(revision):
            return revision
        repository = self.repository()
        for tag in (revision, f"v{revision}"):
            if resolve(repository, f"refs/tags/{tag}"):
                return tag
        try:
            return describe(repository, self.commit(revision))
        except GitError as error:
            raise UserError(f"The template {self.address} cannot be read at {revision} ({error}).") from error

    def is_older(self, version: str, than: str) -> bool:
        """Whether a version comes before another: as an ancestor, or by its number where git cannot tell."""
        if version == than:
            return False
        try:
            repository = self.repository()
        except UserError:
            repository = None
        commits = [resolve(repository, name) if repository else None for name in (version, than)]
        if repository and commits[0] and commits[1]:
            if commits[0] == commits[1]:
                return False
            with contextlib.suppress(GitError):  # fails with status 1 for "no"
                git(repository, "merge-base", "--is-ancestor", commits[0], commits[1])
                return True
            with contextlib.suppress(GitError):
                git(repository, "merge-base", "--is-ancestor", commits[1], commits[0])
                return False
        numbers = number(version), number(than)
        return bool(numbers[0] and numbers[1] and numbers[0] < numbers[1])


@contextlib.contextmanager
def origin(address: str) -> Iterator[Origin]:
    """An Origin whose files are kept for as long as it is used."""
    with tempfile.TemporaryDirectory(prefix="tricks-template-") as folder:
        yield Origin(address, Path(folder))


def expand(address: str) -> str:
    """A recorded address as git takes it."""
    for short, host in HOSTS.items():
        if address.startswith(short):
            return f"{host}{address[len(short) :].removesuffix('.git')}.git"
    return address.removeprefix("git+")


def local_folder(url: str) -> Path | None:
    """The folder that an address names on this machine; None for a remote one."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        path = unquote(parts.path)
        return Path(path[1:] if os.name == "nt" and re.match(r"/[A-Za-z]:", path) else path)
    if "://" in url or re.match(r"[\w.-]+@[\w.-]+:", url):
        return None
    return Path(url).expanduser()


def clone(url: str, refresh: bool, timeout: float) -> Path:
    """The user's own copy of a remote repository. Raises GitError when it cannot be reached."""
    import platformdirs

    cache = platformdirs.user_cache_path("tricks-template", appauthor=False)
    target = cache / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.git"
    if target.is_dir():
        if refresh:
            git(target, "fetch", "--quiet", "--prune", "--force", "--tags", "origin", timeout=timeout)
        return target
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=cache))
    try:
        git(cache, "clone", "--quiet", "--mirror", "--", url, str(unfinished), timeout=timeout)
        with contextlib.suppress(OSError):  # another process was faster
            unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target


def resolve(repository: Path, revision: str) -> str | None:
    """The full id of a revision's commit, or None; 1.2.0 stands for v1.2.0 too."""
    for name in (revision, f"v{revision}"):
        with contextlib.suppress(GitError):
            asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            return git(repository, *asked).decode().split()[-1]
    return None


def number(version: str) -> Version | None:
    """A version as `git describe` has it, to compare: v1.2.3-4-gabcdef0 comes after v1.2.3. None for a mere commit."""
    if re.fullmatch(r"[0-9a-f]{7,64}", version):
        return None
    try:
        return Version(re.sub(r"-g[0-9a-f]+$", "", version))
    except InvalidVersion:
        return None


def known(releases: list[str]) -> str:
    return f"it has {', '.join(releases[-5:])}." if releases else ""


def target(origin: Origin, present: str, asked: str) -> str | None:
    """The version to update to, as a project records it; None when the project is there already.

    `asked` is a version, or "newest". Raises UserError for a version that is older than the present one.
    """
    if asked == "newest":
        found = origin.newest()
        return None if found == present or origin.is_older(found, present) else found
    if local_folder(expand(origin.address)) is None and not origin.installed(asked):
        with contextlib.suppress(UserError):  # what is here may do; a branch is brought up to date if it can be
            origin.repository(refresh=True)
    found = origin.name(asked)
    if origin.is_older(found, present):
        raise UserError(f"{found} is older than {present}, which the project is at: `tricks update` only goes forward.")
    return None if found == present else found
