"""Decoded samples kept in memory that the DataLoader workers share, so that a later epoch decodes nothing.

Random changes of a sample belong in data.augment, which runs after the cache.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from device import named_leaves, tree_map


@dataclass(frozen=True)
class CacheConfig:
    budget_mb: int = 1024
    """MiB of memory for the decoded samples of each source in each process, shared by its workers; 0 is off."""

    def __post_init__(self) -> None:
        if self.budget_mb < 0:
            raise ValueError(f"--cache.budget-mb is {self.budget_mb}: give 0 or more.")


class Cache:
    """A source that asks another one only for the samples that it does not hold yet."""

    on_device = False

    def __init__(self, source: Any, sample: Any, slots: int) -> None:
        """Holds the samples with ids below `slots`; `sample` is a batch of one."""
        self.source, self.info, self.sample, self.slots = source, source.info, sample, slots
        # Shared before any worker starts: they all see these pages, forked or spawned.
        self.store = [shared(slots, *part.shape[1:], dtype=part.dtype) for part in leaves(sample)]
        self.filled = shared(slots, dtype=torch.bool)
        # Hits and loads by worker: nobody else writes its row, so no count is lost and none waits for a lock.
        self.counts = shared(1024, 2, dtype=torch.int64)

    def __len__(self) -> int:
        return len(self.source)

    def fetch(self, ids: Tensor, epoch: int) -> Any:
        """The batch, as a copy: what is done to it never reaches the cache."""
        hit = (ids < self.slots) & self.filled[ids.clamp(max=self.slots - 1)]
        missing = ids[~hit]
        worker = get_worker_info()
        self.counts[worker.id + 1 if worker else 0] += torch.tensor((len(ids) - len(missing), len(missing)))
        if not len(missing):
            return self.nest(part.index_select(0, ids) for part in self.store)
        loaded = self.source.fetch(missing, epoch)
        keep = missing < self.slots
        kept = missing[keep]
        for part, new in zip(self.store, leaves(loaded), strict=True):
            if new.shape[1:] != part.shape[1:]:
                raise SystemExit("The cache needs samples of one size; --cache.budget-mb 0 switches it off.")
            part[kept] = new[keep]
        # Last: a worker that sees the flag finds the sample whole.
        self.filled[kept] = True
        if len(missing) == len(ids):
            return loaded
        batch = [part.new_empty((len(ids), *part.shape[1:])) for part in self.store]
        for part, new, whole in zip(self.store, leaves(loaded), batch, strict=True):
            whole[hit], whole[~hit] = part[ids[hit]], new
        return self.nest(batch)

    def nest(self, parts: Any) -> Any:
        """The parts in the shape of the source's batches."""
        rest = iter(parts)
        return tree_map(lambda _: next(rest), self.sample)

    def hits(self) -> tuple[int, int]:
        """Samples that came from the cache and samples that the source had to load, in all workers so far."""
        hits, loads = self.counts.sum(0).tolist()
        return hits, loads


def cached(source: Any, config: CacheConfig) -> Any:
    """The source behind a cache; the source itself where it lies on the device already or the budget is 0.

    And where its samples do not fill places of one size: they differ in length, or are not tensors alone.

    Raises SystemExit for a source that is random, and for a budget below one sample.
    """
    if source.on_device or config.budget_mb == 0:
        return source
    few = torch.arange(min(8, len(source)))
    sample, first, again = source.fetch(few[:1], 0), source.fetch(few, 0), source.fetch(few, 1)
    pairs = zip(leaves(first), leaves(again), strict=True)
    places = [(name, (len(few), *part.shape[1:])) for name, part in named_leaves(sample) if isinstance(part, Tensor)]
    if [(name, getattr(part, "shape", None)) for name, part in named_leaves(first)] != places:
        print("The cache is off: it needs batches of tensors alone, with samples of one size.")
        return source
    if not all(torch.equal(bits(one), bits(other)) for one, other in pairs):
        raise SystemExit(
            "The cache would freeze this data: fetch gives other samples in another epoch. "
            "Move what is random from fetch to data.augment, or switch the cache off: --cache.budget-mb 0."
        )
    # One byte more for its flag.
    size = sum(part.nbytes for part in leaves(sample)) + 1
    budget = config.budget_mb * 2**20
    slots = min(budget // size, len(source))
    shm = Path("/dev/shm")
    # Two sources share half of it: the workers send their batches through it as well.
    room = shutil.disk_usage(shm).free // 4 if shm.is_dir() else budget
    room //= int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if slots * size > room:
        slots = room // size
        print(f"The cache holds {slots} of {len(source)} samples: {shm} has {room >> 20} MiB for it.")
    if slots == 0:
        raise SystemExit(f"The cache cannot hold a sample ({size} B): raise --cache.budget-mb, or give 0.")
    return Cache(source, sample, slots)


def hits(source: Any) -> dict[str, int]:
    """The cache's numbers for a log row; none for a source without one."""
    if not isinstance(source, Cache):
        return {}
    return dict(zip(("cache_hits", "cache_loads"), source.hits(), strict=True))


def shared(*shape: int, dtype: torch.dtype) -> Tensor:
    """Zeros that other processes can see."""
    return torch.zeros(shape, dtype=dtype).share_memory_()


def leaves(batch: Any) -> list[Tensor]:
    found: list[Tensor] = []
    tree_map(found.append, batch)
    return found


def bits(tensor: Tensor) -> Tensor:
    """The bytes of a tensor: unlike its values they are equal to themselves even when they are NaN."""
    return tensor.contiguous().view(torch.uint8)
