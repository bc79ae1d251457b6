"""A run: what it was told, what it changes, and where it stands."""

import random
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

# {% filter regex_replace("\n+", "\n") %}
# {% if ddp %}
import distributed

# {% endif %}
# {% if amp %}
from amp import build_scaler, precision

# {% endif %}
# {% if compile %}
from compiling import compile_model

# {% endif %}
from config import Config

# {% if param_groups %}
from groups import parameter_groups

# {% endif %}
# {% if init_from %}
from init_from import init_from

# {% endif %}
from model_config import build_model, load_pretrained

# {% if muon %}
from optimizer import build_optimizer, own_optimizer, shares

# {% else %}
from optimizer import build_optimizer, own_optimizer

# {% endif %}
from progress import Progress

# {% if plateau %}
from schedule import build_schedule

# {% endif %}
# {% endfilter %}


@dataclass
class Run:
    """What a run was told, what it changes, and where it stands."""

    config: Config
    device: torch.device
    model: nn.Module
    # {% if ddp %}
    replica: nn.Module
    """The model as its wrapper, which sums gradients over the ranks; never evaluated or saved."""
    # {% endif %}
    optimizer: torch.optim.Optimizer
    # {% if amp %}
    dtype: torch.dtype | None
    scaler: torch.amp.GradScaler
    # {% endif %}
    # {% if plateau %}
    schedule: torch.optim.lr_scheduler.ReduceLROnPlateau
    # {% endif %}
    progress: Progress

    def parameters(self) -> list[nn.Parameter]:
        """What the optimizer changes."""
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def parts(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            # {% if plateau %}
            "schedule": self.schedule,
            # {% endif %}
            # {% if amp %}
            "scaler": self.scaler,
            # {% endif %}
        }


def build(config: Config, info: dict[str, Any], device: torch.device, steps_per_epoch: int) -> Run:
    """A run before its first step. Raises SystemExit where there is nothing to train on."""
    if not steps_per_epoch:
        raise SystemExit("There is nothing to train on: the training source of data.py has no samples.")
    seed_generators(config.seed)
    model = build_model(info, config.model).to(device)
    training_mode(model)
    if not config.resume:
        load_weights(model, config)
    # {% if ddp %}
    replica = distributed.wrap(model, config.ddp)
    # Dropout must not fall on the same places on every rank.
    seed_generators(config.seed + distributed.rank())
    # {% endif %}
    # {% if compile %}
    compile_model(model, config.compile, device)
    # {% endif %}
    # {% if param_groups %}
    parameters = parameter_groups(model, config.lr, config.weight_decay, config.groups)
    # {% else %}
    parameters = [pair for pair in model.named_parameters() if pair[1].requires_grad]
    # {% endif %}
    optimizer = own_optimizer(model, config)
    if optimizer is None:
        optimizer = build_optimizer(parameters, config.lr, config.weight_decay, config.optimizer, device)
    # {% if amp %}
    dtype = precision(config.amp, device)
    # {% endif %}
    return Run(
        config=config,
        device=device,
        model=model,
        # {% if ddp %}
        replica=replica,
        # {% endif %}
        optimizer=optimizer,
        # {% if amp %}
        dtype=dtype,
        scaler=build_scaler(dtype, device),
        # {% endif %}
        # {% if plateau %}
        schedule=build_schedule(optimizer, config.schedule),
        # {% endif %}
        progress=Progress(
            steps_per_epoch=steps_per_epoch, total_steps=config.max_steps or config.epochs * steps_per_epoch
        ),
    )


def training_mode(model: nn.Module) -> None:
    """Training mode for all but frozen norms, whose running statistics stay as their weights do."""
    model.train()
    for module in model.modules():
        weights = [*module.parameters(recurse=False)]
        if hasattr(module, "running_mean") and weights and not any(weight.requires_grad for weight in weights):
            module.eval()


def load_weights(model: nn.Module, config: Config) -> None:
    """The weights that a new run begins with, where they exist already."""
    load_pretrained(model)
    # {% if init_from %}
    if config.init_from:
        init_from(model, config.init_from, config.init_allow_partial)
    # {% endif %}


def seed_generators(seed: int) -> None:
    """The generators that a model or its owner's code may use; the order of the samples has one of its own."""
    torch.manual_seed(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):  # torch imports it wherever it is installed
        numpy.random.seed(seed)


def random_state(device: torch.device) -> dict[str, Any]:
    """The states of these generators, in types that a checkpoint may hold."""
    state = {"torch": torch.get_rng_state(), "python": random.getstate(), "device_type": device.type}
    if device.type != "cpu":
        state["device"] = torch.get_device_module(device).get_rng_state()
    if numpy := sys.modules.get("numpy"):
        name, words, *rest = numpy.random.get_state()
        state["numpy"] = (name, torch.tensor(words.astype("int64")), *rest)
    return state


def set_random_state(state: dict[str, Any], device: torch.device) -> None:
    """Sets them; the device's only from one of its kind, since the others' states mean nothing to it."""
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])
    if device.type != "cpu" and "device" in state and state.get("device_type", device.type) == device.type:
        torch.get_device_module(device).set_rng_state(state["device"])
    if "numpy" in state and (numpy := sys.modules.get("numpy")):
        name, words, *rest = state["numpy"]
        numpy.random.set_state((name, words.numpy(), *rest))


def learning_rates(optimizer: torch.optim.Optimizer) -> dict[str, float]:
    # {% if param_groups %}
    rates = {f"lr/{group['name']}": float(group["lr"]) for group in optimizer.param_groups}
    return {"lr": max(rates.values()), **rates}
    # {% else %}
    return {"lr": float(optimizer.param_groups[0]["lr"])}
    # {% endif %}


def describe(run: Run, samples: dict[str, int]) -> dict[str, str]:
    """What a run is about to do, for a reader; `samples` counts those of each source."""
    config, progress = run.config, run.progress
    trained = sum(parameter.numel() for parameter in run.parameters())
    others = sum(parameter.numel() for parameter in run.model.parameters()) - trained
    # {% if accumulation %}
    size, batch = config.batch_size * config.accumulation.steps, f"micro-batches of {config.batch_size}"
    # {% else %}
    size, batch = config.batch_size, f"batches of {config.batch_size}"
    # {% endif %}
    # {% if ddp %}
    if (ranks := distributed.world_size()) > 1:
        size, batch = size * ranks, f"{batch} on {ranks} processes"
    # {% endif %}
    # {% if amp %}
    precision = str(run.dtype or torch.get_default_dtype()).removeprefix("torch.")
    # {% else %}
    precision = str(torch.get_default_dtype()).removeprefix("torch.")
    # {% endif %}
    return {
        "device": f"{run.device}, {precision}",
        "model": f"{trained:,} parameters" + (f" and {others:,} frozen ones" if others else ""),
        # {% if muon %}
        "optimizer": shares(run.optimizer),
        # {% endif %}
        "data": " and ".join(f"{count:,} {name}" for name, count in samples.items()) + " samples",
        "step": f"{size:,} samples, in {batch}",
        "steps": f"{progress.total_steps:,}, {progress.steps_per_epoch:,} an epoch"
        + (f"; {progress.step:,} are made" if progress.step else ""),
    }
