"""Accumulation: a window of micro-batches, cut in any way, makes the step of the one large batch."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import COUPLED, CPU, parameters
from torch import Tensor

from checkpoint import read
from config import AccumulationConfig, Config
from loader import Loader, LoaderConfig, MicroBatch
from run import Run
from train import step


@pytest.mark.usefixtures("float64", "separable")
@pytest.mark.parametrize("cut", [(4, 4, 2), (4, 4, 1), (1, 8), (3, 3, 3), (1,) * 9])
def test_window_equals_the_large_batch(
    begin: Callable[..., Run], micro: Callable[[int, int], MicroBatch], cut: tuple[int, ...]
) -> None:
    whole, parts = begin(), begin()
    for first in (0, 12):  # two steps: the second one starts from moments that are not zero
        step(whole, [micro(first, first + sum(cut))])
        starts = [first + sum(cut[:index]) for index in range(len(cut))]
        step(parts, [micro(start, start + length) for start, length in zip(starts, cut, strict=True)])
    assert torch.allclose(parameters(whole), parameters(parts), rtol=0, atol=1e-10), COUPLED


@pytest.mark.parametrize("steps", [1, 3, 4, 9])
def test_short_tail_makes_a_step(run_in: Callable[..., int], config: Config, tmp_path: Path, steps: int) -> None:
    run_in(tmp_path, replace(config, accumulation=AccumulationConfig(steps)))
    assert read(tmp_path / "checkpoints" / "last.pt")["progress"]["step"] == config.epochs * -(-4 // steps)


@pytest.mark.usefixtures("deterministic")
def test_no_gradient_outlives_its_step(
    begin: Callable[..., Run], micro: Callable[[int, int], MicroBatch], same: Callable[..., bool]
) -> None:
    clean, stale = begin(), begin()
    for parameter in stale.model.parameters():
        parameter.grad = torch.ones_like(parameter)
    for run in (clean, stale):
        step(run, [micro(0, 8)])
    assert same(parameters(clean), parameters(stale))


class Counted:
    """Samples that are their ids; tells how many were fetched by whatever process."""

    on_device = False

    def __init__(self) -> None:
        self.fetched = torch.zeros(1, dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        return 100

    def fetch(self, ids: Tensor, epoch: int) -> Tensor:
        self.fetched += len(ids)
        return ids


def test_a_window_is_fetched_while_another_is_computed() -> None:
    source, deadline = Counted(), time.monotonic() + 30
    with closing(Loader(source, 1, 0, LoaderConfig(workers=1), CPU, shuffle=True, window=8)) as loader:
        micro_batches = loader.epoch(0)
        for _ in range(8):
            next(micro_batches)
        while source.fetched < 16 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert source.fetched >= 16
