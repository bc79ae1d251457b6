"""An owner's pictures with a class for each pixel: bright squares and dark ones. A third class is in no picture yet."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Batch = tuple[Tensor, Tensor]
SIZE = 12


@dataclass(frozen=True)
class DataConfig:
    pictures: int = 120


class Pictures:
    """Normalised pictures float32 [n, 1, 12, 12], and the class of each pixel int64 [n, 12, 12]; -1: nobody knows."""

    on_device = True

    def __init__(self, pictures: Tensor, classes: Tensor) -> None:
        self.pictures, self.classes, self.info = pictures, classes, {"classes": 4}

    def __len__(self) -> int:
        return len(self.pictures)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        return self.pictures[ids], self.classes[ids]


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[Pictures, Pictures]:
    generator = torch.Generator().manual_seed(seed)
    classes = torch.zeros(config.pictures, SIZE, SIZE, dtype=torch.int64)
    for picture in classes:
        for kind in (1, 2):
            top, left = torch.randint(SIZE - 5, (2,), generator=generator).tolist()
            picture[top : top + 5, left : left + 5] = kind
    pictures = torch.tensor([0.0, 1.0, -1.0])[classes] + 0.3 * torch.randn(classes.shape, generator=generator)
    classes[torch.rand(classes.shape, generator=generator) < 0.1] = -1
    classes[0] = -1  # a picture that nobody has drawn in
    pictures, classes = pictures[:, None].to(device), classes.to(device)
    cut = config.pictures * 3 // 4
    return Pictures(pictures[:cut], classes[:cut]), Pictures(pictures[cut:], classes[cut:])


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    pictures, classes = batch
    mirrored = noise(1)[:, 0] < 0.5
    return (
        torch.where(mirrored[:, None, None, None], pictures.flip(3), pictures),
        torch.where(mirrored[:, None, None], classes.flip(2), classes),
    )
