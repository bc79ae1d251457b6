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

from tests.conftest import ROOT, TAG, answers, git, tree
from tricks.project import train as training
from tricks.template import questions

Run = Callable[..., Any]
Variables = Callable[..., dict[str, str]]


def test_defaults_equal_plain_copier(tricks: Run, checkout: Path, tmp_path: Path) -> None:
    result = tricks("new", "p", "--defaults")
    assert result.exit_code == 0, result.output
    data = {"project_name": "p"}  # the folder names it
    copier.run_copy(str(checkout), tmp_path / "q", data, defaults=True, quiet=True, vcs_ref="HEAD")
    assert tree(Path("p")) == tree(tmp_path / "q")
    assert answers(Path("p"))["_src_path"] == str(checkout)
    assert answers(Path("p"))["_commit"] == TAG
    assert os.listdir() == ["p"]


def test_report_shows_the_files_and_what_to_run(tricks: Run) -> None:
    output = tricks("new", "a dir/p", "--defaults", "-d", "project_name=[bold]x[/]").output
    for file in tree(Path("a dir/p")):
        assert Path(file).name in output
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


@pytest.mark.parametrize(
    ("words", "techniques"),
    [
        ([], "amp accumulation clipping scheduler param_groups"),
        (["recommended", "+ddp", "-amp", "schedule=plateau"], "accumulation clipping scheduler param_groups ddp"),
        (["minimal"], ""),
        (["ddp", "amp"], "amp ddp"),
        (["ddp,amp"], "amp ddp"),
        (["minimal", "+amp,ddp"], "amp ddp"),
        (["+ddp", "-scheduler"], "amp accumulation clipping param_groups ddp"),
        (
            ["-debug,profiler", "everything"],
            "amp accumulation clipping scheduler param_groups ddp compile export cache augmentation init_from",
        ),
        (["techniques=ddp,amp", "+debug"], "amp ddp debug"),
        (["--preset", "minimal", "+debug"], "debug"),
        (["-dtechniques=debug,ddp"], "ddp debug"),
        (["-d", "preset=minimal", "-d", "+debug"], "debug"),
        (["minimal", "ddp"], "ddp"),
    ],
    ids=str,
)
def test_words(tricks: Run, words: list[str], techniques: str) -> None:
    result = tricks("new", "p", "--no-git", *words, "--defaults")
    assert result.exit_code == 0, result.output
    assert answers(Path("p"))["techniques"] == techniques.split()
    assert answers(Path("p")).get("schedule") in ("plateau" if "schedule=plateau" in words else "warmup_cosine", None)


def test_words_of_other_lists(tricks: Run) -> None:
    words = ["minimal", "+export", "+safetensors", "-onnx", "+pre_commit", "project_name=A b"]
    assert tricks("new", "p", *words, "--defaults").exit_code == 0
    found = answers(Path("p"))
    assert found["export_formats"] == ["torch_export", "safetensors"] and found["extras"] == ["pre_commit"]
    assert found["project_name"] == "A b"


@pytest.mark.parametrize("name", ["digit-reader", "Größe 数字", 'it\'s "x"', "a.b", "-x"])
def test_the_folder_names_the_project(tricks: Run, name: str) -> None:
    assert tricks("new", "--defaults", "--no-git", "--", name).exit_code == 0
    assert answers(Path(name))["project_name"] == name
    Path("inside").mkdir()
    os.chdir("inside")
    assert tricks("new", ".", "--defaults", "--no-git").exit_code == 0
    assert answers(Path())["project_name"] == "inside"


def test_a_folder_whose_name_is_no_title(tricks: Run) -> None:
    for name in ("x" * 150, "a\tb"):
        assert tricks("new", name, "--defaults", "--no-git").exit_code == 0
        assert answers(Path(name))["project_name"] == "my training project"


def test_a_first_commit(tricks: Run) -> None:
    assert tricks("new", "p", "--defaults").exit_code == 0
    assert git(Path("p"), "status", "--porcelain") == "" and git(Path("p"), "log", "--oneline").count("\n") == 0
    assert tricks("add", "ddp", "p").exit_code == 0
    git(Path(), "init", "-q")
    assert tricks("new", "inside", "--defaults").exit_code == 0 and not Path("inside/.git").exists()
    assert tricks("new", "own", "--defaults", "--git").exit_code == 0 and Path("own/.git").exists()
    assert tricks("new", "none", "--defaults", "--no-git").exit_code == 0 and not Path("none/.git").exists()


