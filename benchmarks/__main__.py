"""python -m benchmarks [loop start techniques data_path tool]: measures, and writes RESULTS.md and a chart."""

import importlib
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import torch

from benchmarks import loop

HERE = Path(__file__).parent
PARTS = {
    "loop": "The loop",
    "start": "Start and memory",
    "techniques": "What each technique costs",
    "data_path": "The way of the data",
    "tool": "The tool",
}
LIBRARIES = ("accelerate", "lightning", "pytorch-ignite", "transformers", "copier")


def machine() -> str:
    names = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{len(names)} cores of {names[0] if names else platform.processor()}, no accelerator; Python "
        f"{platform.python_version()}, torch {torch.__version__}, {versions}. One torch thread."
    )


def draw(results: dict[str, list[loop.Row]]) -> None:
    """A bar per contestant, for each of the works."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 9), layout="constrained")
    for index, (title, rows) in enumerate(results.items(), 1):
        axes = figure.add_subplot(2, 2, index)
        names = [row.name for row in rows][::-1]
        medians = [loop.quartiles(row.ratios)[1] for row in rows][::-1]
        colours = ["#4269d0" if "generated" in name else "#b8b8b8" for name in names]
        axes.barh(names, medians, color=colours)
        axes.set_ylim(len(names) - len(loop.CONTESTANTS) - 0.6, len(names) - 0.4)
        axes.axvline(1, color="#888888", linewidth=0.8)
        axes.set_title(title, loc="left", fontsize=10)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("speed by CPU time; the best hand-written loop is 1", fontsize=9)
    figure.savefig(HERE / "loop.svg")


def main(words: list[str]) -> None:
    path = HERE / "RESULTS.md"
    old = path.read_text().split("\n## ")[1:] if path.exists() else []
    sections = {text.partition("\n")[0]: text.partition("\n")[2].strip() for text in old}
    for part in words or PARTS:
        print(f"{part} ...", flush=True)
        if part == "loop":
            results = loop.main()
            draw(results)
            tables = [f"### {title}\n\n{loop.table(rows)}" for title, rows in results.items()]
            sections[PARTS[part]] = "\n\n".join([machine(), "![speed of each contestant](loop.svg)", *tables])
        else:
            sections[PARTS[part]] = machine() + "\n\n" + importlib.import_module(f"benchmarks.{part}").main()
            print(sections[PARTS[part]])
    ordered = [f"## {title}\n\n{sections[title]}\n" for title in PARTS.values() if title in sections]
    path.write_text("# Results\n\nWritten by `make bench`; README.md says what is measured.\n\n" + "\n".join(ordered))


if __name__ == "__main__":
    main(sys.argv[1:])
