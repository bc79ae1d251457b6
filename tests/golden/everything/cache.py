"""Decoded samples kept in memory that all processes of a machine share, so that a later epoch decodes nothing.

Random changes of a sample belong in data.augment, which runs after the cache.
"""

import atexit
import contextlib
import math
import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from device import named_leaves, tree_map
from distributed import all_gather

try:
    import fcntl
except ImportError:  # Windows, whose x86 shows stores in the order in which they were made
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True)
class CacheConfig:
    budget_mb: int = 1024
    """MiB of memory for the decoded samples of each source, once per machine for all its processes; 0 is off."""

    def __post_init__(self) -> None:
        if self.budget_mb < 0:
            raise ValueError(f"--cache.budget-mb is {self.budget_mb}: give 0 or more.")


class Cache:
    """A source that asks another one only for the samples that it does not hold yet."""

    on_device = False

    def __init__(self, source: Any, sample: Any, slots: int, path: str) -> None:
        """Holds the samples with ids below `slots` in the file at `path`; `sample` is a batch of one."""
        self.source, self.info, self.sample, self.slots, self.path = source, source.info, sample, slots, path
        kinds = [((2,), torch.int64), ((slots,), torch.bool)]
        kinds += [((slots, *part.shape[1:]), part.dtype) for part in leaves(sample)]
        sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in kinds]
        aligned = [-(-size // 64) * 64 for size in sizes]
        memory = torch.from_file(path, shared=True, size=sum(aligned), dtype=torch.uint8).split(aligned)
        self.counts, self.filled, *self.store = (
            part[:size].view(dtype).view(shape) for part, size, (shape, dtype) in zip(memory, sizes, kinds, strict=True)
        )
        self.file = os.open(path, os.O_RDWR)

    def __reduce__(self) -> tuple[Any, ...]:
        return Cache, (self.source, self.sample, self.slots, self.path)

    def __len__(self) -> int:
        return len(self.source)

    def fetch(self, ids: Tensor, epoch: int) -> Any:
        """The batch, as a copy: what is done to it never reaches the cache."""
        with self.locked():
            hit = (ids < self.slots) & self.filled[ids.clamp(max=self.slots - 1)]
            missing = ids[~hit]
            self.counts += torch.tensor((len(ids) - len(missing), len(missing)))
        if not len(missing):
            return self.nest(part.index_select(0, ids) for part in self.store)
        loaded = self.source.fetch(missing, epoch)
        keep = missing < self.slots
        kept = missing[keep]
        for part, new in zip(self.store, leaves(loaded), strict=True):
            if new.shape[1:] != part.shape[1:]:
                raise SystemExit("The cache needs samples of one size; --cache.budget-mb 0 switches it off.")
            part[kept] = new[keep]
        with self.locked():
            self.filled[kept] = True
        if len(missing) == len(ids):
            return loaded
        batch = [part.new_empty((len(ids), *part.shape[1:])) for part in self.store]
        for part, new, whole in zip(self.store, leaves(loaded), batch, strict=True):
            whole[hit], whole[~hit] = part[ids[hit]], new
        return self.nest(batch)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time. The kernel's lock also orders memory: who sees a flag set in it sees the sample whole.

        Some CPUs show stores to others out of order. The lock of a process that dies is free again.
        """
        if fcntl:
            fcntl.lockf(self.file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            if fcntl:
                fcntl.lockf(self.file, fcntl.LOCK_UN)

    def nest(self, parts: Any) -> Any:
        """The parts in the shape of the source's batches."""
        rest = iter(parts)
        return tree_map(lambda _: next(rest), self.sample)

    def hits(self) -> tuple[int, int]:
        """Samples that came from the cache and those that the source had to load, in all processes of this machine."""
        hits, loads = self.counts.tolist()
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
    slots = min(config.budget_mb * 2**20 // size, len(source))
    if slots == 0:
        raise SystemExit(f"The cache cannot hold a sample ({size} B): raise --cache.budget-mb, or give 0.")
    # That of the first process on this machine; those of the others stay empty.
    offers = all_gather(memory_file())
    path = next(path for path, leads in offers if os.path.exists(path) and os.path.realpath(path) == leads)
    return Cache(source, sample, slots, path)


def hits(source: Any) -> dict[str, int]:
    """The cache's numbers for a log row; none for a source without one."""
    if not isinstance(source, Cache):
        return {}
    return dict(zip(("cache_hits", "cache_loads"), source.hits(), strict=True))


def memory_file() -> tuple[str, str]:
    """The path of an empty file that takes memory only as it is written, and where it leads, which is unique.

    On Linux it lies nowhere, not in /dev/shm either, which is small in containers, and ends with its last user.
    """
    name = f"cache-{secrets.token_hex(8)}"
    if hasattr(os, "memfd_create"):
        path = f"/proc/{os.getpid()}/fd/{os.memfd_create(name)}"
    else:
        path = os.path.join(tempfile.gettempdir(), name)
        open(path, "xb").close()
        atexit.register(os.unlink, path)
    return path, os.path.realpath(path)


def leaves(batch: Any) -> list[Tensor]:
    found: list[Tensor] = []
    tree_map(found.append, batch)
    return found


def bits(tensor: Tensor) -> Tensor:
    """The bytes of a tensor: unlike its values they are equal to themselves even when they are NaN."""
    return tensor.contiguous().view(torch.uint8)
