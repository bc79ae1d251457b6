"""Rendering in memory gives what `copier copy` writes, byte for byte."""

from pathlib import Path
from typing import Any

import pytest
from copier import run_copy

from tests.choices import alone, drawn, presets
from tests.conftest import tree
from tricks.template.rendering import Template, write

CHOICES: dict[str, dict[str, Any]] = alone() | presets() | drawn(8, seed=3)
CHOICES["words"] = {
    "project_name": "  Zürich: \"50 %\" {{ x }} # {% if %} 'ok' \\n",
    "author": 'A "B" \\ C',
    "task": "text",
}
CHOICES["hidden"] = {"techniques": [], "schedule": "plateau", "export_formats": ["onnx"]}
CHOICES["preset"] = {"preset": "everything"}


@pytest.mark.parametrize("name", CHOICES)
def test_same_bytes_as_copier(template: Template, template_folder: Path, tmp_path: Path, name: str) -> None:
    run_copy(str(template_folder), tmp_path / "copier", data=CHOICES[name], defaults=True, quiet=True)
    write(template.render(CHOICES[name], source=str(template_folder)), tmp_path / "memory")
    assert tree(tmp_path / "memory") == tree(tmp_path / "copier")
