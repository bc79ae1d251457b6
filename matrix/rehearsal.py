"""What libraries do at their first use, done once in the warm process: each child would do it again.

Imported there, before the first fork, it builds, steps and saves the smallest project of each task and forgets its
modules: what stays is in the libraries (tables, caches of shapes). rehearsal_exports.py goes on with exports. No thread
starts that a fork would lose.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from matrix import child, pages
from matrix.jobs import Job
from matrix.space import ROOT
from tricks.template.rendering import Template, write


def fewer_digits() -> None:
    """Sixteen of scikit-learn's digits, noughts and ones, read once: three steps an epoch, and soon told apart."""
    datasets: Any = importlib.import_module("sklearn.datasets")
    digits = datasets.load_digits()
    chosen = (digits["target"] < 2).nonzero()[0][:16]
    few = type(digits)(**digits | {name: digits[name][chosen] for name in ("data", "images", "target")})
    datasets.load_digits, datasets.all_digits = lambda: few, lambda: digits


def settle() -> None:
    """Leaves what is there to the children as it is: nothing of it is collected, and a fork copies few pages."""
    gc.collect()
    gc.freeze()
    pages.collapse()


def each_task(use: Callable[[Any, Any, Any], None]) -> None:
    """Calls `use` with a model, a batch and the module model.py of the smallest project of each task.

    This repository's own template, whichever is tested: a broken one must break in a child.
    """
    template, here = Template(ROOT), Path.cwd()
    for task in template.questions["task"]["choices"].values():
        job = Job({"task": task, "techniques": []})
        with tempfile.TemporaryDirectory() as scratch:
            write(template.render(job.choice), Path(scratch))
            text = child.write_text(Path(scratch, "text.txt"))
            sys.path.insert(0, scratch)
            os.chdir(scratch)
            try:
                config, data, module = (importlib.import_module(name) for name in ("config", "data", "model"))
                given = config.parse(child.arguments(job, text))
                source = data.load(given.data, given.seed, torch.device("cpu"))[0]
                use(
                    module.build_model(source.info, given.model),
                    source.fetch(torch.arange(given.batch_size), 0),
                    module,
                )
            finally:
                os.chdir(here)
                sys.path.remove(scratch)
                for name, loaded in list(sys.modules.items()):
                    if str(getattr(loaded, "__file__", "")).startswith(scratch):
                        del sys.modules[name]


def train(model: Any, batch: Any, module: Any) -> None:
    scaler = torch.amp.GradScaler("cpu")
    optimizer = torch.optim.AdamW(model.named_parameters(), fused=True)
    for dtype in (None, torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            total = module.loss(model, batch)
        scaler.scale(total / 2).backward()
        torch.nn.utils.get_total_norm([parameter.grad for parameter in model.parameters()])
        scaler.step(optimizer)
        scaler.update()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "python": random.getstate()}, file)
    file.seek(0)
    model.load_state_dict(torch.load(file, weights_only=True)["model"])


fewer_digits()
each_task(train)
settle()
