"""The commands that only look."""

from __future__ import annotations

import ast
import graphlib
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
    knobs = [knob.name for knob in found.adds.knobs]
    for piece in (found.about, found.costs, found.when, *found.adds.new_files, *knobs):
        assert piece and piece in result.output
    assert found.adds.difference in result.output and found.adds.difference
    assert all(knob.help for knob in found.adds.knobs)


def test_explain_knows_each_question_value_and_preset(tricks: Run) -> None:
    known = questions.load(ROOT / "copier.yml")
    for question in known.values():
        if question.hidden:
            assert tricks("explain", question.name).exit_code in (0, 1)  # perhaps a technique's name
            continue
        result = tricks("explain", question.name)
        assert result.exit_code == 0 and (question.help in result.output or question.name in TECHNIQUES), result.output
        for value, line in question.choices.items():
            if value in TECHNIQUES:
                continue
            result = tricks("explain", value)
            assert result.exit_code == 0 and line in result.output, result.output
    output = tricks("explain", "onnx").output
    assert "A value of export_formats" in output and "technique export" in output and "+def to_onnx" in output
    assert "ReduceLROnPlateau" in tricks("explain", "plateau").output
    result = tricks("explain", "plataeu")
    assert result.exit_code == 1 and "did you mean 'plateau'?" in result.output and result.output.count("\n") == 1


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
    assert tricks("show", "minimal", "task=text").stdout == result.stdout
    assert tricks("show", "minimal", "+ddp", "distributed.py").stdout.startswith('"""Several processes')
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
    result = tricks("diff", "--from", "amp", "--to", "amp")
    assert result.stdout == "" and result.stderr == "There is no difference.\n"
    result = tricks("diff", "--from", "nosuch", "--to", "amp")
    assert result.exit_code == 1 and "'nosuch'" in result.output and result.output.count("\n") == 1
    for words in (["--from", "amp"], ["amp"], ["+ddp"], [], ["amp", "ddp", "minimal"], ["minimal", "--nosuch"]):
        result = tricks("diff", *words)
        assert result.exit_code in (1, 2) and result.output, words


def test_diff_of_names(tricks: Run, template: Template) -> None:
    def difference(*answers: dict[str, Any]) -> str:
        return looking.difference(*(looking.texts(template, given) for given in answers))

    minimal: dict[str, Any] = {"techniques": []}
    assert tricks("diff", "minimal", "everything").stdout == difference(minimal, {"preset": "everything"})
    assert tricks("diff", "minimal", "+ddp").stdout == difference(minimal, {"techniques": ["ddp"]})
    assert tricks("diff", "amp,ddp", "minimal", "task=text").stdout == difference(
        {"techniques": ["amp", "ddp"]}, minimal | {"task": "text"}
    )
    assert tricks("diff", "recommended", "-amp").stdout == difference(
        {"preset": "recommended"}, {"techniques": ["accumulation", "clipping", "scheduler", "param_groups"]}
    )


@pytest.mark.parametrize("command", [["show", "minimal"], ["diff", "minimal", "+ddp"], ["explain", "amp"], ["nosuch"]])
def test_colors_only_at_a_terminal_that_takes_them(checkout: Path, environment: Any, command: list[str]) -> None:
    import pexpect

    for variables, colored in (({}, True), ({"NO_COLOR": "1"}, False)):
        child = pexpect.spawn(
            sys.executable,
            ["-m", "tricks", *command],
            timeout=60,
            env=environment(checkout, TERM="xterm-256color", **variables),
            encoding="utf-8",
        )
        child.expect(pexpect.EOF)
        assert child.before.strip() and ("\x1b[" in child.before) == colored


def test_everybody_sees_one_template(tricks: Run, own_checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An uncommitted change is in every command, with a notice, or in none."""
    monkeypatch.setattr("tricks.template.source.CHECKOUT", own_checkout)
    for file in ("copier.yml", "template/train.py"):
        text = (own_checkout / file).read_text(encoding="utf-8")
        text = text.replace("limit the gradient;", "WORKTREE;").replace('"""Train', '"""WORKTREE Train')
        assert "WORKTREE" in text
        (own_checkout / file).write_text(text, encoding="utf-8")
    outputs = [
        tricks("list"),
        tricks("explain", "clipping"),
        tricks("show", "minimal"),
        tricks("diff", "minimal", "task=text"),
        tricks("new", "p", "minimal", "--defaults"),
    ]
    for result in outputs:
        assert result.exit_code == 0 and result.stderr.count("uncommitted changes in") == 1, result.stderr
    seen = ["WORKTREE" in result.stdout for result in (*outputs[:3],)]
    seen.append("WORKTREE" in Path("p/train.py").read_text(encoding="utf-8"))
    assert len(set(seen)) == 1, seen


def test_short_help_and_wrong_commands(tricks: Run) -> None:
    for command in ([], ["new"], ["list"], ["explain"], ["show"], ["diff"], ["doctor"], ["add"], ["set"], ["update"]):
        assert tricks(*command, "-h").output == tricks(*command, "--help").output != ""
    result = tricks("shwo")
    assert result.exit_code == 1 and result.output == "Error: There is no command 'shwo': did you mean 'show'?\n"


def test_doctor_asks_the_generated_modules(template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list(doctor.examine(template, sys.executable))
    assert lines[0] == f"Python: {sys.executable}" and lines[1].startswith("PyTorch ")
    for name in ("amp", "compile", "ddp", "export to onnx", "tensorboard"):
        assert any(line.startswith(f"{name}: ") for line in lines), lines
    proposed = lines[-1].rpartition("PROJECT ")[2].split()
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
    assert "export to onnx: needs onnxscript" in text and text.endswith("param_groups amp ddp")


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


def test_no_module_imports_another_in_a_circle() -> None:
    package = ROOT / "generator/tricks"
    files = {".".join(path.relative_to(package.parent).with_suffix("").parts): path for path in package.rglob("*.py")}
    imports: dict[str, set[str]] = {}
    for name, path in files.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):  # what only a type checker reads imports nothing
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                node.body = [ast.Pass()]
        found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        imports[name] = {
            module
            for node in found
            for alias in node.names
            for module in (node.module, f"{node.module}.{alias.name}")
            if module in files
        }
    assert len(imports) > 20 and any(imports.values())
    assert list(graphlib.TopologicalSorter(imports).static_order())
