"""Owners put in their data.py and model.py, each with other batches, losses and metrics: nothing else has to change.

`make test` takes them with the recommended techniques; OWNERS=all, in `make matrix`, with everything as well.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import warm
from tests.choices import CHOICES, PRESETS
from tests.conftest import tree

FOLDER = Path(__file__).parent / "owners"
OWNERS = sorted(path.name for path in FOLDER.iterdir() if (path / "model.py").exists())
ALL = os.environ.get("OWNERS") == "all"
# What cannot be exported or cached says so in one sentence.
NO_EXPORT = {"detection", "noisy", "padded"}
NOT_CACHED = {"detection", "padded"}
Render = Callable[..., Path]


@pytest.fixture
def owned(render: Render) -> Callable[..., Path]:
    """owned(owner, techniques) is a project with the owner's two files in it."""

    def owned(owner: str, techniques: list[str], **answers: Any) -> Path:
        project = render(techniques=techniques, export_formats=["torch_export", "safetensors"], **answers)
        for name in ("data.py", "model.py"):
            shutil.copy(FOLDER / owner / name, project / name)
        return project

    return owned


def rows(run: Path) -> list[dict[str, Any]]:
    """The rows of a run, without what is measured."""
    found = [json.loads(line, parse_constant=pytest.fail) for line in (run / "metrics.jsonl").open()]
    return [{name: value for name, value in row.items() if name != "samples_per_second"} for row in found]


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("preset", ["recommended", pytest.param("everything", marks=pytest.mark.slow)])
def test_the_shipped_tests_hold(owned: Callable[..., Path], owner: str, preset: str) -> None:
    if preset == "everything" and not ALL:
        pytest.skip("make matrix runs it, or OWNERS=all")
    code, output = warm.prove(owned(owner, PRESETS[preset]), timeout=600)
    assert code == 0, output[-6000:]
    assert "passed" in output


@pytest.mark.parametrize("owner", OWNERS)
def test_an_owner_trains_accumulates_and_exports(owned: Callable[..., Path], owner: str) -> None:
    project = owned(owner, ["accumulation", "cache", "export"])
    words = ("--batch-size", "12", "--accumulation.steps", "2")
    run = project.parent / "run"
    code, output = warm.train(project, "--run-dir", str(run), "--epochs", "3", *words)
    assert code == 0, output
    assert ("The cache is off" in output) == (owner in NOT_CACHED), output
    code, output = warm.script(project, "export.py", str(run))
    assert code == (1 if owner in NO_EXPORT else 0), output
    if owner in NO_EXPORT:
        assert output.strip() == "This model is not exported: example_input in model.py gives no inputs for it."
    code, output = warm.script(project, "check.py")
    assert (code, output.splitlines()[-1]) == (0, "data.py and model.py keep what the rest asks of them."), output


@pytest.mark.parametrize("owner", OWNERS)
def test_two_ranks_score_like_one(owned: Callable[..., Path], owner: str) -> None:
    """Sums of any shape, weights and lists come together from both, after one step on all samples."""
    project = owned(owner, ["ddp"])
    words = ("--epochs", "1", "--max-steps", "1", "--batch-size", "500")
    code, output = warm.train(project, "--run-dir", "one", *words)
    assert code == 0, output
    two = ("--run-dir", "two", *words[:-1], "250")
    for code, output in warm.ranks(project, two, two):
        assert code == 0, output
    one, two_rows = rows(project / "one"), rows(project / "two")
    scores = [
        {name: value for name, value in found[-1].items() if name.startswith("val_")} for found in (one, two_rows)
    ]
    assert scores[0].keys() == scores[1].keys()
    if owner in ("contrastive", "noisy", "padded", "frozen"):  # coupled, or random in training (dropout)
        return
    assert scores[1] == {name: value and pytest.approx(value, rel=1e-4) for name, value in scores[0].items()}


def test_what_cannot_be_counted_is_said_once_and_never_best(owned: Callable[..., Path]) -> None:
    """A class that no picture of the validation has: its mean is null, and the highest mean IoU is the best."""
    project = owned("segmentation", [])
    code, output = warm.train(project, "--run-dir", "run", "--epochs", "4")
    assert code == 0, output
    assert output.count("val_rare: nothing to take a mean of") == 1
    found = [row for row in rows(project / "run") if "val_mean_iou" in row]
    assert [row["val_rare"] for row in found] == [None] * 4
    assert f"best val_mean_iou {max(row['val_mean_iou'] for row in found):.4f}" in output


