"""Builds the whole site: the page of every tag, and the newest one at the top as well.

Each tag's page is built by that tag's own code, so that a page once published stays what it was.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from web.build import ROOT


def tags(repository: Path) -> list[str]:
    """The released versions that have a page, oldest first."""
    listed = git(repository, "tag", "--list", "v*", "--sort=version:refname").split()
    return [tag for tag in listed if "-" not in tag and holds(repository, tag, "web/build.py")]


def holds(repository: Path, tag: str, path: str) -> bool:
    return bool(git(repository, "ls-tree", "--name-only", tag, "--", path).strip())


def git(repository: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(repository), *arguments], check=True, capture_output=True, text=True).stdout


def build_site(repository: Path, out: Path) -> list[str]:
    """Writes the site of a repository's tags into a folder, which is made anew; returns the versions in it."""
    versions = tags(repository)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for version in versions:
        with tempfile.TemporaryDirectory(prefix="tricks-site-") as folder:
            checkout = Path(folder, "checkout")
            git(repository.parent, "clone", "--quiet", "--branch", version, "--", str(repository), str(checkout))
            # The packages that are imported are that version's too.
            environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(checkout / "generator"), str(checkout)]))
            command = [sys.executable, "-m", "web", str((out / version).resolve()), "--revision", version]
            subprocess.run(command, cwd=checkout, env=environment, check=True)
    for version in versions:
        known = {"versions": versions, "root": "../"}
        (out / version / "versions.json").write_text(json.dumps(known), encoding="utf-8")
    if versions:
        shutil.copytree(out / versions[-1], out, dirs_exist_ok=True)
        (out / "versions.json").write_text(json.dumps({"versions": versions, "root": "./"}), encoding="utf-8")
    return versions


if __name__ == "__main__":
    built = build_site(ROOT, Path(sys.argv[1]))
    if not built:
        sys.exit("Error: no tag holds a page yet: nothing was published.")
    print(f"{sys.argv[1]}: {', '.join(built)}")
