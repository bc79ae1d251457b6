# {% if schedule == "plateau" %}
"""The learning rate falls whenever the validation loss, or the score that model.BEST names, has stalled."""

from dataclasses import dataclass

from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from scores import PICK


@dataclass(frozen=True)
class ScheduleConfig:
    factor: float = 0.3
    """What the learning rate is multiplied with."""
    patience: int = 2
    """Evaluations without an improvement that are waited for."""
    min_factor: float = 0.001
    """The learning rate falls no further than this share of --lr."""

    def __post_init__(self) -> None:
        if not 0 < self.factor < 1:
            raise ValueError(f"--schedule.factor is {self.factor}: give a number between 0 and 1.")
        if self.patience < 0:
            raise ValueError(f"--schedule.patience is {self.patience}: give 0 or more evaluations.")
        if not 0 <= self.min_factor < 1:
            raise ValueError(f"--schedule.min-factor is {self.min_factor}: give a share of --lr from 0 to below 1.")


def build_schedule(optimizer: Optimizer, config: ScheduleConfig) -> ReduceLROnPlateau:
    """Step it once per evaluation, with the score of all ranks that chooses the best model."""
    floors = [group["lr"] * config.min_factor for group in optimizer.param_groups]
    mode = "min" if PICK is min else "max"
    return ReduceLROnPlateau(optimizer, mode, factor=config.factor, patience=config.patience, min_lr=floors, eps=0.0)


# {%- else %}
"""The learning rate as a pure function of (step, total steps): no drift, and nothing to restore but the step."""

# {% filter regex_replace("\n+", "\n") %}
# {% if schedule != "warmup_linear" and schedule != "chained" %}
import math

# {% endif %}
from dataclasses import dataclass

# {% endfilter %}

from torch.optim import Optimizer

from progress import Progress


@dataclass(frozen=True)
class ScheduleConfig:
    # {% if schedule == "one_cycle" %}
    warmup: float = 0.3
    """Share of all optimizer steps in which the learning rate rises."""
    start: float = 0.04
    """The learning rate begins at this share of --lr."""
    # {% else %}
    warmup: float = 0.1
    """Share of all optimizer steps in which the learning rate rises."""
    # {% endif %}
    # {% if schedule == "warmup_stable_decay" %}
    decay: float = 0.3
    """Share of all optimizer steps in which the learning rate falls."""
    # {% endif %}
    end: float = 0.01
    """The learning rate ends at this share of --lr."""
    extend: bool = False
    """Let a resumed run have another number of steps, which moves every later learning rate."""

    def __post_init__(self) -> None:
        if not 0 <= self.warmup < 1:
            raise ValueError(f"--schedule.warmup is {self.warmup}: give a share of the steps from 0 to below 1.")
        if not 0 < self.end <= 1:
            raise ValueError(f"--schedule.end is {self.end}: give a share of --lr above 0, 1 at most.")
        # {% if schedule == "warmup_stable_decay" %}
        if not 0 < self.decay <= 1 - self.warmup:
            raise ValueError(f"--schedule.decay is {self.decay}: with the warm-up it can be {1 - self.warmup} at most.")
        # {% endif %}
        # {% if schedule == "one_cycle" %}
        if not 0 < self.start <= 1:
            raise ValueError(f"--schedule.start is {self.start}: give a share of --lr above 0, 1 at most.")
        # {% endif %}


def rise(step: int, total_steps: int, config: ScheduleConfig) -> tuple[float, float]:
    """How far the warm-up and what follows it are, each from 0 to 1; the last step is exactly at 1."""
    warmup = round(config.warmup * total_steps)
    after = (step - warmup) / max(total_steps - 1 - warmup, 1)
    return min((step + 1) / (warmup + 1), 1.0), min(max(after, 0.0), 1.0)


def factor(step: int, total_steps: int, config: ScheduleConfig) -> float:
    """The share of --lr with which optimizer step `step` (0 to total_steps - 1) is made."""
    # {% if schedule == "warmup_cosine" %}
    up, down = rise(step, total_steps, config)
    return up * (config.end + (1 - config.end) * (1 + math.cos(math.pi * down)) / 2)
    # {% endif %}
    # {% if schedule == "warmup_linear" %}
    up, down = rise(step, total_steps, config)
    return up * (1 + (config.end - 1) * down)
    # {% endif %}
    # {% if schedule == "warmup_stable_decay" %}
    # The decay follows 1 - sqrt: https://arxiv.org/abs/2405.18392
    up, _ = rise(step, total_steps, config)
    length = max(round(config.decay * total_steps), 1)
    down = min(max((step - (total_steps - 1 - length)) / length, 0.0), 1.0)
    return up * (1 + (config.end - 1) * math.sqrt(down))
    # {% endif %}
    # {% if schedule == "one_cycle" %}
    # https://arxiv.org/abs/1708.07120, with cosines instead of lines
    up, down = rise(step, total_steps, config)
    if down > 0:
        return config.end + (1 - config.end) * (1 + math.cos(math.pi * down)) / 2
    return config.start + (1 - config.start) * (1 - math.cos(math.pi * up)) / 2
    # {% endif %}
    # {% if schedule == "chained" %}
    # A product of factors, each a schedule of its own: multiply in another one here.
    up, down = rise(step, total_steps, config)
    exponential = config.end**down
    return up * exponential
    # {% endif %}


def set_rates(optimizer: Optimizer, progress: Progress, config: ScheduleConfig) -> None:
    """Sets the learning rates of the next optimizer step. Every group keeps its ratio to the others."""
    # {% if amp %}
    share = factor(progress.step - progress.skipped, progress.total_steps, config)
    # {% else %}
    share = factor(progress.step, progress.total_steps, config)
    # {% endif %}
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
    # {% if amp %}
    new, old = (factor(progress.step - progress.skipped, steps, config) for steps in (total, planned))
    # {% else %}
    new, old = (factor(progress.step, steps, config) for steps in (total, planned))
    # {% endif %}
    print(f"{planned} planned steps become {total}: the next learning rate is {new / old:.3g} times what it would be.")


# {%- endif +%}
