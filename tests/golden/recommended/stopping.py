"""Ctrl-C and SIGTERM end a run at the next optimizer step, with a checkpoint, instead of anywhere."""

import signal
from types import FrameType


class StopSignal:
    """Remembers the first signal; a second one interrupts at once.

    A run that was stopped exits with 128 + the signal's number, as shells do: 130 for Ctrl-C, 143 for SIGTERM.
    """

    def __init__(self) -> None:
        self.number = 0
        # Without a handler SIGTERM ends Python where it stands: no `finally` runs, and the work is lost.
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}

    def _receive(self, number: int, frame: FrameType | None) -> None:
        # Only a second Ctrl-C: launchers pass on a SIGTERM that the process has got already.
        if self.number and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.number = number

    def close(self) -> None:
        """Gives the signals back to whoever handled them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
