"""An owner's table: measurements of wines, with missing values and a name for each field."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from sklearn.datasets import load_wine
from torch import Tensor

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class DataConfig:
    held_out: int = 30
    """Rows for validation."""


class Rows:
    on_device = True

    def __init__(self, values: Tensor, kinds: Tensor) -> None:
        self.values, self.kinds = values, kinds
        self.info = {"features": values.shape[1], "kinds": 3}

    def __len__(self) -> int:
        return len(self.values)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        return {"values": self.values[ids], "kinds": self.kinds[ids]}


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[Rows, Rows]:
    table = load_wine()
    values = torch.tensor(table.data, dtype=torch.float32)
    values = (values - values.mean(0)) / values.std(0)
    order = torch.randperm(len(values), generator=torch.Generator().manual_seed(seed))
    values, kinds = values[order].to(device), torch.tensor(table.target)[order].to(device)
    cut = len(values) - config.held_out
    return Rows(values[:cut], kinds[:cut]), Rows(values[cut:], kinds[cut:])


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    values = batch["values"]
    return batch | {"values": values + 0.05 * (noise(values.shape[1]) - 0.5).to(values.dtype)}
