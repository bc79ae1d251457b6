"""Cache: a later epoch loads nothing, the samples stay what they were, and memory stays inside the budget."""

from contextlib import closing
from typing import Any

import pytest
import torch
from torch import Tensor

from cache import Cache, CacheConfig, cached, leaves
from loader import First, Loader, LoaderConfig

CPU = torch.device("cpu")


class Counted:
    """The owner's samples, with the number of times that any worker loaded each."""

    on_device = False

    def __init__(self, source: First) -> None:
        self.source, self.info = source, source.info
        self.loads = torch.zeros(len(source), dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        return len(self.source)

    def fetch(self, ids: Tensor, epoch: int) -> Any:
        self.loads[ids] += 1
        return self.source.fetch(ids, epoch)


class Many(Counted):
    """More samples than a MiB can hold."""

    def __len__(self) -> int:
        return 2**20

    def fetch(self, ids: Tensor, epoch: int) -> Any:
        return self.source.fetch(ids % len(self.source), epoch)


class Random(Counted):
    def fetch(self, ids: Tensor, epoch: int) -> Any:
        return torch.rand(len(ids), 3)


@pytest.fixture
def counted(host_sources: tuple[First, First]) -> Counted:
    source = Counted(host_sources[0])
    if cached(source, CacheConfig()) is source:
        pytest.skip("the samples differ in size or are not tensors alone: they are not cached")
    return source


def equal(batch: Any, other: Any) -> bool:
    return all(torch.equal(one, two) for one, two in zip(leaves(batch), leaves(other), strict=True))


@pytest.mark.parametrize("workers", [0, 2])
def test_second_epoch_loads_nothing(counted: Counted, workers: int) -> None:
    source, samples = cached(counted, CacheConfig()), len(counted)
    counted.loads.zero_()
    with closing(Loader(source, 4, 0, LoaderConfig(workers=workers), CPU, shuffle=True)) as loader:
        for epoch in range(3):
            for micro in loader.epoch(epoch):
                assert equal(micro.batch, counted.source.fetch(micro.ids, epoch)), "the cache changes the samples"
            assert counted.loads.tolist() == [1] * samples, "a sample is loaded once, by whichever worker"
            assert source.hits() == (epoch * samples, samples)


def test_samples_stay_as_they_were(counted: Counted) -> None:
    source, ids = cached(counted, CacheConfig()), torch.tensor([5, 0, 5, 3])
    expected = counted.source.fetch(ids, 0)
    for _ in range(3):
        batch = source.fetch(ids, 0)
        assert equal(batch, expected)
        for tensor in leaves(batch):
            tensor.zero_()


def test_memory_stays_inside_the_budget(counted: Counted) -> None:
    source = cached(Many(counted.source), CacheConfig(budget_mb=1))
    assert sum(part.nbytes for part in [*source.store, source.filled]) <= 2**20
    assert all(part.is_shared() for part in [*source.store, source.filled]), "each worker has its own copy"


def test_what_does_not_fit_is_loaded_again(counted: Counted) -> None:
    source, every = Cache(counted, counted.fetch(torch.tensor([0]), 0), slots=10), torch.arange(len(counted))
    counted.loads.zero_()
    for epoch in range(3):
        assert equal(source.fetch(every.flip(0), epoch), counted.source.fetch(every.flip(0), epoch))
    assert counted.loads.tolist() == [1] * 10 + [3] * (len(counted) - 10)


def test_random_samples_are_refused(host_sources: tuple[First, First]) -> None:
    with pytest.raises(SystemExit, match=r"data\.augment"):
        cached(Random(host_sources[0]), CacheConfig())


def test_switched_off_it_is_the_source_itself(counted: Counted) -> None:
    assert cached(counted, CacheConfig(budget_mb=0)) is counted
