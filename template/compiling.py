"""torch.compile, in place: the names of the parameters stay what they are, so checkpoints fit with and without it."""

import logging
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
# {% if ddp %}

from distributed import rank
# {% endif %}


@dataclass(frozen=True)
class CompileConfig:
    mode: Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "off"] = "default"
    """How long to optimise; the first steps wait for it."""


def compile_model(model: nn.Module, config: CompileConfig, device: torch.device) -> None:
    """Compiles the model in place, or leaves it eager with one sentence where there is no compiler."""
    if config.mode == "off" or not works(device):
        return
    # The last batch of an epoch is smaller: torch then compiles once more, for any batch size but a single sample.
    model.compile(mode=config.mode)


def works(device: torch.device) -> bool:
    """Whether this machine compiles, tried on one addition: the answer otherwise comes in the middle of a step."""
    # PyTorch logs hints for its own developers, as that a CUDA toolkit stands beside no GPU.
    logging.disable(logging.WARNING)
    try:
        torch.compile(lambda tensor: tensor + 1)(torch.zeros(2, device=device))
    except Exception as error:  # the backends raise whatever their toolchain raises
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        # {% if ddp %}
        if rank() == 0:
            print(f"torch.compile does not work here, so the model runs eagerly: {reason}")
        # {% else %}
        print(f"torch.compile does not work here, so the model runs eagerly: {reason}")
        # {% endif %}
        return False
    finally:
        logging.disable(logging.NOTSET)
    return True
