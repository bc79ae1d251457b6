"""What a project records of the checkout that it came from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import copier
import pytest

from tests.conftest import TAG, answers, commit, git
from tricks.template import source

Run = Callable[..., Any]
Variables = Callable[..., dict[str, str]]


def test_dirty_checkout_is_named_and_left_out(own_checkout: Path, tmp_path: Path, environment: Variables) -> None:
    (own_checkout / "template/train.py").write_text("broken {{", encoding="utf-8")
    (own_checkout / "template/untracked.txt").touch()
    command = [sys.executable, "-m", "tricks", "new", "p", "--defaults"]
    result = subprocess.run(command, cwd=tmp_path, env=environment(own_checkout), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert str(own_checkout) in result.stderr and "uncommitted changes in template/train.py" in result.stderr
    assert "template/untracked.txt" in result.stderr and TAG in result.stderr
    assert "broken" not in (tmp_path / "p/train.py").read_text(encoding="utf-8")
    assert not (tmp_path / "p/untracked.txt").exists()
    assert answers(tmp_path / "p")["_commit"] == TAG


def test_pushed_commit_records_the_remote_and_an_unpushed_one_the_folder(
    tricks: Run, own_checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "CHECKOUT", own_checkout)
    git(own_checkout, "remote", "add", "origin", "https://me:secret@example.org/tricks.git")
    git(own_checkout, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert tricks("new", "pushed", "--defaults").exit_code == 0
    assert answers(Path("pushed"))["_src_path"] == "https://example.org/tricks.git"
    (own_checkout / "template/new.txt").touch()
    commit(own_checkout)
    assert tricks("new", "unpushed", "--defaults").exit_code == 0
    assert answers(Path("unpushed"))["_src_path"] == str(own_checkout)
    assert answers(Path("unpushed"))["_commit"].startswith(f"{TAG}-1-g")


@pytest.mark.parametrize(
    ("url", "recorded"),
    {
        "git@github.com:a/b.git": "git@github.com:a/b.git",
        "https://token@github.com/a/b": "git+https://github.com/a/b",
        "ssh://git@example.org/a": "git+ssh://git@example.org/a",
        "/srv/a.git": None,
        "../a": None,
        "file:///srv/a": None,
    }.items(),
)
def test_remote_as_copier_reads_it(url: str, recorded: str | None) -> None:
    assert source.copier_url(url) == recorded


def test_a_checkout_that_git_cannot_read_is_one_sentence(
    tricks: Run, own_checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(own_checkout / ".git")
    git(own_checkout, "init", "-q")
    monkeypatch.setattr(source, "CHECKOUT", own_checkout)
    result = tricks("new", "p", "--defaults")
    assert result.exit_code == 1 and "git cannot read the last commit" in result.output
    assert result.output.count("\n") == 1 and os.listdir() == []


def test_copier_update_works_later(tricks: Run, own_checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "CHECKOUT", own_checkout)
    assert tricks("new", "p", "--defaults").exit_code == 0
    commit(Path("p"))
    (own_checkout / "template/NEWS.md").write_text("news\n", encoding="utf-8")
    commit(own_checkout, "v99.0.0")
    copier.run_update("p", defaults=True, overwrite=True, quiet=True)
    assert Path("p/NEWS.md").is_file() and answers(Path("p"))["_commit"] == "v99.0.0"
