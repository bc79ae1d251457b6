"""The optimizer, and the values that it takes."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import model


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


def own_optimizer(trained: nn.Module, config: Any) -> torch.optim.Optimizer | None:
    """What `optimizers(model, config)` in model.py makes of the model and the Config; None where it is not there.

    Raises SystemExit where it makes something that the rest cannot step or save.
    """
    make = getattr(model, "optimizers", None)
    if make is None:
        return None
    own = make(trained, config)
    if not isinstance(own, torch.optim.Optimizer):
        raise SystemExit(f"model.py: optimizers has to return one torch.optim.Optimizer, not a {type(own).__name__}.")
    try:
        inspect.signature(own.step).bind()
    except TypeError:
        raise SystemExit(
            f"model.py: {type(own).__name__} computes the loss again in its step, which train.py does not do."
        ) from None
    names = {parameter: name for name, parameter in trained.named_parameters()}
    for number, part in enumerate(own.param_groups):
        if not names.keys() >= set(part["params"]):
            raise SystemExit("model.py: optimizers gives the optimizer a tensor that is no parameter of the model.")
        # By the names a checkpoint can tell whether its state belongs to these parameters.
        part["param_names"] = [names[parameter] for parameter in part["params"]]
        part.setdefault("name", str(number))
    return own


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
