"""The device's kernels: the CPU's, on the same memory; and the rules for what CUDA would wait for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from tests.accelerator.events import note
from tests.accelerator.generators import drawing
from tests.accelerator.memory import CPU, NAME, adopt, device, host, is_pinned, on_device, replace

aten = torch.ops.aten

# CUDA reads their results, or the size of their results, from the device.
READS = {"_local_scalar_dense", "equal"}
SHAPES = {"nonzero", "masked_select", "bincount", "_unique", "_unique2", "unique_dim", "unique_consecutive"}
SHAPES |= {"unique_dim_consecutive", "repeat_interleave"}
INDEXING = {"index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"}


class Process:
    forked = False


class Kernel:
    """The device's kernel of an operator that has one on the CPU."""

    def __init__(self, op: Any) -> None:
        arguments = op._schema.arguments
        self.op, self.name = op, op._schema.name.removeprefix("aten::")
        self.names = [argument.name for argument in arguments]
        self.tensors = {argument.name for argument in arguments if str(argument.type) == "Tensor"}
        self.written = {arg.name for arg in arguments if arg.alias_info and arg.alias_info.is_write}
        self.random = torch.Tag.nondeterministic_seeded in op.tags
        # Others take nothing of the host, not even a single number.
        self.mixes = torch.Tag.pointwise in op.tags or self.name.startswith(("_foreach_", "fill_"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if Process.forked:
            raise RuntimeError(f"Cannot re-initialize {NAME} in forked subprocess: use the 'spawn' start method")
        generator = kwargs.get("generator")
        if generator is not None:
            if generator.device.type != NAME:
                raise RuntimeError(f"Expected a '{NAME}' device type for generator but found 'cpu'")
            kwargs["generator"] = None
        given: list[tuple[Tensor, Tensor]] = []
        positional = [self.unwrap(value, name, given) for value, name in zip(args, self.names, strict=False)]
        named = {name: self.unwrap(value, name, given) for name, value in kwargs.items()}
        place = given[0][1].device if given else kwargs.get("device")
        self.wait(dict(zip(self.names, positional, strict=False)) | named)
        # PyTorch hands a number over where it had made a tensor of it.
        number = any(isinstance(v, int | float) and n in self.tensors for n, v in zip(self.names, args, strict=False))
        op = self.op.overloadpacket if number else self.op
        with drawing(generator, place) if self.random else contextlib.nullcontext():
            result = op(*positional, **named)
        for new, old in given if self.written else ():
            if new.shape != old.shape or (new.numel() and new.data_ptr() != old.data_ptr()):
                replace(old, device(new, place))
        return self.wrap(result, {id(new): old for new, old in given}, place)

    def unwrap(self, value: Any, name: str, given: list[tuple[Tensor, Tensor]]) -> Any:
        """The host's side of an argument; `given` gets each tensor of the device with it."""
        if isinstance(value, Tensor):
            return self.unwrap_tensor(value, name, given)
        if isinstance(value, list | tuple):
            return [self.unwrap(part, name, given) for part in value]
        return torch.device("cpu") if isinstance(value, torch.device) else value

    def unwrap_tensor(self, value: Tensor, name: str, given: list[tuple[Tensor, Tensor]]) -> Tensor:
        if on_device(value):
            if given and given[0][1].device != value.device:
                raise self.mixed(given[0][1].device, value.device, name)
            # An empty one that is written takes the size of the result.
            fresh = name in self.written and value.numel() == 0
            given.append((torch.empty(value.shape, dtype=value.dtype) if fresh else host(value), value))
            return given[-1][0]
        if self.name in INDEXING and (name == "indices" or (name == "values" and not value.dim())):
            note("write", f"{self.op}, {name}", True, value.nbytes)
        elif value.dim() or not self.mixes or name in self.written:
            raise self.mixed(f"{NAME}:0", value.device, name)
        return value

    def mixed(self, one: object, other: object, name: str) -> RuntimeError:
        return RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}! "
            f"(when checking argument {name} of {self.op})"
        )

    def wrap(self, value: Any, given: dict[int, Tensor], place: torch.device | None) -> Any:
        if isinstance(value, Tensor):
            return given[id(value)] if id(value) in given else device(value, place)
        if isinstance(value, list | tuple):
            return type(value)(self.wrap(part, given, place) for part in value)
        return value

    def wait(self, given: dict[str, Any]) -> None:
        """Notes what CUDA waits for in this operator."""
        if self.name in READS:
            note("read", self.op, True, given["self"].element_size())
        elif self.name in SHAPES and given.get("output_size") is None:
            note("shape", self.op, True)
        elif self.name in INDEXING:
            masks = [i for i in given["indices"] if isinstance(i, Tensor) and i.dtype in (torch.bool, torch.uint8)]
            # One value for all is a masked_fill.
            if masks and ("values" not in given or given["values"].numel() != 1):
                note("shape", f"{self.op}, mask", True)


