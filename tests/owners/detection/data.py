"""An owner's pictures with boxes in them, as torchvision's detectors take them: a list of what each picture has."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Batch = tuple[list[Tensor], list[dict[str, Any]]]


@dataclass(frozen=True)
class DataConfig:
    pictures: int = 96


class Pictures:
    on_device = False

    def __init__(self, first: int, length: int, seed: int) -> None:
        self.first, self.length, self.seed, self.info = first, length, seed, {"size": 16}

    def __len__(self) -> int:
        return self.length

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        pictures = [draw(self.seed * 10_000 + self.first + i) for i in ids.tolist()]
        return [picture for picture, _ in pictures], [target for _, target in pictures]


def draw(number: int) -> tuple[Tensor, dict[str, Any]]:
    """A picture float32 [1, 16, 16] with one to three bright squares, and their boxes float32 [k, 4]."""
    generator = torch.Generator().manual_seed(number)
    picture = 0.1 * torch.rand(1, 16, 16, generator=generator)
    cells = torch.randperm(4, generator=generator)[: 1 + number % 3]
    boxes = []
    for cell in cells.tolist():
        top, left = 8 * (cell // 2) + 2, 8 * (cell % 2) + 2
        picture[:, top : top + 4, left : left + 4] += 1
        boxes.append([left, top, left + 4, top + 4])
    return picture, {"boxes": torch.tensor(boxes, dtype=torch.float32), "name": f"picture {number}"}


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[Pictures, Pictures]:
    cut = config.pictures * 3 // 4
    return Pictures(0, cut, seed), Pictures(cut, config.pictures - cut, seed)


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    return batch
