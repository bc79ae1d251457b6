"""An owner's variational autoencoder: forward draws noise, in evaluation too."""

from typing import Any

import torch
from torch import Tensor, nn

from data import Batch

SEPARABLE = True
RANDOM = True


class Autoencoder(nn.Module):
    def __init__(self, pixels: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, 32), nn.GELU(), nn.Linear(32, 2 * 8))
        self.decoder = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, pixels))

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encoder(pixels).chunk(2, dim=1)
        code = mean + (log_variance / 2).exp() * torch.randn_like(mean)
        return self.decoder(code), mean, log_variance


def build_model(info: dict[str, Any]) -> nn.Module:
    return Autoencoder(info["pixels"])


def count(batch: Batch) -> int:
    return len(batch)


def parts(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    pixels, mean, log_variance = model(batch)
    divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum() / 2
    return (pixels - batch).square().sum(), 0.1 * divergence


def loss(model: nn.Module, batch: Batch) -> Tensor:
    return torch.stack(parts(model, batch)).sum()


def metrics(model: nn.Module, batch: Batch) -> dict[str, tuple[Tensor, int]]:
    error, divergence = parts(model, batch)
    return {"loss": (error + divergence, len(batch)), "error": (error, len(batch))}


def example_input(batch: Batch) -> tuple[Tensor, ...]:
    return ()  # what forward gives is random: nothing to export


def group(name: str, parameter: Tensor) -> str:
    return "decay" if parameter.ndim > 1 else "no_decay"


def predict(model: nn.Module, info: dict[str, Any], arguments: list[str]) -> list[str]:
    return arguments
