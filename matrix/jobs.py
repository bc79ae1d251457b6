"""What is run of one project, and the result that is kept of it."""

from __future__ import annotations

import ast
import hashlib
import json
import shlex
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from matrix.space import Choice, Space
from tricks.template.rendering import Template

Project = dict[Path, str]  # the texts of a rendered project
PACKAGE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Job:
    """A project and what is done with it."""

    choice: Choice
    amp: str = ""  # --amp.dtype; empty: the knob's default
    proofs: bool = False  # also the project's own tests
    cold: bool = False  # fresh interpreters, real compile, curves and AOTInductor, torchrun: nothing is patched out

    def __hash__(self) -> int:
        return hash(self.text())

    def text(self) -> str:
        """The job as JSON, without what is at its default."""
        values = {name: value for name, value in asdict(self).items() if name == "choice" or value}
        return json.dumps(values)

    def command(self) -> str:
        """What repeats it."""
        return f"python -m matrix one {shlex.quote(self.text())}"


def parse(text: str, space: Space) -> Job:
    """The inverse of Job.text. Raises ValueError with a sentence when it is none, or its choice is not valid."""
    try:
        values = json.loads(text)
        job = Job(**values)
    except (ValueError, TypeError) as error:
        raise ValueError(f"This is not a job, such as a failure prints it: {error}.") from None
    space.row_of(job.choice)
    return job


@dataclass(frozen=True)
class Outcome:
    """How a job ended; an empty problem means well."""

    job: Job
    problem: str
    seconds: float
    output: str = ""


def environment() -> str:
    """What besides the project's files decides about a result."""
    own = hashlib.sha256()
    for path in sorted(PACKAGE.glob("*.py")):
        own.update(path.read_bytes())
    return f"{version('torch')} {sys.version} {own.hexdigest()}"


def digest(project: Project, job: Job, surroundings: str) -> str:
    """The name under which a result is kept: the rendered tree, what is done with it, and the environment."""
    found = hashlib.sha256(surroundings.encode())
    found.update(f"{job.amp} {job.proofs} {job.cold}".encode())
    for path, text in sorted(project.items()):
        # The answers file names every choice, also those that change nothing else.
        if path.name != ".copier-answers.yml":
            found.update(f"\0{path.as_posix()}\0{text}".encode())
    return found.hexdigest()


def amp_dtypes(template: Template) -> list[str]:
    """The types that --amp.dtype names, from the project's own Literal: all but what leaves it to the machine."""
    for path, text in template.render({"techniques": ["amp"]}).items():
        if path == Path("amp.py"):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "dtype":
                    literals = [leaf.value for leaf in ast.walk(node.annotation) if isinstance(leaf, ast.Constant)]
                    return [str(literal) for literal in literals if literal != "auto"]
    raise ValueError("The template's amp.py has no dtype: the runner does not know what to train with.")
