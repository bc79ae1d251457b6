"""Writes the projects that device.py runs on an accelerator, in a folder that travels."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from matrix import device
from matrix.jobs import amp_dtypes
from matrix.plans import headline
from matrix.samples import alone, nothing
from matrix.space import Choice, Space
from tricks.template.rendering import write


def write_trees(space: Space, folder: Path) -> int:
    """Writes the trees, jobs.json and device.py; returns the number of jobs."""
    jobs: list[dict[str, Any]] = []
    known: dict[str, str] = {}

    def add(name: str, choice: Choice, arguments: list[str], measured: bool) -> None:
        key = json.dumps(choice)
        if key not in known:
            known[key] = f"projects/{len(known)}"
            write(space.template.render(choice), folder / known[key])
        ddp = "ddp" in choice["techniques"]
        entry = {"name": name, "project": known[key], "arguments": arguments, "measured": measured, "ddp": ddp}
        jobs.append(entry)

    single = alone(space)
    for task in space.options["task"].values:
        long = ["--max-steps", "200", "--log-every", "10", "--batch-size", "256"]
        add(f"{task}-nothing", space.choice(nothing(space) | {"task": task}), long, True)
        for dtype in amp_dtypes(space.template):
            add(
                f"{task}-amp-{dtype}", space.choice(single["amp"] | {"task": task}), [*long, "--amp.dtype", dtype], True
            )
        # The same samples per optimizer step, in quarters.
        quarters = ["--max-steps", "200", "--log-every", "10", "--batch-size", "64", "--accumulation.steps", "4"]
        add(f"{task}-accumulation", space.choice(single["accumulation"] | {"task": task}), quarters, True)
        for name in ("compile", "clipping", "scheduler", "param_groups", "debug", "augmentation"):
            add(f"{task}-{name}", space.choice(single[name] | {"task": task}), long, True)
    for number, job in enumerate(headline(space)):
        if "export" not in job.choice["techniques"]:
            short = ["--max-steps", "6", "--log-every", "1", "--batch-size", "32"]
            short += ["--amp.dtype", job.amp] if job.amp else []
            short += ["--accumulation.steps", "2"] if "accumulation" in job.choice["techniques"] else []
            add(f"headline-{number}", job.choice, short, False)
    (folder / "jobs.json").write_text(json.dumps(jobs, indent=1) + "\n", encoding="utf-8")
    shutil.copy(device.__file__, folder / "device.py")
    return len(jobs)
