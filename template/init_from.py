"""Weights that exist already: a new run begins with those of a file, by name and shape."""

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

# {% filter regex_replace("\n+", "\n") %}
# {% if ddp %}
from distributed import rank

# {% endif %}
from run_folder import undamaged

# {% endfilter %}

LISTED = 20  # names of a kind that are listed


def init_from(model: nn.Module, path: Path, allow_partial: bool) -> None:
    """Copies the weights of `path` into `model`, and prints what was taken, what was left out, and what stays new.

    Raises SystemExit where the file cannot be read, fits nowhere, or does not fit whole and that was not allowed.
    """
    wanted = {name: tensor for name, tensor in model.state_dict().items() if isinstance(tensor, Tensor)}
    found = unwrapped(read_weights(path), wanted)
    both = [name for name in wanted if name in found]
    taken = [name for name in both if found[name].shape == wanted[name].shape]
    # A tied weight is saved once by safetensors, and is new under neither of its names.
    memory = {wanted[name].data_ptr() for name in taken}
    new = [name for name in wanted if name not in found and wanted[name].data_ptr() not in memory]
    differences = [
        *listed("new", [f"{name} {list(wanted[name].shape)}" for name in new]),
        *listed(
            "new, as its shape differs",
            [
                f"{name} {list(wanted[name].shape)}, in the file {list(found[name].shape)}"
                for name in both
                if name not in taken
            ],
        ),
        *listed("left out", [f"{name} {list(tensor.shape)}" for name, tensor in found.items() if name not in wanted]),
    ]
    summary = f"{path}: {len(taken)} of its {len(found)} tensors go into the {len(wanted)} of the model."
    table = "\n".join([summary, *differences])
    if not taken:
        raise SystemExit(f"--init-from: nothing in the file fits this model.\n{table}")
    if differences and not allow_partial:
        raise SystemExit(f"--init-from: the file is not of this model; --init-allow-partial takes what fits.\n{table}")
    for name in taken:
        wanted[name].copy_(found[name])
    # {% if ddp %}
    if rank() == 0:
        print(table, flush=True)
    # {% else %}
    print(table, flush=True)
    # {% endif %}


def listed(kind: str, lines: list[str]) -> list[str]:
    more = [f"{len(lines) - LISTED} more"] if len(lines) > LISTED else []
    return [f"  {kind}: {line}" for line in [*lines[:LISTED], *more]]


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name, on the CPU: a checkpoint of a run, a state dict, or safetensors.

    Raises SystemExit with a sentence for any other file. Nothing in it is executed.
    """
    try:
        content = read(path)
    except OSError as error:
        raise SystemExit(f"--init-from {path} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # a damaged or foreign file fails in as many ways as there are bytes
        raise SystemExit(
            f"--init-from {path} is damaged or holds something else than tensors ({type(error).__name__}): give a "
            "checkpoint, a state dict, or safetensors."
        ) from None
    for part in ("model", "state_dict", "model_state_dict"):
        if isinstance(content, Mapping) and isinstance(content.get(part), Mapping):
            content = content[part]
    items = content.items() if isinstance(content, Mapping) else ()
    found = {str(name): tensor for name, tensor in items if isinstance(tensor, Tensor)}
    if not found:
        raise SystemExit(
            f"--init-from {path} holds no tensors by name: give a checkpoint, a state dict, or safetensors."
        )
    return found


def unwrapped(found: dict[str, Tensor], wanted: Iterable[str]) -> dict[str, Tensor]:
    """The tensors without the prefixes of the wrappers that the model was saved in."""
    for prefix in ("module.", "_orig_mod.", "module."):
        if all(name.startswith(prefix) for name in found) and not any(name.startswith(prefix) for name in wanted):
            found = {name.removeprefix(prefix): tensor for name, tensor in found.items()}
    return found


def read(path: Path) -> Any:
    if path.suffix == ".safetensors":
        return load_file(path)
    if zipfile.is_zipfile(path) and not undamaged(path):
        raise ValueError
    return torch.load(path, map_location="cpu", weights_only=True)
