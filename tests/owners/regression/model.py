"""An owner's regression: squared errors, the bias as a sum that cancels out, and R² of the whole validation set."""

from typing import Any

import torch
from torch import Tensor, nn

from data import Batch

SEPARABLE = True


def build_model(info: dict[str, Any]) -> nn.Module:
    return nn.Sequential(nn.Linear(info["features"], 32), nn.GELU(), nn.Linear(32, 1), nn.Flatten(0))


def count(batch: Batch) -> int:
    return len(batch["targets"])


def loss(model: nn.Module, batch: Batch) -> Tensor:
    return nn.functional.mse_loss(model(batch["values"]), batch["targets"], reduction="sum")


def metrics(model: nn.Module, batch: Batch) -> dict[str, tuple[Tensor, int]]:
    targets, n = batch["targets"], count(batch)
    errors = model(batch["values"]) - targets
    return {
        "loss": (errors.square().sum(), n),
        "bias": (errors.sum(), n),
        "squares": (torch.stack([errors.square().sum(), targets.sum(), targets.square().sum()]), n),
    }


def finish(sums: dict[str, Tensor], counts: dict[str, float]) -> dict[str, float]:
    residual, total, squares = sums["squares"].tolist()
    return {"r2": 1 - residual / (squares - total**2 / counts["squares"])}


def example_input(batch: Batch) -> tuple[Tensor, ...]:
    return (batch["values"][:2],)


def group(name: str, parameter: Tensor) -> str:
    return "decay" if parameter.ndim > 1 else "no_decay"


def predict(model: nn.Module, info: dict[str, Any], arguments: list[str]) -> list[str]:
    return arguments
