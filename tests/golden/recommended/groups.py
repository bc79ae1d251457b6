"""Parameter groups: biases and norms without weight decay, and a learning rate of its own for each named part."""

from dataclasses import dataclass, field
from typing import Any

from torch import nn

from model import group


@dataclass(frozen=True)
class GroupsConfig:
    lr_scale: dict[str, float] = field(default_factory=dict)
    """Factor on the learning rate of a group (model.py names them), as in: --groups.lr-scale head 10"""
    no_decay: tuple[str, ...] = ("no_decay",)
    """Groups without weight decay."""

    def __post_init__(self) -> None:
        for name, scale in self.lr_scale.items():
            if not 0 <= scale < float("inf"):
                raise ValueError(f"--groups.lr-scale {name} is {scale}: give a factor of 0 or more.")


def parameter_groups(model: nn.Module, lr: float, weight_decay: float, config: GroupsConfig) -> list[dict[str, Any]]:
    """Each trainable parameter in exactly one group, for an optimizer; groups sorted by name.

    Raises SystemExit where `config` names a group that the model does not have.
    """
    members: dict[str, list[tuple[str, nn.Parameter]]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            members.setdefault(group(name, parameter), []).append((name, parameter))
    # A model need not have the group that does not decay by default.
    if unknown := {*config.lr_scale, *config.no_decay} - {*members, *GroupsConfig().no_decay}:
        raise SystemExit(f"--groups: no group {sorted(unknown)}; this model has {sorted(members)}.")
    return [
        {
            "name": name,
            # With their names, so that a checkpoint can tell whether its state belongs to these parameters.
            "params": members[name],
            "lr": lr * config.lr_scale.get(name, 1.0),
            "weight_decay": 0.0 if name in config.no_decay else weight_decay,
        }
        for name in sorted(members)
    ]
