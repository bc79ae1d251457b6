"""Checkpoints: everything that resume needs in one file, written so that no moment of a crash can damage it.

A run folder keeps `checkpoints/last.pt`, the ones before it (`previous.pt`, `previous-2.pt`, ... as --keep says) and
`best.pt` (the model alone).
Names in the file are those of the bare model. It loads with `weights_only=True`: nothing in it is ever executed.
"""

import contextlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from arguments import from_arguments
from distributed import all_gather, from_rank_0
from model_config import ModelConfig, build_model
from progress import Progress
from run import random_state
from run_folder import undamaged

FORMAT = 1


def save(
    path: Path,
    parts: dict[str, Any],
    progress: Progress,
    extras: dict[str, Any],
    device: torch.device,
    keep: int = 1,
) -> None:
    """Writes the states of `parts` (anything with state_dict) and the plain values of `extras` under their names.

    `keep` is how many of those before last.pt stay. Raises SystemExit when the file cannot be written; what was there
    before is still there then.
    """
    random_states = all_gather(random_state(device))
    content = {
        "format": FORMAT,
        **{name: part.state_dict() for name, part in parts.items()},
        "progress": asdict(progress),
        "random": random_states,
        **extras,
    }
    # The others wait: torchrun would soon end a process that still writes, and a full disk ends them all.
    from_rank_0(lambda: write(path, content, keep))


def write(path: Path, content: dict[str, Any], keep: int) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        path.parent.mkdir(exist_ok=True)
        with unfinished.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        if path.name == "last.pt":
            make_older(path, keep)
        unfinished.replace(path)
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        reason = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise SystemExit(
            f"Cannot write the checkpoint {path}: {reason}. The checkpoints before it are whole."
        ) from None


def make_older(last: Path, keep: int) -> None:
    """Renames last.pt to previous.pt, and those before it in turn; deletes what is older than `keep`."""
    files = [last, *(last.with_name(f"previous{f'-{age}' * (age > 1)}.pt") for age in range(1, keep + 1))]
    for newer, older in zip(files[-2::-1], files[:0:-1], strict=True):
        if newer.exists():
            newer.replace(older)
    for path in set(last.parent.glob("previous*.pt")) - set(files):
        path.unlink()


def plain(info: Any) -> Any:
    """`info` as JSON gives it back, for checkpoints and exports. Raises SystemExit where JSON cannot hold it."""
    try:
        return json.loads(json.dumps(info))
    except (TypeError, ValueError) as error:
        raise SystemExit(f"source.info in data.py has to be plain numbers, texts, lists and dicts: {error}.") from None


def read(path: Path) -> dict[str, Any]:
    """The content of a checkpoint, on the CPU. Raises ValueError with a sentence when the file is not a whole one."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True) if undamaged(path) else None
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
    config = from_arguments(ModelConfig, content.get("model_arguments", []))
    model = build_model(content["info"], config)
    restore(content, {"model": model})
    return model.eval(), content
