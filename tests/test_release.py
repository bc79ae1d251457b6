"""`make release` on a copy of the repository; the checks that come before it are other tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT, TAG, commit, git


@pytest.fixture
def repository(own_checkout: Path) -> Path:
    shutil.copytree(ROOT / ".ci", own_checkout / ".ci")
    (own_checkout / "CHANGELOG.md").write_text(f"# Changelog\n\n## Unreleased\n\n* News.\n\n## {TAG[1:]}\n\nOld.\n")
    commit(own_checkout)
    return own_checkout


def release(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHON": sys.executable}
    command = [str(folder / ".ci/release"), *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)


def test_release(repository: Path) -> None:
    assert release(repository, "1.1.0", "--check").returncode == 0 and git(repository, "tag") == TAG
    done = release(repository, "1.1.0")
    assert done.returncode == 0, done.stderr
    assert git(repository, "describe", "HEAD") == "v1.1.0" and git(repository, "status", "--porcelain") == ""
    text = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.startswith("# Changelog\n\n## Unreleased\n\n## 1.1.0, 20") and text.count("* News.") == 1
    assert text.index("## 1.1.0") < text.index("* News.") < text.index(f"## {TAG[1:]}")
    with zipfile.ZipFile(repository / "dist/tricks_template-1.1.0-py3-none-any.whl") as archive:
        assert archive.read("tricks/version.txt") == b"1.1.0"
    assert "git push origin HEAD v1.1.0" in done.stdout
    # Nothing new since.
    again = release(repository, "1.2.0")
    assert again.returncode == 1 and "says nothing under Unreleased" in again.stderr


def test_what_is_refused(repository: Path) -> None:
    before = git(repository, "rev-parse", "HEAD")
    for version, sentence in {
        "": "give the version",
        "v1.1.0": "give the version",
        "1.0.0": "v1.0.0 is there already",
        "0.9.0": "0.9.0 comes before v1.0.0",
    }.items():
        done = release(repository, version)
        assert done.returncode == 1 and sentence in done.stderr and done.stderr.count("\n") == 1
    (repository / "untracked").touch()
    assert "uncommitted or untracked" in release(repository, "1.1.0").stderr
    assert git(repository, "rev-parse", "HEAD") == before and git(repository, "tag") == TAG


def test_a_wheel_that_does_not_hold_the_template_is_no_release(repository: Path) -> None:
    (repository / ".gitignore").write_text("*.md\n/dist/\n/generator/tricks/version.txt\n", encoding="utf-8")
    commit(repository)
    before = git(repository, "rev-parse", "HEAD")
    done = release(repository, "1.1.0")
    assert done.returncode == 1 and "commit and tag are taken back" in done.stderr
    assert "README.md" in done.stdout  # what the wheel lacks
    assert git(repository, "rev-parse", "HEAD") == before and git(repository, "tag") == TAG
