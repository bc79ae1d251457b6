"""Choices of techniques that the tests render, drawn from copier.yml: nothing about the options is written twice."""

import random
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = yaml.safe_load((ROOT / "copier.yml").read_text(encoding="utf-8"))
TECHNIQUES: list[str] = list(QUESTIONS["techniques"]["choices"].values())
PRESETS: dict[str, list[str]] = QUESTIONS["presets"]["default"]
CHOICES = {name: list(question["choices"].values()) for name, question in QUESTIONS.items() if "choices" in question}
# Compiling a package takes half a minute on two cores: a test of its own does it.
SLOW = "aotinductor"


def alone() -> dict[str, dict[str, Any]]:
    """Each technique by itself; with each of its kinds where a follow-up question has some."""
    found: dict[str, dict[str, Any]] = {}
    for technique in TECHNIQUES:
        found[technique] = {"techniques": [technique]}
    for question, technique in (("schedule", "scheduler"), ("clip", "clipping")):
        for kind in CHOICES[question]:
            found[f"{technique}-{kind}"] = {"techniques": [technique], question: kind}
    found["tensorboard"] = {"techniques": [], "tracker": "tensorboard"}
    return found


def presets() -> dict[str, dict[str, Any]]:
    """Each preset for each task; `everything` with all that can be added to it."""
    found = {
        f"{task}-{preset}": {"task": task, "techniques": techniques}
        for task in CHOICES["task"]
        for preset, techniques in PRESETS.items()
    }
    formats = [name for name in CHOICES["export_formats"] if name != SLOW]
    for task in CHOICES["task"]:
        found[f"{task}-everything"] |= {
            "export_formats": formats,
            "tracker": "tensorboard",
            "extras": CHOICES["extras"],
        }
    return found


def drawn(number: int, seed: int) -> dict[str, dict[str, Any]]:
    """Random choices over the whole space."""
    draw = random.Random(seed)
    found = {}
    for index in range(number):
        choice: dict[str, Any] = {}
        for name, values in CHOICES.items():
            if name == "preset":
                continue
            if QUESTIONS[name].get("multiselect"):
                values = [value for value in values if value != SLOW]
                least = 1 if name == "export_formats" else 0
                choice[name] = sorted(draw.sample(values, draw.randint(least, len(values))), key=values.index)
            else:
                choice[name] = draw.choice(values)
        found[f"drawn-{index}"] = choice
    return found
