"""What the proofs share: a few samples of the owner's data, and runs on them in float64.

Equal means equal within 1e-10 in float64, with the model in eval mode and gradients on, since batch norm and dropout
would couple the samples of a batch. They run on the CPU, with `pytest --device auto` on the accelerator.
"""

import json
import math
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import log
import train
from config import Config
from data import DataConfig, load
from device import find_device, to_device
from loader import First, MicroBatch
from run import Run, build

CPU = torch.device("cpu")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="where the tests train: cpu, auto, cuda, cuda:1, mps, ...")


def pytest_configure(config: pytest.Config) -> None:
    try:
        find_device(config.getoption("device"))
    except SystemExit as error:
        raise pytest.UsageError(str(error)) from None


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
    return find_device(request.config.getoption("device"))


@pytest.fixture(autouse=True)
def default_dtype(device: torch.device) -> Iterator[torch.dtype]:
    """float64 where the device has it. Rounding errors of 1e-16 instead of 1e-7: a real fault stands out."""
    try:
        torch.zeros((), dtype=torch.float64, device=device)
        dtype = torch.float64
    except (RuntimeError, TypeError):  # mps
        dtype = torch.float32
    torch.set_default_dtype(dtype)
    yield dtype
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def float64(device: torch.device, default_dtype: torch.dtype) -> None:
    """For tests of equality: skips them where numbers are too short to tell a fault from rounding."""
    if default_dtype != torch.float64:
        pytest.skip(f"{device.type} has no float64, and float32 cannot tell a small fault from rounding")


@pytest.fixture
def same(device: torch.device, float64: None) -> Callable[[Any, Any], bool]:
    """same(left, right): bit for bit on the CPU; elsewhere within 1e-10, since kernels may sum in any order."""
    bound = 0.0 if device.type == "cpu" else 1e-10

    def same(left: Any, right: Any) -> bool:
        if isinstance(left, Tensor) and left.is_floating_point() and bound:
            return torch.allclose(left, right, rtol=bound, atol=bound, equal_nan=True)
        if isinstance(left, Tensor):
            return torch.equal(left, right)
        if isinstance(left, dict):
            return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
        if isinstance(left, (list, tuple)):
            return len(left) == len(right) and all(map(same, left, right))
        return math.isclose(left, right, rel_tol=bound) if isinstance(left, float) else left == right

    return same


def few_samples(device: torch.device) -> tuple[First, First]:
    """26 training and 10 validation samples."""
    training, validation = load(DataConfig(), 0, device)
    return First(training, 26), First(validation, 10)


def small_config() -> Config:
    """Small batches of which the last ones are smaller: 26 = 8 + 8 + 5 + 5."""
    return Config(epochs=2, batch_size=8, log_every=1)


@pytest.fixture(scope="session")
def sources(device: torch.device) -> tuple[First, First]:
    return few_samples(device)


@pytest.fixture(scope="session")
def host_sources() -> tuple[First, First]:
    """The same in the memory of the host, for workers: no process may take an accelerator's memory over by a fork."""
    return few_samples(CPU)


@pytest.fixture
def config() -> Config:
    return small_config()


@pytest.fixture
def begin(sources: tuple[First, First], config: Config, device: torch.device) -> Callable[..., Run]:
    """Builds a run of 8 optimizer steps in eval mode; its arguments change the config."""

    def begin(**changes: Any) -> Run:
        run = build(replace(config, **changes), sources[0].info, device, steps_per_epoch=4)
        run.model.eval()
        return run

    return begin


@pytest.fixture
def micro(sources: tuple[First, First], device: torch.device) -> Callable[[int, int], MicroBatch]:
    """The micro-batch of the samples from `start` to below `stop`."""

    def micro(start: int, stop: int) -> MicroBatch:
        ids = torch.arange(start, stop)
        batch = to_device(sources[0].fetch(ids, 0), device)
        return MicroBatch(ids, batch)

    return micro


@pytest.fixture
def run_in(sources: tuple[First, First], device: torch.device, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """train.train on the few samples: run_in(folder, config) returns its exit code."""
    monkeypatch.setattr(train, "load", lambda *arguments: sources)
    monkeypatch.setattr(log, "draw", lambda folder: None)  # takes a second

    def run_in(folder: Path, config: Config) -> int:
        folder.mkdir(exist_ok=True)
        return train.train(config, folder, device)

    return run_in


def parameters(run: Run) -> Tensor:
    """All parameters in one vector, on the CPU."""
    return torch.cat([parameter.detach().flatten() for parameter in run.model.parameters()]).cpu()


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run's log without what is measured."""
    found = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    measured = {"samples_per_second", "peak_memory_mb"}
    return [{name: value for name, value in row.items() if name not in measured} for row in found]


def stop_in(patch: pytest.MonkeyPatch, function: str, call: int, number: int) -> None:
    """Sends a signal to this process at the start of the given call of train.<function>."""
    original, calls = getattr(train, function), []

    def interrupted(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            signal.raise_signal(number)
        return original(*arguments)

    patch.setattr(train, function, interrupted)
