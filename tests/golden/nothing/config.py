"""Every value that a run depends on. Each can be set on the command line: --lr 1e-3 --data.root photos."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import tyro

from data import DataConfig
from loader import LoaderConfig
from optimizer import OptimizerConfig


@dataclass(frozen=True)
class Config:
    """Train the model of model.py on the data of data.py."""

    epochs: int = 20
    """Passes over the training data."""
    max_steps: int = 0
    """Optimizer steps to make, whatever --epochs says; 0: as many as the epochs have."""
    batch_size: int = 64
    """Samples per micro-batch of one process."""
    lr: float = 3e-3
    """Learning rate."""
    weight_decay: float = 0.05
    """Weight decay, decoupled from the gradient."""
    seed: int = 0
    """Decides the split, the initial weights, the order of the samples, and what torch, Python and NumPy draw."""
    device: str = "auto"
    """auto: the accelerator of this machine, else the CPU. Or cpu, cuda, cuda:1, mps, xpu, ... by PyTorch's name."""
    run_dir: Path | None = None
    """Folder of this run; by default runs/<time>."""
    resume: bool = False
    """Go on with the run in --run-dir, or with the newest one."""
    eval_every: int = 0
    """Optimizer steps between evaluations; 0: at the end of each epoch."""
    checkpoint_every: int = 0
    """Optimizer steps between checkpoints; 0: at the end of each epoch."""
    log_every: int = 10
    """Optimizer steps between rows of metrics.jsonl."""
    overfit_one_batch: bool = False
    """Train and evaluate on one batch: a model that cannot learn it by heart has a fault."""
    data: DataConfig = DataConfig()
    loader: LoaderConfig = LoaderConfig()
    optimizer: OptimizerConfig = OptimizerConfig()

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch_size", 1), ("log_every", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"--{name.replace('_', '-')} is {getattr(self, name)}: give {least} or more.")
        for name in ("max_steps", "eval_every", "checkpoint_every"):
            if getattr(self, name) < 0:
                raise ValueError(f"--{name.replace('_', '-')} is {getattr(self, name)}: give 0 or more.")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"--seed is {self.seed}: give a whole number from 0 to below 2**32.")
        if not 0 < self.lr < float("inf"):
            raise ValueError(f"--lr is {self.lr}: give a learning rate above 0.")
        if not 0 <= self.weight_decay < float("inf"):
            raise ValueError(f"--weight-decay is {self.weight_decay}: give 0 or more.")


def parse(arguments: Sequence[str] | None = None) -> Config:
    """The config of a command line. A resumed run starts from the values that it was begun with.

    Ends the program with one sentence for a value that cannot be.
    """
    config = tyro.cli(Config, args=arguments)
    if not config.resume:
        return config
    run_dir = config.run_dir or newest_run(Path("runs"))
    path = run_dir / "config.json"
    try:
        saved = from_dict(Config, json.loads(path.read_text()))
    except OSError as error:
        raise SystemExit(f"Nothing to resume: {path} cannot be read ({error.strerror}).") from None
    except (ValueError, TypeError) as error:
        raise SystemExit(f"Nothing to resume: {path} is not the config of a run ({error}).") from None
    saved = replace(saved, resume=False)
    return replace(tyro.cli(Config, args=arguments, default=saved), run_dir=run_dir, resume=True)


def newest_run(runs: Path) -> Path:
    """The run that was begun or gone on with last. Raises SystemExit when there is none."""
    found = list(runs.glob("*/config.json"))
    if not found:
        raise SystemExit(f"Nothing to resume: there is no run in {runs}. Name one with --run-dir.")
    return max(found, key=lambda path: path.stat().st_mtime).parent


def open_run(config: Config) -> Path:
    """Makes the folder of the run and writes config.json into it.

    Raises SystemExit when the folder cannot be made, or holds another run.
    """
    run_dir = config.run_dir or Path("runs") / time.strftime("%Y-%m-%d_%H-%M-%S")
    if not config.resume and (run_dir / "checkpoints").exists():
        raise SystemExit(f"{run_dir} holds a run already: go on with it by --resume, or name another --run-dir.")
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemExit(f"Cannot make the run folder {run_dir}: {error.strerror}.") from None
    if not config.resume:
        write_config(run_dir, config)
    return run_dir


def write_config(run_dir: Path, config: Config) -> None:
    """Writes config.json. Raises SystemExit when it cannot; what was there before is still there then."""
    unfinished = run_dir / ".config.unfinished"
    try:
        unfinished.write_text(json.dumps(to_dict(config), indent=2) + "\n")
        unfinished.replace(run_dir / "config.json")
    except OSError as error:
        raise SystemExit(f"Cannot write into the run folder {run_dir}: {error.strerror}.") from None


def to_dict(config: Config) -> dict[str, Any]:
    """Nested plain values, for JSON and for checkpoints."""
    return json.loads(json.dumps(asdict(config), default=str))


def from_dict(kind: Any, values: dict[str, Any]) -> Any:
    """The inverse of to_dict. A value that is missing keeps its default, one that is no longer known is left out."""
    hints = get_type_hints(kind)
    known = {}
    for field in fields(kind):
        if field.name not in values:
            continue
        hint, value = hints[field.name], values[field.name]
        if is_dataclass(hint):
            value = from_dict(hint, value)
        elif Path in (hint, *get_args(hint)) and value is not None:
            value = Path(value)
        elif isinstance(value, list):
            value = tuple(value)
        known[field.name] = value
    return kind(**known)
