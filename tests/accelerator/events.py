"""What passes between the host and the device, with the callers that asked for it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

import torch

# Frames of PyTorch and of this folder are no callers.
OURS = (os.path.dirname(__file__) + os.sep, os.path.dirname(torch.__file__) + os.sep)


class Event(NamedTuple):
    """Something that passed between the host and the device."""

    kind: str
    """`read` (device to host), `write` (host to device), `shape` (a size that depends on data), `wait` (asked for)."""
    operator: str
    waits: bool
    """Whether the host stands still until the device has done all that it was given."""
    bytes: int
    pinned: bool
    """Whether the host's side lies in pinned memory."""
    stack: tuple[str, ...]
    """`file:line function` of the callers, innermost first; empty in autograd's threads."""

    def __str__(self) -> str:
        marks = f"{', waits' if self.waits else ''}{', pinned' if self.pinned else ''}"
        return f"{self.kind} ({self.operator}{marks}) {self.bytes} B: {' < '.join(self.stack[:4])}"


class Recording:
    """The list that events go to; None: nobody listens, and an event costs nothing."""

    events: list[Event] | None = None


@contextlib.contextmanager
def record() -> Iterator[list[Event]]:
    """What passes between host and device inside the block, in every thread."""
    before, Recording.events = Recording.events, []
    try:
        yield Recording.events
    finally:
        Recording.events = before


def note(kind: str, operator: object, waits: bool, size: int = 0, pinned: bool = False) -> None:
    if Recording.events is None:
        return
    frame, stack = sys._getframe(1), []
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(OURS):
            stack.append(f"{os.path.basename(file)}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    Recording.events.append(Event(kind, str(operator), waits, size, pinned, tuple(stack)))
