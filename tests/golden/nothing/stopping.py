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
        if self.number:
            raise KeyboardInterrupt
        self.number = number

    @property
    def exit_code(self) -> int:
        return 128 + self.number if self.number else 0

    def close(self) -> None:
        """Gives the signals back to whoever handled them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
