"""The device to train on, and the way of a batch to it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

CPU = torch.device("cpu")


def find_device(name: str = "auto") -> torch.device:
    """The device of that name; for auto the accelerator of this machine (cuda, xpu, mps, npu, ...), or the CPU.

    One with a number becomes the current one of its kind. Raises SystemExit where this machine has no such device.
    """
    # check_available: a CUDA build of torch otherwise answers "cuda" on a machine without a GPU.
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if name == "auto":
        return accelerator or CPU
    if name == "cpu":
        return CPU
    kind, colon, index = name.partition(":")
    if accelerator is None or kind != accelerator.type:
        here = "" if accelerator is None else f", {accelerator.type}"
        raise SystemExit(f"--device {name}: PyTorch finds no such device on this machine; give auto{here} or cpu.")
    if not colon:
        return accelerator
    count = torch.accelerator.device_count()
    if not index.isdecimal() or int(index) >= count:
        raise SystemExit(f"--device {name}: the devices of this machine are {kind}:0 to {kind}:{count - 1}.")
    torch.accelerator.set_device_index(int(index))
    return torch.device(kind, int(index))


def tree_map(function: Callable[[Tensor], Any], batch: Any) -> Any:
    """Applies `function` to every tensor of a nest of dicts, lists, tuples and named tuples."""
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, dict):
        return {key: tree_map(function, value) for key, value in batch.items()}
    parts = [tree_map(function, part) for part in batch]
    return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)


def split(batch: Any, sizes: list[int]) -> Iterator[Any]:
    """The batch in parts of these sizes, along the first dimension of its tensors: views."""
    if isinstance(batch, Tensor):
        return iter(batch.split(sizes))
    if isinstance(batch, dict):
        columns = zip(*(split(part, sizes) for part in batch.values()), strict=True)
        return (dict(zip(batch, parts, strict=True)) for parts in columns)
    columns = zip(*(split(part, sizes) for part in batch), strict=True)
    return map(type(batch)._make if hasattr(batch, "_fields") else type(batch), columns)


def to_device(batch: Any, device: torch.device) -> Any:
    """The batch on the device; free where it is there already."""
    if device == CPU:
        return batch
    # Only from pinned memory (see loader.py): the program goes on, and the device copies before it computes.
    return tree_map(lambda tensor: tensor.to(device, non_blocking=tensor.is_pinned()), batch)


def at_least_one(items: int | Tensor) -> int | Tensor:
    """The number to divide a loss by that may have no items; no wait for a device that holds it."""
    return items.clamp(min=1) if isinstance(items, Tensor) else max(items, 1)


def numbers(values: Sequence[int | Tensor]) -> Sequence[float]:
    """The values as Python's numbers; tensors are read in one go."""
    plain = [value for value in values if not isinstance(value, Tensor)]
    return plain if len(plain) == len(values) else torch.stack(values).tolist()


def peak_memory(device: torch.device) -> int | None:
    """The most bytes that tensors took on the accelerator so far; None where the device does not tell."""
    read = getattr(torch.get_device_module(device), "max_memory_allocated", None)
    return read() if read else None
