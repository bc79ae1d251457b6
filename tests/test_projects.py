"""Generated projects run their own proofs. `make static` reads all projects as text, `make train` trains many."""

import shutil
from collections.abc import Callable
from functools import lru_cache
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
    if PROVEN[name]["task"] == "image" and works():
        assert "skipped" not in output, "a proof that is never run with our own data and model proves nothing"


@lru_cache
def works() -> bool:
    """Whether this machine has a C++ compiler, without which the proof of torch.compile says that it cannot run."""
    return any(shutil.which(name) for name in ("g++", "clang++", "c++"))
