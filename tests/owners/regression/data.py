"""An owner's table of floats: measurements of patients, and how their illness went on."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from sklearn.datasets import load_diabetes
from torch import Tensor

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class DataConfig:
    held_out: int = 90
    """Rows for validation."""


class Rows:
    on_device = True

    def __init__(self, values: Tensor, targets: Tensor) -> None:
        self.values, self.targets = values, targets
        self.info = {"features": values.shape[1]}

    def __len__(self) -> int:
        return len(self.values)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        return {"values": self.values[ids], "targets": self.targets[ids]}


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[Rows, Rows]:
    table = load_diabetes()
    values = torch.tensor(table.data, dtype=torch.float32) * 20
    targets = torch.tensor(table.target, dtype=torch.float32) / 100
    order = torch.randperm(len(values), generator=torch.Generator().manual_seed(seed))
    values, targets = values[order].to(device), targets[order].to(device)
    cut = len(values) - config.held_out
    return Rows(values[:cut], targets[:cut]), Rows(values[cut:], targets[cut:])


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    values = batch["values"]
    return batch | {"values": values + 0.05 * (noise(values.shape[1]) - 0.5)}
