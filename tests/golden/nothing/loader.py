"""From a source of samples to micro-batches, in an order that is a pure function of (seed, epoch)."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from device import split

# Samples that lie on the device are gathered for this many batches at once: one indexing call instead of 16.
CHUNK = 16


@dataclass(frozen=True)
class LoaderConfig:
    workers: int = -1
    """Processes that fetch batches. -1: none where that takes under 2 ms a batch, else one per core, 8 at most."""
    prefetch: int = 2
    """Batches that each worker has ready."""

    def __post_init__(self) -> None:
        if self.workers < -1:
            raise ValueError(f"--loader.workers is {self.workers}: give a number of processes, or -1 to choose.")
        if self.prefetch < 1:
            raise ValueError(f"--loader.prefetch is {self.prefetch}: give 1 or more batches.")


class MicroBatch(NamedTuple):
    ids: Tensor
    """int64 [n], on the CPU: which samples of the source."""
    batch: Any
    """The nest of tensors that the source gave for them, [n, ...]."""


class Loader:
    """The micro-batches of an epoch.

    A source on the device is indexed directly; any other goes through DataLoader workers, one fetch per batch.
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
        self.source, self.batch_size, self.seed, self.shuffle = source, batch_size, seed, shuffle
        self.plan = Plan()
        self.fetched: Iterable[Any] | None = None
        if not source.on_device:
            workers = choose_workers(source, batch_size) if config.workers < 0 else config.workers
            # DataLoader refuses persistent_workers and prefetch_factor without workers.
            tuning = {"persistent_workers": True, "prefetch_factor": config.prefetch} if workers else {}
            self.fetched = DataLoader(
                Fetch(source),
                sampler=self.plan,
                batch_size=None,
                num_workers=workers,
                # mps shares its memory with the CPU and has nothing to pin.
                pin_memory=device.type not in ("cpu", "mps"),
                worker_init_fn=leave_signals,
                # Otherwise each epoch draws from the generator that dropout uses, and a resume draws at other times.
                generator=torch.Generator().manual_seed(seed),
                **tuning,
            )

    def close(self) -> None:
        """Ends the workers."""
        self.fetched = None

    def order(self, epoch: int) -> list[Tensor]:
        """The sample ids of each micro-batch of the epoch, before they are dealt out to processes."""
        size = self.batch_size
        if not self.shuffle:
            return list(torch.arange(len(self.source)).split(size))
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        parts = list(torch.randperm(len(self.source), generator=generator).split(size))
        if len(parts) > 1:
            # They share what is left: a lone sample would make the noisiest step, and none at all with batch norm.
            parts[-2:] = torch.cat(parts[-2:]).tensor_split(2)
        return parts

    def __len__(self) -> int:
        """Micro-batches in an epoch."""
        return -(-len(self.source) // self.batch_size)

    def epoch(self, epoch: int, skip: int = 0) -> Iterator[MicroBatch]:
        """The micro-batches of an epoch without the first `skip`, which are not even fetched.

        Where a sample cannot be read, the source's SystemExit with its sentence ends the run.
        """
        parts = self.order(epoch)[skip:]
        for ids, batch in zip(parts, self.batches(epoch, parts), strict=True):
            yield MicroBatch(ids, batch)

    def batches(self, epoch: int, parts: list[Tensor]) -> Iterator[Any]:
        """The batch for each part of an epoch's ids."""
        if self.fetched is None:
            for first in range(0, len(parts), CHUNK):
                chunk = parts[first : first + CHUNK]
                samples = self.source.fetch(torch.cat(chunk), epoch)
                yield from split(samples, [ids.numel() for ids in chunk])
            return
        self.plan.items = [(epoch, ids) for ids in parts]
        for batch in self.fetched:
            if isinstance(batch, SystemExit):
                raise batch
            yield batch


class Plan(Sampler[tuple[int, Tensor]]):
    """What the workers fetch next. It is read in the main process, so it may change from epoch to epoch."""

    def __init__(self) -> None:
        self.items: list[tuple[int, Tensor]] = []

    def __iter__(self) -> Iterator[tuple[int, Tensor]]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Fetch(Dataset[Any]):
    """The source as a DataLoader wants it: one item is one batch."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __getitem__(self, item: tuple[int, Tensor]) -> Any:
        epoch, ids = item
        try:
            return self.source.fetch(ids, epoch)
        except SystemExit as error:
            # Returned, not raised: it would end the worker, whose end the main process only wonders at.
            return error


def leave_signals(worker: int) -> None:
    """Ctrl-C and SIGTERM can reach every process of a run: workers go on until it has saved its checkpoint."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "alarm"):
        # A worker that nobody closes still ends: after an error, and before schedulers send SIGKILL.
        signal.signal(signal.SIGTERM, lambda number, frame: signal.alarm(25))


class First:
    """The first `size` samples of a source, the same in each epoch: what a model must be able to learn by heart."""

    def __init__(self, source: Any, size: int) -> None:
        self.source, self.size = source, min(size, len(source))
        self.on_device, self.info = source.on_device, source.info

    def __len__(self) -> int:
        return self.size

    def fetch(self, ids: Tensor, epoch: int) -> Any:
        return self.source.fetch(ids, 0)


def choose_workers(source: Any, batch_size: int) -> int:
    """Handing a batch over from a worker costs about a millisecond, so quick sources are faster without."""
    ids = torch.arange(min(batch_size, len(source)))
    source.fetch(ids[:1], 0)
    began = time.perf_counter()
    source.fetch(ids, 0)
    if time.perf_counter() - began < 0.002:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(max(cores, 1), 8)
