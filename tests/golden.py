"""Renders the projects under review into tests/golden: python -m tests.golden

A change of the template shows there what it does to nothing, `recommended` and `everything`.
"""

import shutil
from pathlib import Path
from typing import Any

from copier import run_copy

from tests.choices import CHOICES, PRESETS, ROOT

GOLDEN = ROOT / "tests" / "golden"
PROJECTS: dict[str, dict[str, Any]] = {
    "nothing": {"techniques": []},
    "recommended": {},
    "everything": {
        "techniques": PRESETS["everything"],
        **{name: CHOICES[name] for name in ("export_formats", "extras")},
        "tracker": "tensorboard",
    },
}


def refresh(source: Path, golden: Path = GOLDEN) -> None:
    """Renders each project from a template outside git."""
    shutil.rmtree(golden, ignore_errors=True)
    for name, answers in PROJECTS.items():
        run_copy(str(source), golden / name, data=answers, defaults=True, quiet=True)
        # It names where this rendering came from.
        (golden / name / ".copier-answers.yml").unlink()


if __name__ == "__main__":
    import tempfile

    from tests.conftest import copy_sources

    with tempfile.TemporaryDirectory() as folder:
        refresh(copy_sources(Path(folder)))
