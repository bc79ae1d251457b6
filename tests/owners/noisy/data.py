"""An owner's digits as float vectors, for an autoencoder."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from torch import Tensor

Batch = Tensor


@dataclass(frozen=True)
class DataConfig:
    digits: int = 600


class Digits:
    on_device = True

    def __init__(self, pixels: Tensor) -> None:
        self.pixels, self.info = pixels, {"pixels": pixels.shape[1]}

    def __len__(self) -> int:
        return len(self.pixels)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        return self.pixels[ids]


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[Digits, Digits]:
    pixels = torch.tensor(load_digits().data[: config.digits] / 16, dtype=torch.float32).to(device)
    cut = config.digits * 3 // 4
    return Digits(pixels[:cut]), Digits(pixels[cut:])


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    return batch
