"""The device to train on, and the way of a batch to it."""

import copy
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from functools import cache
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


@cache
def widest(device: torch.device) -> torch.dtype:
    """The type to add numbers up in: float64, or float32 where the device has no longer one (mps)."""
    try:
        torch.zeros((), dtype=torch.float64, device=device)
    except (RuntimeError, TypeError):
        return torch.float32
    return torch.float64


def tree_map(function: Callable[[Tensor], Any], batch: Any) -> Any:
    """Applies `function` to every tensor of a nest of mappings and sequences, of whatever class; the rest stays."""
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, Mapping):
        parts = {key: tree_map(function, value) for key, value in batch.items()}
        if type(batch) is dict or not isinstance(batch, MutableMapping):
            return parts
        changed = copy.copy(batch)  # keeps what a library's class has besides its items
        changed.update(parts)
        return changed
    if isinstance(batch, tuple):
        parts = [tree_map(function, part) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    if isinstance(batch, MutableSequence):
        changed = copy.copy(batch)
        for index, part in enumerate(batch):
            changed[index] = tree_map(function, part)
        return changed
    return batch


def named_leaves(batch: Any, name: str = "the batch") -> Iterator[tuple[str, Any]]:
    """What stands in a nest of mappings and sequences, under names such as the batch['boxes'][0]."""
    if isinstance(batch, Mapping):
        for key, value in batch.items():
            yield from named_leaves(value, f"{name}[{key!r}]")
    elif isinstance(batch, Sequence) and not isinstance(batch, str | bytes):
        for index, value in enumerate(batch):
            yield from named_leaves(value, f"{name}[{index}]")
    else:
        yield name, batch


def split(batch: Any, sizes: list[int]) -> Iterator[Any]:
    """The batch in parts of these sizes, along the first dimension of its tensors; anything else stays whole."""
    columns: list[Sequence[Tensor]] = []
    tree_map(lambda tensor: columns.append(tensor.split(sizes)), batch)
    for parts in map(iter, zip(*columns, strict=True)):
        yield tree_map(lambda _, parts=parts: aligned(next(parts)), batch)


def aligned(part: Tensor) -> Tensor:
    """The view, or a copy where it begins inside a cache line.

    Matrix products sum in another order there, and the chunks of a resumed run begin at other batches.
    """
    return part if part.data_ptr() % 64 == 0 else part.clone()


def to_device(batch: Any, device: torch.device) -> Any:
    """The batch on the device; free where it is there already."""
    if device == CPU:
        return batch
    # Only from pinned memory (see loader.py): the program goes on, and the device copies before it computes.
    return tree_map(lambda tensor: tensor.to(device, non_blocking=tensor.is_pinned()), batch)


def divisor(items: float | Tensor) -> float | Tensor:
    """What to divide a sum over so many items by: 1 where there are none. Waits for no device that holds the number."""
    return items.masked_fill(items == 0, 1) if isinstance(items, Tensor) else items or 1


def numbers(values: Sequence[float | Tensor]) -> Sequence[float]:
    """The values as Python's numbers; tensors are read in one go."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    read = iter(torch.stack(tensors).tolist() if tensors else ())
    return [next(read) if isinstance(value, Tensor) else value for value in values]


def peak_memory(device: torch.device) -> int | None:
    """The most bytes that tensors took on the accelerator so far; None where the device does not tell."""
    read = getattr(torch.get_device_module(device), "max_memory_allocated", None)
    return read() if read else None
