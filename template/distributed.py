"""Several processes, one model: DistributedDataParallel keeps their gradients equal.

torchrun, srun or mpirun starts them (launcher.py); without one, every function here is that of a single process.
"""

# {% filter regex_replace("\n+", "\n") %}
import os
import socket

# {% if compile %}
import warnings

# {% endif %}
from collections.abc import Callable

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

# {% endfilter %}

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from device import CPU, divisor, find_device
from launcher import processes


@dataclass(frozen=True)
class DdpConfig:
    find_unused_parameters: bool = False
    """Allow parameters that a forward pass does not use (costs a walk over the graph in each step)."""
    timeout: float = 600.0
    """Seconds that a rank waits for the others before it gives up."""

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= 1e6:
            raise ValueError(f"--ddp.timeout is {self.timeout}: give seconds, above 0 and a million at most.")


def start(name: str, config: DdpConfig) -> torch.device:
    """Joins the other processes of this launch; returns the device of this one, by the name that --device gave.

    Raises SystemExit where there is no such device, or not one for each process.
    """
    device = find_device(name)
    count = processes()
    if count == 1:
        return device
    backend = collectives(device)
    if backend is None and name != "auto":
        raise SystemExit(
            f"--device {name}: PyTorch has no collectives for {device.type}; {count} processes can train with "
            "--device cpu."
        )
    if backend is None:
        if os.environ["RANK"] == "0":
            print(f"PyTorch has no collectives for {device.type}: the {count} processes train on the CPU.")
        device, backend = CPU, "gloo"
    elif device != CPU:
        device = own_device(device, name)
        # Gloo beside it: what ranks tell each other in Python then waits for no device.
        backend = f"cpu:gloo,{device.type}:{backend}"
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=config.timeout))
    except dist.DistError as error:
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        reason = str(error).splitlines()[0]
        raise SystemExit(f"The {count} processes cannot meet at {address}, rank 0's machine: {reason}") from None
    if device != CPU:
        check_one_each(device)
    return device


def collectives(device: torch.device) -> str | None:
    """The backend by which processes on such devices exchange tensors; None where PyTorch has none."""
    if device.type == "cpu":
        return "gloo"
    try:
        backend = dist.get_default_backend_for_device(device)
    except ValueError:
        return None
    # PyTorch names gloo for mps, whose tensors gloo does not take.
    return backend if backend != "gloo" and dist.is_backend_available(backend) else None


def own_device(device: torch.device, name: str) -> torch.device:
    """This process's device: by its place on the machine, or the only one that the launcher lets it see."""
    count = torch.accelerator.device_count()
    if ":" in name:
        raise SystemExit(f"--device {name} is a single device, and each process takes its own: give {device.type}.")
    if count > 1 and "LOCAL_RANK" not in os.environ:
        raise SystemExit(
            f"{count} devices are visible, and nothing says which is this process's: export its number among the "
            "processes of this machine as LOCAL_RANK."
        )
    index = int(os.environ["LOCAL_RANK"]) if count > 1 else 0
    if index >= count:
        raise SystemExit(f"More processes than devices on this machine: start {count} at most, or give --device cpu.")
    torch.accelerator.set_device_index(index)
    return torch.device(device.type, index)


def check_one_each(device: torch.device) -> None:
    """Raises SystemExit on every rank if two share a device, in which their collectives would fail or hang."""
    properties = getattr(torch.get_device_module(device), "get_device_properties", lambda index: None)(device.index)
    # Where a device has no name of its own: its number among those that this process may see.
    visible = sorted(pair for pair in os.environ.items() if "VISIBLE_DEVICES" in pair[0] or "AFFINITY_MASK" in pair[0])
    own = str(getattr(properties, "uuid", (device.index, visible)))
    every = all_gather((socket.gethostname(), own))
    if len(set(every)) < len(every):
        raise SystemExit("Two processes share a device: start as many as there are devices, or give --device cpu.")


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
    """The largest of the ranks' numbers; no device is asked or waited for."""
    largest = torch.tensor(number)
    if dist.is_initialized():
        dist.all_reduce(largest, dist.ReduceOp.MAX)
    return int(largest)


class StopVote:
    """What any rank asks for, a signal's number or 1 for a checkpoint, known to all ranks in the same step.

    Each step asks and the next one hears the answer, which has come meanwhile over the CPU: no step waits for it.
    """

    def __init__(self) -> None:
        self.asked: tuple[Tensor, dist.Work] | None = None

    def largest(self, number: int, at_once: bool) -> int:
        """The largest number that the ranks gave in the call before this, or with `at_once` in this one too.

        Every rank has to call it in the same steps.
        """
        if not dist.is_initialized():
            return number
        answer, asked = 0, self.asked
        if asked is not None:
            asked[1].wait()
            answer, self.asked = int(asked[0]), None
        if answer:
            return answer
        own = torch.tensor(number)
        work = dist.all_reduce(own, dist.ReduceOp.MAX, async_op=True)
        if at_once:
            work.wait()
            return int(own)
        self.asked = own, work
        return 0


def wrap(model: nn.Module, config: DdpConfig) -> nn.Module:
    """The model that sums its gradients over the ranks in backward; the model itself for a single process."""
    if not dist.is_initialized():
        return model
    # {% if compile %}
    # Compiled convolutions may lay a gradient out in another order: DDP copies it, which is all that the warning tells.
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
    # {% endif %}
    # The gradients live in the buffers that travel: no copy, and the memory of one gradient less.
    return DistributedDataParallel(
        model, gradient_as_bucket_view=True, find_unused_parameters=config.find_unused_parameters
    )


# {% if accumulation %}
def sync_gradients(model: nn.Module, now: bool) -> None:
    """Whether the next forward and backward pass exchanges gradients, those that waited on each rank among them."""
    if isinstance(model, DistributedDataParallel):
        # What model.no_sync() sets, too.
        model.require_backward_grad_sync = now


# {% endif %}
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


def count_over_ranks(items: float | Tensor, device: torch.device) -> float | Tensor:
    """The number of items over all ranks, 1 for none; of several it is a 0-dim tensor that stays on the device."""
    if not dist.is_initialized():
        return divisor(items)
    if isinstance(items, Tensor) and items.device.type == "cpu":
        items = items.item()
    # Floating point whatever the owner counts in: items may be weights, and the ranks have to agree on a type.
    # torch.full fills on the device; the copy of a tensor would be waited for.
    own = (
        items.to(torch.get_default_dtype())
        if isinstance(items, Tensor)
        else torch.full((), float(items), device=device)
    )
    return divisor(sum_over_ranks(own))
