"""The loop's own cost: a generated project against hand-written loops and libraries, side by side.

Each contestant has a process; they take turns, one at a time and in another order each round. A round is one epoch of
each, some twenty milliseconds: the speed of a shared machine changes within a second, and a ratio is that of two
contestants in the same round. Reported is its median with the quartiles. All end with the same weights, or it fails.
"""

import json
import os
import random
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.work import SAMPLES, Work

ROOT = Path(__file__).resolve().parents[1]
CONTESTANTS = {
    "best": "best hand-written loop",
    "ours": "generated project",
    "ours/everything idle": "generated project, all techniques, idle",
    "tutorial": "tutorial loop",
    "pytorch_ignite": "Ignite",
    "lightning_fabric": "Fabric",
    "hf_accelerate": "Accelerate",
    "hf_trainer": "HF Trainer",
    "lightning_trainer": "Lightning, all off",
    "lightning_trainer/defaults": "Lightning, defaults",
    "pytorch_ignite/our data path": "Ignite, our data path",
    "lightning_fabric/our data path": "Fabric, our data path",
    "hf_accelerate/our data path": "Accelerate, our data path",
    "hf_trainer/our data path": "HF Trainer, our data path",
    "lightning_trainer/our data path": "Lightning, all off, our data path",
}
WORKS = {
    "perceptron, fp32": Work("perceptron"),
    "perceptron, bf16, accumulation 4": Work("perceptron", bf16=True, accumulation=4),
    "network, fp32": Work("network", epochs=6),
    "network, bf16, accumulation 4": Work("network", bf16=True, accumulation=4, epochs=6),
}


@dataclass
class Row:
    name: str
    samples_per_second: float
    """By CPU time, median of the rounds."""
    ratios: list[float] = field(default_factory=list)
    """Speed against the best loop, by CPU time, one per round."""
    wall_ratios: list[float] = field(default_factory=list)
    difference: float = 0.0
    """Largest difference of a parameter from the best loop's."""


@dataclass
class Ended:
    """What a contestant's first training ended with, and the rounds of all its trainings."""

    steps: int
    parameters: list[float]
    epochs: list[dict[str, float]]
    """Seconds of `cpu` and `wall`, one entry per round."""


def take_turns(work: Work, names: list[str], trainings: int) -> dict[str, Ended]:
    """Trains every contestant so many times, after a training to warm up, in turns of an epoch."""
    processes = {name: start(name, work) for name in names}
    ended: dict[str, Ended] = {}
    draw = random.Random(0)
    try:
        for training in range(trainings + 1):
            for epoch in range(work.epochs + 1):
                for name in draw.sample(names, len(names)):
                    answer = ask(processes[name])
                    if training == 0 and epoch == work.epochs:
                        ended[name] = Ended(answer["steps"], answer["parameters"], [])
                    # The first answer is the set-up; the first epoch warms caches, and the last one tidies up.
                    elif training and 1 < epoch < work.epochs:
                        ended[name].epochs.append(answer)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    return ended


def measure(work: Work, names: list[str], trainings: int) -> list[Row]:
    """Compares contestants with the first one. Raises ValueError when one does other work."""
    found = take_turns(work, names, trainings)
    best = found[names[0]]
    rows = []
    for name in names:
        ended = found[name]
        pairs = list(zip(best.epochs, ended.epochs, strict=True))
        difference = max(abs(a - b) for a, b in zip(best.parameters, ended.parameters, strict=True))
        if ended.steps != best.steps or not difference < work.tolerance:
            raise ValueError(f"{name} makes {ended.steps} steps and ends {difference:.1e} from the best loop")
        rows.append(
            Row(
                CONTESTANTS[name],
                statistics.median(SAMPLES / other["cpu"] for _, other in pairs),
                [one["cpu"] / other["cpu"] for one, other in pairs],
                [one["wall"] / other["wall"] for one, other in pairs],
                difference,
            )
        )
    return rows


def start(name: str, work: Work) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"}
    # glibc may give the end of its heap back after each step and fetch it again: a fifth of the network's time for one
    # contestant and nothing for another, by where their last blocks happen to lie.
    environment |= {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**31)}
    command = [sys.executable, "-m", "benchmarks.worker", name, json.dumps(asdict(work))]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=ROOT,
    )


def ask(process: subprocess.Popen[str]) -> dict:
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args[3:]} ended without an answer")
    return json.loads(line)


def quartiles(values: list[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return low, middle, high


def table(rows: list[Row]) -> str:
    """Markdown: speed against the best loop, by CPU and by wall time."""
    lines = ["| | samples/s | against the best loop | quartiles | by wall time |", "|-|-:|-:|-:|-:|"]
    for row in rows:
        low, middle, high = quartiles(row.ratios)
        wall = quartiles(row.wall_ratios)[1]
        lines.append(
            f"| {row.name} | {row.samples_per_second:,.0f} | {middle:.3f} | {low:.3f} to {high:.3f} | {wall:.3f} |"
        )
    return "\n".join(lines)


def main(trainings: int = 4) -> dict[str, list[Row]]:
    results = {}
    for title, work in WORKS.items():
        # Most CPUs emulate bf16 in convolutions: a batch takes a hundred times as long, and the libraries' share of it
        # is nothing.
        slow = work.bf16 and work.model == "network"
        results[title] = measure(work, list(CONTESTANTS)[: 4 if slow else None], trainings)
        # By themselves and five times as often: these two differ by hundredths.
        if not slow:
            results[title][1] = measure(work, ["best", "ours"], 5 * trainings)[1]
        print(f"\n### {title}\n\n{table(results[title])}", flush=True)
    return results


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