def view(op: Any) -> Callable[..., Any]:
    """The CPU's own kernel of a view: it computes sizes and strides, and keeps the storage."""
    return lambda *args, **kwargs: op.redispatch(CPU, *args, **kwargs)


def empty(size: Any, *, dtype: Any = None, memory_format: Any = None, **kwargs: Any) -> Tensor:
    new = torch.empty(size, dtype=dtype, device="cpu", memory_format=memory_format or torch.contiguous_format)
    return device(new, kwargs.get("device"))


def empty_strided(size: Any, stride: Any, *, dtype: Any = None, **kwargs: Any) -> Tensor:
    return device(torch.empty_strided(size, stride, dtype=dtype, device="cpu"), kwargs.get("device"))


def copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    if not on_device(target):
        note("read", "copy", not (non_blocking and is_pinned(target)), source.nbytes, is_pinned(target))
    elif not on_device(source):
        # From pageable memory CUDA's driver copies to a buffer of its own first, and the host stands still for that.
        note("write", "copy", not (non_blocking and is_pinned(source)), source.nbytes, is_pinned(source))
    host(target).copy_(host(source))
    return target


def resize(tensor: Tensor, size: Any, *, memory_format: Any = None) -> Tensor:
    if list(tensor.shape) == list(size):
        return tensor
    new, old = torch.empty(size, dtype=tensor.dtype, device="cpu"), host(tensor).flatten()
    few = min(old.numel(), new.numel())
    new.flatten()[:few] = old[:few]
    return replace(tensor, device(new, tensor.device))


def set_storage(tensor: Tensor, source: Any = None, offset: int = 0, size: Any = None, stride: Any = ()) -> Tensor:
    if source is None:
        return replace(tensor, empty([0], dtype=tensor.dtype, device=tensor.device))
    if isinstance(source, Tensor):
        return replace(tensor, source)
    size = [source.nbytes() // tensor.element_size()] if size is None else size
    return adopt(tensor, source, offset, size, stride or torch.empty(size, device="meta").stride())


def convolution_backward(grad: Tensor, inputs: Tensor, weight: Tensor, *rest: Any) -> Any:
    return Kernel(aten.convolution_backward.default)(grad, inputs, weight, [weight.shape[0]], *rest)


SPECIAL: dict[str, Callable[..., Any]] = {
    "empty.memory_format": empty,
    "empty_strided": empty_strided,
    "_copy_from": copy_from,
    "_copy_from_and_resize": lambda source, target: copy_from(source, resize(target, source.shape)),
    "resize_": resize,
    "set_": set_storage,
    "set_.source_Storage": set_storage,
    "set_.source_Storage_storage_offset": set_storage,
    "set_.source_Tensor": set_storage,
    "record_stream": lambda tensor, stream: None,
    "convolution_overrideable": Kernel(aten.convolution.default),
    "convolution_backward_overrideable": convolution_backward,
}


def kernels() -> Iterator[tuple[str, Callable[..., Any]]]:
    """A kernel for each operator that has one on the CPU, and for each that works on a list of tensors."""
    for full in torch._C._dispatch_get_all_op_names():
        name = full.removeprefix("aten::")
        if full == name:
            continue
        if name.startswith("_foreach_") or torch._C._dispatch_has_kernel_for_dispatch_key(full, "CPU"):
            base, _, overload = name.partition(".")
            op = getattr(getattr(aten, base), overload or "default")
            alias = [result.alias_info for result in op._schema.returns if result.alias_info]
            yield name, view(op) if alias and not alias[0].is_write else Kernel(op)
    yield from SPECIAL.items()
