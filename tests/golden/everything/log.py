"""The log of a run: its rows, a progress bar, a line per evaluation."""

import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from checkpoint import Progress
from device import numbers, peak_memory
from distributed import rank, sum_over_ranks, world_size
from rows import Rows
from tracker import Tracker


class Log:
    """Keeps the numbers of each step on the device and reads them in one go when a row is due: no wait per step."""

    def __init__(
        self,
        run_dir: Path,
        progress: Progress,
        every: int,
        device: torch.device,
        skips_overflows: bool,
    ) -> None:
        self.run_dir, self.progress, self.every, self.device = run_dir, progress, every, device
        self.skips_overflows, self.overflows = skips_overflows, 0
        self.pending: list[tuple[int, list[Tensor], Tensor, int | Tensor, Tensor]] = []
        self.last: dict[str, Any] = {}
        self.first_step = progress.step
        self.since = self.began = time.perf_counter()
        self.writes = rank() == 0
        if not self.writes:
            return
        self.rows = Rows(run_dir / "metrics.jsonl", progress.step)
        self.bar = tqdm(
            total=progress.total_steps, initial=progress.step, unit="step", disable=not sys.stderr.isatty(), leave=False
        )
        self.tracker = Tracker(run_dir, progress.step)

    def step(self, ids: list[Tensor], loss_sum: Tensor, items: int | Tensor, norm: Tensor) -> None:
        """Notes an optimizer step; reads nothing from the device."""
        self.pending.append((self.progress.step, ids, loss_sum, items, norm))

    def due(self) -> bool:
        return self.progress.step % self.every == 0

    def flush(self) -> dict[str, Any]:
        """Reads the pending steps, adds them to the epoch's sums, and returns the last one as a row.

        Raises SystemExit at the first loss or gradient that is not finite, with its step and samples.
        """
        if not self.pending:
            return {}
        steps, ids, losses, items, norms = zip(*self.pending, strict=True)
        self.pending.clear()
        losses = sum_over_ranks(torch.stack(losses))
        columns = (losses.tolist(), numbers(items), torch.stack(norms).tolist())
        for step, parts, loss_sum, count, norm in zip(steps, ids, *columns, strict=True):
            finite = math.isfinite(loss_sum) and math.isfinite(norm)
            # fp16 finds its scale by overflowing; forty halvings in a row find none.
            self.overflows = 0 if finite else self.overflows + 1
            if self.overflows > (40 if self.skips_overflows else 0):
                stop_at(step, parts, loss_sum)
            if math.isfinite(loss_sum):
                self.progress.loss_sum += loss_sum
                self.progress.items += count
        samples = sum(part.numel() for parts in ids for part in parts)
        samples *= world_size()
        began, self.since = self.since, time.perf_counter()
        row = {"step": step, "epoch": self.progress.epoch, "loss": loss_sum / count}
        row |= {"grad_norm": norm, "samples_per_second": round(samples / (self.since - began), 1)}
        if (memory := peak_memory(self.device)) is not None:
            row["peak_memory_mb"] = round(memory / 2**20, 1)
        return row

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row of metrics.jsonl."""
        if not self.writes:
            return
        self.rows.add(row)
        self.tracker.row(row)

    def training(self, row: dict[str, Any]) -> None:
        """Adds the row of a training step and moves the bar."""
        self.add(row)
        if not self.writes:
            return
        if self.bar.disable:
            return
        self.bar.update(row["step"] - self.bar.n)
        rate = f"{row['samples_per_second']:.0f}"
        self.bar.set_postfix_str(f"loss {row['loss']:.4f}, lr {row['lr']:.2e}, {rate} samples/s", refresh=False)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Around an evaluation or a checkpoint, whose time is no part of samples_per_second."""
        self.flush()
        if self.writes:
            self.rows.write()
        yield
        self.since = time.perf_counter()

    def evaluation(
        self,
        scores: dict[str, float],
        cache_hits: dict[str, int],
    ) -> None:
        """Adds the row of an evaluation and prints it; train_loss is the mean over the epoch's samples so far."""
        progress = self.progress
        row: dict[str, Any] = {"step": progress.step, "epoch": progress.epoch}
        row["train_loss"] = progress.loss_sum / max(progress.items, 1)
        row |= {f"val_{name}": value for name, value in scores.items()}
        row |= cache_hits
        self.add(row)
        self.last = row
        if not self.writes:
            return
        numbers = "  ".join(f"{name} {value:.4f}" for name, value in row.items() if isinstance(value, float))
        text = f"epoch {row['epoch'] + 1:>3}  step {row['step']:>6}  {numbers}"
        # At once, also where the output is a file.
        if self.bar.disable:
            print(text, flush=True)
        else:
            self.bar.write(text)

    def summary(self, stopped: int) -> None:
        """Draws the curves and prints what the run reached and what to do next."""
        if not self.writes:
            return
        progress, seconds = self.progress, time.perf_counter() - self.began
        if progress.step == self.first_step and not self.last and not stopped:
            more = "a larger --epochs or --max-steps, with --schedule.extend, gives it more"
            print(f"Nothing to do: the run has made all its {progress.step} steps; {more}.")
            return
        draw(self.run_dir)
        what = "Stopped" if stopped else "Done"
        print(f"\n{what} after {progress.step} of {progress.total_steps} steps, {seconds:.1f} s.")
        for name, value in self.last.items():
            if name.startswith("val_"):
                print(f"  {name:<16} {value:.4f}")
        print(f"  {'best val_loss':<16} {progress.best:.4f}")
        print(f"  {'run folder':<16} {self.run_dir} (metrics.jsonl, curves.png, checkpoints)")
        if stopped:
            print(f"  {'go on':<16} python train.py --resume --run-dir {self.run_dir}")
            return
        print(f"  {'export it':<16} python export.py {self.run_dir}")
        print(f"  {'use it':<16} python predict.py {self.run_dir} --help")

    def close(self) -> None:
        if not self.writes:
            return
        self.bar.close()
        self.rows.close()
        self.tracker.close()


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
