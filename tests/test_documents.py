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
