"""An owner's pictures as bytes, for a backbone that exists already."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from torch import Tensor

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class DataConfig:
    digits: int = 600


class Digits:
    on_device = True

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels, self.info = images, labels, {"classes": 10}

    def __len__(self) -> int:
        return len(self.labels)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        return self.images[ids], self.labels[ids]


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[Digits, Digits]:
    digits = load_digits()
    images = torch.tensor(digits.images[: config.digits] * 15).to(torch.uint8)[:, None].to(device)
    labels = torch.tensor(digits.target[: config.digits]).to(device)
    cut = config.digits * 3 // 4
    return Digits(images[:cut], labels[:cut]), Digits(images[cut:], labels[cut:])


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    return batch
