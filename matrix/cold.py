"""The cold sample: fresh interpreters, torchrun, real compilation, curves.png and AOTInductor's compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from matrix import child
from matrix.jobs import Job, Project
from tricks.template.rendering import write


def run(job: Job, project: Project, folder: Path) -> None:
    """Trains, resumes and exports as an owner would. Raises child.Problem."""
    write(project, folder)
    text = child.write_text(folder.parent / "text.txt")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(child.RANKS)]
    ranks = launcher if "ddp" in job.choice["techniques"] else []
    os.chdir(folder)
    call([*ranks, "train.py", *child.arguments(job, text)])
    child.check_run(Path("run"), job)
    if not Path("run", "curves.png").stat().st_size:
        raise child.Problem("curves.png is empty")
    if "Nothing to do" not in call([*ranks, "train.py", "--resume", "--run-dir", "run"]):
        raise child.Problem("a run that has ended is trained again")
    if "export" in job.choice["techniques"]:
        call(["export.py", "run"])
        child.check_exports(Path("run"), job)


def call(arguments: list[str]) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)
    print(done.stdout, done.stderr, sep="", flush=True)
    if done.returncode:
        raise child.Problem(f"python {' '.join(arguments[:6])} ended with {done.returncode}")
    return done.stdout
