"""`tricks new`: what it writes, `--train`, help and completion."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import copier
import pytest
import yaml
from jinja2 import Environment

from tests.conftest import ROOT, TAG, answers, tree
from tricks.project import train as training
from tricks.template import questions

Run = Callable[..., Any]
Variables = Callable[..., dict[str, str]]


def test_defaults_equal_plain_copier(tricks: Run, checkout: Path, tmp_path: Path) -> None:
    result = tricks("new", "p", "--defaults")
    assert result.exit_code == 0, result.output
    copier.run_copy(str(checkout), tmp_path / "q", defaults=True, quiet=True, vcs_ref="HEAD")
    assert tree(Path("p")) == tree(tmp_path / "q")
    assert answers(Path("p"))["_src_path"] == str(checkout)
    assert answers(Path("p"))["_commit"] == TAG
    assert os.listdir() == ["p"]


def test_report_shows_the_files_and_what_to_run(tricks: Run) -> None:
    output = tricks("new", "a dir/p", "--defaults", "-d", "project_name=[bold]x[/]").output
    for file in Path("a dir/p").rglob("*"):
        assert file.name in output
    assert "[bold]x[/] is ready" in output
    assert "cd 'a dir/p'" in output and "python train.py" in output


def test_preset_data_and_data_file_reach_the_project(tricks: Run) -> None:
    Path("a.yml").write_text("techniques: [ddp, amp]\nauthor: A\n", encoding="utf-8")
    result = tricks("new", "p", "--defaults", "--data-file", "a.yml", "--preset", "minimal", "-d", "author=B")
    assert result.exit_code == 0, result.output
    assert answers(Path("p"))["techniques"] == [] and answers(Path("p"))["author"] == "B"
    assert not Path("p/amp.py").exists()


def test_an_answer_without_effect_is_named(tricks: Run) -> None:
    result = tricks("new", "p", "--defaults", "--preset", "minimal", "-d", "clip=value")
    assert "clip has no effect" in result.output
    assert "clip" not in answers(Path("p"))


@pytest.mark.parametrize("content", [[], [".git"]], ids=["empty", "only .git"])
def test_existing_folder_is_filled_in_place(tricks: Run, content: list[str]) -> None:
    for name in content:
        Path(name).mkdir()
    before = os.stat(".").st_ino
    assert tricks("new", ".", "--defaults").exit_code == 0
    assert Path("train.py").is_file() and os.stat(".").st_ino == before == os.stat(os.getcwd()).st_ino
    assert not [name for name in os.listdir() if name.startswith(".tricks")]


HOSTILE = [
    "{{ 7*7 }}",
    "# {% if amp %} {# comment #}",
    'it\'s "quoted" \\ and `ticked` """',
    "Größe 数字 🎉",
    "${HOME} $(id) %s <b>&amp; [a](b) | c: d # e",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_renders_safely(tricks: Run, text: str) -> None:
    tomllib = pytest.importorskip("tomllib")
    given = [f"-d{key}={text}" for key in ("project_name", "description", "author")]
    given.append("-dextras=github_actions,pre_commit")
    result = tricks("new", "p", "--defaults", "--preset", "everything", *given)
    assert result.exit_code == 0, result.output
    assert answers(Path("p"))["project_name"] == text
    for file in Path("p").rglob("*"):
        if file.suffix == ".py":
            ast.parse(file.read_text(encoding="utf-8"))
        if file.suffix in (".yml", ".yaml"):
            yaml.safe_load(file.read_text(encoding="utf-8"))
    project = tomllib.loads(Path("p/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["description"] == text and project["authors"] == [{"name": text}]
    heading = Path("p/README.md").read_text(encoding="utf-8").partition("\n")[0]
    assert heading.replace("\\", "") == "# " + text.replace("\\", "")  # Markdown's marks are escaped


@pytest.mark.parametrize(
    "title",
    [
        "3dnet",
        "class",
        "Pillow",
        "Jinja2",
        "My Project",
        "my_project_",
        "json",
        "train",
        "data",
        "my proj",
        "数字",
        "Ⅷ",
        "_",
        "--x--",
        "a.b/c",
    ],
)
def test_package_name_is_safe(title: str) -> None:
    environment = Environment(extensions=["jinja2_ansible_filters.AnsibleCoreFiltersExtension"])
    known = questions.load(ROOT / "copier.yml")
    name = environment.from_string(known["package_name"].default).render(project_name=title).strip()
    assert name.isascii() and name.isidentifier() and name == name.lower()
    # No distribution that the project depends on, by whatever way, ends so.
    assert re.fullmatch(r"[a-z].*_project", name) and not name.endswith("_project_project")


def test_train_runs_the_project_and_hands_on_its_status(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import helper\nraise SystemExit(3)\n", encoding="utf-8")
    (tmp_path / "helper.py").write_text("def f():\n    import nowhere_lazy\n", encoding="utf-8")
    assert training.train(tmp_path) == 3
    (tmp_path / "helper.py").write_text("import os.path, nowhere.sub\nfrom gone import x\n", encoding="utf-8")
    assert training.missing_modules(tmp_path) == ["gone", "nowhere"]


def test_train_names_what_is_missing(tricks: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "torch" else name)
    result = tricks("new", "p", "--defaults", "--train")
    assert result.exit_code == 1 and Path("p/train.py").is_file()
    assert "lacks what it needs to train (torch): run `cd p && python -m pip install -e .`" in result.output


def test_completion(checkout: Path, environment: Variables) -> None:
    def complete(*words: str) -> list[str]:
        variables = environment(checkout, _TRICKS_COMPLETE="complete_bash", COMP_WORDS=" ".join(words))
        variables["COMP_CWORD"] = str(len(words) - 1)
        command = [sys.executable, "-m", "tricks"]
        return subprocess.run(command, env=variables, capture_output=True, text=True).stdout.split()

    assert complete("tricks", "new", "--preset", "m") == ["minimal", "multi_gpu"]
    assert complete("tricks", "new", "-d", "tracker=t") == ["tracker=tensorboard"]
    assert complete("tricks", "new", "-d", "techniques=amp,de") == ["techniques=amp,debug"]
