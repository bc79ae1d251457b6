"""Gradient clipping by {{ clip }}: the gradient of an outlier counts no more than the limit."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class ClippingConfig:
    # {% if clip == "norm" %}
    max_norm: float = 1.0
    """Largest Euclidean norm of the whole gradient; 0 switches clipping off."""
    # {% else %}
    max_value: float = 0.1
    """Largest absolute value of an element of the gradient; 0 switches clipping off."""
    # {% endif %}

    def __post_init__(self) -> None:
        # {% if clip == "norm" %}
        if not self.max_norm >= 0:
            raise ValueError(f"--clipping.max-norm is {self.max_norm}: give a limit above 0, or 0 for none.")
        # {% else %}
        if not self.max_value >= 0:
            raise ValueError(f"--clipping.max-value is {self.max_value}: give a limit above 0, or 0 for none.")
        # {% endif %}


def clip(parameters: Sequence[nn.Parameter], config: ClippingConfig) -> Tensor:
    """Clips the gradients in place and returns their norm before, a 0-dim tensor on the device.

    Call it once per optimizer step, on the whole and unscaled gradient.
    """
    norm = nn.utils.get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
    # An element that is not finite stays so, or becomes NaN: fp16 skips that step, and else it ends the run.
    # {% if clip == "norm" %}
    if config.max_norm:
        nn.utils.clip_grads_with_norm_(parameters, config.max_norm, norm)
    # {% else %}
    if config.max_value:
        nn.utils.clip_grad_value_(parameters, config.max_value)
    # {% endif %}
    return norm