def test_no_commit_where_git_cannot(tricks: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(variable, raising=False)
    settings = tmp_path / "gitconfig"
    settings.write_text("[user]\nuseConfigOnly = true\n", encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    result = tricks("new", "nobody", "--defaults")
    assert result.exit_code == 0 and "git does not know who you are" in result.stderr and "user.email" in result.stderr
    assert Path("nobody/train.py").exists() and not Path("nobody/.git").exists()
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "pre-commit").write_text("#!/bin/sh\necho fatal: not today >&2; exit 1\n", encoding="utf-8")
    (hooks / "pre-commit").chmod(0o755)
    settings.write_text(f"[user]\nname = n\nemail = e@x\n[core]\nhooksPath = {hooks}\n", encoding="utf-8")
    result = tricks("new", "refused", "--defaults")
    assert result.exit_code == 0 and "git could not commit the project (not today)" in result.stderr
    assert Path("refused/train.py").exists() and not Path("refused/.git").exists()


def test_dry_run_names_the_files_and_writes_nothing(tricks: Run) -> None:
    result = tricks("new", "p", "minimal", "+ddp", "--defaults", "--dry-run")
    assert result.exit_code == 0 and os.listdir() == [] and result.stderr == "Nothing was written.\n"
    tricks("new", "p", "minimal", "+ddp", "--defaults")
    assert all(Path(file).name in result.stdout for file in tree(Path("p")))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that needs nothing, and an index that holds all there is: an empty folder."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        "[project]\nname = 'small'\nversion = '1'\n[build-system]\nrequires = []\nbuild-backend = 'backend'\n"
        "backend-path = ['.']\n",
        encoding="utf-8",
    )
    (folder / "backend.py").write_text(BACKEND, encoding="utf-8")
    (folder / "train.py").write_text(
        "import sys, installed_by_pip\nprint(sys.prefix, flush=True)\nraise SystemExit(3)\n", encoding="utf-8"
    )
    (tmp_path / "index").mkdir()
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(tmp_path / "index"))
    return folder


BACKEND = """
import zipfile


def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "small-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("installed_by_pip.py", "")
        wheel.writestr("small-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: small\\nVersion: 1\\n")
        wheel.writestr("small-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("small-1.dist-info/RECORD", "")
    return name
"""


def test_train_makes_the_projects_environment(small: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    assert training.train(small, said.append) == 3
    assert capfd.readouterr().out == f"{small / '.venv'}\n"
    assert ".venv" in said[0] and "GB" in said[0] and said[1] == "Training: python train.py"


def test_train_says_what_failed(small: Path, tricks: Run, capfd: pytest.CaptureFixture[str]) -> None:
    result = tricks("new", "p", "--defaults", "--train")  # no setuptools in the index
    assert result.exit_code == 1 and Path("p/train.py").is_file() and "Traceback" not in result.output
    assert "Error: The project is written, but its environment could not be made: `" in result.stderr
    assert "setuptools" in capfd.readouterr().err and git(Path("p"), "status", "--porcelain") == ""


def test_completion(checkout: Path, environment: Variables) -> None:
    def complete(*words: str) -> list[str]:
        variables = environment(checkout, _TRICKS_COMPLETE="complete_bash", COMP_WORDS=" ".join(words))
        variables["COMP_CWORD"] = str(len(words) - 1)
        command = [sys.executable, "-m", "tricks"]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60).stdout.split()

    assert complete("tricks", "new", "--preset", "m") == ["minimal", "multi_gpu"]
    assert complete("tricks", "new", "p", "m") == ["minimal", "multi_gpu"]
    assert complete("tricks", "new", "p", "-d", "tracker=t") == ["tracker=tensorboard"]
    assert complete("tricks", "new", "p", "techniques=amp,de") == ["techniques=amp,debug"]
    assert complete("tricks", "set", "+on") == ["+onnx"] and complete("tricks", "set", "-on") == ["-onnx"]
    assert complete("tricks", "explain", "warmup_c") == ["warmup_cosine"]
