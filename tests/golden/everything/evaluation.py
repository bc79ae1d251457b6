"""Evaluation: the means of the owner's metrics over a loader, each sample counted once."""

import torch
from torch import Tensor

from device import numbers, to_device
from distributed import broadcast_buffers, max_over_ranks, sums_over_ranks
from loader import Loader
from model import metrics
from progress import StopSignal
from run import Run


@torch.no_grad()
def evaluate(run: Run, loader: Loader, stop: StopSignal) -> dict[str, float]:
    """The mean of each of the model's metrics; nothing if a signal cut the evaluation short."""
    broadcast_buffers(run.model)
    run.model.eval()
    sums: dict[str, list[Tensor]] = {}
    counts: dict[str, list[int | Tensor]] = {}
    for micro in loader.epoch(0):
        if stop.number:
            break
        batch = to_device(micro.batch, run.device)
        with torch.autocast(run.device.type, run.dtype, enabled=run.dtype is not None):
            scores = metrics(run.model, batch)
        for name, (score, items) in scores.items():
            sums.setdefault(name, []).append(score)
            counts.setdefault(name, []).append(items)
    run.model.train()
    # In Python's float64, so that a mean hardly depends on the batch size.
    totals = {name: (sum(numbers(sums[name])), sum(numbers(counts[name]))) for name in sums}
    if max_over_ranks(stop.number):
        return {}
    totals = sums_over_ranks(totals)
    return {name: score / items for name, (score, items) in totals.items()}
