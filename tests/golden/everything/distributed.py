"""Several processes, one model: torchrun starts them, DistributedDataParallel keeps their gradients equal.

Without torchrun every function here is that of a single process.
"""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from device import at_least_one


@dataclass(frozen=True)
class DdpConfig:
    find_unused_parameters: bool = False
    """Allow parameters that a forward pass does not use (costs a walk over the graph in each step)."""
    timeout: float = 600.0
    """Seconds that a rank waits for the others before it gives up."""

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= 1e6:
            raise ValueError(f"--ddp.timeout is {self.timeout}: give seconds, above 0 and a million at most.")


def start(device: torch.device, config: DdpConfig) -> torch.device:
    """Joins the other processes of this torchrun; returns the device of this one."""
    if "RANK" not in os.environ:
        return device
    if device.type != "cpu":
        index = int(os.environ["LOCAL_RANK"])
        if index >= torch.accelerator.device_count():
            found = torch.accelerator.device_count()
            raise SystemExit(f"More processes than devices: torchrun --nproc-per-node {found} at most on this machine.")
        torch.accelerator.set_device_index(index)
        device = torch.device(device.type, index)
    dist.init_process_group(
        backend=dist.get_default_backend_for_device(device), timeout=timedelta(seconds=config.timeout)
    )
    return device


def stop() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def sum_over_ranks(tensor: Tensor) -> Tensor:
    """The sum over all ranks, in place."""
    if dist.is_initialized():
        dist.all_reduce(tensor)
    return tensor


def all_gather(value: Any) -> list[Any]:
    """The small Python value of each rank, in their order. Every rank has to call it."""
    values = [value]
    if dist.is_initialized():
        values *= dist.get_world_size()
        dist.all_gather_object(values, value)
    return values


def from_rank_0(function: Callable[[], Any]) -> Any:
    """What `function` returns on rank 0; nobody else calls it. Its SystemExit ends every rank."""
    answer = None
    if rank() == 0:
        try:
            answer = function()
        except SystemExit as error:
            answer = error
    answer = all_gather(answer)[0]
    if isinstance(answer, SystemExit):
        raise answer if rank() == 0 else SystemExit(1)
    return answer


def max_over_ranks(number: int) -> int:
    """The largest of the ranks' numbers."""
    return max(all_gather(number))


def wrap(model: nn.Module, config: DdpConfig) -> nn.Module:
    """The model that sums its gradients over the ranks in backward; the model itself for a single process."""
    if not dist.is_initialized():
        return model
    # Compiled convolutions may lay a gradient out in another order: DDP copies it, which is all that the warning tells.
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
    # The gradients live in the buffers that travel: no copy, and the memory of one gradient less.
    return DistributedDataParallel(
        model, gradient_as_bucket_view=True, find_unused_parameters=config.find_unused_parameters
    )


def sync_gradients(model: nn.Module, now: bool) -> None:
    """Whether the next forward and backward pass exchanges gradients, those that waited on each rank among them."""
    if isinstance(model, DistributedDataParallel):
        # What model.no_sync() sets, too.
        model.require_backward_grad_sync = now


def broadcast_buffers(model: nn.Module) -> None:
    """Gives every rank the buffers of rank 0 (running statistics differ by rank) before they are used or saved."""
    if dist.is_initialized():
        for buffer in model.buffers():
            dist.broadcast(buffer, src=0)


def check_equal(value: Any, what: str) -> None:
    """Raises SystemExit on every rank unless all ranks have the same value."""
    values = all_gather(value)
    if any(other != values[0] for other in values):
        raise SystemExit(f"The ranks disagree about {what}: start every process with the same arguments and code.")


def count_over_ranks(items: int | Tensor, device: torch.device) -> int | Tensor:
    """The number of items over all ranks, 1 at least; of several it is a 0-dim tensor that stays on the device."""
    if not dist.is_initialized():
        return at_least_one(items)
    if isinstance(items, Tensor) and items.device.type == "cpu":
        items = int(items)
    # torch.full fills on the device; the copy of a tensor would be waited for.
    own = items if isinstance(items, Tensor) else torch.full((), items, device=device)
    return at_least_one(sum_over_ranks(own))


def sums_over_ranks(sums: dict[str, tuple[float, int]]) -> dict[str, tuple[float, int]]:
    """The sums and their counts over all ranks, by name; a rank may have had no batch at all."""
    found: dict[str, tuple[float, int]] = {}
    for own in all_gather(sums):
        for name, (value, items) in own.items():
            before = found.get(name, (0.0, 0))
            found[name] = (before[0] + value, before[1] + items)
    return found
