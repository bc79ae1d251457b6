"""Accumulation: a window of micro-batches, cut in any way, makes the step of the one large batch."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import COUPLED, parameters

from checkpoint import read
from config import AccumulationConfig, Config
from loader import MicroBatch
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
