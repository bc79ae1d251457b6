"""The data: made-up points in the plane. Replace them with your own.

A batch is any nest of dicts, lists and tuples, with tensors in it. Here it is [points, distances], float32 [n, 2] and
[n]: how far each point is from the origin.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset, default_collate

Batch = list[Tensor]


@dataclass(frozen=True)
class DataConfig:
    points: int = 1280
    """Made-up points. (Every field is an option of the command line, here --data.points.)"""


class DatasetSource:
    """A Dataset with a length; `collate` makes a batch of a list of samples. `info` is for model.build_model."""

    on_device = False  # worker processes fetch batches; True: fetch gives batches that lie on the device

    def __init__(self, dataset: Dataset, info: dict, collate: Callable[[list], Any] = default_collate):
        self.dataset, self.info, self.collate = dataset, info, collate

    def __len__(self) -> int:
        return len(self.dataset)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        """The samples `ids` (int64 [n], on the CPU), the same for the same ids and epoch."""
        samples = []
        with torch.random.fork_rng(devices=[]):
            for index in ids.tolist():
                # Random transforms depend on epoch and sample alone, and not on who fetches what else.
                torch.default_generator.manual_seed(epoch * 1_000_003 + index)
                samples.append(self.dataset[index])
        return self.collate(samples)


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[DatasetSource, DatasetSource]:
    """The training and the validation source."""
    points = 2 * torch.rand(config.points, 2, generator=torch.Generator().manual_seed(seed)) - 1
    parts = (points[: config.points * 4 // 5], points[config.points * 4 // 5 :])
    info = {"inputs": 2}  # plain values, as in JSON: they are saved with the weights
    training, validation = (DatasetSource(TensorDataset(part, part.norm(dim=1)), info) for part in parts)
    return training, validation


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    """Random changes on the device, made from noise(k): k uniform numbers in [0, 1) per sample, float32 [n, k]."""
    return batch
