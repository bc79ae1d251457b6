"""From the totals of the owner's metrics to the numbers that are logged, and which of two models is the better one."""

import math
from typing import Any

import torch
from torch import Tensor

import model

# By name: a sum over samples, and how many items it is over.
Totals = dict[str, tuple[Any, float | Tensor]]

BEST = getattr(model, "BEST", ("loss", min))
if not (isinstance(BEST, tuple) and len(BEST) == 2 and BEST[1] in (min, max)):
    raise SystemExit('model.py: BEST has to be the name of a score and min or max, as in BEST = "accuracy", max.')
# What chooses the best model.
METRIC, PICK = BEST


def add(totals: Totals, more: Totals) -> None:
    """Adds to `totals`, in place: numbers and tensors of any shape add up, lists are joined."""
    for name, (value, items) in more.items():
        before = totals.get(name)
        totals[name] = (value, items) if before is None else (before[0] + value, before[1] + items)


def finished(totals: Totals) -> dict[str, float]:
    """What is logged: the mean of each sum that is a single number, and what model.finish makes of all of them.

    The mean of nothing is nan. `finish` gets the sums, float64 tensors and lists, and their counts, both by name.
    """
    sums = {
        name: value if isinstance(value, list) else torch.as_tensor(value, dtype=torch.float64)
        for name, (value, _) in totals.items()
    }
    counts = {name: float(items) for name, (_, items) in totals.items()}
    scores = {
        name: float(value) / counts[name] if counts[name] else math.nan
        for name, value in sums.items()
        if isinstance(value, Tensor) and value.ndim == 0
    }
    if finish := getattr(model, "finish", None):
        scores |= {name: float(value) for name, value in finish(sums, counts).items()}
    return scores


def is_better(score: float, best: float) -> bool:
    """Whether a finite score is better than the best so far, which is infinite where there is none."""
    return math.isfinite(score) and (not math.isfinite(best) or PICK(score, best) != best)
