"""The benchmark's model as an owner's model.py; the environment says which of the two."""

import os

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.work import Network, Perceptron
from data import Batch

SEPARABLE = True


def build_model(info: dict) -> nn.Module:
    return {"perceptron": Perceptron, "network": Network}[os.environ["BENCH_MODEL"]]()


def count(batch: Batch) -> int:
    return batch[1].numel()


def loss(model: nn.Module, batch: Batch) -> Tensor:
    return F.cross_entropy(model(batch[0]).float(), batch[1], reduction="sum")


def metrics(model: nn.Module, batch: Batch) -> dict[str, tuple[Tensor, int]]:
    logits = model(batch[0])
    right = (logits.argmax(1) == batch[1]).sum()
    return {
        "loss": (F.cross_entropy(logits.float(), batch[1], reduction="sum"), count(batch)),
        "accuracy": (right, count(batch)),
    }


def example_input(batch: Batch) -> tuple[Tensor, ...]:
    return (batch[0][:2],)


def group(name: str, parameter: Tensor) -> str:
    return "decay"


@torch.no_grad()
def predict(model: nn.Module, info: dict, arguments: list[str]) -> list[str]:
    return []
