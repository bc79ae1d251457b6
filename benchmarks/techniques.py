"""What each technique costs per optimizer step: chosen and turned down by its knob, and at work.

Against the project with the schedule and clipping alone, on the perceptron in fp32, where a microsecond shows;
processes take turns as in loop.py.
"""

import statistics
import sys

from benchmarks.loop import take_turns
from benchmarks.work import Work

WORK = Work("perceptron", epochs=20)
# The technique and the arguments that put it to work (what keeps it idle is in Contestant), and where its time goes.
CASES: dict[str, tuple[str, list[str], str]] = {
    "amp, off": ("amp", [], "a context that is not enabled, six questions to a scaler that is not enabled"),
    "amp, bf16 on the CPU": ("amp", ["--amp.dtype", "bf16"], "casts, which a small layer does not repay"),
    "amp, fp16 on the CPU": ("amp", ["--amp.dtype", "fp16"], "casts, unscaling, and reading whether it overflowed"),
    "accumulation, 1": ("accumulation", [], "a list of one micro-batch, and the sum of its losses"),
    "param_groups": ("param_groups", [], "one more kernel per group, one more rate to set"),
    "ddp, one process": ("ddp", [], "no wrapper: ids dealt out to one rank, and whether all ranks go on"),
    "compile, off": ("compile", [], "nothing in a step"),
    "profiler, off": ("profiler", ["--profiler.active", "0"], "one comparison"),
    "profiler, five of 400 steps": ("profiler", ["--profiler.active", "5"], "the recorded steps and their trace"),
    "debug, hooks off": ("debug", ["--debug.no-hooks"], "nothing in a step"),
    "debug, hooks on": ("debug", ["--debug.hooks"], "statistics of each layer's output and gradient"),
    "debug, anomaly mode": ("debug", ["--debug.no-hooks", "--debug.anomaly"], "a stack trace for each operation"),
    "export": ("export", [], "nothing in a step: an example is kept in the checkpoint"),
    "cache": ("cache", [], "nothing: samples that lie on the device are not cached"),
    "augmentation, off": ("augmentation", ["--augmentation.no-enabled"], "one comparison"),
    "augmentation, identity": ("augmentation", ["--augmentation.enabled"], "the keys of each sample's noise"),
    "tensorboard": ("tensorboard", [], "a scalar for each number of a row, every ten steps"),
}  # fmt: skip


def main(trainings: int = 3) -> str:
    names = {f"ours/{' '.join([technique, *given])}": case for case, (technique, given, _) in CASES.items()}
    found = take_turns(WORK, ["ours", *names], trainings)
    steps = WORK.steps / WORK.epochs
    times = {name: [1e6 * epoch["cpu"] / steps for epoch in ended.epochs] for name, ended in found.items()}
    base = times.pop("ours")
    lines = [f"Without any of them: {statistics.median(base):.0f} µs of CPU time per step.", ""]
    lines += ["| technique | µs per step more | quartiles | for |", "|-|-:|-:|-|"]
    for name, case in names.items():
        low, middle, high = statistics.quantiles([b - a for a, b in zip(base, times[name], strict=True)], n=4)
        lines.append(f"| {case} | {middle:.0f} | {low:.0f} to {high:.0f} | {CASES[case][2]} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
