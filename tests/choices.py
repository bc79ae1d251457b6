"""Choices that the tests render, drawn from the option space: nothing about the options is written twice."""

from pathlib import Path
from typing import Any

from matrix import samples
from matrix.space import Space
from tricks.template.rendering import Template

ROOT = Path(__file__).resolve().parent.parent
SPACE = Space(Template(ROOT))
QUESTIONS = SPACE.template.questions
PRESETS: dict[str, list[str]] = QUESTIONS["presets"]["default"]
CHOICES = {name: list(question["choices"].values()) for name, question in QUESTIONS.items() if "choices" in question}
TECHNIQUES: list[str] = CHOICES["techniques"]
# Compiling a package takes half a minute on two cores: a test of its own does it.
SLOW = "aotinductor"


def alone() -> dict[str, dict[str, Any]]:
    """Each technique by itself, and each of its kinds where a follow-up question has some."""
    wanted = ("techniques", "clip", "schedule", "tracker", "optimizer")
    rows = samples.alone(SPACE)
    return {name: SPACE.choice(row) for name, row in rows.items() if SPACE.options[option(name)].question in wanted}


def option(label: str) -> str:
    return label if label in SPACE.options else label.partition("-")[0]


def presets() -> dict[str, dict[str, Any]]:
    """Each preset for each task; `everything` with all that can be added to it."""
    found: dict[str, dict[str, Any]] = dict(samples.presets(SPACE))
    formats = [name for name in CHOICES["export_formats"] if name != SLOW]
    for task in CHOICES["task"]:
        found[f"{task}-everything"] |= {
            "export_formats": formats,
            "tracker": "tensorboard",
            "extras": CHOICES["extras"],
        }
    return found


def drawn(number: int, seed: int) -> dict[str, dict[str, Any]]:
    """Random choices over the whole space but for what is slow."""
    fast = Space(SPACE.template, {SLOW: (False,)})
    return {f"drawn-{index}": fast.choice(row) for index, row in enumerate(samples.drawn(fast, number, seed))}
