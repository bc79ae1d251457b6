"""An owner puts in a table and a loss that couples the samples of a batch: nothing else has to change."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import warm
from tests.choices import PRESETS

OWNERS = Path(__file__).parent / "owners"


@pytest.mark.parametrize("preset", ["minimal", "everything"])
def test_a_table_with_a_coupled_loss(render: Callable[..., Path], preset: str) -> None:
    project = render(techniques=PRESETS[preset], export_formats=["torch_export", "safetensors"])
    for name in ("data.py", "model.py"):
        shutil.copy(OWNERS / name, project / name)
    run = project.parent / "run"
    off = ["--compile.mode", "off"] if preset == "everything" else []
    code, output = warm.train(project, "--run-dir", str(run), "--epochs", "15", *off)
    assert code == 0, output
    rows = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    scores = [row["val_neighbour"] for row in rows if "val_neighbour" in row]
    assert scores[-1] > 0.85, scores
    if preset == "everything":
        code, output = warm.script(project, "export.py", str(run))
        assert code == 0, output
    code, output = warm.prove(project)
    assert code == 0, output[-6000:]
    if preset == "everything":
        assert "skipped" in output, "what a coupled loss cannot promise is said, not passed"


def test_tasks_differ_in_their_two_files(render: Callable[..., Path]) -> None:
    """And in what follows from them: the README, the dependencies and the help of predict.py."""
    projects = [render(name, task=name, techniques=PRESETS["everything"]) for name in ("image", "text")]
    names = {path.relative_to(projects[0]) for path in projects[0].rglob("*") if path.is_file()}
    different = {str(name) for name in names if (projects[0] / name).read_bytes() != (projects[1] / name).read_bytes()}
    expected = {"data.py", "model.py", "predict.py", "README.md", "pyproject.toml", ".copier-answers.yml"}
    assert different == expected
