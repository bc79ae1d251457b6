"""The random numbers of data.augment: counted, not drawn in turn, so they do not depend on who asks when."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

Word = TypeVar("Word", int, Tensor)
MASK = 0xFFFFFFFF
# 2**32 divided by the golden ratio: its multiples spread evenly over the 32-bit numbers.
STEP = 0x9E3779B9


@dataclass(frozen=True)
class AugmentationConfig:
    enabled: bool = True
    """Change the training samples by data.augment."""


def noise(seed: int, epoch: int, ids: Tensor, device: torch.device) -> Callable[[int], Tensor]:
    """A function that gives k new numbers per sample, float32 [n, k], uniform in [0, 1), at each call.

    They are a pure function of (seed, epoch, sample id, how many came before): the same on any
    device and rank, in any worker and batch. `ids` is int64 [n], below 2**32.
    """
    key = 0
    for word in (seed, epoch):
        key = mix((key + STEP ^ word) & MASK)
    # One to one, so no two samples of an epoch share a key. The loader pins the ids for an accelerator: no wait.
    keys = mix(ids.to(device, non_blocking=True) ^ key)[:, None]
    drawn = 0

    def draw(count: int) -> Tensor:
        nonlocal drawn
        counters = torch.arange(drawn * STEP, (drawn + count) * STEP, STEP, device=device) & MASK
        drawn += count
        # 24 bits, as many as float32 holds exactly: no number is rounded up to 1.
        return (mix(keys ^ counters) >> 8).float() * 2.0**-24

    return draw


def mix(word: Word) -> Word:
    """32 bits to 32 bits, one to one, each input bit turning each output bit over half the time.

    lowbias32 of Chris Wellons, "Prospecting for Hash Functions", https://nullprogram.com/blog/2018/07/31/
    """
    word = (word ^ word >> 16) * 0x7FEB352D & MASK
    # 0x846CA68B as a negative number, the same in the low 32 bits: the product stays inside int64.
    word = (word ^ word >> 15) * (0x846CA68B - 2**32) & MASK
    return word ^ word >> 16
