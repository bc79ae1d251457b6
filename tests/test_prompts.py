"""`tricks new` at real prompts, and where there is no terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.conftest import answers, tree

Run = Callable[..., Any]
Variables = Callable[..., dict[str, str]]


@pytest.fixture
def prompt(checkout: Path, tmp_path: Path, environment: Variables) -> Callable[..., pexpect.spawn]:
    """Starts `tricks new p …` at a terminal."""

    def start(*arguments: str) -> pexpect.spawn:
        variables = environment(checkout, TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1")
        command = ["-m", "tricks", "new", "p", *arguments]
        return pexpect.spawn(
            sys.executable,
            command,
            timeout=30,
            cwd=str(tmp_path),
            env=variables,
            encoding="utf-8",
            dimensions=(40, 120),
        )

    return start


def answer(child: pexpect.spawn, question: str, keys: str = "\r") -> None:
    child.expect_exact(question)
    child.expect_exact("\x1b[?7h")  # the prompt is drawn to its end
    child.send(keys)


def end(child: pexpect.spawn) -> tuple[int, str]:
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus, child.before


ASKED = [
    "Name of the project",
    "What it is for",
    "Author",
    "What do you train on",
    "Which optimizer",
    "Start from which",
]


def test_prompts_with_every_default_taken(prompt: Any, tmp_path: Path, tricks: Run) -> None:
    child = prompt()
    child.expect_exact("Ctrl-C leaves without writing anything.")
    for question in [*ASKED, "Which techniques", "Clip", "schedule", "tracker", "Extra files"]:
        answer(child, question)
    answer(child, "git repository", "n")
    status, output = end(child)
    assert status == 0 and "python train.py" in output
    assert tricks("new", "q/p", "--defaults").exit_code == 0
    assert tree(tmp_path / "p") == tree(Path("q/p")) and not (tmp_path / "p/.git").exists()


def test_what_is_typed_replaces_the_default(prompt: Any, tmp_path: Path) -> None:
    child = prompt("minimal", "task=text")
    answer(child, "Name of the project", "Digit reader\r")
    answer(child, "What it is for", "Reads digitz\x7fs\r")
    for question in ["Author", "Which optimizer", "Which techniques", "tracker", "Extra files", "git repository"]:
        answer(child, question)
    status, output = end(child)
    assert status == 0 and "Digit reader is ready" in output
    assert answers(tmp_path / "p")["project_name"] == "Digit reader"
    assert answers(tmp_path / "p")["description"] == "Reads digits" and (tmp_path / "p/.git").is_dir()


def test_words_are_not_asked_for(prompt: Any, tmp_path: Path) -> None:
    child = prompt("recommended", "+ddp", "schedule=plateau", "--no-git")
    for question in [
        "Name of the project",
        "What it is for",
        "Author",
        "What do you train on",
        "Which optimizer",
        "Clip",
        "tracker",
        "Extra",
    ]:
        answer(child, question)
    assert end(child)[0] == 0
    assert answers(tmp_path / "p")["techniques"][-1] == "ddp" and answers(tmp_path / "p")["project_name"] == "p"


def test_a_technique_unticked_at_the_prompt(prompt: Any, tmp_path: Path) -> None:
    child = prompt("-d", "project_name=x", "-d", "author=", "-d", "description=x", "-d", "task=image", "--no-git")
    answer(child, "Which optimizer")
    answer(child, "Start from which")
    answer(child, "Which techniques", " \r")  # amp stands first
    for question in ["Clip", "schedule", "tracker", "Extra files"]:
        answer(child, question)
    assert end(child)[0] == 0
    assert answers(tmp_path / "p")["techniques"] == ["accumulation", "clipping", "scheduler", "param_groups"]
    assert not (tmp_path / "p/amp.py").exists() and (tmp_path / "p/clipping.py").exists()


@pytest.mark.parametrize(("after", "keys"), [(0, "\x03"), (6, "\x03"), (0, "\x04")])
def test_leaving_at_a_prompt_writes_nothing(prompt: Any, tmp_path: Path, after: int, keys: str) -> None:
    before = sorted(os.listdir(tmp_path))
    child = prompt()
    for question in ASKED[:after]:
        answer(child, question)
    answer(child, [*ASKED, "Which techniques"][after], keys)
    status, output = end(child)
    assert status == 130 and output.rstrip().endswith("Stopped: nothing was written.")
    assert "Traceback" not in output and sorted(os.listdir(tmp_path)) == before


def test_no_terminal_is_one_sentence(checkout: Path, tmp_path: Path, environment: Variables) -> None:
    """Also with a pipe that stays open, at which a prompt would wait for ever."""
    reading, writing = os.pipe()
    result = subprocess.run(
        [sys.executable, "-m", "tricks", "new", "p"],
        cwd=tmp_path,
        env=environment(checkout),
        stdin=reading,
        capture_output=True,
        text=True,
        timeout=60,
    )
    os.close(writing)
    os.close(reading)
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr.startswith("Error: There is no terminal to ask at, and project_name is open: add --defaults")
    assert result.stderr.count("\n") == 1 and os.listdir(tmp_path) == []
