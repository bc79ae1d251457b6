"""The loop's own cost: a generated project against hand-written loops and libraries, side by side.

Each contestant has a process; they take turns, in another order each round, one at a time. A ratio is that of two
contestants in the same round; reported is its median with the quartiles. All end with the same weights, or it fails.
"""

import json
import os
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
    "network, fp32": Work("network", epochs=4),
    "network, bf16, accumulation 4": Work("network", bf16=True, accumulation=4, epochs=4),
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


def measure(work: Work, names: list[str], rounds: int) -> list[Row]:
    """Trains every contestant once per round, after a round to warm up. Raises ValueError when they do other work."""
    processes = {name: start(name, work) for name in names}
    try:
        answers = {name: [ask(process)] for name, process in processes.items()}
        for index in range(rounds):
            for name in names[index % len(names) :] + names[: index % len(names)]:
                answers[name].append(ask(processes[name]))
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    best = answers[names[0]]
    rows = []
    for name in names:
        found = answers[name]
        pairs = list(zip(best[1:], found[1:], strict=True))
        difference = max(abs(a - b) for a, b in zip(best[0]["parameters"], found[0]["parameters"], strict=True))
        # In bf16 a sum that is divided in another place rounds another way.
        if found[0]["steps"] != best[0]["steps"] or not difference < (1e-4 if work.bf16 else 1e-6):
            raise ValueError(f"{name} makes {found[0]['steps']} steps and ends {difference:.1e} from the best loop")
        rows.append(
            Row(
                CONTESTANTS[name],
                statistics.median(SAMPLES * work.epochs / other["cpu"] for _, other in pairs),
                [one["cpu"] / other["cpu"] for one, other in pairs],
                [one["wall"] / other["wall"] for one, other in pairs],
                difference,
            )
        )
    return rows


def start(name: str, work: Work) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-m", "benchmarks.worker", name, json.dumps(asdict(work))]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
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


def main(rounds: int = 9) -> dict[str, list[Row]]:
    results = {}
    for title, work in WORKS.items():
        results[title] = measure(work, list(CONTESTANTS), rounds)
        print(f"\n### {title}\n\n{table(results[title])}", flush=True)
    return results


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
