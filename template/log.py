"""The log of a run: the rows of metrics.jsonl, a progress bar, a line per evaluation."""

import json
import math
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

# {% filter regex_replace("\n+", "\n") %}
from device import numbers, peak_memory

# {% if ddp %}
from distributed import rank, sum_over_ranks, world_size

# {% endif %}
from loader import MicroBatch
from run import Run, describe, learning_rates
from scores import METRIC

# {% if tensorboard %}
from tracker import Tracker


# {% endif %}
# {% endfilter %}


class Log:
    """Keeps the numbers of each step on the device and reads them together when a row is due: no wait per step."""

    def __init__(self, run_dir: Path, run: Run, samples: dict[str, int]) -> None:
        """Prints what begins; `samples` counts those of each source."""
        self.run_dir, self.run, self.progress = run_dir, run, run.progress
        # {% if amp %}
        self.overflows = 0
        # {% endif %}
        self.pending: list[tuple[int, list[Tensor], Tensor, float | Tensor, Tensor]] = []
        self.last: dict[str, Any] = {}
        self.told: set[str] = set()
        self.first_step = run.progress.step
        self.since = self.began = time.perf_counter()
        # {% if ddp %}
        self.writes = rank() == 0
        if not self.writes:
            return
        # {% endif %}
        for name, text in (describe(run, samples) | {"run folder": str(run_dir)}).items():
            print(f"  {name:<16} {text}", flush=True)
        self.file = MetricsFile(run_dir / "metrics.jsonl", run.progress.step)
        self.bar = tqdm(
            total=run.progress.total_steps,
            initial=run.progress.step,
            unit="step",
            disable=not sys.stderr.isatty(),
            leave=False,
        )
        # {% if tensorboard %}
        self.tracker = Tracker(run_dir, run.progress.step)
        # {% endif %}

    def step(self, window: list[MicroBatch], loss_sum: Tensor, items: float | Tensor, norm: Tensor) -> None:
        """Notes an optimizer step; reads nothing from the device."""
        self.pending.append((self.progress.step, [micro.ids for micro in window], loss_sum, items, norm))

    def due(self) -> bool:
        """Whether this step has a row."""
        return self.progress.step % self.run.config.log_every == 0

    def read(self) -> dict[str, Any]:
        """Reads the pending steps, adds them to the epoch's sums, and returns the last one as a row.

        Raises SystemExit at the first loss or gradient that is not finite, with its step and samples.
        """
        if not self.pending:
            return {}
        steps, ids, losses, items, norms = zip(*self.pending, strict=True)
        self.pending.clear()
        # {% if ddp %}
        losses = sum_over_ranks(torch.stack(losses))
        # {% else %}
        losses = torch.stack(losses)
        # {% endif %}
        columns = (losses.tolist(), numbers(items), torch.stack(norms).tolist())
        for step, parts, loss_sum, count, norm in zip(steps, ids, *columns, strict=True):
            finite = math.isfinite(loss_sum) and math.isfinite(norm)
            # {% if amp %}
            # fp16 finds its scale by overflowing; forty halvings in a row find none.
            self.overflows = 0 if finite else self.overflows + 1
            if self.overflows > (40 if self.run.scaler.is_enabled() else 0):
                stop_at(step, parts, loss_sum)
            # {% else %}
            if not finite:
                stop_at(step, parts, loss_sum)
            # {% endif %}
            if math.isfinite(loss_sum):
                self.progress.loss_sum += loss_sum
                self.progress.items += count
        samples = sum(part.numel() for parts in ids for part in parts)
        # {% if ddp %}
        samples *= world_size()
        # {% endif %}
        began, self.since = self.since, time.perf_counter()
        row = {"step": step, "epoch": self.progress.epoch, "loss": loss_sum / count}
        row |= {"grad_norm": norm, "samples_per_second": round(samples / (self.since - began), 1)}
        if (memory := peak_memory(self.run.device)) is not None:
            row["peak_memory_mb"] = round(memory / 2**20, 1)
        return row

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row of metrics.jsonl."""
        # {% if ddp %}
        if not self.writes:
            return
        # {% endif %}
        self.file.add(row)
        # {% if tensorboard %}
        self.tracker.row(row)
        # {% endif %}

    def training(
        self,
        # {% if debug %}
        layers: dict[str, float],
        # {% endif %}
    ) -> None:
        """Adds the row of a training step and moves the bar."""
        # {% if debug %}
        row = self.read() | learning_rates(self.run.optimizer) | layers
        # {% else %}
        row = self.read() | learning_rates(self.run.optimizer)
        # {% endif %}
        self.add(row)
        # {% if ddp %}
        if not self.writes:
            return
        # {% endif %}
        text = f"loss {row['loss']:.4f}  lr {row['lr']:.2e}  {row['samples_per_second']:.0f} samples/s"
        if self.bar.disable:
            print(f"epoch {row['epoch'] + 1:>3}  step {row['step']:>6}  {text}", flush=True)
            return
        self.bar.update(row["step"] - self.bar.n)
        self.bar.set_postfix_str(text, refresh=False)

    def settle(self) -> None:
        """Before an evaluation or a checkpoint: reads the pending steps, see read(), and writes all rows."""
        self.read()
        # {% if ddp %}
        if self.writes:
            self.file.write()
        # {% else %}
        self.file.write()
        # {% endif %}

    def restart_clock(self) -> None:
        """After an evaluation or a checkpoint, whose time is no part of samples_per_second."""
        self.since = time.perf_counter()

    def evaluation(
        self,
        scores: dict[str, float],
        # {% if cache %}
        cache_hits: dict[str, int],
        # {% endif %}
    ) -> None:
        """Adds the row of an evaluation and prints it; train_loss is the mean over the epoch's samples so far."""
        progress = self.progress
        row = {"step": progress.step, "epoch": progress.epoch, "train_loss": progress.loss_sum / (progress.items or 1)}
        row |= {f"val_{name}": value for name, value in scores.items()}
        # {% if cache %}
        row |= cache_hits
        # {% endif %}
        self.add(row)
        self.last = row
        # {% if ddp %}
        if not self.writes:
            return
        # {% endif %}
        numbers = "  ".join(f"{name} {value:.4f}" for name, value in row.items() if isinstance(value, float))
        text = f"epoch {row['epoch'] + 1:>3}  step {row['step']:>6}  {numbers}"
        if undefined := [name for name, value in row.items() if value != value and name not in self.told]:
            self.told.update(undefined)
            text += f"\n  {', '.join(undefined)}: nothing to take a mean of, or nan from model.py; logged as null"
        # At once, also where the output is a file.
        if self.bar.disable:
            print(text, flush=True)
        else:
            self.bar.write(text)

    def summary(self, stopped: int) -> None:
        """Draws the curves and prints what the run reached and what to do next."""
        # {% if ddp %}
        if not self.writes:
            return
        # {% endif %}
        progress, seconds = self.progress, time.perf_counter() - self.began
        if progress.step == self.first_step and not self.last and not stopped:
            # {% if stepwise %}
            more = "a larger --epochs or --max-steps, with --schedule.extend, gives it more"
            # {% else %}
            more = "a larger --epochs or --max-steps gives it more"
            # {% endif %}
            print(f"Nothing to do: the run has made all its {progress.step} steps; {more}.")
            return
        draw(self.run_dir)
        what = "Stopped" if stopped else "Done"
        print(f"\n{what} after {progress.step} of {progress.total_steps} steps, {seconds:.1f} s.")
        for name, value in self.last.items():
            if name.startswith("val_"):
                print(f"  {name:<16} {value:.4f}")
        if math.isfinite(progress.best):
            print(f"  {f'best val_{METRIC}':<16} {progress.best:.4f}")
        print(f"  {'run folder':<16} {self.run_dir} (metrics.jsonl, curves.png, checkpoints)")
        if stopped:
            print(f"  {'go on':<16} python train.py --resume --run-dir {self.run_dir}")
            return
        # {% if export %}
        print(f"  {'export it':<16} python export.py {self.run_dir}")
        # {% endif %}
        print(f"  {'use it':<16} python predict.py {self.run_dir} --help")

    def close(self) -> None:
        # {% if ddp %}
        if not self.writes:
            return
        # {% endif %}
        self.bar.close()
        self.file.close()
        # {% if tensorboard %}
        self.tracker.close()
        # {% endif %}


