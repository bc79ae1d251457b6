"""What the proofs share: a few samples of the owner's data, and runs on them in float64.

Equal means equal within 1e-10 in float64, with the model in eval mode and gradients on, since batch norm and dropout
would couple the samples of a batch.
"""

import json
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
from loader import First, MicroBatch
from run import Run, build

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    """Rounding errors of 1e-16 instead of 1e-7: a real fault stands out."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def few_samples() -> tuple[First, First]:
    """26 training and 10 validation samples."""
    training, validation = load(DataConfig(), 0, CPU)
    return First(training, 26), First(validation, 10)


def small_config() -> Config:
    """Small batches of which the last ones are smaller: 26 = 8 + 8 + 5 + 5."""
    return Config(epochs=2, batch_size=8, log_every=1)


@pytest.fixture(scope="session")
def sources() -> tuple[First, First]:
    return few_samples()


@pytest.fixture
def config() -> Config:
    return small_config()


@pytest.fixture
def begin(sources: tuple[First, First], config: Config) -> Callable[..., Run]:
    """Builds a run of 8 optimizer steps in eval mode; its arguments change the config."""

    def begin(**changes: Any) -> Run:
        run = build(replace(config, **changes), sources[0].info, CPU, steps_per_epoch=4)
        run.model.eval()
        return run

    return begin


@pytest.fixture
def micro(sources: tuple[First, First]) -> Callable[[int, int], MicroBatch]:
    """The micro-batch of the samples from `start` to below `stop`."""

    def micro(start: int, stop: int) -> MicroBatch:
        ids = torch.arange(start, stop)
        return MicroBatch(ids, sources[0].fetch(ids, 0))

    return micro


@pytest.fixture
def run_in(sources: tuple[First, First], monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """train.train on the few samples: run_in(folder, config) returns its exit code."""
    monkeypatch.setattr(train, "load", lambda *arguments: sources)
    monkeypatch.setattr(log, "draw", lambda folder: None)  # takes a second

    def run_in(folder: Path, config: Config) -> int:
        folder.mkdir(exist_ok=True)
        return train.train(config, folder, CPU)

    return run_in


def parameters(run: Run) -> Tensor:
    """All parameters in one vector."""
    return torch.cat([parameter.detach().flatten() for parameter in run.model.parameters()])


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run's log without what is measured."""
    found = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    measured = {"samples_per_second"}
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
