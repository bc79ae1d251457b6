"""Loader: each sample comes once an epoch, in a batch that holds no more, and a worker's fault is not waited for."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import workers
from checkpoint import read
from config import Config
from loader import Loader, LoaderConfig
from workers import NoBatch

CPU = torch.device("cpu")


class Numbers:
    """Samples that are their ids, in two tensors of a dict; `fault` is what fetching them meets."""

    on_device = False

    def __init__(self, samples: int, fault: Callable[[], None] | None = None) -> None:
        self.samples, self.info, self.fault = samples, {}, fault
        self.fetched = torch.zeros(samples, dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        return self.samples

    def fetch(self, ids: Tensor, epoch: int) -> Any:
        assert held(ids) == 8 * len(ids), "the ids bring the whole epoch with them"
        if self.fault:
            self.fault()
        self.fetched[ids] += 1
        # The first is a view of more: what a worker hands over must be the batch alone.
        return {"ids": torch.stack((ids, ids)).float()[0], "whole": (ids, (ids + epoch).to(torch.bfloat16))}


def held(tensor: Tensor) -> int:
    """The bytes that stay in memory, or travel, because of it."""
    return tensor.untyped_storage().nbytes()


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("samples", [1, 5, 8, 26])
def test_each_sample_comes_once_with_its_own_batch(samples: int, number: int) -> None:
    with closing(Loader(Numbers(samples), 4, 0, LoaderConfig(workers=number), CPU, shuffle=True)) as loader:
        ids: list[list[int]] = []
        for skip in range(len(loader) + 1):
            found = list(loader.epoch(1, skip))
            assert all(torch.equal(micro.batch["ids"], micro.ids.float()) for micro in found)
            assert all(torch.equal(micro.batch["whole"][1], (micro.ids + 1).to(torch.bfloat16)) for micro in found)
            assert not number or all(held(micro.batch["ids"]) == 4 * len(micro.ids) for micro in found)
            assert len(found) == len(loader) - skip
            ids.append([int(i) for micro in found for i in micro.ids])
            assert ids[skip] == ids[0][samples - len(ids[skip]) :]
        assert sorted(ids[0]) == list(range(samples))
        sizes = [len(micro.ids) for micro in loader.epoch(0)]
        assert max(sizes) <= 4 and (samples <= 4 or min(sizes) > 1), "a step on a lone sample"


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hangs() -> None:
    time.sleep(60)


def unreadable() -> None:
    raise SystemExit("a broken file")


@pytest.mark.parametrize(
    ("number", "fault", "told"),
    [
        (2, killed, "--loader.workers"),
        (2, hangs, "--loader.timeout"),
        (2, unreadable, "a broken file"),
        (0, unreadable, "a broken file"),
    ],
)
def test_a_fault_of_a_fetch_ends_the_wait(
    number: int, fault: Callable[[], None], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "LOOK", 0.5)
    config = LoaderConfig(workers=number, timeout=1.0 if fault is hangs else 60.0)
    began = time.monotonic()
    loader = Loader(Numbers(20, fault), 4, 0, config, CPU, shuffle=True)
    with closing(loader), pytest.raises(NoBatch, match=told):
        next(loader.epoch(0))
    assert time.monotonic() - began < 30


def test_a_run_that_gets_no_batch_is_saved(
    run_in: Callable[..., int],
    config: Config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batches = Loader.batches

    def broken(loader: Loader, epoch: int, *rest: Any) -> Iterator[Any]:
        if epoch:
            raise NoBatch("a broken file")
        return batches(loader, epoch, *rest)

    monkeypatch.setattr(Loader, "batches", broken)
    with pytest.raises(SystemExit, match="a broken file"):
        run_in(tmp_path, replace(config, checkpoint_every=100))
    assert read(tmp_path / "checkpoints" / "last.pt")["progress"]["step"] == 4
