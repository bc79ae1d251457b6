"""Mixed precision: matrix products in bf16 or fp16, everything that needs the range in float32."""

from dataclasses import dataclass
from typing import Literal

import torch

DTYPES = {"off": None, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class AmpConfig:
    dtype: Literal["auto", "bf16", "fp16", "off"] = "auto"
    """Type of the fast arithmetic. auto: bf16 on cuda and xpu, fp16 on a cuda GPU without bf16, off elsewhere."""


def precision(config: AmpConfig, device: torch.device) -> torch.dtype | None:
    """The type to autocast to, or None for full precision."""
    name = config.dtype
    if name == "auto":
        name = best_dtype(device)
    return DTYPES[name]


def best_dtype(device: torch.device) -> str:
    if device.type == "cuda":
        # Older GPUs emulate bf16, slower than float32.
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    # The CPU and mps gain too little to pay for the lost digits: only when asked for.
    return "bf16" if device.type == "xpu" else "off"


def build_scaler(dtype: torch.dtype | None, device: torch.device) -> torch.amp.GradScaler:
    """Scales the gradients for fp16, whose smallest numbers would otherwise vanish; does nothing for other types."""
    return torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)
