"""Gradient clipping by norm: the gradient of an outlier counts no more than the limit."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class ClippingConfig:
    max_norm: float = 1.0
    """Largest Euclidean norm of the whole gradient; 0 switches clipping off."""

    def __post_init__(self) -> None:
        if not self.max_norm >= 0:
            raise ValueError(f"--clipping.max-norm is {self.max_norm}: give a limit above 0, or 0 for none.")


def clip(parameters: Sequence[nn.Parameter], config: ClippingConfig) -> Tensor:
    """Clips the gradients in place and returns their norm before, a 0-dim tensor on the device.

    Call it once per optimizer step, on the whole and unscaled gradient.
    """
    norm = nn.utils.get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
    # An element that is not finite stays so, or becomes NaN: fp16 skips that step, and else it ends the run.
    if config.max_norm:
        nn.utils.clip_grads_with_norm_(parameters, config.max_norm, norm)
    return norm
