"""Every value that a run depends on. Each can be set on the command line: --lr 1e-3 --loader.workers 2."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tyro

from arguments import from_arguments, to_arguments, to_dict
from data import DataConfig
from loader import LoaderConfig
from model_config import ModelConfig
from optimizer import OptimizerConfig
from run_folder import newest_run, open_folder, write_json


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
    resume_data_changed: bool = False
    """Go on at the next epoch although the data are not those that the run was begun with."""
    eval_every: int = 0
    """Optimizer steps between evaluations; 0: at the end of each epoch."""
    checkpoint_every: int = 0
    """Optimizer steps between checkpoints; 0: at the end of each epoch."""
    checkpoint_minutes: float = 15.0
    """Minutes after which a checkpoint is written besides; 0: never."""
    keep: int = 1
    """Checkpoints to keep of those before the last one; the best model is always kept."""
    log_every: int = 10
    """Optimizer steps between rows of metrics.jsonl."""
    overfit_one_batch: bool = False
    """Train and evaluate on one batch: a model that cannot learn it by heart has a fault."""
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    loader: LoaderConfig = LoaderConfig()
    optimizer: OptimizerConfig = OptimizerConfig()

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch_size", 1), ("log_every", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"--{name.replace('_', '-')} is {getattr(self, name)}: give {least} or more.")
        for name in ("max_steps", "eval_every", "checkpoint_every", "checkpoint_minutes", "keep"):
            if not getattr(self, name) >= 0:
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
    given = sys.argv[1:] if arguments is None else list(arguments)
    config = tyro.cli(Config, args=given)
    if not config.resume:
        return config
    run_dir = config.run_dir or newest_run(Path("runs"))
    path = run_dir / "config.json"
    try:
        # A run of an older version of this project has no arguments there: they have to be given again.
        saved = from_arguments(Config, json.loads(path.read_text()).get("arguments", []))
    except OSError as error:
        raise SystemExit(f"Nothing to resume: {path} cannot be read ({error.strerror}).") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise SystemExit(f"Nothing to resume: {path} is not the config of a run ({error}).") from None
    resumed = tyro.cli(Config, args=[*to_arguments(saved), *given])
    # What one resumed run was allowed is not allowed to the next.
    return replace(resumed, run_dir=run_dir, resume_data_changed=config.resume_data_changed)


def open_run(config: Config) -> Path:
    """Takes the folder of the run for this process and writes config.json into it.

    Raises SystemExit when the folder cannot be made, is in use, or holds another run.
    """
    run_dir = open_folder(config.run_dir, config.resume)
    if not config.resume:
        write_config(run_dir, config)
    return run_dir


def write_config(run_dir: Path, config: Config) -> None:
    """Writes config.json: the values for a reader, and the arguments that give them again."""
    write_json(run_dir / "config.json", {**to_dict(config), "arguments": to_arguments(config)})
