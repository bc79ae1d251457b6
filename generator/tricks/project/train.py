"""`tricks new --train`: makes the project's own environment and runs its train.py there."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tricks import UserError


def train(project: Path, tell: Callable[[str], None]) -> int:
    """Exit status of `python train.py` in the project's `.venv`, which is made first.

    `tell` is given a line before each step that takes long. Raises UserError where the environment cannot be made: the
    project is complete, and what was installed stays.
    """
    commands = environment_commands(project)
    tell(
        f"Making {project / '.venv'} with PyTorch in it, by {'uv' if shutil.which('uv') else 'pip'}: "
        "some minutes, and up to 6 GB on disk."
    )
    for command in commands:
        run(command, project)
    tell("Training: python train.py")
    return subprocess.call([str(python(project)), "train.py"], cwd=project, env=outside())


def environment_commands(project: Path) -> list[list[str]]:
    """How the environment is made: by uv where it is installed, else by venv and pip."""
    inside = str(python(project))
    if uv := shutil.which("uv"):
        return [[uv, "venv", "--quiet", ".venv"], [uv, "pip", "install", "--python", inside, "-e", "."]]
    return [
        [sys.executable, "-m", "venv", ".venv"],
        [inside, "-m", "pip", "install", "--disable-pip-version-check", "-e", "."],
    ]


def run(command: list[str], project: Path) -> None:
    sentence = (
        f"The project is written, but its environment could not be made: `{shlex.join(command)}` failed. "
        "Put that right, and go on as the message above says."
    )
    try:
        status = subprocess.call(command, cwd=project, env=outside(), stdout=2)  # beside the result
    except OSError as error:
        raise UserError(sentence) from error
    if status:
        raise UserError(sentence)


def python(project: Path) -> Path:
    """The Python of the project's environment."""
    folder = project.absolute() / ".venv"
    return folder / "Scripts/python.exe" if os.name == "nt" else folder / "bin/python"


def outside() -> dict[str, str]:
    """The variables of this process without those that point Python or uv at another environment."""
    inherited = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    return {name: value for name, value in os.environ.items() if name not in inherited}
