"""What each technique costs per optimizer step: chosen and turned down by its knob, and at work.

Against the project with the schedule and clipping alone, on the perceptron in fp32, where a microsecond shows;
processes take turns as in loop.py.
"""

import statistics
import sys

from benchmarks.loop import take_turns
from benchmarks.work import Work

WORK = Work("perceptron", epochs=20)
# How the technique is put to work; idle is what Contestant gives it.
CASES: dict[str, tuple[str, list[str]]] = {
    "amp, off": ("amp", []),
    "amp, bf16 on the CPU": ("amp", ["--amp.dtype", "bf16"]),
    "amp, fp16 on the CPU": ("amp", ["--amp.dtype", "fp16"]),
    "accumulation, 1": ("accumulation", []),
    "param_groups": ("param_groups", []),
    "ddp, one process": ("ddp", []),
    "compile, off": ("compile", []),
    "profiler, off": ("profiler", ["--profiler.active", "0"]),
    "profiler, five of 400 steps": ("profiler", ["--profiler.active", "5"]),
    "debug, hooks off": ("debug", ["--debug.no-hooks"]),
    "debug, hooks on": ("debug", ["--debug.hooks"]),
    "debug, anomaly mode": ("debug", ["--debug.no-hooks", "--debug.anomaly"]),
    "export": ("export", []),
    "cache": ("cache", []),
    "augmentation, off": ("augmentation", ["--augmentation.no-enabled"]),
    "augmentation, identity": ("augmentation", ["--augmentation.enabled"]),
    "tensorboard": ("tensorboard", []),
}


def main(trainings: int = 3) -> str:
    names = {f"ours/{' '.join([technique, *given])}": case for case, (technique, given) in CASES.items()}
    found = take_turns(WORK, ["ours", *names], trainings)
    steps = WORK.steps / WORK.epochs
    times = {name: [1e6 * epoch["cpu"] / steps for epoch in ended.epochs] for name, ended in found.items()}
    base = times.pop("ours")
    lines = [f"Without any of them: {statistics.median(base):.0f} µs of CPU time per step.", ""]
    lines += ["| technique | µs per step more | quartiles |", "|-|-:|-:|"]
    for name, own in times.items():
        low, middle, high = statistics.quantiles([b - a for a, b in zip(base, own, strict=True)], n=4)
        lines.append(f"| {names[name]} | {middle:.0f} | {low:.0f} to {high:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
