"""Evaluation: the owner's metrics over all samples of a loader, each counted once."""

from typing import Any

import torch
from torch import Tensor

# {% filter regex_replace("\n+", "\n") %}
from device import to_device, tree_map, widest

# {% if ddp %}
from distributed import all_gather, broadcast_buffers, max_over_ranks

# {% endif %}
from loader import Loader
from model import metrics
from progress import StopSignal
from run import Run, training_mode
from scores import Totals, add, finished

# {% endfilter %}


def evaluate(run: Run, loader: Loader, stop: StopSignal) -> dict[str, float]:
    """The scores of the model on all samples; nothing if a signal cut the evaluation short."""
    totals = sum_up(run, loader, stop)
    return finished(totals) if totals else {}


@torch.no_grad()
def sum_up(run: Run, loader: Loader, stop: StopSignal) -> Totals:
    """The sums and counts of model.metrics over all samples, on the CPU; nothing if a signal cut it short."""
    # {% if ddp %}
    broadcast_buffers(run.model)
    # {% endif %}
    run.model.eval()
    totals: Totals = {}
    for micro in loader.epoch(0, stop=stop):
        if stop.number:
            break
        batch = to_device(micro.batch, run.device)
        # {% if amp %}
        with torch.autocast(run.device.type, run.dtype, enabled=run.dtype is not None):
            scores = metrics(run.model, batch)
        # {% else %}
        scores = metrics(run.model, batch)
        # {% endif %}
        add(totals, {name: (widened(score), widened(items)) for name, (score, items) in scores.items()})
    training_mode(run.model)
    # {% if ddp %}
    if max_over_ranks(stop.number):
        return {}
    every: Totals = {}
    for own in all_gather(tree_map(Tensor.cpu, totals)):
        add(every, own)
    return every
    # {% else %}
    return {} if stop.number else tree_map(Tensor.cpu, totals)
    # {% endif %}


def widened(value: Any) -> Any:
    """A tensor in 64 bits where its device has them, so that a mean hardly depends on the batch size."""
    if not isinstance(value, Tensor):
        return value
    return value.to(widest(value.device) if value.is_floating_point() else torch.int64)
