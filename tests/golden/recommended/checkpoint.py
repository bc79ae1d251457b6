"""Checkpoints: everything that resume needs in one file, written so that no moment of a crash can damage it.

A run goes on from its newest whole checkpoint, and only as the computation that it was.

A run folder keeps `checkpoints/last.pt`, the one before it (`previous.pt`) and `best.pt` (the model alone).
Names in the file are those of the bare model. It loads with `weights_only=True`: nothing in it is ever executed.
"""

import contextlib
import json
import os
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from config import to_dict, write_config
from model import build_model
from progress import Progress
from run import Run, random_state, set_random_state
from schedule import check_total

FORMAT = 1
# Values that a resumed run may change: what it computes does not depend on them, but for rounding.
FREE = {
    "run_dir",
    "resume",
    "epochs",
    "max_steps",
    "eval_every",
    "checkpoint_every",
    "log_every",
    "device",
    "loader",
    "schedule.extend",
}


def save(
    path: Path,
    parts: dict[str, Any],
    progress: Progress,
    extras: dict[str, Any],
    device: torch.device,
) -> None:
    """Writes the states of `parts` (anything with state_dict) and the plain values of `extras` under their names.

    Raises SystemExit when the file cannot be written; what was there before is still there then.
    """
    random_states = [random_state(device)]
    content = {
        "format": FORMAT,
        **{name: part.state_dict() for name, part in parts.items()},
        "progress": asdict(progress),
        "random": random_states,
        **extras,
    }
    write(path, content)


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


def resume(run_dir: Path, run: Run) -> None:
    """Puts the run where its newest whole checkpoint stands, and keeps the values that were changed for it.

    Raises SystemExit when there is no such checkpoint, or when this run would compute something else than it began.
    """
    content, config = newest(run_dir), to_dict(run.config)
    check_config(content["config"], config)
    restore(content, run.parts())
    for name in content["progress"].keys() - {"total_steps", "steps_per_epoch"}:
        setattr(run.progress, name, content["progress"][name])
    check_total(content["progress"]["total_steps"], run.progress, run.config.schedule)
    before = content["random"][0].get("device_type", run.device.type)
    if before != run.device.type:
        warning = (
            f"This run goes on on {run.device.type} and was on {before}: the same but for rounding, and for what the "
            "model itself draws at random there (dropout)."
        )
        print(warning)
    set_random_state(content["random"][0], run.device)
    write_config(run_dir, run.config)


def check_config(saved: dict[str, Any], config: dict[str, Any], prefix: str = "") -> None:
    """Raises SystemExit when a resumed run would compute something else than it began."""
    for name in sorted(saved.keys() & config.keys() - FREE):
        before, now, option = saved[name], config[name], prefix + name
        if not prefix and isinstance(before, dict):
            check_config(before, now, f"{option}.")
        elif option not in FREE and before != now:
            raise SystemExit(
                f"This run was begun with --{option.replace('_', '-')} {before}, not {now}: "
                "leave it out, or start a new run."
            )


def newest(run_dir: Path) -> dict[str, Any]:
    """The newest whole checkpoint of a run. Raises SystemExit when there is none."""
    problems = []
    for name in ("last.pt", "previous.pt"):
        try:
            content = read(run_dir / "checkpoints" / name)
        except ValueError as error:
            problems.append(str(error))
            continue
        if problems and "damaged" in problems[0]:
            print(f"{problems[0][0].upper()}{problems[0][1:]}: going on from {name}.")
        return content
    raise SystemExit(f"Nothing to resume in {run_dir}: {'; '.join(problems)}.")
