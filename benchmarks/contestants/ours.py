"""The generated project, with exactly the techniques that the work needs or with everything, as `train.train` runs it.

Left out for all contestants alike: writing checkpoints (fsync costs as much as an epoch of this tiny work) and drawing
the curves at the end. Logging to metrics.jsonl is on.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import work as w
from tricks.template.rendering import Template, write

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ["clipping", "scheduler"]
MIXED = ["amp", "accumulation", "clipping", "scheduler"]
# Techniques that work unless they are turned down by their knob.
IDLE = {
    "compile": ["--compile.mode", "off"],
    "debug": ["--debug.no-hooks"],
    "profiler": ["--profiler.active", "0"],
    "augmentation": ["--augmentation.no-enabled"],
}


def project(techniques: list[str], **answers: Any) -> Path:
    """Renders a project with the benchmark's data.py and model.py into a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    rendered = Template(ROOT).render({"techniques": techniques, **answers})
    for name in ("data.py", "model.py"):
        rendered[Path(name)] = (ROOT / "benchmarks" / "project" / name).read_text()
    write(rendered, folder)
    return folder


class Contestant:
    """A project that is imported once and trains many times."""

    def __init__(
        self, work: w.Work, techniques: list[str] | None = None, more: Sequence[str] = (), **answers: Any
    ) -> None:
        os.environ["BENCH_MODEL"] = work.model
        self.work = work
        self.folder = project(techniques or (MIXED if work.bf16 or work.accumulation > 1 else NEEDED), **answers)
        sys.path.insert(0, str(self.folder))
        import config
        import loader
        import log
        import train

        train.save = lambda *arguments: None
        log.draw = lambda folder: None
        self.module = train
        arguments = [
            "--epochs",
            str(work.epochs),
            "--batch-size",
            str(w.BATCH),
            "--lr",
            str(w.LR),
            "--seed",
            str(w.SEED),
        ]
        arguments += ["--weight-decay", str(w.WEIGHT_DECAY), "--schedule.warmup", "0", "--schedule.end", str(w.END)]
        arguments += ["--clipping.max-norm", str(w.MAX_NORM)]
        for technique in techniques or []:
            arguments += IDLE.get(technique, [])
        if work.accumulation > 1:
            arguments += ["--accumulation.steps", str(work.accumulation)]
        if work.bf16:
            arguments += ["--amp.dtype", "bf16"]
        self.config = config.parse([*arguments, *more])
        order = loader.Loader.order

        def begin(loader: Any, epoch: int) -> list[torch.Tensor]:
            if loader.shuffle:
                w.begin_epoch()
            return order(loader, epoch)

        loader.Loader.order = begin
        self.runs = 0
        self.built: list[Any] = []
        build = train.build
        train.build = lambda *given: self.built.append(build(*given)) or self.built[-1]

    def train(self, work: w.Work) -> w.Outcome:
        self.runs += 1
        self.built.clear()
        folder = self.folder / "runs" / str(self.runs)
        folder.mkdir(parents=True)
        with open(os.devnull, "w") as nowhere:
            shown, sys.stdout = sys.stdout, nowhere
            try:
                self.module.train(self.config, folder, torch.device("cpu"))
            finally:
                sys.stdout = shown
        (run,) = self.built
        return w.Outcome(run.progress.step, run.model)
