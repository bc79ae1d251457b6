"""python export.py RUN [--out DIR]: the trained model as files that other programs load, each checked against it.

Each file comes from a copy of the bare model, in eval mode, on the CPU. It takes batches of any size, carries as JSON
what its model was built from, and appears in DIR (default RUN/exports) only once it has passed the check.
"""

import contextlib
import copy
import io
import json
import logging
import tempfile
import timeit
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
import tyro
from torch import Tensor, nn

from arguments import from_arguments
from checkpoint import load_model
from model_config import ModelConfig, build_model

TRACED = 11  # batch size while exporting: hardly any layer's width, so that a size fixed by accident shows
BATCHES = (1, 5, 7)
TOLERANCE = 1e-4  # largest difference allowed, relative to the largest output or to 1
Example = tuple[Tensor, ...]  # the inputs of the model's forward, samples along the first dimension
Origin = dict[str, str]  # what the model was built from, as JSON: the data's info, and arguments of its ModelConfig
Exported = Callable[..., Any]  # what was read back from a file: called like the model


@dataclass
class Export:
    format: str
    path: Path
    write: Callable[[nn.Module, Example, Origin, Path], Exported]  # writes the file and reads it back
    needs: tuple[str, ...] = ()  # packages
    size: int = 0  # bytes
    difference: float = 0.0  # largest absolute one over BATCHES
    latencies: tuple[float, float] = (0.0, 0.0)  # milliseconds at batch 1 and 64
    problem: str = ""  # why there is no file


def to_program(model: nn.Module, example: Example) -> torch.export.ExportedProgram:
    """The graph of the model, for any batch size: a size that the model's code fixes is an error here."""
    batch = torch.export.Dim("batch", min=1)
    return torch.export.export(model, example, dynamic_shapes=tuple({0: batch} for _ in example))


def to_torch_export(model: nn.Module, example: Example, origin: Origin, path: Path) -> Exported:
    files = {f"{name}.json": text for name, text in origin.items()}
    torch.export.save(to_program(model, example), path, extra_files=files)
    return torch.export.load(path).module()


def to_onnx(model: nn.Module, example: Example, origin: Origin, path: Path) -> Exported:
    """One file, unless the weights come near protobuf's limit of 2 GB: then path.data lies beside it."""
    import onnxruntime

    names = {0: "batch"}, *({0: None} for _ in example[1:])  # inputs share the size, the first one names it
    program: Any = torch.onnx.export(to_program(model, example), dynamo=True, dynamic_shapes=names, verbose=False)
    program.model.metadata_props.update(origin)
    size = sum(x.numel() * x.element_size() for x in model.state_dict().values())
    program.save(path, external_data=size > 1.9e9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()  # by itself it takes, and pins, every core
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    slots = [slot.name for slot in session.get_inputs()]
    return lambda *inputs: [
        torch.as_tensor(y) for y in session.run(None, dict(zip(slots, (x.numpy() for x in inputs), strict=True)))
    ]


def to_torchscript(model: nn.Module, example: Example, origin: Origin, path: Path) -> Exported:
    print("TorchScript is deprecated in PyTorch: prefer torch.export wherever the program that loads it can.")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"`torch\.jit\.")
        warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)  # check() sees what matters of it
        files = {f"{name}.json": text for name, text in origin.items()}
        torch.jit.save(torch.jit.trace(model, example, check_trace=False), path, _extra_files=files)
        return torch.jit.load(path)


def to_aotinductor(model: nn.Module, example: Example, origin: Origin, path: Path) -> Exported:
    """Machine code for this kind of CPU. The C++ compiler takes some 40 s even for a tiny model."""
    program, options = to_program(model, example), {"aot_inductor.metadata": origin}
    torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs=options)
    return torch._inductor.aoti_load_package(str(path))


def to_safetensors(model: nn.Module, example: Example, origin: Origin, path: Path) -> Exported:
    """The weights alone; of tied weights one copy, which safetensors.torch.load_model puts in each place."""
    from safetensors.torch import load_model, save_model

    save_model(model, str(path), metadata=origin)
    config = from_arguments(ModelConfig, json.loads(origin["model_arguments"]))
    fresh = build_model(json.loads(origin["info"]), config)
    load_model(fresh, str(path))
    return fresh.eval()


def samples(example: Example, n: int) -> Example:
    """The first n samples of the example, from the start again where it has fewer."""
    return tuple(x[torch.arange(n) % len(x)] for x in example)


def call(exported: Exported, inputs: Example) -> list[Tensor]:
    """The outputs, in float64 to be compared."""
    output = exported(*inputs)
    found = list(output) if isinstance(output, tuple | list) else [output]
    if kinds := [type(x).__name__ for x in found if not isinstance(x, Tensor)]:
        # A Hugging Face model's output is a dict that none of the formats can carry as it is.
        kind, hint = kinds[0], ""
        if isinstance(output, dict):
            kind, hint = type(output).__name__, " (a Hugging Face model takes return_dict=False in its config)"
        raise TypeError(f"forward must return a tensor or a tuple of tensors, and here is a {kind}{hint}")
    return [x.double() for x in found]


