"""python curves.py RUN: one picture of a run: loss, metrics, learning rate and gradient norm over the optimizer steps.

The end of a run draws it; while the run goes on this command does.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#4269d0", "#ff725c", "#3ca951", "#a463f2", "#9c6b4e")


def draw(run_dir: Path) -> None:
    """Writes curves.png from metrics.jsonl. Raises SystemExit where there is none."""
    try:
        lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    except OSError as error:
        raise SystemExit(f"No curves: {run_dir / 'metrics.jsonl'} cannot be read ({error.strerror}).") from None
    # The run may be in the middle of the last line.
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    if not rows:
        return
    scores = sorted({name for row in rows for name in row if name.startswith("val_")} - {"val_loss"})
    panels = [["loss", "train_loss", "val_loss"], *([name] for name in scores), ["lr"], ["grad_norm"]]
    # A Figure of its own, without pyplot: needs no screen and leaves no global state.
    figure = Figure(figsize=(10, 3 * -(-len(panels) // 2)), layout="constrained")
    for index, names in enumerate(panels):
        panel(figure.add_subplot(-(-len(panels) // 2), 2, index + 1), rows, names)
    figure.suptitle(run_dir.name, fontsize=10, color="#666666")
    figure.savefig(run_dir / "curves.png", dpi=120)


def panel(axes: Axes, rows: list[dict[str, Any]], names: list[str]) -> None:
    lowest = math.inf
    for name, colour in zip(names, COLOURS, strict=False):
        points = [(row["step"], row[name]) for row in rows if row.get(name) is not None]
        if points:
            # Evaluations are few: mark each. Training rows are many: a thin line.
            style = (
                {"linewidth": 1, "alpha": 0.7}
                if name in ("loss", "lr", "grad_norm")
                else {"marker": "o", "markersize": 3}
            )
            axes.plot(*zip(*points, strict=True), color=colour, label=name, **style)
            lowest = min(lowest, *(value for _, value in points))
    if names[0] in ("loss", "grad_norm") and lowest > 0:
        axes.set_yscale("log")
    axes.set_title(names[0].removeprefix("val_"), loc="left", fontsize=10)
    axes.set_xlabel("step", fontsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    if len(names) > 1:
        axes.legend(frameon=False, fontsize=8)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("Name the folder of a run: python curves.py RUN")
    draw(Path(sys.argv[1]))
