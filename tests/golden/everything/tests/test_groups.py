"""Parameter groups: each trainable parameter in exactly one, and moments that never land on another parameter."""

from collections.abc import Callable

import pytest
import torch

from checkpoint import restore
from groups import GroupsConfig, parameter_groups
from model import group
from run import Run


def test_each_trainable_parameter_is_in_one_group(begin: Callable[..., Run]) -> None:
    run = begin()
    grouped = [id(parameter) for part in run.optimizer.param_groups for parameter in part["params"]]
    assert sorted(grouped) == sorted(id(parameter) for parameter in run.model.parameters() if parameter.requires_grad)


def test_groups_have_their_own_decay_and_rate(begin: Callable[..., Run]) -> None:
    model = begin().model
    kinds = {group(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad}
    some = sorted(kinds)[0]
    config = GroupsConfig(lr_scale={some: 0.1}, no_decay=(some,))
    for part in parameter_groups(model, 1.0, 0.5, config):
        chosen = part["name"] == some
        assert (part["lr"], part["weight_decay"]) == ((0.1, 0.0) if chosen else (1.0, 0.5))


def test_unknown_group_is_refused(begin: Callable[..., Run]) -> None:
    with pytest.raises(SystemExit, match="no group"):
        parameter_groups(begin().model, 1.0, 0.5, GroupsConfig(lr_scale={"nosuch": 2.0}))


def test_state_of_other_groups_is_refused(begin: Callable[..., Run]) -> None:
    run, other = begin(), begin()
    # As many groups of as many parameters, but of other ones: torch itself would take the state.
    groups = [
        {
            "name": part["name"],
            "params": [(f"other.{name}", p) for name, p in zip(part["param_names"], part["params"], strict=True)],
        }
        for part in other.optimizer.param_groups
    ]
    with pytest.raises(SystemExit, match="parameter groups are not those"):
        restore({"optimizer": run.optimizer.state_dict()}, {"optimizer": torch.optim.AdamW(groups)})
