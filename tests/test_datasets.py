"""Any torch Dataset as a source: the code blocks of a project's README, put into its data.py and really run."""

import ast
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import warm
from tests.choices import CHOICES, PRESETS
from tests.test_owners import FOLDER, rows

Render = Callable[..., Path]
FAKE = """
class Fake(datasets.FakeData):
    def __init__(self, root, train, download, transform):
        super().__init__(60 if train else 20, (3, 8, 8), 4, transform)
        self.classes = list("abcd")

"""
DRAWN = """
class Drawn(torch.utils.data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        return draw(index)

def load(config, seed, device):
    parts = torch.utils.data.random_split(Drawn(), [0.75, 0.25])
    return tuple(DatasetSource(part, {"size": 16}, lambda samples: list(zip(*samples))) for part in parts)
"""


def block(project: Path, words: str) -> str:
    """The code block of the README that begins like this."""
    found = re.findall(rf"```python\n({re.escape(words)}.*?)```", (project / "README.md").read_text(), re.DOTALL)
    assert len(found) == 1, words
    return str(found[0])


@pytest.fixture
def cifar(render: Render) -> Callable[..., Path]:
    """An image project on the README's torchvision dataset, which nobody has to download."""

    def cifar(*techniques: str) -> Path:
        project = render(techniques=techniques, export_formats=["torch_export"])
        given = block(project, "from torchvision import datasets")
        assert "datasets.CIFAR10(" in given
        given = given.replace("def load(", FAKE + "def load(").replace("datasets.CIFAR10(", "Fake(")
        with (project / "data.py").open("a") as file:
            file.write(block(project, "class DatasetSource") + given)
        return project

    return cifar


def test_random_transforms_are_those_of_the_epoch_and_sample_on_any_workers(cifar: Callable[..., Path]) -> None:
    project = cifar()
    for workers in ("0", "2"):
        words = ("--epochs", "2", "--log-every", "1", "--loader.workers", workers)
        code, output = warm.train(project, "--run-dir", workers, *words)
        assert code == 0, output
    assert rows(project / "0") == rows(project / "2")
    (project / "draws.py").write_text(
        "import torch\nfrom data import DataConfig, load\nbefore = torch.get_rng_state()\n"
        "source, ids = load(DataConfig(), 0, torch.device('cpu'))[0], torch.arange(20)\n"
        "images = [source.fetch(ids, epoch)[0] for epoch in (0, 0, 1)]\n"
        "assert torch.equal(images[0], images[1]) and torch.equal(torch.get_rng_state(), before)\n"
        "flipped = (images[0] != images[2]).flatten(1).any(1).sum()\nassert 0 < flipped < 20, flipped\n"
        "assert torch.equal(source.fetch(ids[5:6], 1)[0], images[2][5:6])\n"
    )
    code, output = warm.script(project, "draws.py")
    assert code == 0, output


def test_the_shipped_tests_hold_on_a_dataset_of_torchvision(cifar: Callable[..., Path]) -> None:
    code, output = warm.prove(cifar(*PRESETS["recommended"]), timeout=600)
    assert code == 0, output[-6000:]


def test_lists_of_boxes_are_a_collate_function(render: Render) -> None:
    project = render(techniques=["accumulation"])
    for name in ("data.py", "model.py"):
        shutil.copy(FOLDER / "detection" / name, project / name)
    with (project / "data.py").open("a") as file:
        file.write(block(project, "class DatasetSource") + DRAWN)
    code, output = warm.train(project, "--run-dir", "run", "--epochs", "4")
    assert code == 0, output
    scores = [row["val_average_precision"] for row in rows(project / "run") if "val_average_precision" in row]
    assert scores[-1] > scores[0]


@pytest.mark.parametrize("task", CHOICES["task"])
def test_the_readme_and_the_blank_task_have_the_same_source(render: Render, task: str) -> None:
    """Notes and annotations aside. The blank task's README points at its data.py."""
    shown, kept = render("shown", task=task), render("kept", task="blank")
    if task == "blank":
        assert "class DatasetSource" not in (shown / "README.md").read_text()
        return
    tree = ast.parse((kept / "data.py").read_text())
    code = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "DatasetSource")
    for node in ast.walk(code):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            del node.body[0]
    expected = ast.unparse(code).replace("=default_collate", "=torch.utils.data.default_collate")
    assert ast.unparse(ast.parse(block(shown, "class DatasetSource"))) == expected
