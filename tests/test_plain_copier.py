"""The template with plain Copier: what it refuses, and that `tricks` is not needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import copier
import pytest
import yaml

from tests.conftest import ROOT, commit, copy_sources
from tricks.template import questions

KNOWN = questions.load(ROOT / "copier.yml")


@pytest.fixture(scope="module")
def folder(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The template without git."""
    target = tmp_path_factory.mktemp("plain") / "template"
    return str(shutil.copytree(checkout, target, ignore=shutil.ignore_patterns(".git")))


@pytest.mark.parametrize(
    "data",
    [
        {"techniques": "[amp, nosuch]"},
        {"techniques": ["amp", "nosuch"]},
        {"techniques": {"amp": True, "ddp": False}},
        {"techniques": "ampp"},
        {"techniques": None},
        {"techniques": "[export]", "export_formats": "[]"},
        {"techniques": "[export]", "export_formats": {"onnx": True}},
        {"extras": {"pre_commit": True}},
        {"task": "imag"},
        {"clip": "nosuch"},
        {"amp": "true"},
        {"package_name": "x"},
        {"colour": "red"},
        {"project_name": "x", "colour": "red"},
        {"project_name": " "},
        {"project_name": "a\nb"},
        {"project_name": "a\x1b[31m"},
        {"project_name": "a\udcff"},
        {"project_name": ["x"]},
        {"description": "a\u2028b"},
        {"author": "\x00"},
    ],
    ids=str,
)
def test_plain_copier_refuses_and_writes_nothing(folder: str, tmp_path: Path, data: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        copier.run_copy(folder, tmp_path / "p", data, defaults=True)
    assert not (tmp_path / "p").exists()


def test_plain_copier_accepts_every_choice(folder: str, tmp_path: Path) -> None:
    choosers = [question for question in KNOWN.values() if question.choices]
    data: dict[str, Any] = {q.name: list(q.choices) for q in choosers if q.multiselect}
    single = [question for question in choosers if not question.multiselect]
    for turn in range(max(len(question.choices) for question in single)):
        data |= {q.name: list(q.choices)[turn % len(q.choices)] for q in single}
        worker = copier.run_copy(folder, tmp_path / "p", data, defaults=True, exclude=["*"], quiet=True)
        assert data.items() <= worker.answers.combined.items()


def test_plain_copier_command_without_git_or_terminal(folder: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "copier",
        "copy",
        "--defaults",
        "-d",
        "techniques=[amp, ddp]",
        folder,
        "p",
    ]
    result = subprocess.run(
        command, cwd=tmp_path, env={"PATH": ""}, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    answers = yaml.safe_load((tmp_path / "p/.copier-answers.yml").read_text(encoding="utf-8"))
    assert answers["techniques"] == ["amp", "ddp"]
    bad = subprocess.run([*command[:-1], "q", "-d", "amp=true"], cwd=tmp_path, capture_output=True, text=True)
    assert bad.returncode != 0 and not (tmp_path / "q").exists()
    # After Copier's traceback, where one looks first.
    assert bad.stderr.splitlines()[-1].endswith("This value follows from the other answers: leave it out.")


def test_copier_update_passes_with_an_answer_that_the_new_version_does_not_know(tmp_path: Path) -> None:
    template = copy_sources(tmp_path / "template")
    for file in (template / "template").rglob("*.py"):  # quicker
        file.unlink()
    questions_file = template / "copier.yml"
    text = questions_file.read_text(encoding="utf-8")
    questions_file.write_text(text + '\nlegacy:\n  type: str\n  default: "old"\n', encoding="utf-8")
    commit(template, "v0.0.1")
    project = tmp_path / "project"
    copier.run_copy(str(template), project, {"techniques": ["amp"]}, defaults=True, quiet=True)
    assert "legacy: old" in (project / ".copier-answers.yml").read_text(encoding="utf-8")
    commit(project)
    shutil.rmtree(project / ".git" / "hooks", ignore_errors=True)
    questions_file.write_text(text, encoding="utf-8")
    (template / "template/NEW.md").write_text("{{ project_name }}\n", encoding="utf-8")
    commit(template, "v0.0.2")
    copier.run_update(project, defaults=True, overwrite=True, quiet=True)
    assert (project / "NEW.md").read_text(encoding="utf-8") == "my training project\n"
