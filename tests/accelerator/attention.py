"""Fused attention where the CPU has it, by the CPU's kernel: without it the device would differ by rounding."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.accelerator.kernels import Kernel
from tests.accelerator.memory import host

aten = torch.ops.aten
FLASH = 1  # torch.nn.attention.SDPBackend.FLASH_ATTENTION


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """With a mask, grouped heads or dropout the plain products and a softmax."""
    if attn_mask is None and not enable_gqa:
        tensors = [host(tensor.detach()).requires_grad_(tensor.requires_grad) for tensor in (query, key, value)]
        if aten._fused_sdp_choice(*tensors, None, dropout_p, is_causal, scale=scale) == FLASH:
            fused = aten._scaled_dot_product_fused_attention_overrideable
            return fused(query, key, value, None, dropout_p, is_causal, scale=scale)[0]
    math = aten._scaled_dot_product_attention_math
    return math(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    debug: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    kernel = Kernel(aten._scaled_dot_product_flash_attention_for_cpu.default)
    out, sums = kernel(query, key, value, dropout, causal, scale=scale)
    none = torch.empty(0, dtype=torch.int64, device=query.device)
    return out, sums, none, none, query.shape[-2], key.shape[-2], none, none, none


def backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    wanted: list[bool],
    out: Tensor,
    sums: Tensor,
    starts_query: Tensor,
    starts_key: Tensor,
    longest_query: int,
    longest_key: int,
    dropout: float,
    causal: bool,
    *rest: Any,
    scale: float | None = None,
) -> tuple[Any, ...]:
    kernel = Kernel(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
    grads = kernel(grad, query, key, value, out, sums, dropout, causal, scale=scale)
    return (*grads, torch.empty(0, device=query.device))


KERNELS = {
    "_scaled_dot_product_fused_attention_overrideable": forward,
    "_scaled_dot_product_fused_attention_overrideable_backward": backward,
}
