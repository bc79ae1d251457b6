"""The benchmark's samples as an owner's data.py."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.work import Digits, digits

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class DataConfig:
    """Nothing to set."""


class Source:
    on_device = True

    def __init__(self, samples: Digits):
        self.samples, self.info = samples, {}

    def __len__(self) -> int:
        return len(self.samples.labels)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        return self.samples.images.index_select(0, ids), self.samples.labels.index_select(0, ids)


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[Source, Source]:
    train, val = digits()
    return Source(train), Source(val)


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    return batch
