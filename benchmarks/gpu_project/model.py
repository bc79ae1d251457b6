"""The accelerator benchmark's models: a residual network for images of 32 x 32, and a small transformer."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from data import NETWORK, Batch

SEPARABLE = True


class Residual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int):
        super().__init__()
        self.way = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.GroupNorm(8, outside), nn.ReLU(),
            nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.GroupNorm(8, outside),
        )  # fmt: skip
        self.short = nn.Identity() if inside == outside else nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.way(x) + self.short(x))


class ResNet(nn.Module):
    """Six residual blocks, 2.1 M parameters."""

    def __init__(self) -> None:
        super().__init__()
        widths = [64, 64, 64, 128, 128, 256, 256]
        blocks = [Residual(a, b, 1 if a == b else 2) for a, b in pairwise(widths)]
        self.layers = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(256, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.layers(images.to(self.head.weight.dtype) / 255))


class Transformer(nn.Module):
    """Six layers of width 384 on 128 tokens, 11 M parameters."""

    def __init__(self, width: int = 384, depth: int = 6):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(256, width), nn.Embedding(128, width)
        layer = nn.TransformerEncoderLayer(width, 6, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 256)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(128), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.layers(self.tokens(tokens) + self.positions.weight, self.mask, is_causal=True))


def build_model(info: dict) -> nn.Module:
    return ResNet() if NETWORK == "resnet" else Transformer()


def count(batch: Batch) -> int:
    return batch[1].numel()


def loss(model: nn.Module, batch: Batch) -> Tensor:
    logits = model(batch[0]).float()
    return F.cross_entropy(logits.flatten(0, -2), batch[1].flatten(), reduction="sum")


def metrics(model: nn.Module, batch: Batch) -> dict[str, tuple[Tensor, int]]:
    return {"loss": (loss(model, batch), count(batch))}


def example_input(batch: Batch) -> tuple[Tensor, ...]:
    return (batch[0][:2],)


def group(name: str, parameter: Tensor) -> str:
    return "decay" if parameter.ndim > 1 else "no_decay"


@torch.no_grad()
def predict(model: nn.Module, info: dict, arguments: list[str]) -> list[str]:
    return []
