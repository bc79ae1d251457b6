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


# {% if muon %}
@pytest.mark.parametrize("shape", [(8, 8), (6, 20), (40, 10)])
def test_updates_have_singular_values_near_1(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    matrix = 1e-3 * (matrix + matrix.sum(1, keepdim=True))
    update = optimizer.orthogonal(matrix)
    values = torch.linalg.svdvals(update)
    assert update.dtype == matrix.dtype and values.min() > 0.5 and values.max() < 1.3
    assert torch.linalg.svdvals(matrix).max() / torch.linalg.svdvals(matrix).min() > 10
    assert not optimizer.orthogonal(torch.zeros(shape)).any()


def test_a_kernel_is_stepped_as_the_matrix_of_its_outputs() -> None:
    kernel = torch.nn.Parameter(torch.ones(4, 3, 2, 2).to(memory_format=torch.channels_last))
    matrix = torch.nn.Parameter(torch.ones(4, 12))
    gradient = torch.randn(4, 3, 2, 2, generator=torch.Generator().manual_seed(0))
    kernel.grad, matrix.grad = gradient.clone(memory_format=torch.channels_last), gradient.flatten(1)
    for parameter in (kernel, matrix):
        optimizer.Muon([parameter], {"lr": 0.1, "weight_decay": 0.1, "momentum": 0.9}).step()
    assert torch.equal(kernel.flatten(1), matrix) and kernel.is_contiguous(memory_format=torch.channels_last)


def test_each_parameter_is_one_optimizers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.group", lambda name, parameter: name.partition(".")[0])
    tensors = {"table.weight": (5, 4), "hidden.weight": (4, 4), "hidden.bias": (4,), "token": (1, 1, 4)}
    pairs = [(name, torch.nn.Parameter(torch.ones(shape))) for name, shape in tensors.items()]
    config = OptimizerConfig(adamw_groups=("table",))
    made = optimizer.build_optimizer(pairs, 0.1, 0.1, config, torch.device("cpu"))
    muon, adamw = made.optimizers
    assert [part["param_names"] for part in muon.param_groups] == [["hidden.weight"]]
    assert [part["param_names"] for part in adamw.param_groups] == [["table.weight", "hidden.bias", "token"]]
    with pytest.raises(SystemExit, match="Muon finds no matrix"):
        optimizer.build_optimizer(pairs[:1], 0.1, 0.1, config, torch.device("cpu"))
    assert optimizer.shares(made) == "Muon for 16 parameters, AdamW for 28"


# {% endif %}
def test_two_steps_follow_the_formula(float64: None) -> None:
    # {% if adamw %}
    lr, decay, config = 0.1, 0.5, OptimizerConfig(betas=(0.8, 0.95), eps=0.1)
    # {% else %}
    lr, decay, config = 0.1, 0.5, OptimizerConfig(momentum=0.7)
    # {% endif %}
    weight = torch.nn.Parameter(torch.tensor([[1.0, 2.0], [-2.0, 0.5]]))
    expected, mean = weight.detach().clone(), torch.zeros_like(weight)
    # {% if muon %}
    made = optimizer.Muon([weight], {"lr": lr, "weight_decay": decay, "momentum": config.momentum})
    # {% else %}
    made = optimizer.build_optimizer([("weight", weight)], lr, decay, config, weight.device)
    # {% endif %}
    # {% if adamw %}
    square = torch.zeros_like(mean)
    # {% endif %}
    for gradient in GRADIENTS:
        gradient = gradient.to(expected)
        weight.grad = gradient.clone()
        made.step()
        # {% if adamw %}
        step = float(made.state[weight]["step"])
        mean = config.betas[0] * mean + (1 - config.betas[0]) * gradient
        square = config.betas[1] * square + (1 - config.betas[1]) * gradient**2
        root = (square / (1 - config.betas[1] ** step)).sqrt() + config.eps
        expected = expected * (1 - lr * decay) - lr * mean / (1 - config.betas[0] ** step) / root
        # {% endif %}
        # {% if sgd %}
        gradient = gradient + decay * expected
        mean = config.momentum * mean + gradient
        expected = expected - lr * (gradient + config.momentum * mean)
        # {% endif %}
        # {% if muon %}
        mean = config.momentum * mean + (1 - config.momentum) * gradient
        left, values, right = torch.linalg.svd((1 - config.momentum) * gradient + config.momentum * mean)
        values = values / values.norm()
        for _ in range(5):  # of Newton and Schulz, which changes the singular values alone
            values = 3.4445 * values - 4.775 * values**3 + 2.0315 * values**5
        expected = expected * (1 - lr * decay) - lr * 0.2 * 2**0.5 * left @ values.diag() @ right
        # {% endif %}
    assert torch.allclose(weight, expected, rtol=1e-10)
