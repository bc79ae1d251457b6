"""Two simulated accelerators in one process; run by tests/test_accelerator.py."""

import pytest
import torch

from tests.accelerator import NAME


def test_there_are_two_with_a_generator_each() -> None:
    assert torch.accelerator.device_count() == 2
    first, second = (torch.ones(2, device=f"{NAME}:{index}") for index in (0, 1))
    with pytest.raises(RuntimeError, match="at least two devices"):
        first + second
    assert (first + second.to(first.device)).device == torch.device(NAME, 0)
    torch.manual_seed(1)
    torch.rand(3, device=f"{NAME}:0")
    drawn = torch.rand(3, device=f"{NAME}:1").cpu()
    torch.manual_seed(1)
    assert torch.equal(torch.rand(3, device=f"{NAME}:1").cpu(), drawn)


def test_the_current_one_is_where_new_tensors_lie() -> None:
    torch.accelerator.set_device_index(1)
    assert torch.ones(1, device=NAME).device == torch.device(NAME, 1)
    torch.accelerator.set_device_index(0)
    assert torch.ones(1, device=NAME).device == torch.device(NAME, 0)
