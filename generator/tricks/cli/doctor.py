"""`tricks doctor`: asks the generated modules themselves what they would do on this machine."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tricks import UserError
from tricks.template.rendering import Template, write

PROBE = Path(__file__).with_name("probe.py")


def examine(template: Template, python: str) -> Iterator[str]:
    """Lines about the device and each technique, as that Python sees them. Raises UserError where it has no PyTorch."""
    yield f"Python: {python}"
    with tempfile.TemporaryDirectory(prefix="tricks-doctor-") as folder:
        answers = {"preset": "everything", "tracker": "tensorboard"}
        write(template.render(answers), Path(folder))
        yield from report(probe(python, Path(folder)))


def with_torch() -> str:
    """This Python if it has PyTorch, else that of the active environment."""
    if importlib.util.find_spec("torch"):
        return sys.executable
    found = shutil.which("python") or shutil.which("python3")
    if found and os.path.realpath(found) != os.path.realpath(sys.executable):
        return found
    raise UserError(
        "PyTorch is not installed here: activate the environment in which you train, or name its Python by --python."
    )


def probe(python: str, project: Path) -> dict[str, Any]:
    """What probe.py finds, run by that Python in a project with every technique."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        done = subprocess.run(
            [python, str(PROBE)], cwd=project, env=environment, capture_output=True, text=True, timeout=300
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(
            f"{python} could not be asked ({error}): name a Python that has PyTorch by --python."
        ) from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        if "No module named 'torch'" in reason:
            reason = "PyTorch is not installed in it"
        raise UserError(f"{python} cannot train ({reason}): name the Python in which you train by --python.")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def report(found: dict[str, Any]) -> Iterator[str]:
    memory = f", {found['memory'] / 2**30:.0f} GiB" if found["memory"] else ""
    yield f"PyTorch {found['torch']}"
    yield f"Device: {found['device']} ({found['name']}{memory}), {found['count']} of them"
    dtype = found["amp"]
    yield "amp: " + (
        "off unless asked for (--amp.dtype bf16): this device gains nothing from it"
        if dtype == "off"
        else f"{dtype}{', with scaled gradients' if dtype == 'fp16' else ''}"
    )
    yield f"compile: {'works' if found['compile'] is None else 'the model would run eagerly: ' + found['compile']}"
    several = found["ddp"] not in ("", "none") and found["count"] > 1
    if found["ddp"] == "none":
        yield f"ddp: PyTorch has no collectives for {found['device']}; several processes train on the CPU"
    elif found["ddp"]:
        use = f"torchrun --nproc-per-node {found['count']}" if found["count"] > 1 else "one device: one process"
        yield f"ddp: {found['ddp']} ({use})"
    else:
        yield "ddp: this PyTorch was built without torch.distributed"
    for name, missing in found["exporters"].items():
        yield f"export to {name}: {'ready' if not missing else 'needs ' + ', '.join(missing)}"
    yield f"tensorboard: {'installed' if found['tensorboard'] else 'needs the package tensorboard'}"
    yield (
        "accumulation, clipping, scheduler, param_groups, profiler, debug, cache, augmentation, init_from: work on any "
        "device"
    )
    picks = ["accumulation", "clipping", "scheduler", "param_groups"]
    picks += ["amp"] * (dtype != "off") + ["ddp"] * several
    picks += ["compile"] * (found["compile"] is None and found["device"] != "cpu")
    yield f"A good start here: tricks new PROJECT {' '.join(picks)}"