@torch.no_grad()
def check(exported: Exported, model: nn.Module, example: Example) -> float:
    """Largest absolute difference from the model over BATCHES; an error where it is too large or two runs differ."""
    gaps = [0.0]
    for n in BATCHES:
        expected, found, again = (call(f, samples(example, n)) for f in (model, exported, exported))
        torch.testing.assert_close(again, found, rtol=0, atol=0, equal_nan=True, msg=f"two runs at batch {n} differ")
        gaps += [(x - y).abs().nan_to_num(0).max().item() for x, y in zip(found, expected, strict=True)]
        bound = TOLERANCE * max(1.0, *(x.nan_to_num(0, 0, 0).abs().max().item() for x in expected))
        message = f"on a batch of {n} it differs from the model by {max(gaps):.1e}"
        torch.testing.assert_close(found, expected, rtol=0, atol=bound, equal_nan=True, msg=message)
    return max(gaps)


@torch.no_grad()
def latency(exported: Exported, inputs: Example) -> float:
    """Milliseconds of a call: the median of 11, after three to warm up."""
    return 1000 * sorted(timeit.repeat(lambda: exported(*inputs), number=1, repeat=14)[3:])[5]


def explain(error: Exception) -> str:
    """The reason, in a line, of an error of PyTorch's that may be a page long."""
    lines = [line.strip(" -") for line in str(error).splitlines() if line.strip(" -")] or [repr(error)]
    if lines[0].startswith("Constraints violated"):
        return f"forward must take batches of any size, see x.shape[0] ({lines[1 % len(lines)].split('. ')[0]})"
    if "No working C++ compiler" in lines[0]:
        return "there is no C++ compiler (install g++ or clang++, or name one in the variable CXX)"
    return lines[0].rstrip(".")


def export_one(export: Export, model: nn.Module, origin: Origin, example: Example) -> None:
    """Write, read back, check and time one format, in a hidden folder that the files leave at the end."""
    folder = export.path.parent
    folder.mkdir(parents=True, exist_ok=True)
    check(model, model, example)  # what the model itself cannot do is no fault of the format
    with tempfile.TemporaryDirectory(dir=folder, prefix=".export-") as scratch:
        with contextlib.redirect_stderr(io.StringIO()):  # PyTorch prints the graph where it fails
            exported = export.write(model, samples(example, TRACED), origin, Path(scratch, export.path.name))
        export.difference = check(exported, model, example)
        export.latencies = latency(exported, samples(example, 1)), latency(exported, samples(example, 64))
        for path in Path(scratch).iterdir():
            export.size += path.stat().st_size
            path.chmod(folder.stat().st_mode & 0o666)  # some writers make their file private
            path.replace(folder / path.name)


def export_all(model: nn.Module, origin: Origin, example: Example, folder: Path) -> list[Export]:
    """Export to every format. The model, its mode and the random state stay as they are."""
    table = [
        Export("torch_export", folder / "model.pt2", to_torch_export),
        Export("onnx", folder / "model.onnx", to_onnx, ("onnx", "onnxscript", "onnxruntime")),
        Export("torchscript", folder / "model.torchscript.pt", to_torchscript),
        Export("aotinductor", folder / "model_aoti.pt2", to_aotinductor),
        Export("safetensors", folder / "model.safetensors", to_safetensors, ("safetensors",)),
    ]
    if missing := [name for export in table for name in export.needs if find_spec(name) is None]:
        raise SystemExit(f'Export needs {", ".join(missing)}: pip install -e ".[export]"')
    model = copy.deepcopy(model).cpu().eval()
    for export in table:
        try:
            with torch.random.fork_rng(devices=[]):
                export_one(export, model, origin, example)
        except Exception as error:  # whatever stops one format must not stop the others
            export.problem = explain(error)
    return table


def fixed_sizes(example: Example) -> str:
    """Which sizes the files take: a sequence's length, for one, is frozen at that of the example."""
    shapes = ", ".join(f"[{', '.join(['batch', *map(str, x.shape[1:])])}]" for x in example)
    return f"Inputs {shapes}: the batch may have any size, every other size is fixed."


def main(run: Path, /, checkpoint: Literal["best", "last"] = "best", out: Path | None = None) -> None:
    """Export the checkpoint CHECKPOINT of the folder RUN into the folder OUT, or RUN/exports."""
    logging.disable(logging.WARNING)  # PyTorch logs hints for its own developers
    model, content = load_model(run, checkpoint)
    if not content["example"]:
        raise SystemExit("This model is not exported: example_input in model.py gives no inputs for it.")
    origin = {name: json.dumps(content.get(name, [])) for name in ("info", "model_arguments")}
    table = export_all(model, origin, content["example"], out or run / "exports")
    line = "{:<13} {:<20} {:>12} {:>11} {:>12} {:>13}".format
    print(line("format", "file", "size (kB)", "difference", "batch 1 (ms)", "batch 64 (ms)"))
    for export in table:
        one, many = export.latencies
        numbers = f"{export.size / 1e3:,.0f} {export.difference:.1e} {one:.3f} {many:.3f}"
        print(line(export.format, export.path.name, *("----" if export.problem else numbers.split())))
    print(f"In {table[0].path.parent}; checked on batches of {BATCHES}; times are medians.")
    print(fixed_sizes(content["example"]))
    if problems := [f"{export.format} was not exported: {export.problem}." for export in table if export.problem]:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    tyro.cli(main)
