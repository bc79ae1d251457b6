"""A run: what it was told, what it changes, and where it stands."""

import random
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from checkpoint import Progress
from config import Config
from model import build_model


@dataclass
class Run:
    """What a run was told, what it changes, and where it stands."""

    config: Config
    device: torch.device
    model: nn.Module
    optimizer: torch.optim.Optimizer
    progress: Progress

    def parts(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "model": self.model,
            "optimizer": self.optimizer,
        }


def build(config: Config, info: dict[str, Any], device: torch.device, steps_per_epoch: int) -> Run:
    """A run before its first step."""
    seed_generators(config.seed)
    model = build_model(info).to(device)
    parameters = [pair for pair in model.named_parameters() if pair[1].requires_grad]
    # One kernel for all parameters instead of a dozen for each.
    fused = device.type in ("cpu", "cuda", "mps", "xpu")
    optimizer = torch.optim.AdamW(parameters, lr=config.lr, weight_decay=config.weight_decay, fused=fused)
    total_steps = config.max_steps or config.epochs * steps_per_epoch
    return Run(
        config=config,
        device=device,
        model=model,
        optimizer=optimizer,
        progress=Progress(total_steps=total_steps),
    )


def seed_generators(seed: int) -> None:
    """The generators that a model or its owner's code may use; the order of the samples has one of its own."""
    torch.manual_seed(seed)
    random.seed(seed)


def learning_rates(optimizer: torch.optim.Optimizer) -> dict[str, float]:
    return {"lr": float(optimizer.param_groups[0]["lr"])}
