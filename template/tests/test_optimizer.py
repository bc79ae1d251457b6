"""The optimizer: two steps are those of its formula, and a restored one goes on as if it had never stopped."""

import copy
from collections.abc import Callable
from typing import Any

# {% filter regex_replace("\n+", "\n") %}
# {% if muon %}
import pytest

# {% endif %}
import torch

# {% endfilter %}

import optimizer
from checkpoint import restore
from optimizer import OptimizerConfig
from run import Run

GRADIENTS = [torch.tensor([[3.0, 1.0], [-1.0, 2.0]]), torch.tensor([[1.0, -2.0], [0.5, 1.0]])]


def descend(run: Run, seed: int) -> None:
    """A step along gradients that the seed decides."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in run.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter)
    run.optimizer.step()


def test_restored_optimizer_goes_on(begin: Callable[..., Run], same: Callable[[Any, Any], bool]) -> None:
    run, other = begin(), begin()
    descend(run, 1)
    restore(copy.deepcopy({name: part.state_dict() for name, part in run.parts().items()}), other.parts())
    for seed in (2, 3):
        descend(run, seed)
        descend(other, seed)
    assert same(run.model.state_dict(), other.model.state_dict())
    assert same(run.optimizer.state_dict(), other.optimizer.state_dict())


# {% if muon %}
def test_two_steps_follow_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    lr, decay, config = 0.1, 0.5, OptimizerConfig()
    monkeypatch.setattr(optimizer, "group", lambda name, parameter: "decay")
    weight = torch.nn.Parameter(torch.tensor([[1.0, 2.0], [-2.0, 0.5]]))
    expected, mean = weight.detach().clone(), torch.zeros(2, 2)
    muon = optimizer.build_optimizer([("weight", weight)], lr, decay, config, weight.device)
    for raw in GRADIENTS:
        gradient = raw.to(expected)
        weight.grad = gradient.clone()
        muon.step()
        mean = config.momentum * mean + (1 - config.momentum) * gradient
        update = config.momentum * mean + (1 - config.momentum) * gradient
        update = update / update.norm()
        for _ in range(5):  # Newton and Schulz: all singular values go near 1
            gram = update @ update.T
            update = 3.4445 * update - 4.775 * gram @ update + 2.0315 * gram @ gram @ update
        expected = expected * (1 - lr * decay) - lr * 0.2 * 2**0.5 * update
    assert torch.allclose(weight, expected, atol=2e-3)  # Muon computes the iteration in bf16


# {%- else %}
def test_two_steps_follow_the_formula(float64: None) -> None:
    lr, decay, config = 0.1, 0.5, OptimizerConfig()
    weight = torch.nn.Parameter(torch.tensor([[1.0, 2.0], [-2.0, 0.5]]))
    expected = weight.detach().clone()
    made = optimizer.build_optimizer([("weight", weight)], lr, decay, config, weight.device)
    # {% if sgd %}
    mean = torch.zeros_like(expected)
    # {% else %}
    mean, square = torch.zeros_like(expected), torch.zeros_like(expected)
    # {% endif %}
    for gradient in GRADIENTS:
        gradient = gradient.to(expected)
        weight.grad = gradient.clone()
        made.step()
        # {% if sgd %}
        gradient = gradient + decay * expected
        mean = config.momentum * mean + gradient
        expected = expected - lr * (gradient + config.momentum * mean)
        # {% endif %}
        # {% if adamw %}
        step = float(made.state[weight]["step"])
        mean = config.betas[0] * mean + (1 - config.betas[0]) * gradient
        square = config.betas[1] * square + (1 - config.betas[1]) * gradient**2
        root = (square / (1 - config.betas[1] ** step)).sqrt() + config.eps
        expected = expected * (1 - lr * decay) - lr * mean / (1 - config.betas[0] ** step) / root
        # {% endif %}
    assert torch.allclose(weight, expected, rtol=1e-10)


# {%- endif +%}
