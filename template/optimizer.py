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
    """Groups of model.py whose matrices AdamW takes: input and output layers."""
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
class Muon(torch.optim.Optimizer):
    """Momentum whose steps are orthogonal matrices: https://kellerjordan.github.io/posts/muon/

    PyTorch's own (2.9 and later) takes no kernels of convolutions; here they are matrices [out, in * height * width].
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for part in self.param_groups:
            lr, momentum = part["lr"], part["momentum"]
            for parameter in part["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(parameter.grad)
                mean = state["momentum_buffer"].lerp_(parameter.grad, 1 - momentum)
                update = orthogonal(parameter.grad.lerp(mean, momentum).flatten(1))
                # An update as large as AdamW's, so that one learning rate suits both: https://arxiv.org/abs/2502.16982
                size = 0.2 * max(update.shape) ** 0.5
                parameter.mul_(1 - lr * part["weight_decay"]).add_(update.view_as(parameter), alpha=-lr * size)


def orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """`matrix` with singular values near 1 (0.7 to 1.2 unless they were tiny), by five steps of Newton and Schulz."""
    # Such devices multiply bf16 many times faster, and its few digits suffice.
    fast = matrix.dtype == torch.float32 and matrix.device.type in ("cuda", "xpu")
    wide = matrix.bfloat16() if fast else matrix
    wide = wide.T if matrix.shape[0] > matrix.shape[1] else wide
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = wide @ wide.T
        wide = 3.4445 * wide + (2.0315 * gram @ gram - 4.775 * gram) @ wide
    return (wide.T if matrix.shape[0] > matrix.shape[1] else wide).to(matrix.dtype)


class Both(torch.optim.Optimizer):
    """Two optimizers as one: one list of groups for the schedule, and one state for the checkpoint."""

    def __init__(self, optimizers: list[torch.optim.Optimizer]) -> None:
        self.optimizers = optimizers
        super().__init__([part for optimizer in optimizers for part in optimizer.param_groups], {})
        self.share()

    def share(self) -> None:
        """Lets the two work on the groups and the state of this one."""
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


def chosen(groups: Sequence[dict[str, Any]], muon: bool, config: OptimizerConfig) -> list[dict[str, Any]]:
    """The groups with those of their parameters alone that Muon takes, or does not; none that is empty."""
    found = []
    for part in groups:
        pairs = [(name, parameter) for name, parameter in part["params"] if for_muon(name, parameter, config) == muon]
        if pairs:
            found.append({**part, "params": pairs})
    return found


def for_muon(name: str, parameter: nn.Parameter, config: OptimizerConfig) -> bool:
    """Whether it is a matrix, or a kernel, of a group that is not AdamW's."""
    is_matrix = parameter.ndim > 1 and min(parameter.flatten(1).shape) > 1
    return is_matrix and model.group(name, parameter) not in config.adamw_groups


def shares(optimizer: torch.optim.Optimizer) -> str:
    """Which optimizer trains how many parameters, for a reader."""
    if not isinstance(optimizer, Both):
        return type(optimizer).__name__
    sizes = [
        sum(parameter.numel() for group in part.param_groups for parameter in group["params"])
        for part in optimizer.optimizers
    ]
    return f"Muon for {sizes[0]:,} parameters, AdamW for {sum(sizes[1:]):,}"


# {% endif %}
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

    # {% if muon %}
    Muon takes matrices and kernels of convolutions, AdamW everything else. Raises SystemExit where Muon has nothing.
    # {% else %}
    Groups may have a learning rate and a weight decay of their own.
    # {% endif %}
    """
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
    options = {"lr": lr, "weight_decay": weight_decay}
    matrices, others = chosen(groups, True, config), chosen(groups, False, config)
    if not matrices:
        raise SystemExit(
            "Muon finds no matrix to train in this model: name the groups that it may take (group in model.py, and "
            "--optimizer.adamw-groups for those that it may not), or choose another optimizer for this project."
        )
    parts: list[torch.optim.Optimizer] = [Muon(matrices, {**options, "momentum": config.momentum})]
    if others:
        parts.append(torch.optim.AdamW(others, **options, betas=config.betas, eps=config.eps, fused=fused))
    return Both(parts)
    # {% endif %}
