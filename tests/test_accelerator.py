"""The simulated accelerator is what it says, in processes of its own: a device cannot be taken back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import accelerator
from tests.conftest import ROOT


def run(variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python process with these variables, in the repository; the device's own sentence skips the test."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment | variables, capture_output=True, text=True, timeout=300)
    if "UnavailableError" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    return done


@pytest.fixture
def device(tmp_path: Path) -> dict[str, str]:
    return accelerator.entry_point(tmp_path / "entry point")


def test_what_it_promises(device: dict[str, str]) -> None:
    done = run(device, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/accelerator_checks.py")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("g++") is None, reason="several devices need g++")
def test_two_of_them(device: dict[str, str]) -> None:
    two = device | {"SIM_DEVICES": "2"}
    done = run(two, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/accelerator_checks_of_two.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_pytorch_without_the_way_is_told_in_a_sentence() -> None:
    code = (
        "import torch.utils.backend_registration as registration\n"
        "del registration._setup_privateuseone_for_python_backend\n"
        "from tests import accelerator\n"
        "try:\n    accelerator.install()\n"
        "except accelerator.UnavailableError as error:\n    print(error)\n"
    )
    said = run({"PYTHONPATH": str(ROOT)}, "-c", code).stdout
    assert said.startswith("PyTorch ") and "no way to register a device in Python" in said and said.count("\n") == 1


def test_a_project_trains_on_it_as_it_is(device: dict[str, str], render: Callable[..., Path], tmp_path: Path) -> None:
    project, events = render(techniques=[]), tmp_path / "events.json"
    variables = device | {"SIM_EVENTS": str(events), "OMP_NUM_THREADS": "1"}
    arguments = ["train.py", "--max-steps", "2", "--run-dir", "run"]
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=project, env=dict(os.environ) | variables, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert '"read"' in events.read_text()
