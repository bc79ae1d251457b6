"""What each technique costs per optimizer step: chosen and turned down by its knob, and at work.

Against the project with the schedule and clipping alone, on the perceptron in fp32, where a microsecond shows;
processes take turns as in loop.py.
"""

import statistics
import sys

from benchmarks.loop import ask, start
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


def main(rounds: int = 9) -> str:
    processes = {"": start("ours", WORK)}
    for case, (technique, arguments) in CASES.items():
        processes[case] = start("ours/" + " ".join([technique, *arguments]), WORK)
    try:
        times: dict[str, list[float]] = {name: [] for name in processes}
        for index in range(rounds + 1):
            for name, process in processes.items():
                answer = ask(process)
                if index:
                    times[name].append(1e6 * answer["cpu"] / answer["steps"])
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    base = times.pop("")
    lines = [f"Without any of them: {statistics.median(base):.0f} µs of CPU time per step.", ""]
    lines += ["| technique | µs per step more | quartiles |", "|-|-:|-:|"]
    for name, found in times.items():
        low, middle, high = statistics.quantiles([b - a for a, b in zip(base, found, strict=True)], n=4)
        lines.append(f"| {name} | {middle:.0f} | {low:.0f} to {high:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
