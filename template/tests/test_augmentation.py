"""Augmentation: new in each epoch, the same for the same seed, whatever rank or worker has the sample."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import train
from augmentation import AugmentationConfig, mix, noise
from data import augment
from device import to_device, tree_map
from loader import First, MicroBatch
from model import loss
from run import Run

CPU = torch.device("cpu")
IDS = torch.arange(12)


def leaves(batch: Any) -> list[Tensor]:
    found: list[Tensor] = []
    tree_map(found.append, batch)
    return found


def equal(batch: Any, other: Any) -> bool:
    return all(torch.equal(one, two) for one, two in zip(leaves(batch), leaves(other), strict=True))


@pytest.fixture
def changed(sources: tuple[First, First], device: torch.device) -> Callable[..., Any]:
    """changed(ids, epoch, seed) is the augmented batch; skips if data.augment changes nothing."""
    batch = to_device(sources[0].fetch(IDS, 0), device)
    if equal(batch, augment(batch, noise(0, 0, IDS, device))):
        pytest.skip("data.augment changes nothing")

    def changed(ids: Tensor, epoch: int, seed: int = 0) -> Any:
        return augment(to_device(sources[0].fetch(ids, epoch), device), noise(seed, epoch, ids, device))

    return changed


def test_noise_is_uniform_and_independent() -> None:
    columns = [noise(seed, epoch, torch.arange(20_000), CPU)(3) for seed in (0, 1) for epoch in (0, 1)]
    numbers = torch.cat(columns, dim=1).double()
    assert numbers.min() >= 0 and numbers.max() < 1
    # Five standard errors.
    assert (numbers.mean(0) - 1 / 2).abs().max() < 5 * (1 / 12 / 20_000) ** 0.5
    assert (numbers.var(0) - 1 / 12).abs().max() < 5 * (1 / 180 / 20_000) ** 0.5
    neighbours = torch.cat((numbers[:-1], numbers[1:]), dim=1)
    correlation = torch.corrcoef(neighbours.T) - torch.eye(24)
    assert correlation.abs().max() < 5 / 20_000**0.5


def test_noise_is_a_function_of_the_sample(device: torch.device) -> None:
    assert mix(torch.tensor([1, 2, 2**32 - 1])).tolist() == [1753845952, 3507691905, 1734902346]
    whole, again = noise(7, 3, IDS, device), noise(7, 3, IDS, device)
    numbers = again(5)
    assert torch.equal(torch.cat((whole(2), whole(3)), dim=1), numbers), "draws are counted one by one"
    assert torch.equal(noise(7, 3, IDS[[8, 2]], device)(5), numbers[[8, 2]]), "the batch does not matter"
    assert torch.equal(noise(7, 3, IDS, CPU)(5), numbers.cpu()), "another device has other numbers"


def test_epochs_and_seeds_differ(changed: Callable[..., Any]) -> None:
    assert not equal(changed(IDS, 0), changed(IDS, 1)), "the augmentation is the same in each epoch"
    assert not equal(changed(IDS, 0), changed(IDS, 0, seed=1))
    assert equal(changed(IDS, 1), changed(IDS, 1))


def test_a_sample_is_changed_alike_in_any_batch(changed: Callable[..., Any]) -> None:
    alone = [changed(IDS[index : index + 1], 1) for index in range(len(IDS))]
    for whole, *parts in zip(leaves(changed(IDS, 1)), *map(leaves, alone), strict=True):
        assert torch.equal(whole, torch.cat(parts)), "in data.augment the samples touch each other"


def test_input_and_generators_are_left_alone(sources: tuple[First, First], device: torch.device) -> None:
    module = torch if device.type == "cpu" else torch.get_device_module(device)
    batch, states = to_device(sources[0].fetch(IDS, 0), device), [torch.get_rng_state(), module.get_rng_state()]
    augment(batch, noise(0, 0, IDS, device))
    again = to_device(sources[0].fetch(IDS, 0), device)
    assert equal(batch, again), "data.augment changes its input: the cache may own it"
    now = [torch.get_rng_state(), module.get_rng_state()]
    assert equal(states, now), "data.augment draws from torch's generator: use noise"


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("enabled", [True, False])
def test_training_uses_it(
    begin: Callable[..., Run], micro: Callable[..., MicroBatch], changed: Callable[..., Any], enabled: bool
) -> None:
    run, plain = begin(seed=4, augmentation=AugmentationConfig(enabled)), micro(0, 12)
    for run.progress.epoch in (0, 1):
        expected = changed(IDS, run.progress.epoch, seed=4) if enabled else plain.batch
        total = loss(run.model, expected).detach()
        # {% if accumulation %}
        assert torch.equal(train.step(run, [plain])[0], total)
        # {% else %}
        assert torch.equal(train.step(run, plain)[0], total)
        # {% endif %}
