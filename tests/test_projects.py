"""Generated projects run their own proofs. `make static` reads all projects as text, `make train` trains many."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import warm
from tests.choices import alone, drawn, presets

# Each technique and kind by itself, everything for each task, and a few at random: `make matrix` proves all pairs.
PROVEN = alone() | {name: choice for name, choice in presets().items() if "everything" in name} | drawn(4, seed=7)


@pytest.mark.parametrize("name", PROVEN)
def test_project_proves_itself(render: Callable[..., Path], name: str) -> None:
    project = render(**PROVEN[name])
    code, output = warm.prove(project, timeout=600)
    assert code == 0, output[-6000:]
    assert "passed" in output
