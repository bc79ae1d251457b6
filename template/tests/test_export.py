"""Export: every file gives what the model gives, for any batch size, anywhere; and the model can go on training."""

import copy
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import data_config
from torch import nn

from data import load
from export import BATCHES, Example, Export, Exported, call, export_all, export_one, fixed_sizes, samples
from model import example_input
from model_config import ModelConfig, build_model

# A program that has only the files, in a folder of its own.
ELSEWHERE = """
import torch
run = {}
# {% if torch_export %}
run["torch_export"] = torch.export.load("model.pt2").module()
# {% endif %}
# {% if onnx %}
from onnxruntime import InferenceSession
session = InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
names = [slot.name for slot in session.get_inputs()]
run["onnx"] = lambda *inputs: [
    torch.as_tensor(y) for y in session.run(None, {name: x.numpy() for name, x in zip(names, inputs)})
]
# {% endif %}
# {% if torchscript %}
run["torchscript"] = torch.jit.load("model.torchscript.pt")
# {% endif %}
# {% if aotinductor %}
run["aotinductor"] = torch._inductor.aoti_load_package("model_aoti.pt2")
# {% endif %}
# {% if safetensors %}
import json, safetensors.torch, sys
sys.path.append(sys.argv[1])  # weights alone need the code of the model
from model_config import ModelConfig, build_model
info = safetensors.safe_open("model.safetensors", "pt").metadata()["info"]
run["safetensors"] = build_model(json.loads(info), ModelConfig()).eval()
safetensors.torch.load_model(run["safetensors"], "model.safetensors")
# {% endif %}
with torch.no_grad():
    torch.save({name: [f(*x) for x in torch.load("inputs.pt")] for name, f in run.items()}, "outputs.pt")
"""
# {% if onnx %}
pytest.importorskip("onnxruntime", reason='pip install -e ".[export]"')
# {% endif %}
# {% if safetensors %}
pytest.importorskip("safetensors", reason='pip install -e ".[export]"')
# {% endif %}
# {% if aotinductor %}
pytestmark = pytest.mark.slow  # the C++ compiler runs, once for all tests of this file
# {% endif %}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The owner's model as it is in training, exported, and what there was before."""
    source, _ = load(data_config(), 0, torch.device("cpu"))
    model, example = build_model(source.info, ModelConfig()).train(), example_input(source.fetch(torch.arange(8), 0))
    if not example:
        pytest.skip("model.example_input gives no inputs: this model is not exported")
    before, state = copy.deepcopy(model), torch.get_rng_state()
    origin = {"info": json.dumps(source.info), "model_arguments": "[]"}
    table = export_all(model, origin, example, tmp_path_factory.mktemp("exports"))
    state_after, inputs = torch.get_rng_state(), [samples(example, n) for n in BATCHES + BATCHES]
    with torch.no_grad():
        expected = [call(copy.deepcopy(before).eval(), x) for x in inputs]
    return SimpleNamespace(
        table=table, model=model, before=before, states=(state, state_after), inputs=inputs, expected=expected
    )


def test_moved_files_give_what_the_model_gives_and_twice_the_same(exported: SimpleNamespace, tmp_path: Path) -> None:
    torch.save(exported.inputs, tmp_path / "inputs.pt")
    for export in exported.table:
        assert not export.problem
        shutil.copy(export.path, tmp_path)
    command = [sys.executable, "-c", ELSEWHERE, str(Path(__file__).parents[1])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = torch.load(tmp_path / "outputs.pt")
    assert set(results) == {export.format for export in exported.table}
    for outputs in results.values():
        found = [call(lambda *output: output, x if isinstance(x, tuple | list) else (x,)) for x in outputs]
        torch.testing.assert_close(found, exported.expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(found[:3], found[3:], rtol=0, atol=0)


def test_the_model_can_go_on_training(exported: SimpleNamespace) -> None:
    torch.testing.assert_close(exported.model.state_dict(), exported.before.state_dict(), rtol=0, atol=0)
    assert exported.model.training
    assert all(p.grad is None for p in exported.model.parameters())
    assert torch.equal(*exported.states)


# {% if torch_export %}
def test_a_batch_size_fixed_in_the_code_is_refused(tmp_path: Path) -> None:
    model = nn.Identity()
    model.forward = lambda x: x + 1 if x.shape[0] == 11 else x
    export = export_all(model, {}, (torch.zeros(2, 3),), tmp_path)[0]
    assert "batches of any size" in export.problem
    assert not export.path.exists()


# {% endif %}
# {% if export_packages %}
@pytest.mark.parametrize(
    "package",
    [
        # {% if onnx %}
        "onnxscript",
        "onnxruntime",
        # {% endif %}
        # {% if safetensors %}
        "safetensors",
        # {% endif %}
    ],
)
def test_a_missing_package_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit, match=package):
        export_all(nn.Identity(), {}, (torch.zeros(2, 3),), tmp_path)


# {% endif %}
def test_a_file_that_differs_is_not_left(tmp_path: Path) -> None:
    def write(model: nn.Module, example: Example, origin: dict[str, str], path: Path) -> Exported:
        path.touch()
        return lambda x: model(x) + 1

    with pytest.raises(AssertionError, match="it differs from the model"):
        export_one(Export("odd", tmp_path / "odd", write), nn.Identity(), "{}", (torch.zeros(2, 3),))
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_a_dict_is_refused_and_said_how_to_change(tmp_path: Path) -> None:
    class ModelOutput(dict[str, torch.Tensor]):
        pass

    model = nn.Identity()
    model.forward = lambda x: ModelOutput(logits=x)
    for export in export_all(model, {}, (torch.zeros(2, 3),), tmp_path):
        assert "here is a ModelOutput" in export.problem and "return_dict=False" in export.problem
    assert not list(tmp_path.iterdir())


def test_the_sizes_that_are_frozen_are_said() -> None:
    example = (torch.zeros(2, 12, dtype=torch.int64), torch.zeros(2, 3, 8))
    assert fixed_sizes(example).startswith("Inputs [batch, 12], [batch, 3, 8]:")


def test_what_fails_its_check_leaves_no_file_and_says_why(tmp_path: Path) -> None:
    model = nn.Identity()
    model.forward = torch.rand_like
    for export in export_all(model, {}, (torch.zeros(2, 3),), tmp_path):
        assert "differ" in export.problem
    assert not list(tmp_path.iterdir())
