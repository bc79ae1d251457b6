"""Rendering in memory gives what `copier copy` writes: the same files, bytes and modes, for hundreds of choices."""

from __future__ import annotations

import functools
import random
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from copier import run_copy
from copier._main import Worker

from tests.choices import CHOICES, SPACE, alone, drawn, presets
from tests.conftest import TAG, commit, copy_sources, git, tree
from tricks.template.rendering import Template, write


def run(template: Path, folder: Path, data: dict[str, Any], **options: Any) -> Path:
    run_copy(str(template), folder, data, defaults=True, quiet=True, **options)
    return folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copier without what each run does again: reading copier.yml, compiling the templates, a git process per file.

    The template is a folder outside git, so that git has nothing to say about it.
    """
    for name in ("template", "jinja_env"):
        build = getattr(Worker, name).func
        shared: dict[str, Any] = {}

        def once(worker: Any, build: Any = build, shared: dict[str, Any] = shared) -> Any:
            if worker.src_path not in shared:
                shared[worker.src_path] = build(worker)
                if hasattr(shared[worker.src_path], "from_string"):
                    shared[worker.src_path].from_string = functools.cache(shared[worker.src_path].from_string)
            return shared[worker.src_path]

        monkeypatch.setattr(Worker, name, property(once))
    monkeypatch.setattr("copier._main.is_git_available", lambda: False)


def modes(folder: Path) -> dict[str, int]:
    return {name: stat.S_IMODE((folder / name).stat().st_mode) for name in tree(folder)}


def check(template: Template, copied: Path, data: dict[str, Any], folder: Path, **recorded: str) -> None:
    write(template.render(data, **recorded), folder, template.executable)
    assert tree(folder) == tree(copied), data
    assert modes(folder) == modes(copied), data


WORDS = [
    "x",
    "  Zürich: \"50 %\" {{ x }} # {% if %} 'ok' \\n",
    "yes",
    "3.10",
    "- a",
    "数字 🎉",
    "null",
    "a: b",
    "#",
    "a" * 90,
]


def some_choices(number: int) -> dict[str, dict[str, Any]]:
    """Random choices with random texts; half of them give their lists in any order and leave some questions open."""
    dice = random.Random(5)
    found = drawn(number, seed=3)
    for choice in found.values():
        for name in ("project_name", "description", "author"):
            if dice.random() < 0.4:
                choice[name] = dice.choice(WORDS)
        if dice.random() < 0.5:
            for name in [name for name in choice if dice.random() < 0.3]:
                del choice[name]
            for value in choice.values():
                if isinstance(value, list):
                    dice.shuffle(value)
        if choice.get("export_formats") == []:
            del choice["export_formats"]
    return found


def test_same_files_as_copier_for_hundreds_of_choices(
    quick: None, template: Template, template_folder: Path, tmp_path: Path
) -> None:
    choices = alone() | presets() | some_choices(180)
    choices["not asked"] = {"techniques": [], "schedule": "plateau", "export_formats": ["onnx"]}
    choices |= {f"preset {name}": {"preset": name} for name in CHOICES["preset"]}
    assert len(choices) > 200
    lists = [name for name, question in SPACE.template.questions.items() if question.get("multiselect")]
    shuffled = 0
    for index, data in enumerate(choices.values()):
        ordered = [
            value for name in lists if (value := data.get(name)) and value != sorted(value, key=CHOICES[name].index)
        ]
        shuffled += bool(ordered)
        copied = run(template_folder, tmp_path / "copier", data)
        check(template, copied, data, tmp_path / str(index), source=str(template_folder))
        shutil.rmtree(copied)
        shutil.rmtree(tmp_path / str(index))
    assert shuffled > 20


def test_same_files_as_copier_from_a_commit(checkout: Path, template: Template, tmp_path: Path) -> None:
    data = {"preset": "multi_gpu", "project_name": "x"}
    copied = run(checkout, tmp_path / "copier", data, vcs_ref="HEAD")
    check(template, copied, data, tmp_path / "p", source=str(checkout), commit=TAG)


def test_a_file_that_can_be_run_stays_so(tmp_path: Path) -> None:
    folder = copy_sources(tmp_path / "template")
    (folder / "template/train.py").chmod(0o755)
    commit(folder)
    copied = run(folder, tmp_path / "copier", {}, vcs_ref="HEAD")
    check(Template(folder), copied, {}, tmp_path / "p", source=str(folder), commit=git(folder, "describe", "--always"))
    assert modes(copied)["train.py"] & 0o111 == 0o111


def test_refusals_are_copiers(quick: None, template: Template, template_folder: Path, tmp_path: Path) -> None:
    for data in (
        {"project_name": " "},
        {"project_name": "a\nb"},
        {"project_name": "x" * 101},
        {"description": "a\u2028b"},
        {"author": "\x00"},
        {"techniques": ["export"], "export_formats": []},
    ):
        with pytest.raises(ValueError, match="Validation error") as caught:
            run(template_folder, tmp_path / "copier", data)
        assert str(caught.value).endswith(template.refusals(data)[0]), data


def test_a_copier_users_own_defaults_reach_neither(
    template: Template, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = template.render({})
    settings = tmp_path / "settings.yml"
    settings.write_text("defaults: {author: Ada, task: text}\n", encoding="utf-8")
    monkeypatch.setenv("COPIER_SETTINGS_PATH", str(settings))
    assert Template(template.root).answer({}).recorded["author"] == ""
    assert Template(template.root).render({}) == before
