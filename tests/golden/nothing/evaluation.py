"""Evaluation: the means of the owner's metrics over a loader, each sample counted once."""

import torch
from torch import Tensor

from device import to_device
from loader import Loader
from model import metrics
from run import Run
from stopping import StopSignal


@torch.no_grad()
def evaluate(run: Run, loader: Loader, stop: StopSignal) -> dict[str, float]:
    """The mean of each of the model's metrics; nothing if a signal cut the evaluation short."""
    run.model.eval()
    values: dict[str, list[tuple[Tensor, int | Tensor]]] = {}
    for micro in loader.epoch(0):
        if stop.number:
            break
        batch = to_device(micro.batch, run.device)
        scores = metrics(run.model, batch)
        for name, score in scores.items():
            values.setdefault(name, []).append(score)
    run.model.train()
    # Sums in Python's float64: the same mean for any batch size.
    sums = {name: (sum(float(s) for s, _ in pairs), sum(int(n) for _, n in pairs)) for name, pairs in values.items()}
    return {} if stop.number else {name: total / items for name, (total, items) in sums.items()}
