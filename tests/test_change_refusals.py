"""What must hold before a project is changed: each precondition is one sentence, and nothing is touched."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.conftest import commit
from tests.test_change import Project, Run, insert, project, state
from tests.test_prompts import answer, end
from tricks import git
from tricks.project import read as existing

__all__ = ["project"]  # a fixture


def no_git(folder: Path) -> None:
    shutil.rmtree(folder / ".git")


def no_commit(folder: Path) -> None:
    no_git(folder)
    from tests.conftest import git as run

    run(folder, "init", "-q")


def uncommitted(folder: Path) -> None:
    insert(folder / "train.py", "def step(", "# mine")


def answers_with(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / ".copier-answers.yml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        commit(folder)

    return change


def markers(folder: Path) -> None:
    (folder / "train.py").write_text(
        "<<<<<<< before updating\na\n=======\nb\n>>>>>>> after updating\n", encoding="utf-8"
    )
    commit(folder)


def in_the_way(folder: Path) -> None:
    (folder / ".git/info/exclude").write_text("distributed.py\n", encoding="utf-8")
    (folder / "distributed.py").write_text("mine\n", encoding="utf-8")


def folder_is_a_file(folder: Path) -> None:
    shutil.rmtree(folder / "tests")
    commit(folder)
    (folder / "tests").write_text("mine\n", encoding="utf-8")


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "not a git repository": (no_git, "is not in a git repository"),
    "no commit": (no_commit, "has no commit"),
    "uncommitted changes": (uncommitted, "uncommitted changes in train.py: commit or stash them first"),
    "no answers file": (lambda folder: (folder / ".copier-answers.yml").unlink(), "holds no .copier-answers.yml"),
    "broken answers file": (answers_with("task: image", "task: [image"), "is not valid YAML in line"),
    "broken answer": (answers_with("task: image", "task: imag"), "In .copier-answers.yml: task has no value 'imag'"),
    "a list is text": (answers_with("techniques:\n- amp\n", "techniques: amp\nx:\n"), "techniques takes a list"),
    "hidden answer": (answers_with("task: image", "task: image\namp: true"), "amp follows from techniques"),
    "no source": (answers_with("_src_path", "_src"), "does not say which template"),
    "no version": (answers_with("_commit", "_commits"), "does not say which version"),
    "unknown version": (answers_with("_commit: v", "_commit: v9."), "has no version v9."),
    "template is gone": (answers_with("_src_path: /", "_src_path: /nowhere/"), "gone or cannot be reached"),
    "conflicts left": (markers, "conflicts left in train.py"),
    "untracked file in the way": (in_the_way, "distributed.py would be written over"),
    "file in place of a folder": (folder_is_a_file, "tests would be written over"),
}


@pytest.mark.parametrize("name", CASES)
def test_precondition(tricks: Run, project: Project, name: str) -> None:
    folder = project("p", "-d", "techniques=amp")
    spoil, sentence = CASES[name]
    spoil(folder)
    before = state(folder) if (folder / ".git").exists() else None
    result = tricks("add", "ddp", "p", "--defaults")
    assert result.exit_code == 1 and sentence in result.output, result.output
    assert result.output.startswith("Error: ") and result.output.count("\n") == 1
    assert before is None or state(folder) == before


def test_other_templates_and_old_programs(tricks: Run, project: Project, own_checkout: Path, monkeypatch: Any) -> None:
    folder = project("p", "-d", "techniques=amp")
    (own_checkout / "copier.yml").write_text(
        "_subdirectory: template\nname: {type: str, default: x}\n", encoding="utf-8"
    )
    commit(own_checkout, "v7.0.0")
    path = folder / ".copier-answers.yml"
    text = path.read_text(encoding="utf-8")
    path.write_text(f"_commit: v7.0.0\n_src_path: {own_checkout}\nname: y\n", encoding="utf-8")
    commit(folder)
    assert "another template" in tricks("add", "ddp", "p").output
    path.write_text(text, encoding="utf-8")
    commit(folder)
    with monkeypatch.context() as patch:
        patch.setattr("importlib.metadata.version", lambda _: "9.0.0")
        assert "Copier is too old (9.0.0)" in tricks("add", "ddp", "p").output
    with monkeypatch.context() as patch:
        patch.setattr(existing, "check_version", git.check_version)
        patch.setattr(git, "OLDEST", (99, 0))
        assert "git is too old" in tricks("add", "ddp", "p").output
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        assert "git is not installed" in tricks("add", "ddp", "p").output
    assert tricks("add", "ddp", "p", "--defaults").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("add", "dpd"), "has no technique 'dpd': did you mean 'ddp'?"),
        (("remove", "ddp"), "ddp is not in the project: its techniques are amp."),
        (("remove", "nosuch"), "has no technique 'nosuch'"),
        (("set", "schedule=plateau"), "schedule has no effect with these techniques"),
        (("set", "amp=true"), "amp follows from techniques"),
        (("set", "tracker=tensorbord"), "did you mean 'tensorboard'?"),
        (("set", "project_name= "), "The name is empty"),
        (("add", "export", "-d", "export_formats="), "Choose at least one export format"),
        (
            ("add", "export"),
            "no terminal to ask at, and export_formats is open (torch_export, onnx",
        ),
        (("add", "ddp", "-d", "clip=value"), "clip has no effect with these techniques"),
        (("update", "--to", "-x"), "has no version -x"),
    ],
    ids=str,
)
def test_refused_arguments(tricks: Run, project: Project, arguments: tuple[str, ...], sentence: str) -> None:
    folder = project("p", "-d", "techniques=amp")
    before = state(folder)
    result = (
        tricks(*arguments[:2], "p", *arguments[2:])
        if arguments[0] != "update"
        else tricks("update", "p", *arguments[1:])
    )
    assert result.exit_code == 1 and sentence in result.output, result.output
    assert result.output.count("\n") == 1 and state(folder) == before


def test_follow_up_questions_at_a_terminal(project: Project, checkout: Path, environment: Any) -> None:
    import sys

    folder = project("p", "-d", "techniques=amp")
    before = state(folder)

    def start(*arguments: str) -> pexpect.spawn:
        variables = environment(checkout, TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1")
        command = ["-m", "tricks", *arguments]
        return pexpect.spawn(
            sys.executable, command, timeout=60, cwd=str(folder), env=variables, encoding="utf-8", dimensions=(40, 120)
        )

    child = start("add", "scheduler", "export")
    answer(child, "Learning-rate schedule", "\x03")
    assert end(child)[0] == 130 and state(folder) == before
    child = start("add", "scheduler", "export")
    answer(child, "Learning-rate schedule", "\x1b[B\r")
    answer(child, "Export to which formats", "\r")
    status, output = end(child)
    assert status == 0 and "schedule.py" in output
    text = (folder / ".copier-answers.yml").read_text(encoding="utf-8")
    assert "schedule: warmup_linear\n" in text and "- torch_export\n- onnx\n" in text
