"""Evaluation: the owner's metrics over all samples of a loader, each counted once."""

from typing import Any

import torch
from torch import Tensor

from device import to_device, tree_map, widest
from loader import Loader
from model import metrics
from progress import StopSignal
from run import Run, training_mode
from scores import Totals, add, finished


def evaluate(run: Run, loader: Loader, stop: StopSignal) -> dict[str, float]:
    """The scores of the model on all samples; nothing if a signal cut the evaluation short."""
    totals = sum_up(run, loader, stop)
    return finished(totals) if totals else {}


@torch.no_grad()
def sum_up(run: Run, loader: Loader, stop: StopSignal) -> Totals:
    """The sums and counts of model.metrics over all samples, on the CPU; nothing if a signal cut it short."""
    run.model.eval()
    totals: Totals = {}
    for micro in loader.epoch(0, stop=stop):
        if stop.number:
            break
        batch = to_device(micro.batch, run.device)
        scores = metrics(run.model, batch)
        add(totals, {name: (widened(score), widened(items)) for name, (score, items) in scores.items()})
    training_mode(run.model)
    return {} if stop.number else tree_map(Tensor.cpu, totals)


def widened(value: Any) -> Any:
    """A tensor in 64 bits where its device has them, so that a mean hardly depends on the batch size."""
    if not isinstance(value, Tensor):
        return value
    return value.to(widest(value.device) if value.is_floating_point() else torch.int64)