@pytest.mark.parametrize(
    ("owner", "old", "new", "sentence"),
    [
        ("regression", 'reduction="sum"', 'reduction="mean"', "model.py: loss returns a mean"),
        (
            "regression",
            '"loss": (errors',
            '"error": (errors',
            "model.py: 'loss' chooses the best model and is not among",
        ),
        ("segmentation", 'mean_iou", max', 'mean_iou"', "model.py: BEST has to be the name of a score and min or max"),
        ("segmentation", 'BEST = "mean_iou"', 'BEST = "iou"', "model.py: 'iou' chooses the best model"),
        (
            "weighted",
            "return weights(batch)[batch.kinds].sum()",
            "return weights(batch)",
            "model.py: count has to return",
        ),
    ],
)
def test_a_fault_is_one_sentence_before_the_first_step(
    owned: Callable[..., Path], owner: str, old: str, new: str, sentence: str
) -> None:
    project = owned(owner, [])
    text = (project / "model.py").read_text()
    assert text.count(old) == 1
    (project / "model.py").write_text(text.replace(old, new))
    for script in ("train.py", "check.py"):
        code, output = warm.script(project, script)
        assert code == 1
        assert output.startswith(sentence), output
        assert "Traceback" not in output
    assert not list(project.glob("runs/*/metrics.jsonl"))


def test_what_is_frozen_stays_as_it_was(owned: Callable[..., Path]) -> None:
    """Its weights and its running statistics, on two ranks, after evaluations; the optimizer does not have it."""
    project = owned("frozen", ["ddp", "param_groups", "clipping"])
    words = ("--run-dir", "run", "--epochs", "2", "--device", "cpu")
    for code, output in warm.ranks(project, words, words):
        assert code == 0, output
    content = torch.load(project / "run/checkpoints/last.pt", weights_only=True)
    still = {name: tensor for name, tensor in content["model"].items() if name.startswith("backbone.1")}
    assert still["backbone.1.running_mean"].eq(0).all() and still["backbone.1.running_var"].eq(1).all()
    assert still["backbone.1.num_batches_tracked"] == 0
    names = [name for part in content["optimizer"]["param_groups"] for name in part["param_names"]]
    assert sorted(names) == ["head.0.bias", "head.0.weight"] and len(content["optimizer"]["state"]) == 2


PRETRAINED = """

def load_pretrained(model: nn.Module) -> None:
    model.backbone[0].weight.data.copy_(torch.load("backbone.pt"))
"""


def test_values_of_the_model_and_a_file_that_only_a_new_run_needs(owned: Callable[..., Path]) -> None:
    project = owned("frozen", ["export"])
    text = (project / "model.py").read_text()
    (project / "model.py").write_text(text + PRETRAINED)
    weight = torch.arange(32.0 * 9).view(32, 1, 3, 3)
    torch.save(weight, project / "backbone.pt")
    words = ("--run-dir", "run", "--batch-size", "100")
    code, output = warm.train(project, *words, "--epochs", "1", "--model.hidden", "24", "16")
    assert code == 0, output
    (project / "backbone.pt").unlink()
    code, output = warm.train(project, *words, "--epochs", "2", "--resume", "--model.hidden", "24")
    assert (code, output) == (
        1,
        "This run was begun with --model.hidden [24, 16], not [24]: give that, or start a new run.\n",
    )
    code, output = warm.train(project, *words, "--epochs", "2", "--resume")
    assert code == 0, output
    state = torch.load(project / "run/checkpoints/last.pt", weights_only=True)["model"]
    assert torch.equal(state["backbone.0.weight"], weight)
    assert [tuple(state[f"head.{layer}.weight"].shape) for layer in range(3)] == [(24, 288), (16, 24), (10, 16)]
    for script in (("predict.py", "run", "word"), ("export.py", "run")):
        code, output = warm.script(project, *script)
        assert code == 0, output
    (project / "model.py").write_text(text.replace("info: dict[str, Any], config: ModelConfig", "info: dict[str, Any]"))
    code, output = warm.train(project)
    assert (code, output.startswith("model.py: build_model has to take (info), or (info, config)")) == (1, True), output


OPTIMIZERS = """

def optimizers(model: nn.Module, config: Any) -> torch.optim.Optimizer:
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return torch.optim.NAdam([{"params": trained[:1]}, {"params": trained[1:], "lr": config.lr / 2}], lr=config.lr)
"""


def test_an_optimizer_of_the_owners_is_scheduled_saved_and_resumed(owned: Callable[..., Path]) -> None:
    """By the shipped tests, in which a cut run is bit for bit the whole one."""
    project = owned("regression", PRESETS["recommended"], optimizer="muon")
    text = (project / "model.py").read_text()
    (project / "model.py").write_text(text + OPTIMIZERS)
    names = ("resume", "optimizer", "groups", "amp")
    code, output = warm.prove(project, *(f"tests/test_{name}.py" for name in names), timeout=300)
    assert code == 0, output[-6000:]
    run = project.parent / "run"
    code, output = warm.train(project, "--run-dir", str(run), "--epochs", "2")
    assert code == 0, output
    row = next(row for row in rows(run) if "lr" in row)
    assert row["lr/0"] == pytest.approx(2 * row["lr/1"])


def test_tasks_differ_in_their_two_files(render: Render) -> None:
    """And in what follows from them: the README, the dependencies and the help of predict.py."""
    first, *others = [tree(render(name, task=name, techniques=PRESETS["everything"])) for name in CHOICES["task"]]
    for other in others:
        different = {name for name in first.keys() | other.keys() if first.get(name) != other.get(name)}
        assert different == {"data.py", "model.py", "predict.py", "README.md", "pyproject.toml", ".copier-answers.yml"}
