"""The template with made-up techniques, each in all the places that docs/adding-a-technique.md lists."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.choices import ROOT

MODULE = '''"""Changes one thing of each step."""

from dataclasses import dataclass


@dataclass(frozen=True)
class {kind}Config:
    amount: float = 1.0
    """How much; 0 is off."""


def {name}(value: int, config: {kind}Config) -> int:
    return value + int(config.amount)
'''
TEST = '''"""It adds its amount."""

from {name} import {kind}Config, {name}


def test_it_adds_its_amount() -> None:
    assert {name}(1, {kind}Config(amount=2.0)) == 3
'''
SECTION = """# {{% if {name} %}}
### The {name}

It does one thing. `{name}.py`. Knob: `--{option}.amount` (0 is off).

# {{% endif %}}
"""
EXCLUDED = "  - \"{{{{ '' if {name} | default(false) else '/{file}' }}}}\"\n"

# Step of docs/adding-a-technique.md -> (file, the text before which it is put, what is put there).
# An empty text: the file is the technique's own.
STEPS: dict[str, list[tuple[str, str, str]]] = {
    "line": [("copier.yml", "\nclip:\n", '    "{name}: it does one thing; when that is wanted": {name}\n')],
    "preset": [("copier.yml", "]\n  validator: *follows", ", {name}")],
    "boolean": [
        ("copier.yml", "plateau: {<<", "{name}: {{<<: *derived, default: \"{{{{ '{name}' in techniques }}}}\"}}\n"),
    ],
    "_exclude": [
        ("copier.yml", "  - \"{{ '' if github_actions", EXCLUDED.replace("{file}", "{name}.py")),
        ("copier.yml", "  - \"{{ '' if github_actions", EXCLUDED.replace("{file}", "tests/test_{name}.py")),
    ],
    "about": [("copier.yml", "  # Words that a project", "    {name}:\n      about: It does one thing.\n")],
    "costs": [("copier.yml", "  # Words that a project", "      costs: Nothing.\n")],
    "tokens": [("copier.yml", "    tensorboard: [Summ", '    {name}: [{kind}Config, "### The {name}"]\n')],
    "module": [("template/{name}.py", "", MODULE)],
    "config.py": [
        (
            "template/config.py",
            "# {% endfilter %}\n",
            "# {{% if {name} %}}\nfrom {name} import {kind}Config\n\n# {{% endif %}}\n",
        ),
        (
            "template/config.py",
            "\n    def __post_init__(self) -> None:\n        for name",
            "    # {{% if {name} %}}\n    {name}: {kind}Config = {kind}Config()\n    # {{% endif %}}\n",
        ),
    ],
    "train.py": [
        (
            "template/train.py",
            "from workers import NoBatch\n",
            "# {{% if {name} %}}\nfrom {name} import {name}\n\n# {{% endif %}}\n",
        ),
        (
            "template/train.py",
            "    timer = SaveTimer(config.checkpoint_minutes)\n",
            "    # {{% if {name} %}}\n"
            "    if {name}(progress.step, config.{name}) < 0:\n"
            '        raise SystemExit("--{option}.amount is below 0: give 0 or more.")\n'
            "    # {{% endif %}}\n",
        ),
    ],
    "test file": [("template/tests/test_{name}.py", "", TEST)],
    "section": [("template/README.md", "## Later\n", SECTION)],
}


def copied(folder: Path) -> Path:
    """A copy of the template that may be changed."""
    shutil.copytree(ROOT / "template", folder / "template")
    shutil.copy(ROOT / "copier.yml", folder)
    return folder


def grown(folder: Path, names: Iterable[str], without: str = "") -> Path:
    """A copy of the template with these techniques, a step of each left out; the names follow those of all modules."""
    copied(folder)
    for name in names:
        words = {"name": name, "kind": name.title().replace("_", ""), "option": name.replace("_", "-")}
        for step, edits in STEPS.items():
            for file, before, added in edits if step != without else []:
                path = folder / file.format(**words)
                text = path.read_text(encoding="utf-8") if before else ""
                head, found, tail = text.partition(before) if before else ("", "", "")
                assert found == before, f"{file} has changed: choose another place for {step}"
                path.write_text(head + added.format(**words) + found + tail, encoding="utf-8")
    return folder
