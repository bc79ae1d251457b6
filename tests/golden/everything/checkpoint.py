"""Checkpoints: everything that resume needs in one file, written so that no moment of a crash can damage it.

A run folder keeps `checkpoints/last.pt`, the one before it (`previous.pt`) and `best.pt` (the model alone).
Names in the file are those of the bare model. It loads with `weights_only=True`: nothing in it is ever executed.
"""

import contextlib
import json
import os
import random
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from distributed import all_gather, from_rank_0
from model import build_model

FORMAT = 1


@dataclass
class Progress:
    """Where a run stands, in optimizer steps."""

    epoch: int = 0
    epoch_step: int = 0
    step: int = 0
    total_steps: int = 0
    evaluated: int = 0
    """The step of the last evaluation."""
    best: float = float("inf")
    """The lowest validation loss so far."""
    loss_sum: float = 0.0
    items: int = 0
    """Sum and number of the training losses of this epoch so far."""
    skipped: int = 0
    """Steps that the optimizer left out because fp16 overflowed; the schedule does not count them."""

    def next_step(self) -> None:
        self.step += 1
        self.epoch_step += 1

    def next_epoch(self) -> None:
        self.epoch += 1
        self.epoch_step, self.loss_sum, self.items = 0, 0.0, 0


def save(
    path: Path,
    parts: dict[str, Any],
    progress: Progress,
    extras: dict[str, Any],
) -> None:
    """Writes the states of `parts` (anything with state_dict) and the plain values of `extras` under their names.

    Raises SystemExit when the file cannot be written; what was there before is still there then.
    """
    random_states = all_gather(random_state())
    content = {
        "format": FORMAT,
        **{name: part.state_dict() for name, part in parts.items()},
        "progress": asdict(progress),
        "random": random_states,
        **extras,
    }
    # The others wait: torchrun would soon end a process that still writes, and a full disk ends them all.
    from_rank_0(lambda: write(path, content))


def write(path: Path, content: dict[str, Any]) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        path.parent.mkdir(exist_ok=True)
        with unfinished.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        if path.name == "last.pt" and path.exists():
            path.replace(path.with_name("previous.pt"))
        unfinished.replace(path)
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        reason = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise SystemExit(
            f"Cannot write the checkpoint {path}: {reason}. The checkpoints before it are whole."
        ) from None


def plain(info: Any) -> Any:
    """`info` as JSON gives it back, for checkpoints and exports. Raises SystemExit where JSON cannot hold it."""
    try:
        return json.loads(json.dumps(info))
    except (TypeError, ValueError) as error:
        raise SystemExit(f"source.info in data.py has to be plain numbers, texts, lists and dicts: {error}.") from None


def random_state() -> dict[str, Any]:
    """The states of the generators that models use, dropout for one. The order of the data does not depend on them."""
    state = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.accelerator.is_available():
        state["device"] = torch.get_device_module().get_rng_state()
    return state


def set_random_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])
    if "device" in state and torch.accelerator.is_available():
        torch.get_device_module().set_rng_state(state["device"])


def read(path: Path) -> dict[str, Any]:
    """The content of a checkpoint, on the CPU. Raises ValueError with a sentence when the file is not a whole one."""
    try:
        # A zip archive with a checksum per tensor, which torch.load does not look at.
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        content = torch.load(path, map_location="cpu", weights_only=True) if damaged is None else None
    except FileNotFoundError:
        raise ValueError(f"there is no {path}") from None
    except Exception as error:  # a cut or foreign file fails in as many ways as there are bytes
        raise ValueError(f"{path} is damaged or not a checkpoint ({type(error).__name__})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is damaged or not a checkpoint of this project")
    return content


def restore(content: dict[str, Any], parts: dict[str, Any]) -> None:
    """Loads the states into `parts`.

    Raises SystemExit when model or parameter groups are not those of the checkpoint.
    """
    for name, part in parts.items():
        if name not in content:
            raise SystemExit(f"The checkpoint has no {name}: its run was made without that technique. Start a new run.")
        state = content[name]
        if not state:  # a scaler that is switched off
            continue
        if isinstance(part, torch.optim.Optimizer) and names(state) != names(part.state_dict()):
            raise SystemExit(
                "The parameter groups are not those of the checkpoint, and its optimizer state would land on other "
                "parameters: take the change of the groups back, or start a new run."
            )
        try:
            part.load_state_dict(state)
        except (RuntimeError, ValueError, KeyError) as error:
            reason = " ".join(str(error).split())[:200]
            raise SystemExit(f"The checkpoint is of another {name}: {reason}") from None


def names(state: dict[str, Any]) -> list[Any]:
    return [(group.get("name"), group["param_names"]) for group in state["param_groups"]]


def load_model(run_dir: Path, name: str = "best") -> tuple[nn.Module, dict[str, Any]]:
    """The trained model in eval mode on the CPU, and the checkpoint that it comes from.

    Raises SystemExit when the run has no such checkpoint, or one of another model.
    """
    try:
        content = read(run_dir / "checkpoints" / f"{name}.pt")
    except ValueError as error:
        raise SystemExit(f"No trained model: {error}.") from None
    model = build_model(content["info"])
    restore(content, {"model": model})
    return model.eval(), content
