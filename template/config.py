"""Every value that a run depends on. Each can be set on the command line: --lr 1e-3 --loader.workers 2."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tyro

# {% filter regex_replace("\n+", "\n") %}
# {% if amp %}
from amp import AmpConfig

# {% endif %}
from arguments import from_arguments, to_arguments, to_dict

# {% if augmentation %}
from augmentation import AugmentationConfig

# {% endif %}
# {% if cache %}
from cache import CacheConfig

# {% endif %}
# {% if clipping %}
from clipping import ClippingConfig

# {% endif %}
# {% if compile %}
from compiling import CompileConfig

# {% endif %}
from data import DataConfig

# {% if debug %}
from debug import DebugConfig

# {% endif %}
# {% if ddp %}
from distributed import DdpConfig

# {% endif %}
# {% if param_groups %}
from groups import GroupsConfig

# {% endif %}
from loader import LoaderConfig
from model_config import ModelConfig
from optimizer import OptimizerConfig

# {% if profiler %}
from profiling import ProfilerConfig

# {% endif %}
from run_folder import newest_run, open_folder, write_json

# {% if scheduler %}
from schedule import ScheduleConfig
# {% endif %}
# {% endfilter %}


# {% if accumulation %}
@dataclass(frozen=True)
class AccumulationConfig:
    steps: int = 1
    """Micro-batches per optimizer step: the step sees so many times --batch-size samples."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"--accumulation.steps is {self.steps}: give 1 or more.")


# {% endif %}
@dataclass(frozen=True)
class Config:
    """Train the model of model.py on the data of data.py."""

    epochs: int = 20
    """Passes over the training data."""
    max_steps: int = 0
    """Optimizer steps to make, whatever --epochs says; 0: as many as the epochs have."""
    batch_size: int = 64
    """Samples per micro-batch of one process."""
    # {% if sgd %}
    lr: float = 0.1
    """Learning rate."""
    weight_decay: float = 5e-4
    """Weight decay, added to the gradient."""
    # {% else %}
    # {% if muon %}
    lr: float = 6e-3
    """Learning rate."""
    # {% else %}
    lr: float = 3e-3
    """Learning rate."""
    # {% endif %}
    weight_decay: float = 0.05
    """Weight decay, decoupled from the gradient."""
    # {% endif %}
    seed: int = 0
    """Decides the split, the initial weights, the order of the samples, and what torch, Python and NumPy draw."""
    device: str = "auto"
    """auto: the accelerator of this machine, else the CPU. Or cpu, cuda, cuda:1, mps, xpu, ... by PyTorch's name."""
    run_dir: Path | None = None
    """Folder of this run; by default runs/<time>."""
    # {% if init_from %}
    init_from: Path | None = None
    """Begin with the weights of this file: a checkpoint of a run, a state dict, or safetensors."""
    init_allow_partial: bool = False
    """Take what fits of that file, and begin the rest of the model anew."""
    # {% endif %}
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
    # {% if accumulation %}
    accumulation: AccumulationConfig = AccumulationConfig()
    # {% endif %}
    # {% if amp %}
    amp: AmpConfig = AmpConfig()
    # {% endif %}
    # {% if augmentation %}
    augmentation: AugmentationConfig = AugmentationConfig()
    # {% endif %}
    # {% if cache %}
    cache: CacheConfig = CacheConfig()
    # {% endif %}
    # {% if clipping %}
    clipping: ClippingConfig = ClippingConfig()
    # {% endif %}
    # {% if compile %}
    compile: CompileConfig = CompileConfig()
    # {% endif %}
    # {% if ddp %}
    ddp: DdpConfig = DdpConfig()
    # {% endif %}
    # {% if debug %}
    debug: DebugConfig = DebugConfig()
    # {% endif %}
    # {% if param_groups %}
    groups: GroupsConfig = GroupsConfig()
    # {% endif %}
    # {% if profiler %}
    profiler: ProfilerConfig = ProfilerConfig()
    # {% endif %}
    # {% if scheduler %}
    schedule: ScheduleConfig = ScheduleConfig()
    # {% endif %}

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
        # {% if compile and accumulation %}
        # Their CUDA graphs put each gradient over the one before: https://github.com/pytorch/pytorch/issues/96693
        if self.accumulation.steps > 1 and self.compile.mode in ("reduce-overhead", "max-autotune"):
            raise ValueError(
                f"--compile.mode {self.compile.mode} loses gradients if --accumulation.steps is above 1"
                ": use default, or max-autotune-no-cudagraphs."
            )
        # {% endif %}


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
    # {% if stepwise %}
    resumed = replace(resumed, schedule=replace(resumed.schedule, extend=config.schedule.extend))
    # {% endif %}
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
