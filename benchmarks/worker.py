"""One contestant in a process of its own: goes on to its next epoch for each line on its input, and answers with what
that took. The first answer of a training is its set-up, the last one holds what it ended with.
"""

import contextlib
import importlib
import io
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from benchmarks import work as w
from benchmarks.work import Outcome, Work
from tests.choices import TECHNIQUES


def contestant(name: str, work: Work) -> Callable[[Work], Outcome]:
    """The function that trains; the name's part after a slash says how."""
    module, _, way = name.partition("/")
    if module == "ours":
        from benchmarks.contestants.ours import Contestant

        if way in ("", "everything idle"):
            return Contestant(work, TECHNIQUES if way else None).train
        technique, *arguments = way.split()
        tracker = {"tracker": "tensorboard"} if technique == "tensorboard" else {}
        chosen = ["clipping", "scheduler", *([] if tracker else [technique])]
        return Contestant(work, chosen, arguments, **tracker).train
    train = importlib.import_module(f"benchmarks.contestants.{module}").train
    if module in ("best", "tutorial"):
        return train
    options = (
        {} if module != "lightning_trainer" or way == "defaults" else importlib.import_module(train.__module__).OFF
    )
    return lambda work: train(work, own_path=way != "our data path", **options)


class Turns:
    """Holds the contestant between two epochs."""

    def __init__(self) -> None:
        self.answers = os.fdopen(os.dup(1), "w")

    def wait(self) -> None:
        if not sys.stdin.readline():
            os._exit(0)
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def answer(self, **more: Any) -> None:
        """Tells the seconds since wait() returned."""
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        self.answers.write(json.dumps({"wall": wall, "cpu": cpu, **more}) + "\n")
        self.answers.flush()

    def next(self) -> None:
        self.answer()
        self.wait()


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    work = Work(**json.loads(sys.argv[2]))
    turns = Turns()
    train = contestant(sys.argv[1], work)
    w.begin_epoch = turns.next
    turns.wait()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        while True:
            outcome = train(work)
            turns.answer(steps=outcome.steps, parameters=outcome.parameters.tolist())
            turns.wait()


if __name__ == "__main__":
    main()
