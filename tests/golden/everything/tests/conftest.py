"""What the tests share: a few samples of the owner's data, and runs on them in float64.

Equal means equal within 1e-10 in float64, with the model in eval mode and gradients on, since batch norm and dropout
would couple the samples of a batch. Model and batches are turned to float64 here, whatever type they came in.

pytest --device auto         # on the accelerator instead of the CPU
pytest --config runs/2026-01-31T12-00-00/config.json  # on the data of that run instead of the defaults of data.py
"""

import json
import math
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import log
import model
import train
from arguments import from_arguments
from compiling import CompileConfig
from config import Config
from data import DataConfig, augment, load
from device import find_device, to_device, tree_map, widest
from loader import First, MicroBatch
from model import SEPARABLE, loss
from model_config import build_model
from run import Run, build

CPU = torch.device("cpu")
# Models that draw random numbers in forward, dropout aside.
RANDOM = getattr(model, "RANDOM", False)
# What an owner does about numbers that depend on how samples are put into batches.
COUPLED = (
    "the samples of a batch do not count for themselves. In model.py: loss has to be the sum over the items that count "
    'counts (reduction="sum"). Set SEPARABLE = False where the loss couples the samples of a batch (contrastive), '
    "and RANDOM = True where forward draws random numbers."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="where the tests train: cpu, auto, cuda, cuda:1, mps, ...")
    parser.addoption("--config", default="", help="config.json of a run, on whose data to test")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("config"):
        os.environ["TEST_CONFIG"] = str(Path(file).resolve())  # other processes read it, too
    try:
        find_device(config.getoption("device"))
        data_config()
    except (SystemExit, ValueError, KeyError, OSError) as error:
        raise pytest.UsageError(f"{file} is no config.json of a run: {error!r}" if file else str(error)) from None


def data_config() -> DataConfig:
    """The data's values of the run that --config names, or the defaults of data.py."""
    file = os.environ.get("TEST_CONFIG")
    return from_arguments(Config, json.loads(Path(file).read_text())["arguments"]).data if file else DataConfig()


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
    return find_device(request.config.getoption("device"))


@pytest.fixture(autouse=True)
def default_dtype(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.dtype]:
    """float64 where the device has it. Rounding errors of 1e-16 instead of 1e-7: a real fault stands out."""
    dtype = widest(device)
    torch.set_default_dtype(dtype)
    use_default_dtype(monkeypatch)
    yield dtype
    torch.set_default_dtype(torch.float32)


def use_default_dtype(patch: pytest.MonkeyPatch) -> None:
    """Lets the project build models of the default type, whatever type their weights have at first."""

    def build_cast(info: dict[str, Any], config: Any) -> nn.Module:
        built, dtype = build_model(info, config).to(torch.get_default_dtype()), torch.get_default_dtype()
        # Also what the owner turns to float32 on its way into the model.
        built.register_forward_pre_hook(lambda _, *inputs: cast(inputs, dtype), with_kwargs=True)
        return built

    patch.setattr("run.build_model", build_cast)
    patch.setattr("checkpoint.build_model", build_cast)
    patch.setattr(train, "augment", lambda batch, noise: cast(augment(batch, noise), torch.get_default_dtype()))


def cast(batch: Any, dtype: torch.dtype) -> Any:
    """The batch with its floating-point tensors in this type; whole numbers stay."""
    return tree_map(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor, batch)


class Few(First):
    """The first samples of a source, in the type that the tests compute in."""

    def __init__(self, source: Any, size: int) -> None:
        super().__init__(source, size)
        self.dtype = torch.get_default_dtype()

    def fetch(self, ids: Tensor, epoch: int) -> Any:
        return cast(super().fetch(ids, epoch), self.dtype)


def hold(built: nn.Module, batch: Any) -> None:
    """Puts a model into eval mode; one whose loss is there in training mode only into that one."""
    built.eval()
    try:
        with torch.no_grad():
            loss(built, batch)
    except Exception:  # of whatever kind: in training mode it is raised again where it is another fault
        built.train()


@pytest.fixture
def float64(
    device: torch.device, default_dtype: torch.dtype, begin: Callable[..., Run], micro: Callable[..., MicroBatch]
) -> None:
    """For tests of equality: skips them where numbers are too short to tell a fault from rounding."""
    if default_dtype != torch.float64:
        pytest.skip(f"{device.type} has no float64, and float32 cannot tell a small fault from rounding")
    if loss(begin().model, micro(0, 2).batch).dtype != torch.float64:
        pytest.skip("model.loss turns what it sums to a shorter type: give it float64 where the model gives float64")


@pytest.fixture
def deterministic() -> None:
    if RANDOM:
        pytest.skip("model.RANDOM is True: the same batch gives other numbers each time")


@pytest.fixture
def separable(deterministic: None) -> None:
    if not SEPARABLE:
        pytest.skip("model.SEPARABLE is False: the loss of a batch is not the sum of its parts")


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
    training, validation = load_once(device)
    return Few(training, 26), Few(validation, 10)


@cache
def load_once(device: torch.device) -> tuple[Any, Any]:
    return tuple(load(data_config(), 0, device))


def small_config() -> Config:
    """Small batches of which the last ones are smaller: 26 = 8 + 8 + 5 + 5."""
    return Config(epochs=2, batch_size=8, log_every=1, compile=CompileConfig(mode="off"))


@pytest.fixture
def sources(device: torch.device) -> tuple[First, First]:
    return few_samples(device)


@pytest.fixture
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
        hold(run.model, to_device(sources[0].fetch(torch.arange(2), 0), device))
        return run

    return begin


@pytest.fixture
def micro(sources: tuple[First, First], device: torch.device) -> Callable[[int, int], MicroBatch]:
    """The micro-batch of the samples from `start` to below `stop`."""

    def micro(start: int, stop: int) -> MicroBatch:
        ids = torch.arange(start, stop)
        batch = to_device(sources[0].fetch(ids, 0), device)
        return MicroBatch(ids, batch, 1)

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
    measured = {"samples_per_second", "peak_memory_mb", "cache_hits", "cache_loads"}
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
