"""Three versions of the template as its history could have been, made from what lies in the working tree.

v1.0.0 is the template as it is. v1.1.0 renames a file and a knob, and has one more technique, question and value.
v1.2.0 changes lines in many files, renames a technique's file, and drops one file.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.conftest import copy_sources

VERSIONS = ["v1.0.0", "v1.1.0", "v1.2.0"]
VALUE = '    "value: cut each element": value\n'
DERIVED = "# -------------------------------------------------- derived values"
NEW_QUESTIONS = """\
decay_shape:
  type: str
  help: Shape of the average
  when: "{{ 'ema' in techniques }}"
  default: constant
  choices: [constant, rising]

licence:
  type: str
  help: Licence of the project
  default: none
  choices: [none, MIT]

ema:
  type: bool
  when: false
  default: "{{ 'ema' in techniques }}"

"""


def make(version: str, folder: Path) -> Path:
    """The template at a version, in a new folder, outside git."""
    copy_sources(folder)
    put(folder, version)
    return folder


def put(folder: Path, version: str) -> None:
    """Replaces the template in a folder by that of a version."""
    shutil.rmtree(folder)
    copy_sources(folder)
    if version != "v1.0.0":
        first_release(folder)
    if version == "v1.2.0":
        second_release(folder)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name} has no {old!r} any more: give this test another place"
    path.write_text(text.replace(old, new), encoding="utf-8", newline="")


def replace_everywhere(folder: Path, pattern: str, new: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            path.write_text(re.sub(pattern, new, text), encoding="utf-8", newline="")


def first_release(folder: Path) -> None:
    questions, template = folder / "copier.yml", folder / "template"
    # A file renamed, and the module with it.
    (template / "progress.py").rename(template / "signals.py")
    replace_everywhere(template, r"\bfrom progress\b", "from signals")
    # A knob renamed.
    replace_everywhere(template, r"\bmax_norm\b", "limit")
    # A new technique, in a line of train.py's neighbour, with a file, a test and a section.
    text = questions.read_text(encoding="utf-8")
    block = re.search(r"^techniques:\n(?:  .*\n|\n)*?  choices:\n(?:    .*\n)+", text, re.MULTILINE)
    assert block is not None
    text = text.replace(block[0], block[0] + '    "ema: averaged weights; when the last ones jump": ema\n')
    assert VALUE in text and DERIVED in text
    text = text.replace(DERIVED, NEW_QUESTIONS + DERIVED)
    # A new value of an old question.
    text = text.replace(VALUE, VALUE + '    "sign: its sign": sign\n')
    text = text.replace("  - /tasks\n", "  - /tasks\n  - \"{{ '' if ema | default(false) else '/ema.py' }}\"\n")
    questions.write_text(text, encoding="utf-8", newline="")
    (template / "ema.py").write_text('"""Averaged weights ({{ decay_shape }})."""\n\nDECAY = 0.999\n', encoding="utf-8")
    replace(
        template / "config.py",
        "    loader: LoaderConfig = LoaderConfig()\n",
        "    loader: LoaderConfig = LoaderConfig()\n    # {% if ema %}\n    ema_decay: float = 0.999\n"
        '    """Weight of the past in the averaged weights."""\n    # {% endif %}\n',
    )
    replace(template / "README.md", "## How it is built\n", "Licence: {{ licence }}.\n\n## How it is built\n")


def second_release(folder: Path) -> None:
    template = folder / "template"
    (template / "clipping.py").rename(template / "limits.py")
    replace_everywhere(template, r"\bfrom clipping\b", "from limits")
    replace(folder / "copier.yml", "'/clipping.py'", "'/limits.py'")
    (template / "predict.py").unlink()
    replace(template / "train.py", '"""One optimizer step on', '"""Just one optimizer step on')
    replace(template / "checkpoint.py", "import torch\n", "import torch  # the only framework\n")
    for path in template.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "\n\n# End of this file.\n", encoding="utf-8", newline="")
    for name in ("data.py", "model.py"):  # the owner's two files stay
        replace(template / name, "\n\n# End of this file.\n", "")
