"""A run: what it was told, what it changes, and where it stands."""

import random
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import distributed
from amp import build_scaler, precision
from checkpoint import Progress
from compiling import compile_model
from config import Config
from groups import parameter_groups
from model import build_model


@dataclass
class Run:
    """What a run was told, what it changes, and where it stands."""

    config: Config
    device: torch.device
    model: nn.Module
    replica: nn.Module
    """The model as its wrapper, which sums gradients over the ranks; never evaluated or saved."""
    optimizer: torch.optim.Optimizer
    dtype: torch.dtype | None
    scaler: torch.amp.GradScaler
    progress: Progress

    def parts(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "scaler": self.scaler,
        }


def build(config: Config, info: dict[str, Any], device: torch.device, steps_per_epoch: int) -> Run:
    """A run before its first step."""
    seed_generators(config.seed)
    model = build_model(info).to(device)
    replica = distributed.wrap(model, config.ddp)
    # Dropout must not fall on the same places on every rank.
    seed_generators(config.seed + distributed.rank())
    compile_model(model, config.compile, device)
    parameters = parameter_groups(model, config.lr, config.weight_decay, config.groups)
    # One kernel for all parameters instead of a dozen for each.
    fused = device.type in ("cpu", "cuda", "mps", "xpu")
    optimizer = torch.optim.AdamW(parameters, lr=config.lr, weight_decay=config.weight_decay, fused=fused)
    total_steps = config.max_steps or config.epochs * steps_per_epoch
    dtype = precision(config.amp, device)
    return Run(
        config=config,
        device=device,
        model=model,
        replica=replica,
        optimizer=optimizer,
        dtype=dtype,
        scaler=build_scaler(dtype, device),
        progress=Progress(total_steps=total_steps),
    )


def seed_generators(seed: int) -> None:
    """The generators that a model or its owner's code may use; the order of the samples has one of its own."""
    torch.manual_seed(seed)
    random.seed(seed)


def learning_rates(optimizer: torch.optim.Optimizer) -> dict[str, float]:
    rates = {f"lr/{group['name']}": float(group["lr"]) for group in optimizer.param_groups}
    return {"lr": max(rates.values()), **rates}
