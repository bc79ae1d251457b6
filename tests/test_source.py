"""What a project records of the checkout that it came from."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import copier
import pytest

from tests.conftest import TAG, answers, commit, git, tree
from tricks.template import source

Run = Callable[..., Any]


def test_uncommitted_changes_are_in_all_that_is_shown_and_are_the_owners_until_they_are_committed(
    tricks: Run, own_checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "CHECKOUT", own_checkout)
    train, yml = own_checkout / "template/train.py", own_checkout / "copier.yml"
    train.write_text(train.read_text(encoding="utf-8") + "\n\n# A line of today.\n", encoding="utf-8")
    yml.write_text(yml.read_text(encoding="utf-8").replace("amp: ", "amp: today's ", 1), encoding="utf-8")
    assert "today's" in tricks("list").output and "today's" in tricks("explain", "amp").output
    assert "# A line of today." in tricks("show", "minimal").output
    result = tricks("new", "p", "--defaults")
    assert result.exit_code == 0, result.output
    assert f"{own_checkout} has uncommitted changes in copier.yml, template/train.py" in result.stderr
    assert "# A line of today." in Path("p/train.py").read_text(encoding="utf-8")
    assert answers(Path("p"))["_commit"] == TAG
    status = tricks("status", "p")
    assert status.exit_code == 0 and "train.py: +3 -0" in status.output
    assert tricks("add", "ddp", "p").exit_code == 0
    assert "# A line of today." in Path("p/train.py").read_text(encoding="utf-8")
    commit(Path("p"))
    commit(own_checkout, "v1.1.0")
    before = tree(Path("p"))
    assert tricks("update", "p").exit_code == 0 and answers(Path("p"))["_commit"] == "v1.1.0"
    after = tree(Path("p"))
    assert {name for name in after if after[name] != before[name]} == {".copier-answers.yml"}
    commit(Path("p"))
    assert "Changed by you" not in tricks("status", "p").output


def test_a_template_that_cannot_be_rendered_is_one_sentence(
    tricks: Run, own_checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "CHECKOUT", own_checkout)
    (own_checkout / "template/train.py").write_text("broken {{", encoding="utf-8")
    result = tricks("show", "minimal")
    assert result.exit_code == 1 and "train.py, line 1: unexpected 'end of template'" in result.output
    assert tricks("new", "p", "--defaults").exit_code == 1 and os.listdir() == []


def test_without_git_no_version_is_recorded(tricks: Run, own_checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(own_checkout / ".git")
    monkeypatch.setattr(source, "CHECKOUT", own_checkout)
    monkeypatch.setattr(source, "PACKAGE", own_checkout)
    result = tricks("new", "p", "--defaults")
    assert result.exit_code == 0 and "the project records none" in result.stderr
    assert "_commit" not in answers(Path("p"))
    result = tricks("add", "ddp", "p")
    assert result.exit_code == 1 and "does not say which version" in result.output
    text = Path("p/.copier-answers.yml").read_text(encoding="utf-8")
    Path("p/.copier-answers.yml").write_text(f"_commit: {TAG}\n{text}", encoding="utf-8")
    (own_checkout / "version.txt").write_text(TAG[1:], encoding="utf-8")
    commit(Path("p"))
    assert tricks("add", "ddp", "p").exit_code == 0


@pytest.mark.parametrize(
    ("version", "described"),
    {
        "0.1.0": ("v0.1.0", ""),
        "0.1.0.post1.dev3+g1a2b3c4": ("v0.1.0-3-g1a2b3c4", ""),
        "0.1.0.post1.dev3+g1a2b3c4.d20260102": ("v0.1.0-3-g1a2b3c4", "some files"),
        "0.1.0.post1.dev0+g1a2b3c4.d20260102": ("v0.1.0", "some files"),
        "0.1.0.post1.dev0+d20260102": ("v0.1.0", "some files"),
        "0.2.0rc1": ("v0.2.0rc1", ""),
        "0.0.post1.dev98+g4bce3a234": ("4bce3a234", ""),
        "0.0": ("", ""),
    }.items(),
)
def test_versions_of_hatch_vcs_as_git_describes_them(version: str, described: tuple[str, str]) -> None:
    assert source.as_described(version) == described


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
