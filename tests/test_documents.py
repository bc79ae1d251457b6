"""What the documents name is there."""

import re
from difflib import unified_diff
from pathlib import Path
from textwrap import indent

from tests.choices import ROOT, SPACE


def test_every_public_failure_has_its_tests() -> None:
    lines = (ROOT / "docs" / "cases.md").read_text().splitlines()
    cases = [line for line in lines if re.match(r"\| A\d+ ", line)]
    assert [line.split()[1] for line in cases] == [f"A{number}" for number in range(1, 41)]
    for line in cases:
        named = re.findall(r"`([\w/.]+)::(\w+)`", line)
        assert named, f"no test is named: {line}"
        for file, function in named:
            assert f"def {function}(" in (ROOT / file).read_text(), f"{file} has no {function}"


def test_the_readme_has_the_lengths_of_train() -> None:
    text = (ROOT / "README.md").read_text()
    told = re.search(r"`train.py` has (\d+) lines with nothing chosen and (\d+) with everything", text)
    folder = ROOT / "tests" / "golden"
    found = [len((folder / name / "train.py").read_text().splitlines()) for name in ("nothing", "everything")]
    assert told is not None and [int(number) for number in told.groups()] == found


def test_the_readme_shows_generated_code() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"```python\n(.+?)```", text, flags=re.S)
    golden = (ROOT / "tests" / "golden" / "recommended" / "train.py").read_text(encoding="utf-8")
    assert shown is not None and indent(shown[1], "    ") in golden


def test_the_readme_shows_what_add_changes() -> None:
    shown = re.search(r"```diff\n(.+?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    sides = [
        SPACE.template.render({"techniques": ["amp", "accumulation", *more]})[Path("train.py")].splitlines()
        for more in ([], ["clipping"])
    ]
    difference = list(unified_diff(*sides, lineterm=""))[2:]
    assert shown is not None and shown[1].splitlines() == difference
