"""Clipping: the whole, unscaled gradient is limited once per step, and its norm before that is what is logged."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import train
from clipping import ClippingConfig, clip
from loader import MicroBatch
from run import Run


def test_gradient_is_limited_and_its_norm_returned() -> None:
    parameters = [nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))]
    gradients = [torch.tensor([3.0, 0.0, 0.0]), torch.tensor([0.0, -4.0])]
    for parameter, gradient in zip(parameters, gradients, strict=False):  # the last one has none
        parameter.grad = gradient.clone()
    assert float(clip(parameters, ClippingConfig(max_norm=2.5))) == pytest.approx(5.0)
    for parameter, gradient in zip(parameters, gradients, strict=False):
        assert torch.allclose(parameter.grad, gradient / 2)


def test_gradient_within_the_limit_is_left_alone() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([0.03, 0.04])
    clip([parameter], ClippingConfig())
    assert torch.equal(parameter.grad, torch.tensor([0.03, 0.04]))


def test_training_clips_what_the_optimizer_sees(
    begin: Callable[..., Run], micro: Callable[[int, int], MicroBatch]
) -> None:
    run = begin(clipping=ClippingConfig(max_norm=1e-3))
    *_, norm = train.step(run, [micro(0, 4), micro(4, 8)])
    gradient = torch.cat([p.grad.flatten() for p in run.model.parameters() if p.grad is not None])
    assert float(gradient.norm()) == pytest.approx(1e-3, rel=1e-3)
    assert float(norm) > 1e-3
