"""`tricks new --train`: runs a project's train.py with the Python that runs tricks."""

from __future__ import annotations

import ast
import importlib.util
import shlex
import subprocess
import sys
from pathlib import Path

from tricks import UserError


def train(project: Path) -> int:
    """Exit status of `python train.py`; raises UserError when a module that it imports is missing."""
    missing = missing_modules(project)
    if missing:
        raise UserError(
            f"The project is written, but this Python lacks what it needs to train ({', '.join(missing)}): "
            f"run `cd {shlex.quote(str(project))} && python -m pip install -e .` and then `python train.py`."
        )
    sys.stdout.flush()  # or a pipe would show what the project prints first
    return subprocess.call([sys.executable, "train.py"], cwd=project)


def missing_modules(project: Path) -> list[str]:
    """Missing modules among those that train.py imports at its start, also through the project's files."""
    files, seen, missing = ["train"], set[str](), set[str]()
    while files:
        name = files.pop()
        if name in seen:
            continue
        seen.add(name)
        file = project / f"{name}.py"
        if file.is_file():
            files += imported(file)
        elif importlib.util.find_spec(name) is None:
            missing.add(name)
    return sorted(missing)


def imported(file: Path) -> set[str]:
    """Top-level names of the modules that a file imports outside functions."""
    names = set()
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            names.add(statement.module.partition(".")[0])
    return names