def stop_at(step: int, parts: list[Tensor], loss_sum: float) -> None:
    what = "gradient" if math.isfinite(loss_sum) else "loss"
    ids = torch.cat(parts).tolist()
    shown = f"{ids[:64]}{' and more' if len(ids) > 64 else ''}"
    raise SystemExit(
        f"Step {step}: the {what} is not finite. Samples of that step: {shown}. "
        "Any checkpoint is from before it; a lower --lr or a look at these samples may help."
    )


def draw(run_dir: Path) -> None:
    """curves.png, by a process of its own: matplotlib takes 60 MB, and half a second to import."""
    subprocess.run([sys.executable, Path(__file__).with_name("curves.py"), run_dir], check=False)


class MetricsFile:
    """metrics.jsonl, strict JSON. Keeps the rows of `step` and before; raises SystemExit when it cannot be written."""

    def __init__(self, path: Path, step: int) -> None:
        keep(path, step)
        self.file = path.open("a")
        self.waiting: list[dict[str, Any]] = []
        self.written = time.perf_counter()

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row; it is in the file a second later, or with the next row after that."""
        self.waiting.append(row)
        # To write costs more than all else that is done for a row.
        if time.perf_counter() - self.written > 1:
            self.write()

    def write(self) -> None:
        """Writes what waits. Call it before a checkpoint, since a resumed run adds only the rows after it."""
        rows, self.waiting, self.written = self.waiting, [], time.perf_counter()
        if not rows:
            return
        try:
            self.file.writelines(map(line, rows))
            self.file.flush()
        except OSError as error:
            raise SystemExit(f"Cannot write {self.file.name}: {error.strerror}. The checkpoints are whole.") from None

    def close(self) -> None:
        # Rows wait where an error ends the run, and it is that error that has to be told.
        with suppress(OSError):
            self.file.writelines(map(line, self.waiting))
            self.file.close()


def line(row: dict[str, Any]) -> str:
    """The row as strict JSON: a number that is not finite becomes null, which every reader takes."""
    finite = {name: None for name, value in row.items() if isinstance(value, float) and not math.isfinite(value)}
    return json.dumps(row | finite, allow_nan=False) + "\n"


def keep(path: Path, step: int) -> None:
    """Drops the rows after `step`, and a half-written last one: the run is about to write them again."""
    if not path.exists():
        return
    kept = []
    for text in path.read_text().splitlines():
        try:
            row = json.loads(text)
        except ValueError:
            continue
        if row["step"] <= step:
            kept.append(text + "\n")
    unfinished = path.with_name(".metrics.unfinished")
    unfinished.write_text("".join(kept))
    unfinished.replace(path)
