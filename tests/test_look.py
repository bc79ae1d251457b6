"""The commands that only look."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.choices import PRESETS, TECHNIQUES
from tests.conftest import ROOT
from tricks.cli import doctor
from tricks.template import explain as looking
from tricks.template import questions
from tricks.template.rendering import Template

Run = Callable[..., Any]


@pytest.mark.parametrize("name", TECHNIQUES)
def test_explain_says_all_there_is(tricks: Run, template: Template, name: str) -> None:
    result = tricks("explain", name)
    assert result.exit_code == 0, result.output
    found = looking.technique(template, name)
    told = template.config["_tricks"]["techniques"][name]
    assert told.keys() == {"about", "costs"} and all(found.__dict__[key] == told[key] for key in told)
    for piece in (found.about, found.costs, found.when, *found.new_files, *(knob.name for knob in found.knobs)):
        assert piece and piece in result.output
    assert found.difference in result.output and found.difference
    assert all(knob.help for knob in found.knobs)


def test_each_text_belongs_to_a_technique(template: Template) -> None:
    assert list(template.config["_tricks"]["techniques"]) == TECHNIQUES


def test_knobs_are_those_of_the_command_line(template: Template, tmp_path: Path) -> None:
    texts = looking.texts(template, {"techniques": ["amp", "export"], "task": "image"})
    names = {knob.name for knob in looking.knobs(texts)}
    assert {"--amp.dtype", "--lr", "--data.root", "--loader.workers"} <= names
    assert not any(name.startswith("--export") for name in names)  # of another script


def test_list_names_everything(tricks: Run) -> None:
    output = tricks("list").output
    known = questions.load(ROOT / "copier.yml")
    for word in (*TECHNIQUES, *PRESETS, *(name for question in known.values() for name in question.choices)):
        assert word in output


def test_show_gives_the_bytes_that_would_be_written(tricks: Run, template: Template) -> None:
    result = tricks("show", "--preset", "minimal", "-d", "task=text")
    project = looking.texts(template, {"techniques": [], "task": "text"})
    assert result.stdout == project["train.py"] and "Other files: .copier-answers.yml" in result.stderr
    assert tricks("show", "-d", "techniques=ddp", "distributed.py").stdout.startswith('"""Several processes')
    result = tricks("show", "--preset", "minimal", "trian.py")
    assert result.exit_code == 1 and "no file 'trian.py': did you mean 'train.py'?" in result.output
    assert not list(Path().iterdir())


def test_diff_between_choices(tricks: Run, tmp_path: Path) -> None:
    output = tricks("diff", "--from", "minimal", "--to", "amp,ddp").stdout
    assert "--- /dev/null\n+++ b/amp.py\n" in output and "+import distributed\n" in output
    (tmp_path / "answers.yml").write_text("techniques: [amp]\n_commit: v1\n", encoding="utf-8")
    output = tricks("diff", "--from", str(tmp_path / "answers.yml"), "--to", "amp", "--to", "task=text").stdout
    assert "+++ b/data.py" in output and "amp.py" not in output
    assert tricks("diff", "--from", "amp", "--to", "amp").stdout == ""
    result = tricks("diff", "--from", "nosuch", "--to", "amp")
    assert result.exit_code == 1 and "'nosuch'" in result.output and result.output.count("\n") == 1
    assert tricks("diff", "--from", "amp").exit_code == 2


def test_highlighting_only_at_a_terminal(checkout: Path, environment: Any) -> None:
    import pexpect

    child = pexpect.spawn(
        sys.executable,
        ["-m", "tricks", "show", "--preset", "minimal"],
        timeout=60,
        env=environment(checkout, TERM="xterm-256color"),
        encoding="utf-8",
    )
    child.expect(pexpect.EOF)
    assert "\x1b[" in child.before and "Train the model" in child.before


def test_doctor_asks_the_generated_modules(template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list(doctor.examine(template, None))
    assert lines[0] == f"Python: {sys.executable}" and lines[1].startswith("PyTorch ")
    for name in ("amp", "compile", "ddp", "export to onnx", "tensorboard"):
        assert any(line.startswith(f"{name}: ") for line in lines), lines
    proposed = lines[-1].rpartition("techniques=")[2].split(",")
    assert set(proposed) <= set(TECHNIQUES)


def test_doctor_tells_what_another_machine_would_do() -> None:
    found = {
        "torch": "2.14.1",
        "device": "cuda",
        "name": "NVIDIA H200",
        "memory": 140 * 2**30,
        "count": 8,
        "amp": "bf16",
        "compile": "no compiler",
        "ddp": "nccl",
        "exporters": {"onnx": ["onnxscript"]},
        "tensorboard": False,
    }
    text = "\n".join(doctor.report(found))
    assert "NVIDIA H200, 140 GiB), 8 of them" in text and "amp: bf16" in text
    assert "would run eagerly: no compiler" in text and "nccl (torchrun --nproc-per-node 8)" in text
    assert "export to onnx: needs onnxscript" in text and text.endswith("param_groups,amp,ddp")


def test_doctor_without_torch_says_so(tricks: Run, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    result = tricks("doctor", "--python", str(python))
    assert result.exit_code == 1 and "PyTorch is not installed in it" in result.output
    result = tricks("doctor", "--python", str(tmp_path / "nowhere"))
    assert result.exit_code == 1 and "could not be asked" in result.output and "Traceback" not in result.output


@pytest.mark.parametrize("argument", ["list", "--help"])
def test_nothing_heavy_is_imported(checkout: Path, environment: Any, argument: str) -> None:
    code = (
        "import json, sys; from tricks.cli.main import app; "
        f"app(['{argument}'], standalone_mode=False); print(json.dumps(list(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, env=environment(checkout), capture_output=True, text=True, check=True).stdout
    loaded = set(json.loads(output.splitlines()[-1]))
    assert not loaded & {"torch", "copier", "questionary", "jinja2", "rich", "pydantic"}


def test_completion_of_techniques(checkout: Path, environment: Any) -> None:
    words = {"explain": "ac", "add": "ac", "remove": "ac"}
    for command, begun in words.items():
        variables = environment(checkout, _TRICKS_COMPLETE="complete_bash", COMP_WORDS=f"tricks {command} {begun}")
        variables["COMP_CWORD"] = "2"
        done = subprocess.run([sys.executable, "-m", "tricks"], env=variables, capture_output=True, text=True)
        assert done.stdout.split() == ["accumulation"], done.stderr
