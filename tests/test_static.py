"""The static check finds what it should: faults that are put into a copy of the template, in one place each.

`python -m matrix static` checks the template itself, whole; here a small part of the space is enough.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from matrix.rules import check_project, check_rules, words
from matrix.space import Space, TooManyError
from matrix.texts import check_texts
from matrix.typecheck import check_types
from matrix.variants import units
from tests.choices import ROOT
from tricks.template.rendering import Template

VARY = ("amp", "accumulation", "scheduler", "schedule", "export", "onnx", "safetensors", "tracker", "debug")


def broken(folder: Path, name: str, before: str, after: str) -> Space:
    """The reduced space of a copy of the template in which one text is replaced, once."""
    shutil.copytree(ROOT / "template", folder / "template")
    shutil.copy(ROOT / "copier.yml", folder)
    path = folder / "template" / name
    text = path.read_text(encoding="utf-8")
    assert text.count(before) >= 1, f"{name} has changed: choose another place to break"
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    return reduced(Template(folder))


def reduced(template: Template, vary: tuple[str, ...] = VARY) -> Space:
    space = Space(template)
    return Space(template, {name: option.values[:1] for name, option in space.options.items() if name not in vary})


PLANTED: dict[str, tuple[str, str, str, str, str]] = {
    # what is broken: file, text, replacement, where it is told, what is told
    "a condition left out in one file": (
        "run.py", "# {% if amp %}\nfrom amp import build_scaler, precision\n\n# {% endif %}\n",
        "from amp import build_scaler, precision\n\n", "run.py", "imports amp, which the project does not have",
    ),
    "a dependency left in": (
        "pyproject.toml", '  # {% if tensorboard %}\n  "tensorboard>=2.16",\n  # {% endif %}\n',
        '  "tensorboard>=2.16",\n',
        "pyproject.toml", "requires tensorboard, which nothing uses",
    ),
    "a dependency left out": (
        "pyproject.toml", '  "onnxruntime>=1.20",\n', "",
        "export.py", "imports onnxruntime, which pyproject.toml does not",
    ),
    "an unchosen technique's name in the README": (
        "README.md", "## Your data and model\n", "## Your data and model\n\nThe GradScaler is in the loop.\n",
        "README.md (section 3)", "holds 'GradScaler', a word of amp",
    ),
    "a section of an unchosen technique": (
        "README.md", "# {% if debug %}\n### Hooks", "# {% if any_technique %}\n### Hooks",
        "README.md", "a word of debug, which was not chosen",
    ),
    "an import that is not used": (
        "train.py", "# {% if debug %}\nfrom debug import Hooks\n\n# {% endif %}", "from debug import Hooks\n\n",
        "train.py", "F401",
    ),
    "a function that nothing calls": (
        "device.py", "def peak_memory(", "def spare() -> None:\n    pass\n\n\ndef peak_memory(",
        "device.py", "defines spare, which nothing uses",
    ),
    "a knob's name in a message that is gone": (
        "loader.py", '"""', '"""See --loader.nosuch. ', "loader.py", "names --loader.nosuch, which is no knob",
    ),
    "two empty lines in the README": (
        "README.md", "### Hooks and anomaly detection\n", "### Hooks and anomaly detection\n\n",
        "README.md", "two empty lines",
    ),
    "a format that ruff would change": (
        "log.py", "        samples = sum(", "        samples  = sum(", "log.py", "ruff format would change",
    ),
    "a delimiter that is left": (
        "curves.py", '"""Writes curves.png', """\"\"\"Writes {{ '{{ slug }}' }} curves.png""",
        "curves.py", "'{{ slug' of the template is left",
    ),
    "a workflow that is no YAML": (
        ".pre-commit-config.yaml", "repos:", "repos: [", ".pre-commit-config.yaml", "does not parse",
    ),
    "a file that is not there": (
        "README.md", "`log.py`", "`logs.py`", "README.md", "names logs.py, which the project does not have",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_found_and_named(name: str, tmp_path: Path) -> None:
    file, before, after, where, what = PLANTED[name]
    space = broken(tmp_path, file, before, after)
    if file == ".pre-commit-config.yaml":
        space.only.pop("pre_commit")
        space = Space(space.template, space.only)
    found = units(space)
    faults = [*check_texts(space, found), *check_rules(space, found)[0]]
    assert any(fault.where.startswith(where) and what in fault.what for fault in faults), list(map(str, faults))


def test_the_template_has_none(tmp_path: Path) -> None:
    space = reduced(Template(ROOT))
    found = units(space)
    assert [*check_texts(space, found), *check_rules(space, found)[0]] == []


@pytest.mark.parametrize("name", ["a condition left out in one file", "a dependency left out", "a dependency left in"])
def test_tables_say_what_a_look_at_every_project_says(name: str, tmp_path: Path) -> None:
    """The method: rules on truth tables, and the same rules on each project of the reduced space."""
    space = reduced(broken(tmp_path, *PLANTED[name][:3]).template, ("amp", "export", "onnx", "safetensors", "tracker"))
    by_table = {
        (fault.where.partition(" (section")[0], fault.what)
        for fault in check_rules(space, units(space))[0]
    }  # fmt: skip
    known, one_by_one = words(space), set[tuple[str, str]]()
    projects: list[dict[str, Any]] = [space.choice(row) for row in space.rows()]
    assert len(projects) >= 16
    for choice in projects:
        rendered = space.template.render(choice)
        one_by_one |= {tuple(line.split(": ", 1)) for line in check_project(space, rendered, choice, known)}
    assert by_table == one_by_one and one_by_one


def test_the_type_checker_sees_a_wrong_call(tmp_path: Path) -> None:
    space = broken(
        tmp_path, "train.py", "set_rates(run.optimizer, run.progress, run.config.schedule)", "set_rates(run.optimizer)"
    )
    wrong = space.choice({**next(space.rows()), "scheduler": True, "schedule": "one_cycle"})
    right = space.choice({**next(space.rows())})
    faults = check_types(space, [right, wrong])
    assert faults and all(fault.where.startswith("train.py") and "one_cycle" in str(fault) for fault in faults), faults


def test_a_file_with_too_many_variants_is_refused(tmp_path: Path) -> None:
    every = "".join(f"# {{% if {name} %}}\nx = 1\n# {{% endif %}}\n" for name in reversed(Space(Template(ROOT)).options)
                    if name not in ("task", "clip", "schedule", "tracker"))  # fmt: skip
    broken(tmp_path, "device.py", '"""The device', f'{every}"""The device')
    with pytest.raises(TooManyError, match=r"device\.py"):
        units(Space(Template(tmp_path)))
