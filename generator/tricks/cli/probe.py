"""Run by `tricks doctor` with the Python that trains, in a project with every technique. Prints a line of JSON."""

import contextlib
import importlib.util
import io
import json
import platform
import sys

sys.path.insert(0, "")  # the project

import torch
import torch.distributed as dist
from amp import best_dtype  # type: ignore[import-not-found]
from compiling import works  # type: ignore[import-not-found]
from device import find_device  # type: ignore[import-not-found]
from distributed import collectives  # type: ignore[import-not-found]


def missing(*packages: str) -> list[str]:
    return [package for package in packages if importlib.util.find_spec(package) is None]


def main() -> None:
    device = find_device()
    module = torch.get_device_module(device)
    properties = getattr(module, "get_device_properties", None) if device.type != "cpu" else None
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        compiles = works(device)
    reason = None if compiles else said.getvalue().strip().partition(": ")[2]
    exporters = {
        "torch_export": [],
        "onnx": missing("onnx", "onnxscript", "onnxruntime"),
        "torchscript": [],
        "aotinductor": [] if compiles else ["a compiler"],
        "safetensors": missing("safetensors"),
    }
    found = {
        "torch": torch.__version__,
        "device": device.type,
        "name": properties(0).name if properties else platform.processor() or platform.machine(),
        "memory": getattr(properties(0), "total_memory", 0) if properties else 0,
        "count": torch.accelerator.device_count() if device.type != "cpu" else 1,
        "amp": best_dtype(device),
        "compile": reason,
        "ddp": (collectives(device) or "none") if dist.is_available() else "",
        "exporters": exporters,
        "tensorboard": not missing("tensorboard"),
    }
    print(json.dumps(found))


main()
