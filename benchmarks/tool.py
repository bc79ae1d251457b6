"""The tool's own speed, beside Copier's, on one template; each command in a fresh process, in turns."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from benchmarks.contestants.ours import ROOT
from tests.choices import drawn
from tricks.template.rendering import Template

COMMANDS = {
    "copier copy --defaults": [
        "-m",
        "copier",
        "copy",
        "--defaults",
        "--quiet",
        "--vcs-ref",
        "HEAD",
        str(ROOT),
        "{new}",
    ],
    "tricks new --defaults": ["-m", "tricks", "new", "{new}", "--defaults"],
    "tricks show": ["-m", "tricks", "show", "train.py"],
    "tricks list": ["-m", "tricks", "list"],
    "tricks --help": ["-m", "tricks", "--help"],
}


def main(rounds: int = 9) -> str:
    walls: dict[str, list[float]] = {name: [] for name in COMMANDS}
    cpus: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        for index in range(rounds + 1):
            for name, words in COMMANDS.items():
                new = str(Path(folder, f"{index}-{len(name)}"))
                command = [sys.executable, *(word.replace("{new}", new) for word in words)]
                before, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
                subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
                wall, after = time.perf_counter() - began, getrusage(RUSAGE_CHILDREN)
                if index:
                    walls[name].append(wall)
                    cpus[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    lines = ["| command | wall s | CPU s |", "|-|-:|-:|"]
    lines += [
        f"| {name} | {statistics.median(walls[name]):.2f} | {statistics.median(cpus[name]):.2f} |" for name in COMMANDS
    ]
    pairs = zip(walls["copier copy --defaults"], walls["tricks new --defaults"], strict=True)
    lines += [
        "",
        f"tricks new / copier copy, median of paired rounds: {statistics.median(b / a for a, b in pairs):.2f}.",
    ]
    template = Template(ROOT)
    choices = list(drawn(300, seed=1).values())
    for choice in choices[:100]:
        template.render(choice)
    began = time.process_time()
    for choice in choices[100:]:
        template.render(choice)
    lines.append(f"One choice rendered in memory, once warm: {1000 * (time.process_time() - began) / 200:.1f} ms.")
    return "\n".join(lines)


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
