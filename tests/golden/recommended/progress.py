"""Where a run stands, when it is saved by the clock, and the signals that end it early."""

import math
import signal
import time
from dataclasses import dataclass
from types import FrameType


@dataclass
class Progress:
    """Where a run stands, in optimizer steps. A checkpoint keeps it."""

    epoch: int = 0
    epoch_step: int = 0
    steps_per_epoch: int = 0
    step: int = 0
    total_steps: int = 0
    evaluated: int = 0
    """The step of the last evaluation."""
    best: float = float("inf")
    """The best validation score so far, see scores.py; infinite before the first."""
    loss_sum: float = 0.0
    items: float = 0
    """Sum and number of the training losses of this epoch so far."""
    shift: int = 0
    """Steps that the run has more than its epochs would have with today's data: some were made with other data."""
    skipped: int = 0
    """Steps that the optimizer left out because fp16 overflowed; the schedule does not count them."""

    def next_step(self) -> None:
        self.step += 1
        self.epoch_step += 1

    def next_epoch(self) -> None:
        self.epoch += 1
        self.epoch_step, self.loss_sum, self.items = 0, 0.0, 0

    def due(self, every: int) -> bool:
        """Whether something that happens every so many steps, or at the end of each epoch if 0, happens now."""
        if self.step == self.total_steps:
            return True
        return self.step % every == 0 if every else self.epoch_step == self.steps_per_epoch


class SaveTimer:
    """Tells that the last checkpoint is too long ago: steps and epochs may take hours."""

    def __init__(self, minutes: float) -> None:
        self.seconds = 60 * minutes or math.inf
        self.restart()

    def restart(self) -> None:
        self.end = time.monotonic() + self.seconds

    def over(self) -> bool:
        return time.monotonic() >= self.end


class StopSignal:
    """Remembers the first Ctrl-C or SIGTERM, so that a run ends at its next step with a checkpoint instead of anywhere.

    A run that was stopped exits with 128 + the signal's number, as shells do: 130 for Ctrl-C, 143 for SIGTERM.
    """

    def __init__(self) -> None:
        self.number = 0
        # Without a handler SIGTERM ends Python where it stands: no `finally` runs, and the work is lost.
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}

    def _receive(self, number: int, frame: FrameType | None) -> None:
        # Only a second Ctrl-C interrupts at once: launchers pass on a SIGTERM that the process has got already.
        if self.number and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.number = number

    def close(self) -> None:
        """Gives the signals back to whoever handled them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
