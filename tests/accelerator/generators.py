"""The device's random numbers: those of a CPU generator of its own for each device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from tests.accelerator.memory import index_of

GENERATORS: list[torch.Generator] = []


def of_device(place: Any = None) -> torch.Generator:
    return GENERATORS[index_of(place)]


@contextlib.contextmanager
def drawing(generator: torch.Generator | None, place: torch.device | None) -> Iterator[None]:
    """Inside, the CPU's kernels draw from the device's generator, or from the one that is given."""
    generator, outer = generator or of_device(place), torch.default_generator.get_state()
    torch.default_generator.set_state(generator.get_state())
    try:
        yield
    finally:
        generator.set_state(torch.default_generator.get_state())
        torch.default_generator.set_state(outer)
