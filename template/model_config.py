"""What model.py may leave out: values of its own (ModelConfig), and weights that a new run begins with."""

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

import model


@dataclass(frozen=True)
class NoValues:
    """The model has no values of its own."""


if TYPE_CHECKING:
    from model import ModelConfig
else:
    ModelConfig = getattr(model, "ModelConfig", NoValues)


def build_model(info: dict[str, Any], config: ModelConfig) -> nn.Module:
    """The model of model.py with new weights, for data of this `info`.

    Raises SystemExit where build_model in model.py does not take these, or gives no model.
    """
    arguments = (info,) if ModelConfig is NoValues else (info, config)
    try:
        inspect.signature(model.build_model).bind(*arguments)
    except TypeError:
        raise SystemExit(
            "model.py: build_model has to take (info), or (info, config) where there is a ModelConfig."
        ) from None
    built = model.build_model(*arguments)
    if not isinstance(built, nn.Module):
        raise SystemExit(f"model.py: build_model has to return a torch.nn.Module, not a {type(built).__name__}.")
    return built


def load_pretrained(built: nn.Module) -> None:
    """Lets model.py put weights that exist already into a new model, where it has such a function."""
    if load := getattr(model, "load_pretrained", None):
        load(built)
