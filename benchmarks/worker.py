"""One contestant in a process of its own: trains once for each line on its input, and answers with what that took."""

import contextlib
import importlib
import io
import json
import os
import sys
import time
import warnings
from collections.abc import Callable

import torch

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


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    work = Work(**json.loads(sys.argv[2]))
    answers = os.fdopen(os.dup(1), "w")
    train = contestant(sys.argv[1], work)
    for _ in sys.stdin:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            wall, cpu = time.perf_counter(), time.process_time()
            outcome = train(work)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        answer = {"wall": wall, "cpu": cpu, "steps": outcome.steps, "parameters": outcome.parameters.tolist()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
