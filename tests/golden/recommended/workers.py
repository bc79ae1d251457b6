"""Processes that fetch batches ahead of the loop. What happens in one of them reaches the loop as one sentence."""

import os
import pickle
import signal
import time
import traceback
from collections.abc import Iterator
from multiprocessing import active_children
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from device import tree_map
from progress import StopSignal

# Seconds after which a wait for a batch looks whether a worker died or a signal came.
LOOK = 5.0
# The epoch, and the sample ids as an array: a tensor would take along the whole order that it is a view of.
Item = tuple[int, Any]


class NoBatch(SystemExit):
    """No batch comes, or a signal forbids to wait for it. No step is half done then, so the run can be saved."""


class Workers:
    """DataLoader's processes, each with the source, that keep `prefetch` batches ready in the order of the items."""

    def __init__(self, source: Any, number: int, prefetch: int, timeout: float, seed: int, pins: bool) -> None:
        self.timeout = timeout
        self.plan = Plan()
        self.others = set(active_children())
        self.loader: DataLoader[Any] | None = DataLoader(
            Fetch(source),
            sampler=self.plan,
            batch_size=None,
            num_workers=number,
            prefetch_factor=prefetch,
            persistent_workers=True,
            pin_memory=pins,
            timeout=min(LOOK, timeout),
            worker_init_fn=leave_signals,
            # Otherwise each epoch draws from the generator that dropout uses, and a resume draws at other times.
            generator=torch.Generator().manual_seed(seed),
        )

    def batches(self, items: Iterator[Item], stop: StopSignal | None) -> Iterator[Any]:
        """The batch for each item. Raises NoBatch with what went wrong and what to do, after the workers' end."""
        self.plan.items = items
        asked, batches = time.monotonic(), None
        while True:
            try:
                if batches is None:
                    batches = self.start()
                batch = next(batches)
            except StopIteration:
                return
            except Exception as error:
                reason = self.reason(error, time.monotonic() - asked, stop)
                if reason is None and batches is not None:
                    continue
                self.kill()
                raise NoBatch(reason or "The workers of the loader do not answer.") from None
            if isinstance(batch, SystemExit):
                self.kill()
                raise NoBatch(batch.code)
            yield batch.tensors() if isinstance(batch, Packed) else batch
            asked = time.monotonic()

    def start(self) -> Iterator[Any]:
        """The workers begin with an epoch."""
        assert self.loader is not None
        if not hasattr(signal, "SIGCHLD"):
            return iter(self.loader)
        # PyTorch's handler raises a worker's death in whatever line the loop is. The wait for a batch tells it, too.
        before = signal.getsignal(signal.SIGCHLD)
        batches = iter(self.loader)
        signal.signal(signal.SIGCHLD, before or signal.SIG_DFL)
        return batches

    def reason(self, error: Exception, waited: float, stop: StopSignal | None) -> str | None:
        """Why there is no batch; None where it is worth to go on waiting."""
        # EOFError, ConnectionResetError: it died while it handed its batch over.
        if "DataLoader worker (pid" in str(error) or type(error) in (EOFError, ConnectionResetError):
            return (
                "A worker of the loader was killed, mostly since memory ran out (dmesg tells): give fewer "
                "--loader.workers; --loader.workers 0 shows what happens, in the process itself."
            )
        if not str(error).startswith("DataLoader timed out"):
            traceback.print_exception(error)
            return "A batch could not be fetched, as told above."
        if stop and stop.number:
            return "Stopped while waiting for a batch."
        if waited < self.timeout:
            return None
        return (
            f"No batch came for {self.timeout:g} s: does the disk or network behind the data answer? "
            "--loader.timeout waits longer, --loader.workers 0 shows where it hangs."
        )

    def kill(self) -> None:
        """Ends the processes at once: one that hangs would keep the run from ending."""
        for worker in set(active_children()) - self.others:
            worker.kill()

    def close(self) -> None:
        """Ends the processes."""
        self.loader = None


class Plan(Sampler[Item]):
    """What the workers fetch next. It is read in this process, a few items ahead of the loop."""

    items: Iterator[Item] = iter(())

    def __iter__(self) -> Iterator[Item]:
        return self.items


class Fetch(Dataset[Any]):
    """The source as a DataLoader wants it: one item is one batch."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __getitem__(self, item: Item) -> Any:
        epoch, ids = item
        try:
            batch = tree_map(owned, self.source.fetch(torch.from_numpy(ids), epoch))
        except SystemExit as error:
            # Returned, not raised: it would end the worker, whose end the main process only wonders at.
            return error
        try:
            # Here, where it can be caught: a thread of PyTorch's does it otherwise, and loses the batch where it fails.
            return tree_map(Tensor.share_memory_, batch)
        except RuntimeError:
            return Packed(batch)


class Packed:
    """A batch that goes through a pipe, since shared memory is full: a container has 64 MiB unless it is given more."""

    told = False

    def __init__(self, batch: Any) -> None:
        self.content = pickle.dumps(batch)

    def tensors(self) -> Any:
        if not Packed.told:
            Packed.told = True
            print(
                "Shared memory (/dev/shm) is full: batches come through pipes, which is slower. "
                "docker run --shm-size 1g gives more.",
                flush=True,
            )
        return pickle.loads(self.content)

    def pin_memory(self) -> Any:
        """What DataLoader calls where batches are pinned."""
        return tree_map(Tensor.pin_memory, self.tensors())


def owned(tensor: Tensor) -> Tensor:
    """The tensor, or a copy where it is a view: sharing a view shares all that it is a view of."""
    return tensor if tensor.untyped_storage().nbytes() == tensor.nbytes else tensor.clone()


def leave_signals(worker: int) -> None:
    """Ctrl-C and SIGTERM can reach every process of a run: workers go on until it has saved its checkpoint."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "alarm"):
        # A worker that nobody closes still ends: after an error, and before schedulers send SIGKILL.
        signal.signal(signal.SIGTERM, lambda number, frame: signal.alarm(25))


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
