"""The optimizer, and the values that it takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class OptimizerConfig:
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of AdamW's running means of the gradient and of its square."""
    eps: float = 1e-8
    """Added to the root of the mean square, against a division by 0."""

    def __post_init__(self) -> None:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"--optimizer.betas is {self.betas}: give two numbers from 0 to below 1.")
        if not 0 < self.eps < float("inf"):
            raise ValueError(f"--optimizer.eps is {self.eps}: give a number above 0.")


def build_optimizer(
    parameters: Sequence[Any], lr: float, weight_decay: float, config: OptimizerConfig, device: torch.device
) -> torch.optim.Optimizer:
    """The optimizer of `parameters`: pairs of name and parameter, or groups of such pairs.

    Groups may have a learning rate and a weight decay of their own.
    """
    # One call for all parameters instead of a dozen for each.
    # Elsewhere None: PyTorch then takes what handles many parameters by one kernel, which False would forbid.
    fused = device.type in ("cpu", "cuda", "mps", "xpu") or None
    return torch.optim.AdamW(
        parameters, lr=lr, weight_decay=weight_decay, betas=config.betas, eps=config.eps, fused=fused
    )
