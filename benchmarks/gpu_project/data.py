"""The accelerator benchmark's samples as an owner's data.py: random ones, which lie on the device."""

import os
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Batch = tuple[Tensor, Tensor]
NETWORK = os.environ.get("BENCH_NETWORK", "resnet")
SAMPLES = int(os.environ.get("BENCH_SAMPLES", "16384"))


@dataclass(frozen=True)
class DataConfig:
    """Nothing to set."""


class Source:
    on_device = True

    def __init__(self, inputs: Tensor, targets: Tensor):
        self.inputs, self.targets, self.info = inputs, targets, {}

    def __len__(self) -> int:
        return len(self.inputs)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        ids = ids.to(self.inputs.device, non_blocking=True)
        return self.inputs[ids], self.targets[ids]


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[Source, Source]:
    generator = torch.Generator().manual_seed(seed)
    if NETWORK == "resnet":
        inputs = torch.randint(256, (SAMPLES, 3, 32, 32), dtype=torch.uint8, generator=generator).to(device)
        targets = torch.randint(10, (SAMPLES,), generator=generator).to(device)
    else:
        tokens = torch.randint(256, (SAMPLES, 129), generator=generator).to(device)
        inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    return Source(inputs, targets), Source(inputs[:256], targets[:256])


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    return batch
