"""Generated projects: rendered by Copier, linted, trained, stopped and resumed, and their own proofs run."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.choices import alone, drawn, presets

# `python -m matrix` trains many more; these also run their proofs, which take most of the time (DDP starts two fresh
# processes, compile and export compile).
PROVEN = alone() | presets() | drawn(6, seed=7)
# Small, so that a run takes a second; a last batch that is smaller.
SHORT = [
    "--max-steps",
    "6",
    "--batch-size",
    "60",
    "--eval-every",
    "3",
    "--checkpoint-every",
    "2",
    "--log-every",
    "1",
]


def short_arguments(choice: dict[str, Any]) -> list[str]:
    arguments = list(SHORT)
    if "compile" in choice["techniques"]:
        arguments += ["--compile.mode", "off"]  # the project's own proofs compile
    if "accumulation" in choice["techniques"]:
        arguments += ["--accumulation.steps", "2"]
    if choice.get("task") == "text":
        arguments += ["--batch-size", "4", "--data.samples-per-epoch", "40"]
    return arguments


@pytest.mark.parametrize("name", PROVEN)
def test_project_is_clean_trains_and_proves_itself(render: Callable[..., Path], name: str) -> None:
    project = render(**PROVEN[name])
    lint(project)
    train_stop_and_resume(project, PROVEN[name])
    code, output = warm.prove(project, timeout=600)
    assert code == 0, output[-6000:]


def lint(project: Path) -> None:
    for command in (["check"], ["format", "--check", "--diff"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "."],
            cwd=project,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    for path in project.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert "# {%" not in text and "# {#" not in text, path
            assert path.suffix != ".md" or "\n\n\n" not in text, path


def train_stop_and_resume(project: Path, choice: dict[str, Any]) -> None:
    arguments = short_arguments(choice)
    run = project.parent / f"{project.name}-run"
    code, output = warm.train(project, "--run-dir", str(run), *arguments)
    assert code == 0, output
    assert "Warning" not in output, output
    rows = [json.loads(line, parse_constant=pytest.fail) for line in (run / "metrics.jsonl").open()]
    assert [row["step"] for row in rows if "grad_norm" in row] == [1, 2, 3, 4, 5, 6]
    assert [row["step"] for row in rows if "val_loss" in row] == [3, 6]
    assert {path.name for path in (run / "checkpoints").iterdir()} == {"last.pt", "previous.pt", "best.pt"}
    assert (run / "curves.png").exists()
    code, output = warm.train(project, "--run-dir", str(run), "--resume")
    assert code == 0 and "Nothing to do" in output, output
