"""TensorBoard: the numbers of metrics.jsonl once more, for `tensorboard --logdir runs`."""

from pathlib import Path
from typing import Any


class Tracker:
    """Writes every number of a row as a scalar. Without the package the run goes on, and says so once."""

    def __init__(self, run_dir: Path, step: int) -> None:
        self.writer = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            print("TensorBoard is not installed, so only metrics.jsonl is written: pip install -e .")
            return
        # purge_step hides what a run wrote after the checkpoint that it resumes from.
        self.writer = SummaryWriter(str(run_dir / "tensorboard"), purge_step=step + 1 if step else None)

    def row(self, row: dict[str, Any]) -> None:
        if self.writer is None:
            return
        for name, value in row.items():
            if name != "step" and isinstance(value, (int, float)):
                self.writer.add_scalar(name, value, row["step"])

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
