# {% if adamw %}
"""The optimizer: AdamW."""
# {% endif %}
# {% if sgd %}
"""The optimizer: SGD with momentum."""
# {% endif %}
# {% if muon %}
"""The optimizer: Muon for matrices, AdamW for every other parameter."""
# {% endif %}

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
# {% if muon %}
from torch import nn

from model import group
# {% endif %}


@dataclass(frozen=True)
class OptimizerConfig:
    # {% if sgd %}
    momentum: float = 0.9
    """Share of the last update that the next one keeps; 0 is plain SGD."""
    nesterov: bool = True
    """Look ahead along the momentum, as Nesterov does; needs a momentum."""
    # {% else %}
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of AdamW's running means of the gradient and of its square."""
    eps: float = 1e-8
    """Added to the root of the mean square, against a division by 0."""
    # {% endif %}
    # {% if muon %}
    momentum: float = 0.95
    """Decay rate of Muon's running mean of the gradient."""
    adamw_groups: tuple[str, ...] = ("head", "embedding", "no_decay")
    """Groups of model.py whose matrices AdamW takes all the same."""
    # {% endif %}

    def __post_init__(self) -> None:
        # {% if sgd %}
        if not 0 <= self.momentum < 1:
            raise ValueError(f"--optimizer.momentum is {self.momentum}: give a number from 0 to below 1.")
        if self.nesterov and not self.momentum:
            raise ValueError("--optimizer.nesterov needs a momentum: give one, or leave Nesterov out.")
        # {% else %}
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"--optimizer.betas is {self.betas}: give two numbers from 0 to below 1.")
        if not 0 < self.eps < float("inf"):
            raise ValueError(f"--optimizer.eps is {self.eps}: give a number above 0.")
        # {% endif %}
        # {% if muon %}
        if not 0 <= self.momentum < 1:
            raise ValueError(f"--optimizer.momentum is {self.momentum}: give a number from 0 to below 1.")
        # {% endif %}


# {% if muon %}
def for_muon(name: str, parameter: nn.Parameter, config: OptimizerConfig) -> bool:
    return parameter.ndim == 2 and group(name, parameter) not in config.adamw_groups


def chosen(groups: Sequence[dict[str, Any]], muon: bool, config: OptimizerConfig) -> list[dict[str, Any]]:
    """The groups with those of their parameters alone that Muon takes, or does not; none that is empty."""
    found = []
    for part in groups:
        pairs = [(name, parameter) for name, parameter in part["params"] if for_muon(name, parameter, config) == muon]
        if pairs:
            found.append({**part, "params": pairs})
    return found


class Both(torch.optim.Optimizer):
    """Several optimizers as one: one list of groups for the schedule, and one state for the checkpoint."""

    def __init__(self, optimizers: list[torch.optim.Optimizer]) -> None:
        self.optimizers = optimizers
        super().__init__([part for optimizer in optimizers for part in optimizer.param_groups], {})
        self.share()

    def share(self) -> None:
        """Lets the optimizers work on the groups and the state of this one."""
        parts = iter(self.param_groups)
        for optimizer in self.optimizers:
            optimizer.param_groups = [next(parts) for _ in optimizer.param_groups]
            optimizer.state = self.state

    def __setstate__(self, state: dict[str, Any]) -> None:  # load_state_dict puts new groups and a new state
        super().__setstate__(state)
        self.share()

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for optimizer in self.optimizers:
            optimizer.step()


# {% endif %}
def build_optimizer(
    parameters: Sequence[Any], lr: float, weight_decay: float, config: OptimizerConfig, device: torch.device
) -> torch.optim.Optimizer:
    """The optimizer of `parameters`: pairs of name and parameter, or groups of such pairs."""
    # One call for all parameters instead of a dozen for each.
    # Elsewhere None: PyTorch then takes what handles many parameters by one kernel, which False would forbid.
    fused = device.type in ("cpu", "cuda", "mps", "xpu") or None
    # {% if adamw %}
    return torch.optim.AdamW(
        parameters, lr=lr, weight_decay=weight_decay, betas=config.betas, eps=config.eps, fused=fused
    )
    # {% endif %}
    # {% if sgd %}
    return torch.optim.SGD(
        parameters, lr=lr, weight_decay=weight_decay, momentum=config.momentum, nesterov=config.nesterov, fused=fused
    )
    # {% endif %}
    # {% if muon %}
    groups = parameters if isinstance(parameters[0], dict) else [{"params": parameters}]
    optimizers: list[torch.optim.Optimizer] = []
    # With this adjustment an update is as large as AdamW's: one learning rate suits both (arxiv.org/abs/2502.16982).
    if matrices := chosen(groups, True, config):
        optimizers.append(
            torch.optim.Muon(
                matrices, lr=lr, weight_decay=weight_decay, momentum=config.momentum, adjust_lr_fn="match_rms_adamw"
            )
        )
    else:
        print("Muon finds no matrix in this model (kernels of convolutions are none): AdamW takes every parameter.")
    if others := chosen(groups, False, config):
        optimizers.append(
            torch.optim.AdamW(others, lr=lr, weight_decay=weight_decay, betas=config.betas, eps=config.eps, fused=fused)
        )
    return Both(optimizers)
    # {% endif %}
