"""The model and what is trained: a small network on made-up points. Replace it with your own.

The rest calls these functions with a batch of data.py and the model: bare or wrapped, in float32, float64 or a mix.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from data import Batch

SEPARABLE = True  # False where the loss of a batch is not the sum over its samples (contrastive losses)
RANDOM = False  # True where forward draws random numbers besides dropout: the tests leave out what cannot hold
BEST = "loss", min  # the score that chooses the best checkpoint: or "accuracy", max


@dataclass(frozen=True)
class ModelConfig:
    """Values of the model on the command line; may be left out, and build_model is then called with `info` alone."""

    width: int = 64
    """Outputs of the hidden layer."""


def build_model(info: dict, config: ModelConfig) -> nn.Module:
    """The model for data with this `info`, with new weights. Both arguments are kept in each checkpoint."""
    return nn.Sequential(nn.Linear(info["inputs"], config.width), nn.GELU(), nn.Linear(config.width, 1), nn.Flatten(0))


def count(batch: Batch) -> int:
    """The number of items that `loss` sums over: samples here; tokens, pixels or weights elsewhere."""
    return len(batch[1])


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """The SUM of the squared errors, in float32 or longer: mixed precision turns what mse_loss gets to float32."""
    return F.mse_loss(model(batch[0]), batch[1], reduction="sum")


def metrics(model: nn.Module, batch: Batch) -> dict[str, tuple[Tensor, int]]:
    """name -> (sum, count), logged as the mean over all samples."""
    return {"loss": (loss(model, batch), count(batch))}


def finish(sums: dict, counts: dict) -> dict[str, float]:
    """Other scores (may be left out), from the sums of `metrics` over all samples: of numbers, tensors or lists."""
    return {"rmse": float(sums["loss"] / counts["loss"]) ** 0.5}


def example_input(batch: Batch) -> tuple[Tensor, ...]:
    """What `forward` takes, for export: two samples, since a batch of one would be taken for a constant; or ()."""
    return (batch[0][[0, -1]],)


def group(name: str, parameter: Tensor) -> str:
    """The name of a parameter's group, each with its own weight decay and learning rate."""
    return "decay" if parameter.ndim > 1 else "no_decay"


def predict(model: nn.Module, info: dict, arguments: list[str]) -> list[str]:
    """A line for each argument of predict.py, here a point such as 0.6,0.8."""
    try:
        points = torch.tensor([[float(x) for x in text.split(",")] for text in arguments]).view(-1, info["inputs"])
    except (ValueError, RuntimeError):
        raise SystemExit(f"Give points of {info['inputs']} numbers, such as 0.6,0.8.") from None
    distances = model(points.to(next(model.parameters()).device))
    return [f"{text}: {distance:.3f}" for text, distance in zip(arguments, distances.tolist(), strict=True)]
