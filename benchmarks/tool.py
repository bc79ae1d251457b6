"""The tool's own speed, beside Copier's, on one template; each command in a fresh process, in turns.

A machine that others use too is slow now and then and never fast: the least time of a command is its own. What a person
waits for is said by ratios too, to an empty Python and to the import of Copier, which hardly depend on the machine.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from benchmarks.contestants.ours import ROOT
from tests.choices import drawn
from tricks.template.rendering import Template

EMPTY, COPIER = "python -c pass", "python -c 'import copier'"
COMMANDS = {
    EMPTY: ["-c", "pass"],
    COPIER: ["-c", "import copier"],
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
    "tricks new --defaults --no-git": ["-m", "tricks", "new", "{new}", "--defaults", "--no-git"],
    "tricks show": ["-m", "tricks", "show"],
    "tricks diff minimal everything": ["-m", "tricks", "diff", "minimal", "everything"],
    "tricks explain ddp": ["-m", "tricks", "explain", "ddp"],
    "tricks list": ["-m", "tricks", "list"],
    "tricks --help": ["-m", "tricks", "--help"],
}


def main(rounds: int = 15) -> str:
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
                if index:  # the first round fills the caches of the disk
                    walls[name].append(wall)
                    cpus[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    least = {name: min(times) for name, times in walls.items()}
    lines = ["| command | wall s | CPU s | in imports of Copier |", "|-|-:|-:|-:|"]
    lines += [
        f"| `{name}` | {least[name]:.3f} | {min(cpus[name]):.3f} | "
        f"{(least[name] - least[EMPTY]) / (least[COPIER] - least[EMPTY]):.2f} |"
        for name in COMMANDS
    ]
    lines.append(f"\nThe least of {rounds} interleaved rounds; the last column leaves out the start of Python.")
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
