"""From a source of samples to micro-batches, in an order that is a pure function of (seed, epoch)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, tee
from typing import Any, NamedTuple

import torch
from torch import Tensor

from device import split, tree_map
from progress import StopSignal
from workers import NoBatch, Workers, choose_workers

# Ids are cut for this many batches at once, and samples on the device gathered: one call instead of 16.
CHUNK = 16


@dataclass(frozen=True)
class LoaderConfig:
    workers: int = -1
    """Processes that fetch batches. -1: none where that takes under 2 ms a batch, else one per core, 8 at most."""
    prefetch: int = 2
    """Batches that each worker has ready."""
    timeout: float = 300.0
    """Seconds to wait for a batch of the workers before the run is saved and ends."""

    def __post_init__(self) -> None:
        if self.workers < -1:
            raise ValueError(f"--loader.workers is {self.workers}: give a number of processes, or -1 to choose.")
        if self.prefetch < 1:
            raise ValueError(f"--loader.prefetch is {self.prefetch}: give 1 or more batches.")
        if not 0 < self.timeout <= 1e6:
            raise ValueError(f"--loader.timeout is {self.timeout}: give seconds, above 0 and a million at most.")


class MicroBatch(NamedTuple):
    ids: Tensor
    """int64 [n], on the CPU, pinned for an accelerator: which samples of the source."""
    batch: Any
    """The nest of tensors that the source gave for them, [n, ...]."""


class Loader:
    """The micro-batches of an epoch.

    A source on the device is indexed directly; any other is asked by workers, one fetch per batch.
    """

    def __init__(
        self,
        source: Any,
        batch_size: int,
        seed: int,
        config: LoaderConfig,
        device: torch.device,
        shuffle: bool,
    ) -> None:
        self.source, self.seed, self.shuffle = source, seed, shuffle
        self.size = batch_size
        # mps shares its memory with the CPU and has nothing to pin.
        self.pins = device.type not in ("cpu", "mps")
        self.workers: Workers | None = None
        if source.on_device:
            return
        number, prefetch = config.workers, config.prefetch
        if number < 0:
            number = choose_workers(source, batch_size)
        if number:
            self.workers = Workers(source, number, prefetch, config.timeout, seed, self.pins)

    def close(self) -> None:
        """Ends the workers."""
        if self.workers:
            self.workers.close()

    def order(self, epoch: int) -> Tensor:
        """The sample ids of a shuffled epoch, in the order in which all processes together see them."""
        samples = len(self.source)
        # The same as int64 in half the memory and time: 400 MB and five seconds for a hundred million samples.
        dtype = torch.int32 if samples < 2**31 else torch.int64
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        return torch.randperm(samples, generator=generator, dtype=dtype)

    def __len__(self) -> int:
        """Micro-batches in an epoch."""
        return -(-len(self.source) // self.size)

    def epoch(self, epoch: int, skip: int = 0, stop: StopSignal | None = None) -> Iterator[MicroBatch]:
        """The micro-batches of an epoch without the first `skip`, which are not even fetched.

        Raises NoBatch, a SystemExit with a sentence: where a sample cannot be read, for one.
        """
        parts, ahead = tee(self.parts(epoch, skip))  # workers are told the ids ahead of the loop
        for batch, ids in zip(self.batches(epoch, ahead, stop), parts, strict=True):
            yield MicroBatch(self.pinned(ids), batch)

    def parts(self, epoch: int, skip: int) -> Iterator[Tensor]:
        """The ids of each micro-batch."""
        samples, order = len(self.source), self.order(epoch) if self.shuffle else None

        def ids(begin: int, end: int) -> Tensor:
            return torch.arange(begin, min(end, samples)) if order is None else order[begin:end].long()

        # The last two share what is left: a lone sample makes the noisiest step, and none at all with batch norm.
        shared = 2 if self.shuffle and len(self) > 1 else 0
        whole = len(self) - shared
        for first in range(skip, whole, CHUNK):
            yield from ids(first * self.size, min(first + CHUNK, whole) * self.size).split(self.size)
        if shared:
            yield from ids(whole * self.size, samples).tensor_split(2)[max(skip - whole, 0) :]

    def batches(self, epoch: int, parts: Iterator[Tensor], stop: StopSignal | None) -> Iterator[Any]:
        """The batch for each part of an epoch's ids."""
        if self.workers:
            yield from self.workers.batches(((epoch, ids.numpy()) for ids in parts), stop)
            return
        while some := list(islice(parts, CHUNK if self.source.on_device else 1)):
            try:
                batch = self.source.fetch(self.pinned(torch.cat(some)), epoch)
            except SystemExit as error:  # a sample that cannot be read
                raise NoBatch(error.code) from None
            if self.source.on_device:
                yield from split(batch, [ids.numel() for ids in some])
            else:
                yield tree_map(self.pinned, batch)

    def pinned(self, tensor: Tensor) -> Tensor:
        """The tensor where an accelerator copies it from while the program goes on."""
        return tensor.pin_memory() if self.pins else tensor


class First:
    """The first `size` samples of a source, the same in each epoch: what a model must be able to learn by heart."""

    def __init__(self, source: Any, size: int) -> None:
        self.source, self.size = source, min(size, len(source))
        self.on_device, self.info = source.on_device, source.info

    def __len__(self) -> int:
        return self.size

    def fetch(self, ids: Tensor, epoch: int) -> Any:
        return self.source.fetch(ids, 0)
