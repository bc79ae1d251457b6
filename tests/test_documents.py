"""What the documents name is there."""

import re

from tests.choices import ROOT


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
