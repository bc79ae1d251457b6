"""torch.compile and DDP wrap the model of a run; no checkpoint, export or layer's name knows of it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import warm
from tests.choices import CHOICES
from tests.test_faults import change

# Saves and loads a run in each of the four ways, in one process group of one process.
PAIRS = """
import json, os, sys, tempfile
from dataclasses import replace
from pathlib import Path
import torch
os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": sys.argv[1]}
import distributed
from checkpoint import load_model, read, restore, save
from compiling import CompileConfig
from config import Config
from data import DataConfig, load
from export import export_all
from loader import Loader
from run import build
from train import step

# The names do not depend on what compiles.
real = torch.nn.Module.compile
torch.nn.Module.compile = lambda model, **options: real(model, backend="eager")
cpu, folder = torch.device("cpu"), Path(tempfile.mkdtemp(dir="."))
source, _ = load(DataConfig(), 0, cpu)

def run(compiled, joined):
    if joined:
        torch.distributed.init_process_group("gloo")  # a process alone joins none by itself
    config = Config(compile=CompileConfig("default" if compiled else "off"))
    made = build(config, source.info, cpu, steps_per_epoch=9)
    assert (made.replica is not made.model) == joined
    assert (made.model._compiled_call_impl is not None) == compiled
    loader = Loader(source, 8, 0, config.loader, cpu, shuffle=True)
    step(made, next(iter(loader.epoch(0))))
    return made

modes = [(compiled, joined) for compiled in (False, True) for joined in (False, True)]
for compiled, joined in modes:
    made = run(compiled, joined)
    path = folder / f"{compiled}-{joined}" / "checkpoints" / "best.pt"
    path.parent.mkdir(parents=True)
    save(path, made.parts(), made.progress, {"config": {}, "info": source.info}, cpu)
    distributed.stop()

plain = list(run(False, False).model.state_dict())
for saved in modes:
    at = folder / f"{saved[0]}-{saved[1]}"
    content = read(at / "checkpoints" / "best.pt")
    assert list(content["model"]) == plain, list(content["model"])
    names = [name for group in content["optimizer"]["param_groups"] for name in group["param_names"]]
    assert sorted(names) == sorted(plain), names
    for compiled, joined in modes:
        loaded = run(compiled, joined)
        restore(content, loaded.parts())
        assert all(torch.equal(loaded.model.state_dict()[name], content["model"][name]) for name in plain)
        distributed.stop()
    model, _ = load_model(at)
    example = (source.fetch(torch.arange(2), 0)[0],)
    origin = {"info": json.dumps(source.info), "model_arguments": "[]"}
    assert not [row.problem for row in export_all(model, origin, example, at) if row.problem]
    # Also a model as it is inside a run.
    made = run(*saved)
    assert not [row.problem for row in export_all(made.model, origin, example, at) if row.problem]
    distributed.stop()
print("16 pairs")
"""


def test_every_pair_of_compile_and_ddp_saves_and_loads(render: Callable[..., Path]) -> None:
    project = render(techniques=["ddp", "compile", "export"], export_formats=["torch_export", "torchscript"])
    (project / "pairs.py").write_text(PAIRS)
    code, output = warm.script(project, "pairs.py", warm.free_port(), timeout=300)
    assert code == 0 and "16 pairs" in output, output


def test_a_missing_compiler_costs_one_sentence(render: Callable[..., Path]) -> None:
    project = render(techniques=["compile"])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CXX": "/nonexistent", "TORCHINDUCTOR_CACHE_DIR": str(project)}
    command = [sys.executable, "train.py", "--max-steps", "2", "--run-dir", "run"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("torch.compile does not work here") == 1, done.stdout
    assert "Traceback" not in done.stderr and "Warning" not in done.stderr, done.stderr


def test_hooks_bear_layers_that_work_in_place(render: Callable[..., Path]) -> None:
    project = render(techniques=["debug"])
    change(project, "model.py", "nn.GELU()", "nn.ReLU(inplace=True)")
    code, output = warm.prove(project, "tests/test_debug.py")
    assert code == 0, output


def test_batch_norm_bears_an_epoch_with_one_sample_left(render: Callable[..., Path], tmp_path: Path) -> None:
    """1438 training samples in batches of 1437."""
    project = render(techniques=["ddp", "accumulation"])
    change(project, "model.py", "self.head(self.features(", "self.head(self.norm(self.features(")
    change(project, "model.py", " / 127.5 - 1))", " / 127.5 - 1)))")
    change(project, "model.py", "        self.head =", "        self.norm = nn.BatchNorm1d(256)\n        self.head =")
    arguments = ("--run-dir", str(tmp_path / "run"), "--batch-size", "1437", "--max-steps", "2")
    code, output = warm.train(project, *arguments)
    assert code == 0, output


@pytest.mark.parametrize("task", CHOICES["task"])
def test_batches_hold_no_float64(render: Callable[..., Path], task: str) -> None:
    project = render(task=task, techniques=[])
    (project / "kinds.py").write_text(
        "import torch\nfrom data import DataConfig, load\nfrom device import tree_map\n"
        "for source in load(DataConfig(), 0, torch.device('cpu')):\n"
        "    tree_map(lambda tensor: print(tensor.dtype), source.fetch(torch.arange(3), 0))\n"
    )
    code, output = warm.script(project, "kinds.py")
    assert code == 0 and output.count("torch.") >= 4 and "float64" not in output, output


def test_entry_files_do_nothing_when_they_are_imported(template_folder: Path) -> None:
    """Worker processes that are spawned import the file that was started."""
    entries = [path for path in (template_folder / "template").glob("*.py") if "tyro.cli(" in path.read_text()]
    entries.append(template_folder / "template" / "train.py")
    assert {"train.py", "predict.py", "export.py"} <= {path.name for path in entries}
    for path in entries:
        if path.name not in ("config.py", "arguments.py"):  # which nobody starts
            assert 'if __name__ == "__main__":' in path.read_text(), path
