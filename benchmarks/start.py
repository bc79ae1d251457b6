"""From the start of the process to the first optimizer step, and the most memory of a whole run.

The generated project logs, saves checkpoints and has everything on that the defaults give; the bare script imports
torch and the data, and trains.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contestants.ours import ROOT
from tricks.template.rendering import Template, write

# Ends the process at its first optimizer step with the seconds of CPU and wall time since its start.
FIRST_STEP = """
import os, runpy, sys, time
import torch
real = torch.optim.AdamW.step
def step(self, *arguments):
    real(self, *arguments)
    started = float(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    print("first", time.clock_gettime(time.CLOCK_BOOTTIME) - started, time.process_time(), file=sys.stderr, flush=True)
    os._exit(0)
"""
PATCH = FIRST_STEP + "torch.optim.AdamW.step = step\n"
BARE = """
import math
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from model import ModelConfig, build_model
raw = load_digits()
images = torch.from_numpy(raw.images * (255 / 16)).round().to(torch.uint8).unsqueeze(1)
labels = torch.from_numpy(raw.target)
model = build_model({"channels": 1, "size": 8, "classes": list(range(10))}, ModelConfig())
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)
for epoch in range(EPOCHS):
    order = torch.randperm(1437)
    for ids in order.split(64):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[ids]), labels[ids])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        F.cross_entropy(model(images[1437:]), labels[1437:]).item()
"""
MEMORY = """
import resource, sys
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
"""


@dataclass
class Start:
    wall: list[float]
    """Seconds from the start of the process to its first optimizer step, per round."""
    cpu: list[float]
    memory: list[float]
    """MiB, the most of a run of three epochs."""


def numbers(folder: Path, word: str, arguments: list[str]) -> list[float]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith(f"{word} ")]
    if not lines:
        raise RuntimeError(done.stderr)
    return [float(part) for part in lines[0].split()[1:]]


def measure(rounds: int = 9) -> dict[str, Start]:
    found = {"bare": Start([], [], []), "generated": Start([], [], [])}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(Template(ROOT).render({}), folder)
        (folder / "bare_first.py").write_text(PATCH + BARE.replace("EPOCHS", "1"))
        (folder / "bare_whole.py").write_text(BARE.replace("EPOCHS", "3") + MEMORY)
        (folder / "ours_first.py").write_text(
            "import sys\nsys.argv[0] = 'train.py'\nsys.modules.pop('ours_first', None)\n" + PATCH
            + "runpy.run_path('train.py', run_name='__main__')\n"
        )  # fmt: skip
        (folder / "ours_whole.py").write_text(
            "import runpy, sys\nsys.argv[0] = 'train.py'\ntry:\n    runpy.run_path('train.py', run_name='__main__')\n"
            "except SystemExit:\n    pass\n" + MEMORY
        )
        for index in range(rounds + 1):
            for contestant, script in (("bare", "bare"), ("generated", "ours")):
                more = [] if script == "bare" else ["--run-dir", f"runs/{index}"]
                wall, cpu = numbers(folder, "first", [f"{script}_first.py", *more])
                if index:  # the first round fills the disk's cache
                    found[contestant].wall.append(wall)
                    found[contestant].cpu.append(cpu)
        for index in range(3):
            for contestant, script in (("bare", "bare"), ("generated", "ours")):
                more = [] if script == "bare" else ["--epochs", "3", "--run-dir", f"runs/whole-{index}"]
                found[contestant].memory += numbers(folder, "peak", [f"{script}_whole.py", *more])
    return found


def main(rounds: int = 9) -> str:
    found = measure(rounds)
    lines = ["| | wall s to the first step | CPU s | peak MiB |", "|-|-:|-:|-:|"]
    for name, start in found.items():
        wall, cpu, memory = (statistics.median(values) for values in (start.wall, start.cpu, start.memory))
        lines.append(f"| {name} | {wall:.2f} | {cpu:.2f} | {memory:.0f} |")
    differences = [b - a for a, b in zip(found["bare"].wall, found["generated"].wall, strict=True)]
    lines.append(f"\nGenerated minus bare, median of paired rounds: {statistics.median(differences):.3f} s.")
    return "\n".join(lines)


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
