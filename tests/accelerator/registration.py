"""Makes the device known to PyTorch, in this process or in every process with a folder on its path."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tests.accelerator import attention
from tests.accelerator.autocasting import autocasts
from tests.accelerator.events import Recording, note
from tests.accelerator.generators import GENERATORS, of_device
from tests.accelerator.kernels import Process, kernels
from tests.accelerator.memory import NAME, Memory, is_pinned, pin

ROOT = Path(__file__).resolve().parents[2]
# Variables of a process that gets the device by the entry point: how many there are, and a file for what passed.
DEVICES, EVENTS = "SIM_DEVICES", "SIM_EVENTS"
# PyTorch takes a registration back when its library is collected.
LIBRARIES: list[torch.library.Library] = []


class UnavailableError(Exception):
    """This PyTorch has changed what the device leans on, or lacks it; one sentence."""


class Module(ModuleType):
    """torch.sim: what PyTorch and generated projects ask of a device's module."""

    _initialized = True
    devices = 1

    is_available = is_initialized = staticmethod(lambda: True)
    device_count = staticmethod(lambda: Module.devices)
    current_device = staticmethod(lambda: torch._C._accelerator_getDeviceIndex())
    set_device = staticmethod(lambda device: torch.accelerator.set_device_index(device))
    device = staticmethod(lambda device: torch.accelerator.device_index(torch.device(device).index))
    _is_in_bad_fork = staticmethod(lambda: Process.forked)
    get_amp_supported_dtype = staticmethod(lambda: [torch.float16, torch.bfloat16])
    synchronize = staticmethod(lambda device=None: note("wait", "synchronize", True))
    manual_seed = staticmethod(lambda seed: of_device().manual_seed(seed) and None)
    manual_seed_all = staticmethod(lambda seed: [each.manual_seed(seed) for each in GENERATORS] and None)
    get_rng_state = staticmethod(lambda device=NAME: of_device(device).get_state())
    set_rng_state = staticmethod(lambda new_state, device=NAME: of_device(device).set_state(new_state) and None)
    memory_allocated = staticmethod(lambda device=None: Memory.allocated)
    max_memory_allocated = staticmethod(lambda device=None: Memory.peak)
    reset_peak_memory_stats = staticmethod(lambda device=None: setattr(Memory, "peak", Memory.allocated))


def install(devices: int = 1) -> None:
    """Registers the device in this process, not to be undone. More than one needs a C++ compiler, and two seconds.

    Raises UnavailableError where this PyTorch cannot have it.
    """
    try:
        from torch.utils.backend_registration import _setup_privateuseone_for_python_backend as setup

        registered = dict(kernels()) | attention.KERNELS, dict(autocasts())
    except (ImportError, AttributeError, LookupError, OSError, RuntimeError) as error:
        raise UnavailableError(
            f"PyTorch {torch.__version__} has no way to register a device in Python: {error}."
        ) from error
    if devices > 1:
        os.environ[DEVICES] = str(devices)
        torch.ops.load_library(str(library()))
    Module.devices = devices
    GENERATORS[:] = [torch.Generator() for _ in range(devices)]
    setup(NAME, Module(f"torch.{NAME}"))
    os.register_at_fork(after_in_child=lambda: setattr(Process, "forked", True))
    kernel, fallback = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")
    LIBRARIES.extend([kernel, fallback])
    for name, function in registered[0].items():
        kernel.m.impl(name, "PrivateUse1", function)
    fallback.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for key in ("PrivateUse1", "AutogradPrivateUse1"):
        kernel.m.impl("scaled_dot_product_attention", key, attention.scaled_dot_product_attention)
    # A copy resolves such marks itself; PyTorch's fallback would resolve them by a copy, for ever.
    for mark in ("Conjugate", "Negative"):
        kernel.impl("_copy_from", torch.library.fallthrough_kernel, mark)
    for name, cast in registered[1].items():
        kernel.m.impl(name, "AutocastPrivateUse1", cast)
    kernel.m.impl("is_pinned", "CPU", is_pinned)
    kernel.m.impl("_pin_memory", "CPU", pin)
    torch.serialization.register_package(1, lambda storage: None, restore)
    # PyTorch's own asks the device guard, whose Python version cannot answer.
    torch.accelerator.synchronize = Module.synchronize
    torch.nn.Module._apply = keep_tied(torch.nn.Module._apply)


def start() -> None:
    """What the entry point calls when a process imports torch."""
    if log := os.environ.get(EVENTS):
        events = Recording.events = []
        atexit.register(lambda: Process.forked or Path(log).write_text(json.dumps(events), encoding="utf-8"))
    install(int(os.environ.get(DEVICES, "1")))


def entry_point(folder: Path) -> dict[str, str]:
    """Writes an entry point into a folder; the variables that give a process the device from its import of torch on."""
    info = folder / "simulated_accelerator-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: simulated-accelerator\nVersion: 1\n", encoding="utf-8")
    name = "[torch.backends]\nsim = tests.accelerator.registration:start\n"
    (info / "entry_points.txt").write_text(name, encoding="utf-8")
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def keep_tied(apply: Callable[..., Any]) -> Callable[..., Any]:
    """Module.to that leaves tied parameters tied, as on CUDA: https://github.com/pytorch/pytorch/issues/116255"""

    def _apply(self: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
        before = torch.__future__.get_swap_module_params_on_conversion()
        torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            return apply(self, *args, **kwargs)
        finally:
            torch.__future__.set_swap_module_params_on_conversion(before)

    return _apply


def restore(storage: Any, location: str) -> Any:
    """torch.load's way to the device: its own allocates a storage without a tensor."""
    if not location.startswith(NAME):
        return None
    return torch.empty(storage.nbytes(), dtype=torch.uint8, device=location).untyped_storage().copy_(storage)


def library() -> Path:
    """devices.cpp as a library, built once for each PyTorch. Raises UnavailableError without a compiler."""
    root, source = Path(torch.__file__).parent, Path(__file__).with_name("devices.cpp")
    built = Path(tempfile.gettempdir(), f"simulated-{os.getuid()}-{torch.__version__}-{source.stat().st_mtime_ns}.so")
    if not built.exists():
        unfinished = built.with_suffix(f".{os.getpid()}")
        command = ["g++", "-std=c++20", "-fPIC", "-shared", f"-I{root / 'include'}", str(source), "-o", str(unfinished)]
        try:
            subprocess.run([*command, f"-L{root / 'lib'}", "-lc10", "-ltorch_cpu"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise UnavailableError(f"Several devices need a C++ compiler ({error}).") from error
        unfinished.replace(built)
    return built
