"""The model and what is trained: a small convolutional classifier. Replace it with your own.

The rest of the project calls the functions below with a batch of data.py, (images, labels), and the model:
bare or wrapped, in float32, in a mix with a shorter type or, in tests, in float64.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from data import Batch, read_image

SEPARABLE = True  # the loss of a batch is the sum of its samples' losses


@dataclass(frozen=True)
class ModelConfig:
    width: int = 32
    """Channels of the first convolution; the last one has twice as many."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.width % 16:
            raise ValueError(f"--model.width is {self.width}: give a multiple of 16.")


class ConvNet(nn.Module):
    """3x3 convolutions that halve the image down to 4 to 7 pixels; 45 thousand parameters for the digits.

    GroupNorm, not batch norm: samples do not touch each other, so accumulation and several processes give
    the same numbers as one large batch.
    """

    def __init__(self, channels: int, size: int, classes: int, width: int):
        super().__init__()
        wider = width * 3 // 2
        stages = [convolution(channels, width), convolution(width, wider, stride=2)]
        while (size := (size + 1) // 2) > 7:
            stages.append(convolution(wider, wider, stride=2))
        self.features = nn.Sequential(*stages, convolution(wider, 2 * width), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.head = nn.Linear(4 * 2 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits [n, classes] of images [n, channels, size, size] in 0..255, uint8 or float."""
        return self.head(self.features(images.to(self.head.weight.dtype) / 127.5 - 1))


def convolution(channels: int, width: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, stride, padding=1, bias=False),  # the norm has the bias
        nn.GroupNorm(8, width),
        nn.GELU(),
    )


def build_model(info: dict, config: ModelConfig) -> nn.Module:
    """`info` is the data's (channels, size, classes); both are saved with the weights."""
    return ConvNet(info["channels"], info["size"], len(info["classes"]), config.width)


def count(batch: Batch) -> int:
    """The number of items that `loss` sums over."""
    return len(batch[1])


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """The sum of the cross entropies, in nats; float32 also where the model computes in half precision."""
    images, labels = batch
    return cross_entropy(model(images), labels)


def metrics(model: nn.Module, batch: Batch) -> dict[str, tuple[Tensor, int]]:
    """name -> (sum, count), from one forward pass. "loss" is what chooses the best checkpoint."""
    images, labels = batch
    logits = model(images)
    return {
        "loss": (cross_entropy(logits, labels), len(labels)),
        "accuracy": ((logits.argmax(1) == labels).sum(), len(labels)),
    }


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits, labels, reduction="sum")


def example_input(batch: Batch) -> tuple[Tensor, ...]:
    """What `forward` takes, for export: two samples, since a batch of one would be taken for a constant."""
    return (batch[0][[0, -1]],)


def group(name: str, parameter: Tensor) -> str:
    """Weights decay; biases and norms do not; the head may have its own learning rate."""
    if parameter.ndim < 2:
        return "no_decay"
    return "head" if name.startswith("head.") else "decay"


def predict(model: nn.Module, info: dict, arguments: list[str]) -> list[str]:
    """The class of each image file. The digits are bright on a dark ground."""
    images = torch.stack([read_image(file, info) for file in arguments])
    device = next(model.parameters()).device
    probabilities, classes = model(images.to(device)).softmax(1).max(1)
    return [
        f"{file}: {info['classes'][index]} ({probability:.1%})"
        for file, index, probability in zip(arguments, classes.tolist(), probabilities.tolist(), strict=True)
    ]
