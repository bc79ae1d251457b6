"""Use a trained model: python predict.py RUN INPUT..."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import tyro

from checkpoint import load_model
from model import predict


@dataclass(frozen=True)
class Arguments:
    """Run the model of a training run on some inputs."""

    run: tyro.conf.Positional[Path]
    """Folder of the run, as runs/2030-01-31_12-00-00."""
    # {% if image %}
    inputs: tyro.conf.Positional[list[str]]
    """Image files."""
    # {% endif %}
    # {% if text %}
    inputs: tyro.conf.Positional[list[str]]
    """Beginnings of texts."""
    # {% endif %}
    # {% if table %}
    inputs: tyro.conf.Positional[list[str]]
    """CSV or Parquet files of new rows."""
    # {% endif %}
    # {% if blank %}
    inputs: tyro.conf.Positional[list[str]]
    """What `predict` in model.py takes."""
    # {% endif %}
    checkpoint: Literal["best", "last"] = "best"
    """Which of its models."""


def main() -> None:
    arguments = tyro.cli(Arguments)
    if not arguments.inputs:
        raise SystemExit("Name at least one input: python predict.py RUN INPUT...")
    model, content = load_model(arguments.run, arguments.checkpoint)
    with torch.inference_mode():
        for line in predict(model, content["info"], arguments.inputs):
            print(line)


if __name__ == "__main__":
    main()
