"""Room to grow: sixteen more techniques are checked as completely as today's, in time and memory that CI has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from matrix.conditions import Conditions
from matrix.demands import check_choices
from matrix.pieces import sources
from matrix.rules import check_rules
from matrix.space import Space
from matrix.static import check
from tests.choices import ROOT, TECHNIQUES
from tests.growth import STEPS, copied, grown
from tricks.template.rendering import Template

MADE_UP = [f"trick_{letter}" for letter in "abcdefghijklmnop"]
ALL = [*TECHNIQUES, *MADE_UP]


def cpu_of_children() -> float:
    used = os.times()
    return used.children_user + used.children_system


@pytest.mark.slow
def test_twenty_eight_techniques_pass_in_three_minutes_and_two_gigabytes(tmp_path: Path) -> None:
    grown(tmp_path, MADE_UP)
    assert Space(Template(tmp_path)).count() >= 2**28
    began = cpu_of_children()
    command = [sys.executable, "-m", "matrix", "--template", str(tmp_path), "static"]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cpu_of_children() - began < 90, done.stdout  # on a busy machine the time on the clock says little
    memory = re.search(r"memory +(\d+) MB", done.stdout)
    assert memory and int(memory[1]) < 2000, done.stdout


EVERY = " and ".join(ALL)
PLANTED = {  # a fault of one choice of techniques in 2^28: text of train.py, what stands before it, what is told
    "an unknown name": (
        "    timer = SaveTimer(config.checkpoint_minutes)\n",
        f"    # {{% if {EVERY} %}}\n    absent(progress)\n    # {{% endif %}}\n",
        "F821 Undefined name `absent`",
    ),
    "a name that is imported in all other projects": (
        "\n\ndef main(",
        f"\n\n# {{% if not ({EVERY}) %}}\nABSENT = 0\n# {{% else %}}\nprint(ABSENT)\n# {{% endif %}}\n",
        "F821 Undefined name `ABSENT`",
    ),
    "a format that ruff would change": (
        "    timer = SaveTimer(config.checkpoint_minutes)\n",
        f"    # {{% if {EVERY} %}}\n    run.device  = device\n    # {{% endif %}}\n",
        "ruff format would change it",
    ),
}


@pytest.mark.slow
def test_a_fault_of_one_choice_in_2_to_the_28th_is_found_with_that_choice(tmp_path: Path) -> None:
    file = grown(tmp_path, MADE_UP) / "template" / "train.py"
    whole = file.read_text(encoding="utf-8")
    for before, added, _ in PLANTED.values():
        assert before in whole, "train.py has changed: choose another place"
        whole = whole.replace(before, added + before, 1)
    file.write_text(whole, encoding="utf-8")
    faults = check(Space(Template(tmp_path)), types=False).faults
    for name, (_, _, what) in PLANTED.items():
        told = [fault for fault in faults if what in fault.what]
        assert [fault.where.partition(":")[0] for fault in told] == ["train.py"], (name, list(map(str, faults)))
        # And what these techniques ask for: a way to clip, a schedule, one export format.
        assert set(told[0].chosen) > set(ALL) and len(told[0].chosen) == len(ALL) + 3, (name, told[0].chosen)


def without(folder: Path, step: str) -> list[str]:
    conditions = Conditions(Space(Template(grown(folder, ["trick_a"], without=step))))
    try:
        files = sources(conditions)
    except ValueError as error:  # the command prints it, and no more
        return [str(error)]
    return [str(fault) for fault in (*check_choices(conditions, files), *check_rules(conditions, files)[0])]


def test_a_step_that_is_left_out_is_told(tmp_path: Path) -> None:
    assert without(tmp_path / "none", "") == []
    for step in STEPS:
        told = without(tmp_path / step, step)
        assert any("trick_a" in fault or "TrickA" in fault for fault in told), (step, told)


def test_the_steps_are_those_of_the_document() -> None:
    text = (ROOT / "docs" / "adding-a-technique.md").read_text(encoding="utf-8")
    assert re.findall(r"\*\*([^*]+)\*\*", text.partition("## Template files")[0]) == list(STEPS)


def test_a_choice_that_changes_nothing_is_told(tmp_path: Path) -> None:
    path = copied(tmp_path) / "copier.yml"
    text = path.read_text(encoding="utf-8")
    for before, line in (('    "tensorboard"', "nolog"), ('    "amp: mixed', "glow")):
        assert before in text
        text = text.replace(before, f'    "{line}: nothing yet": {line}\n{before}', 1)
    path.write_text(text, encoding="utf-8")
    conditions = Conditions(Space(Template(tmp_path)))
    told = [fault.what for fault in check_choices(conditions, sources(conditions))]
    assert "glow is offered, and changes no file" in told, told
    assert "none and nolog are offered, and their projects do not differ" in told, told
    for value in ("nolog", "glow"):
        assert f"{value} is offered, and there is no boolean {value} that follows from it" in told, told
