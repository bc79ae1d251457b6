"""The static check finds what it should: faults that are put into a copy of the template, in one place each.

`python -m matrix static` checks the template itself, whole; here a small part of the space is enough.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import jinja2
import pytest

from matrix.conditions import Conditions
from matrix.coverage import texts as looked_at
from matrix.pieces import sources
from matrix.rules import check_project, check_rules, words
from matrix.space import Space, TooManyError
from matrix.static import check, sample
from matrix.texts import judged
from matrix.typecheck import check_types
from tests.choices import ROOT, TECHNIQUES
from tricks.template.rendering import Template

VARY = ("amp", "accumulation", "scheduler", "schedule", "export", "onnx", "safetensors", "tracker", "debug")


def broken(folder: Path, name: str, before: str, after: str) -> Space:
    """The reduced space of a copy of the template in which one text is replaced, once."""
    shutil.copytree(ROOT / "template", folder / "template")
    shutil.copy(ROOT / "copier.yml", folder)
    path = folder / "template" / name
    text = path.read_text(encoding="utf-8")
    assert before in text, f"{name} has changed: choose another place to break"
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
        "README.md", "holds 'GradScaler', a word of amp",
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
        "loader.py", '"""From', '"""See --loader.nosuch. From', "loader.py", "names --loader.nosuch, which is no knob",
    ),
    "two empty lines in the README": (
        "README.md", "### Hooks and anomaly detection\n", "### Hooks and anomaly detection\n\n",
        "README.md", "two empty lines",
    ),
    "a format that ruff would change": (
        "log.py", "        samples = sum(", "        samples  = sum(", "log.py", "ruff format would change",
    ),
    "a delimiter that is left": (
        "curves.py", '"""Writes curves.png', """\"\"\"Writes {{ '{{ package_name }}' }} curves.png""",
        "curves.py", "'{{ package_name' of the template is left",
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
    faults = check(space, types=False).faults
    told = [fault for fault in faults if fault.where.startswith(f"{where}:") and what in fault.what]
    assert len(told) == 1, list(map(str, faults))
    line = int(told[0].where.partition(":")[2])
    broken_text = (tmp_path / "template" / file).read_text(encoding="utf-8")
    changed = broken_text[: broken_text.index(after)].count("\n") + 1
    assert where != file or changed <= line <= changed + after.count("\n") + 1, (changed, str(told[0]))


def test_the_template_has_none() -> None:
    assert check(reduced(Template(ROOT)), types=False).faults == []


@pytest.mark.parametrize("name", ["a condition left out in one file", "a dependency left out", "a dependency left in"])
def test_conditions_say_what_a_look_at_every_project_says(name: str, tmp_path: Path) -> None:
    """The method: rules on conditions, and the same rules on each project of the reduced space."""
    space = reduced(broken(tmp_path, *PLANTED[name][:3]).template, ("amp", "export", "onnx", "safetensors", "tracker"))
    conditions = Conditions(space)
    by_condition = {
        (fault.where.partition(":")[0], fault.what) for fault in check_rules(conditions, sources(conditions))[0]
    }
    known, one_by_one = words(space), set[tuple[str, str]]()
    projects: list[dict[str, Any]] = [space.choice(row) for row in space.rows()]
    assert len(projects) >= 16
    for choice in projects:
        rendered = space.template.render(choice)
        one_by_one |= {tuple(line.split(": ", 1)) for line in check_project(space, rendered, choice, known)}
    assert by_condition == one_by_one and one_by_one


def said(space: Space, path: str, every: bool) -> set[tuple[str, str]]:
    """What is said of one file: of the texts of all projects, rendered one by one, or of those that stand for them."""
    conditions = Conditions(space)
    source = next(source for source in sources(conditions) if source.path.as_posix() == path)
    rows = [row | {name: texts[0] for name, texts in space.texts.items()} for row in space.rows()]
    found = looked_at(source, conditions, rows if every else sample(space))
    told = set().union(*judged(conditions, [(source, text, row) for text, row in found]))
    # Of a change of several lines one is named: which one depends on what else was changed.
    return {("" if "ruff" in what else where, what) for where, what in told}


@pytest.mark.parametrize("path", ["train.py", "run.py", "config.py"])
def test_texts_that_stand_for_all_say_what_all_say(path: str, tmp_path: Path) -> None:
    """The method: the same is said of a damaged file, whether all its texts are looked at or a few."""
    space = reduced(broken(tmp_path, path, "", "").template, ("amp", "accumulation", "ddp", "debug", "cache"))
    file, source, told = tmp_path / "template" / path, random.Random(3), list[set[str]]()
    whole = file.read_text(encoding="utf-8")
    for _ in range(24):
        lines = whole.split("\n")
        place = source.randrange(20, len(lines) - 2)
        other = source.choice([place, place + 1, place - 1])
        lines[place : place + 1] = [lines[other]] * source.choice([0, 2])
        file.write_text("\n".join(lines), encoding="utf-8")
        try:
            few = said(Space(Template(tmp_path), space.only), path, every=False)
        except (SyntaxError, jinja2.TemplateSyntaxError):
            continue  # told at once
        assert few == said(Space(Template(tmp_path), space.only), path, every=True), lines[place - 1 : place + 2]
        told += [{what for _, what in few}] if few else []
        if len(told) == 3:
            break
    assert len(told) == 3


def test_the_type_checker_sees_a_wrong_call(tmp_path: Path) -> None:
    space = broken(
        tmp_path, "train.py", "set_rates(run.optimizer, run.progress, run.config.schedule)", "set_rates(run.optimizer)"
    )
    conditions = Conditions(space)
    row = {**next(space.rows()), **{name: texts[0] for name, texts in space.texts.items()}}
    wrong = row | {"scheduler": True, "schedule": "one_cycle"}
    faults = check_types(conditions, sources(conditions), [row, wrong, wrong | {"amp": True}])
    assert faults and all(fault.where.startswith("train.py") for fault in faults), faults
    assert {fault.chosen for fault in faults} == {("scheduler", "schedule=one_cycle")}, faults


def test_what_reads_too_many_values_at_once_is_refused(tmp_path: Path) -> None:
    names = ", ".join(f"{name}" for name in TECHNIQUES)
    broken(
        tmp_path,
        "device.py",
        '"""The device',
        f'# {{% if ({names}, clip, schedule)[0] %}}\n# x\n# {{% endif %}}\n"""The device',
    )
    with pytest.raises(TooManyError, match="read together in more than"):
        sources(Conditions(Space(Template(tmp_path))))
