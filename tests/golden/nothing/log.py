"""The log of a run: metrics.jsonl (strict JSON, one row per logged step), a progress bar, a line per evaluation."""

import json
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
from resume import keep_rows


class Log:
    """Keeps the numbers of each step on the device and reads them in one go when a row is due: no wait per step."""

    def __init__(
        self,
        run_dir: Path,
        progress: Progress,
        every: int,
        device: torch.device,
    ) -> None:
        self.run_dir, self.progress, self.every, self.device = run_dir, progress, every, device
        self.pending: list[dict[str, Any]] = []
        self.last: dict[str, Any] = {}
        self.first_step = progress.step
        self.samples, self.since, self.began = 0, time.perf_counter(), time.perf_counter()
        path = run_dir / "metrics.jsonl"
        keep_rows(path, progress.step)
        self.file = path.open("a", buffering=1)
        self.bar = tqdm(
            total=progress.total_steps, initial=progress.step, unit="step", disable=not sys.stderr.isatty(), leave=False
        )

    def step(
        self, ids: list[Tensor], loss_sum: Tensor, items: int | Tensor, norm: Tensor, lr: dict[str, float]
    ) -> None:
        """Notes an optimizer step; reads nothing from the device."""
        self.pending.append(
            {
                "step": self.progress.step,
                "ids": ids,
                "loss_sum": loss_sum,
                "items": items,
                "norm": norm,
                "lr": lr,
            }
        )
        self.samples += sum(len(part) for part in ids)

    def due(self) -> bool:
        return self.progress.step % self.every == 0

    def flush(self) -> dict[str, Any]:
        """Reads the pending steps, adds them to the epoch's sums, and returns the last one as a row.

        Raises SystemExit at the first loss or gradient that is not finite, with its step and samples.
        """
        if not self.pending:
            return {}
        pending, self.pending = self.pending, []
        losses = torch.stack([entry["loss_sum"] for entry in pending])
        norms = torch.stack([entry["norm"] for entry in pending])
        items = numbers([entry["items"] for entry in pending])
        columns = (losses.tolist(), norms.tolist(), items)
        for entry, loss_sum, norm, count in zip(pending, *columns, strict=True):
            finite = math.isfinite(loss_sum) and math.isfinite(norm)
            if not finite:
                stop_at(entry, loss_sum)
            if math.isfinite(loss_sum):
                self.progress.loss_sum += loss_sum
                self.progress.items += count
        elapsed = time.perf_counter() - self.since
        rate = self.samples / elapsed
        self.samples, self.since = 0, time.perf_counter()
        row = {"step": entry["step"], "epoch": self.progress.epoch, "loss": loss_sum / count, **entry["lr"]}
        row |= {"grad_norm": norm, "samples_per_second": round(rate, 1)}
        if (memory := peak_memory(self.device)) is not None:
            row["peak_memory_mb"] = round(memory / 2**20, 1)
        return row

    def write(self, row: dict[str, Any]) -> None:
        """Adds a row to metrics.jsonl; a number that is not finite becomes null, which every JSON reader takes."""
        row = row | {name: None for name, value in row.items() if isinstance(value, float) and not math.isfinite(value)}
        try:
            self.file.write(json.dumps(row, allow_nan=False) + "\n")
        except OSError as error:
            raise SystemExit(f"Cannot write {self.file.name}: {error.strerror}. The checkpoints are whole.") from None

    def training(self, row: dict[str, Any]) -> None:
        """Writes the row of a training step and moves the bar."""
        self.write(row)
        self.bar.update(row["step"] - self.bar.n)
        rate = f"{row['samples_per_second']:.0f}"
        self.bar.set_postfix_str(f"loss {row['loss']:.4f}, lr {row['lr']:.2e}, {rate} samples/s", refresh=False)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Around an evaluation or a checkpoint, whose time is no part of samples_per_second."""
        self.flush()
        yield
        self.since = time.perf_counter()

    def evaluation(
        self,
        scores: dict[str, float],
    ) -> None:
        """Writes the row of an evaluation and prints it; train_loss is the mean over the epoch's samples so far."""
        progress = self.progress
        row: dict[str, Any] = {"step": progress.step, "epoch": progress.epoch}
        row["train_loss"] = progress.loss_sum / max(progress.items, 1)
        row |= {f"val_{name}": value for name, value in scores.items()}
        self.write(row)
        self.last = row
        numbers = "  ".join(f"{name} {value:.4f}" for name, value in row.items() if isinstance(value, float))
        self.bar.write(f"epoch {row['epoch'] + 1:>3}  step {row['step']:>6}  {numbers}")

    def summary(self, stopped: int) -> None:
        """Draws the curves and prints what the run reached and what to do next."""
        progress, seconds = self.progress, time.perf_counter() - self.began
        if progress.step == self.first_step and not self.last and not stopped:
            more = "a larger --epochs or --max-steps gives it more"
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
        print(f"  {'use it':<16} python predict.py {self.run_dir} --help")

    def close(self) -> None:
        self.bar.close()
        self.file.close()


def stop_at(entry: dict[str, Any], loss_sum: float) -> None:
    what = "gradient" if math.isfinite(loss_sum) else "loss"
    ids = torch.cat(entry["ids"]).tolist()
    shown = f"{ids[:64]}{' and more' if len(ids) > 64 else ''}"
    raise SystemExit(
        f"Step {entry['step']}: the {what} is not finite. Samples of that step: {shown}. "
        "Any checkpoint is from before it; a lower --lr or a look at these samples may help."
    )


def draw(run_dir: Path) -> None:
    """curves.png, by a process of its own: matplotlib takes 60 MB, and half a second to import."""
    subprocess.run([sys.executable, Path(__file__).with_name("curves.py"), run_dir], check=False)
