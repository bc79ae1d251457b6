"""Tensors of the device: ordinary ones whose storage is called the device's, over memory of the host.

DLPack makes them: the device field of a capsule is changed before it is read (its kDLExtDev is PyTorch's PrivateUse1).
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey, DispatchKeySet, _from_dlpack, _to_dlpack

NAME = "sim"
CPU = DispatchKeySet(DispatchKey.CPU)
HOST, DEVICE = 1, 12  # DLPack's kDLCPU and kDLExtDev


class Memory:
    """Bytes on the device, and the addresses of the host's pinned storages."""

    allocated = peak = 0
    pinned: set[int] = set()  # noqa: RUF012


class Capsule(ctypes.Structure):
    """The beginning of DLPack's DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def relabel(tensor: Tensor, device_type: int, index: int) -> Tensor:
    """A tensor of another device on the same memory, which it keeps alive."""
    capsule = _to_dlpack(tensor)
    place = Capsule.from_address(_pointer(capsule, b"dltensor"))
    place.device_type, place.device_id = device_type, index
    return _from_dlpack(capsule)


def on_device(tensor: Tensor) -> bool:
    return tensor.device.type == NAME


def host(tensor: Tensor) -> Tensor:
    """The host's tensor of the same memory."""
    if not on_device(tensor):
        return tensor
    # DLPack takes no tensor that is only marked as conjugate or negative: without the mark, and marked again.
    if tensor.is_conj():
        return host(tensor.conj()).conj()
    if tensor.is_neg():
        return torch._neg_view(host(torch._neg_view(tensor)))
    return relabel(tensor, HOST, 0)


def device(tensor: Tensor, place: torch.device | None = None) -> Tensor:
    """The device's tensor for a new one of the host, whose memory counts until it is freed."""
    storage = tensor.untyped_storage()
    Memory.allocated += storage.nbytes()
    Memory.peak = max(Memory.peak, Memory.allocated)
    weakref.finalize(storage, _freed, storage.nbytes()).atexit = False
    return relabel(tensor, DEVICE, index_of(place))


def _freed(size: int) -> None:
    Memory.allocated -= size


def index_of(place: Any = None) -> int:
    """The number of a device; the current one where none is said."""
    if isinstance(place, int):
        return place
    index = None if place is None else torch.device(place).index
    return torch._C._accelerator_getDeviceIndex() if index is None else index


def adopt(tensor: Tensor, storage: Any, offset: int, size: Any, stride: Any) -> Tensor:
    """Gives a tensor another storage and shape, in place."""
    set_ = torch.ops.aten.set_.source_Storage_storage_offset
    return set_.redispatch(CPU, tensor, storage, offset, size, stride)


def replace(tensor: Tensor, new: Tensor) -> Tensor:
    """Gives a tensor the storage and shape of another one, in place."""
    return adopt(tensor, new.untyped_storage(), new.storage_offset(), new.shape, new.stride())


def is_pinned(tensor: Tensor, device: Any = None) -> bool:
    return tensor.untyped_storage().data_ptr() in Memory.pinned


def pin(tensor: Tensor, device: Any = None) -> Tensor:
    new = torch.empty_like(tensor).copy_(tensor)
    address = new.untyped_storage().data_ptr()
    Memory.pinned.add(address)
    weakref.finalize(new.untyped_storage(), Memory.pinned.discard, address).atexit = False
    return new
