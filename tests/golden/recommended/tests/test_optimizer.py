"""The optimizer: its steps are those of the formula, and a restored one goes on as if it had never stopped."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

import optimizer
from checkpoint import restore
from optimizer import OptimizerConfig
from run import Run

GRADIENTS = [torch.tensor([[3.0, 1.0], [-1.0, 2.0]]), torch.tensor([[1.0, -2.0], [0.5, 1.0]])]


def own(model: torch.nn.Module, config: Any) -> torch.optim.Optimizer:
    """What an owner may have made in model.py."""
    return torch.optim.RMSprop([p for p in model.parameters() if p.requires_grad], lr=config.lr, momentum=0.5)


def descend(run: Run, seed: int) -> None:
    """A step along gradients that the seed decides."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in run.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter)
    run.optimizer.step()


@pytest.mark.parametrize("made_by", ["this project", "model.optimizers"])
def test_restored_optimizer_goes_on(
    begin: Callable[..., Run], same: Callable[[Any, Any], bool], monkeypatch: pytest.MonkeyPatch, made_by: str
) -> None:
    if made_by == "model.optimizers":
        monkeypatch.setattr("model.optimizers", own, raising=False)
    run, other = begin(), begin()
    assert (type(run.optimizer) is torch.optim.RMSprop) == (made_by == "model.optimizers")
    descend(run, 1)
    restore(copy.deepcopy({name: part.state_dict() for name, part in run.parts().items()}), other.parts())
    for seed in (2, 3):
        for part in (*run.optimizer.param_groups, *other.optimizer.param_groups):
            part["lr"] *= 0.5  # as a schedule does
        descend(run, seed)
        descend(other, seed)
    assert same(run.model.state_dict(), other.model.state_dict())
    assert same(run.optimizer.state_dict(), other.optimizer.state_dict())


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (lambda model, config: None, "has to return one torch.optim.Optimizer, not a NoneType"),
        (lambda model, config: [own(model, config)], "not a list"),
        (lambda model, config: torch.optim.LBFGS(model.parameters()), "LBFGS computes the loss again in its step"),
        (lambda model, config: torch.optim.SGD([torch.zeros(2)], lr=1), "a tensor that is no parameter of the model"),
    ],
)
def test_what_the_rest_cannot_use_is_refused(
    begin: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, returned: Callable[..., Any], sentence: str
) -> None:
    monkeypatch.setattr("model.optimizers", returned, raising=False)
    with pytest.raises(SystemExit, match=sentence):
        begin()


def test_two_steps_follow_the_formula(float64: None) -> None:
    lr, decay, config = 0.1, 0.5, OptimizerConfig(betas=(0.8, 0.95), eps=0.1)
    weight = torch.nn.Parameter(torch.tensor([[1.0, 2.0], [-2.0, 0.5]]))
    expected, mean = weight.detach().clone(), torch.zeros_like(weight)
    made = optimizer.build_optimizer([("weight", weight)], lr, decay, config, weight.device)
    square = torch.zeros_like(mean)
    for gradient in GRADIENTS:
        gradient = gradient.to(expected)
        weight.grad = gradient.clone()
        made.step()
        step = float(made.state[weight]["step"])
        mean = config.betas[0] * mean + (1 - config.betas[0]) * gradient
        square = config.betas[1] * square + (1 - config.betas[1]) * gradient**2
        root = (square / (1 - config.betas[1] ** step)).sqrt() + config.eps
        expected = expected * (1 - lr * decay) - lr * mean / (1 - config.betas[0] ** step) / root
    assert torch.allclose(weight, expected, rtol=1e-10)
