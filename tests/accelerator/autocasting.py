"""Mixed precision on the device, by the lists that PyTorch has for CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey, DispatchKeySet

from tests.accelerator.memory import NAME, on_device

KEY = DispatchKeySet(DispatchKey.AutocastPrivateUse1)
LOW = (torch.float16, torch.bfloat16)


class Autocast:
    """Autocast's kernel of an operator."""

    def __init__(self, op: Any, policy: str) -> None:
        self.op, self.policy = op, policy
        self.dtype = next((n for n, argument in enumerate(op._schema.arguments) if argument.name == "dtype"), None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        low, to = torch.get_autocast_dtype(NAME), torch.float32
        if self.policy == "FP32_SET_OPT_DTYPE":
            given = self.dtype is None or "dtype" in kwargs or len(args) > self.dtype
            if args[0].dtype in LOW and not given:
                kwargs["dtype"] = to
            with torch._C._ExcludeDispatchKeyGuard(KEY):
                return self.op(*args, **kwargs)
        if self.policy == "LOWER_PRECISION_FP":
            to = low
        elif self.policy == "PROMOTE":
            parts = [part for arg in args for part in (arg if isinstance(arg, list | tuple) else [arg])]
            to = low if all(part.dtype == low for part in parts if isinstance(part, Tensor)) else to
        with torch._C._ExcludeDispatchKeyGuard(KEY):
            return self.op(*self.cast(args, to), **{name: self.cast(value, to) for name, value in kwargs.items()})

    def cast(self, value: Any, to: torch.dtype) -> Any:
        if isinstance(value, list | tuple):
            return [self.cast(part, to) for part in value]
        known = isinstance(value, Tensor) and on_device(value) and value.is_floating_point()
        return value.to(to) if known and value.dtype not in (to, torch.float64) else value


def autocasts() -> Iterator[tuple[str, Autocast]]:
    """Each operator of the lists, with its kernel. Raises LookupError where the lists have moved."""
    text = (Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text(encoding="utf-8")
    for policy in ("LOWER_PRECISION_FP", "FP32", "FP32_SET_OPT_DTYPE", "PROMOTE"):
        block = re.search(rf"#define AT_FORALL_{policy}\(_\)((?:.*\\\n)*.*)", text)
        if block is None:
            raise LookupError(f"autocast_mode.h has no list AT_FORALL_{policy}")
        for base, overload in re.findall(r"_\((\w+)(?:, (\w+))?\)", block[1]):
            op = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
            if op is not None:
                yield f"{base}.{overload}" if overload else base, Autocast(op, policy)
