"""The learning rate as a pure function of (step, total steps): no drift, and nothing to restore but the step."""

import math
from dataclasses import dataclass

from torch.optim import Optimizer

from progress import Progress


@dataclass(frozen=True)
class ScheduleConfig:
    warmup: float = 0.1
    """Share of all optimizer steps in which the learning rate rises."""
    end: float = 0.01
    """The learning rate ends at this share of --lr."""
    extend: bool = False
    """Let a resumed run have another number of steps, which moves every later learning rate."""

    def __post_init__(self) -> None:
        if not 0 <= self.warmup < 1:
            raise ValueError(f"--schedule.warmup is {self.warmup}: give a share of the steps from 0 to below 1.")
        if not 0 < self.end <= 1:
            raise ValueError(f"--schedule.end is {self.end}: give a share of --lr above 0, 1 at most.")


def rise(step: int, total_steps: int, config: ScheduleConfig) -> tuple[float, float]:
    """How far the warm-up and what follows it are, each from 0 to 1; the last step is exactly at 1."""
    warmup = round(config.warmup * total_steps)
    after = (step - warmup) / max(total_steps - 1 - warmup, 1)
    return min((step + 1) / (warmup + 1), 1.0), min(max(after, 0.0), 1.0)


def factor(step: int, total_steps: int, config: ScheduleConfig) -> float:
    """The share of --lr with which optimizer step `step` (0 to total_steps - 1) is made."""
    up, down = rise(step, total_steps, config)
    return up * (config.end + (1 - config.end) * (1 + math.cos(math.pi * down)) / 2)


def set_rates(optimizer: Optimizer, progress: Progress, config: ScheduleConfig) -> None:
    """Sets the learning rates of the next optimizer step. Every group keeps its ratio to the others."""
    share = factor(progress.step - progress.skipped, progress.total_steps, config)
    for group in optimizer.param_groups:
        group["lr"] = group.setdefault("initial_lr", group["lr"]) * share


def check_total(planned: int, progress: Progress, config: ScheduleConfig, allowed: bool) -> None:
    """Raises SystemExit when a resumed run would follow another curve than it began and that is not `allowed`."""
    total = progress.total_steps
    if planned == total:
        return
    if not allowed:
        raise SystemExit(
            f"This run was planned for {planned} optimizer steps and would now have {total}, which changes its "
            "learning rates: keep --epochs and --max-steps, or ask for it with --schedule.extend."
        )
    new, old = (factor(progress.step - progress.skipped, steps, config) for steps in (total, planned))
    print(f"{planned} planned steps become {total}: the next learning rate is {new / old:.3g} times what it would be.")
