"""What a forked child does with a project: writes it, trains it with a stop and a resume, exports it, checks it.

The warm process has imported torch (imports.py) and used it once (rehearsal.py). Patched out in a warm child, and run
in the cold sample: drawing curves.png, real compilation (`--compile.mode off`), AOTInductor's compiler, torchrun (the
ranks are forks).
"""

from __future__ import annotations

import importlib
import json
import math
import os
import random
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import torch

from matrix import process
from matrix.jobs import Job, Project
from tricks.template.rendering import write

STEPS, EVERY, STOP_AT = 4, 2, 1
RANKS = 2


class Problem(Exception):
    """What is wrong with a project, in a sentence."""


def arguments(job: Job, text: Path) -> list[str]:
    """The command line of a small run."""
    techniques = job.choice["techniques"]
    found = ["--max-steps", STEPS, "--eval-every", EVERY, "--checkpoint-every", "2", "--log-every", "1"]
    found += ["--run-dir", "run"]
    ranks = RANKS if "ddp" in techniques else 1
    micro = ranks * (2 if "accumulation" in techniques else 1)
    # Half precision is emulated on most CPUs: a sample costs as much as the start of a kernel. The cold sample has all
    # digits, of which four teach nothing.
    batch = max(2, 4 // micro) if not job.cold else 16 // micro
    found += ["--batch-size", batch]
    task = job.choice.get("task", "image")
    if task == "text":
        found += ["--data.root", text, "--data.samples-per-epoch", "12"]
        found += ["--data.context", "8", "--data.validation-samples", "8"]
    if task == "blank":
        found += ["--data.points", "20"]
    if task == "table":
        found += ["--data.file", text.with_name("table.csv"), "--data.rare", "1"]
    if "accumulation" in techniques:
        found += ["--accumulation.steps", "2"]
    if "compile" in techniques and not job.cold:
        found += ["--compile.mode", "off"]
    if "profiler" in techniques:
        found += ["--profiler.wait", "0", "--profiler.warmup", "1", "--profiler.active", "1"]
    if job.amp and "amp" in techniques:
        found += ["--amp.dtype", job.amp]
    return [str(value) for value in found]


def write_text(path: Path) -> Path:
    """What the text task is trained on, and beside it what the table task is."""
    path.write_text("the quick brown fox jumps over the lazy dog, and then it sleeps. " * 200, encoding="utf-8")
    lines = [
        f"{number % 5},{'' if number % 7 == 0 else number % 3},{'ab'[number % 2]},{['no', 'yes'][number % 2]}"
        for number in range(20)
    ]
    path.with_name("table.csv").write_text("\n".join(["size,weight,kind,sweet", *lines]) + "\n", encoding="utf-8")
    return path


def run(job: Job, project: Project, folder: Path) -> None:
    """Trains a project and checks what it left. Raises Problem."""
    write(project, folder)
    text = write_text(folder.parent / "text.txt")
    if job.proofs:  # they begin in a process that no training has changed
        pid = os.fork()
        if pid == 0:
            leave_with(lambda: run_warm(job, folder, text))
        if os.waitpid(pid, 0)[1]:
            raise Problem("training failed, see above")
    else:
        run_warm(job, folder, text)


def run_warm(job: Job, folder: Path, text: Path) -> None:
    """All of it in this process and, for DDP, a fork of it. Raises Problem."""
    process.enter(folder)
    random.seed(0)
    torch.manual_seed(0)
    several = "ddp" in job.choice["techniques"]
    launches = (launch(several), launch(several))
    module = quietly()
    child = os.fork() if several else -1
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        leave_with(lambda: train(module, arguments(job, text), 1, launches))
    train(module, arguments(job, text), 0, launches)
    if several and (status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])):
        raise Problem(f"rank 1 ended with {status}")
    check_run(Path("run"), job)
    if "export" in job.choice["techniques"]:
        export(job)


def leave_with(function: Callable[[], None]) -> NoReturn:
    """The rest of a fork's life."""
    code = 1
    try:
        function()
        code = 0
    except Problem as problem:
        print(f"PROBLEM {problem}", file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def launch(several: bool) -> dict[str, str]:
    """The environment that torchrun would give, without the rank; empty for a single process."""
    if not several:
        return {}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(RANKS)}


def train(module: Any, given: list[str], rank: int, launches: tuple[dict[str, str], dict[str, str]]) -> None:
    """Trains until a signal in the middle, and goes on to the end."""
    real, made = module.step, []

    def step(*values: Any) -> Any:
        result = real(*values)
        made.append(1)
        if len(made) == STOP_AT and rank == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        return result

    module.step = step
    for launched, line, expected in ((launches[0], given, 143), (launches[1], ["--resume", "--run-dir", "run"], 0)):
        os.environ.update(launched | ({"RANK": str(rank), "LOCAL_RANK": str(rank)} if launched else {}))
        sys.argv = ["train.py", *line]
        code = module.main()
        if code != expected:
            raise Problem(f"train.py {' '.join(line)} ended with {code}, not {expected}")
    if len(made) != STEPS:
        raise Problem(f"{len(made)} optimizer steps were made, not {STEPS}")


def quietly() -> Any:
    """The project's train.py as a module, with what takes seconds patched out."""
    import log  # type: ignore[import-not-found]
    import train as module  # type: ignore[import-not-found]

    log.draw = lambda folder: (folder / "curves.png").touch()
    return module


def export(job: Job) -> None:
    import export as module  # type: ignore[import-not-found]

    if "aotinductor" in job.choice["export_formats"]:
        stand_in_for_the_compiler()
    module.latency = lambda run, inputs: 0.0  # 28 calls of each format
    module.main(Path("run"))
    check_exports(Path("run"), job)


def stand_in_for_the_compiler() -> None:
    packages = {}

    def package(program: torch.export.ExportedProgram, package_path: str, inductor_configs: dict[str, Any]) -> None:
        assert json.loads(inductor_configs["aot_inductor.metadata"]["info"])
        Path(package_path).write_text(inductor_configs["aot_inductor.metadata"]["info"], encoding="utf-8")
        packages[package_path] = program.module()

    inductor: Any = importlib.import_module("torch._inductor")
    inductor.aoti_compile_and_package = package
    inductor.aoti_load_package = packages.__getitem__


# ------------------------------------------------------------------------------------------------ the outcome


def check_exports(run_dir: Path, job: Job) -> None:
    made = [path for path in (run_dir / "exports").iterdir() if not path.name.startswith(".")]
    if len(made) != len(job.choice["export_formats"]) or not all(path.stat().st_size for path in made):
        raise Problem(f"exports/ holds {sorted(path.name for path in made)} for {job.choice['export_formats']}")


def check_run(run_dir: Path, job: Job) -> None:
    """Raises Problem unless the run left what it should."""

    def refuse(constant: str) -> None:
        raise Problem(f"metrics.jsonl holds {constant}, which is not JSON")

    lines = (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line, parse_constant=refuse) for line in lines]
    trained, evaluated = ([row for row in rows if name in row] for name in ("grad_norm", "val_loss"))
    if [row["step"] for row in trained] != list(range(1, STEPS + 1)):
        raise Problem(f"metrics.jsonl has the training steps {[row['step'] for row in trained]}")
    if [row["step"] for row in evaluated] != list(range(EVERY, STEPS + 1, EVERY)):
        raise Problem(f"metrics.jsonl has the evaluations {[row['step'] for row in evaluated]}")
    overflows = job.amp == "fp16"  # finds its scale by overflowing
    for row in trained:
        for name in ("loss", "grad_norm", "lr"):
            value = row[name]
            if not (isinstance(value, float) and math.isfinite(value)) and not (overflows and name == "grad_norm"):
                raise Problem(f"{name} of step {row['step']} is {value}")
    # The first step's loss is the untrained model's: a quick optimizer has learned all by the first evaluation.
    first, last = evaluated[0]["val_loss"], evaluated[-1]["val_loss"]
    if not (last < first or last < 0.5 * trained[0]["loss"]):
        raise Problem(f"the loss does not fall: {trained[0]['loss']} in step 1, then evaluated {first} and {last}")
    expected = {"last.pt", "previous.pt", "best.pt"}
    if (found := {path.name for path in (run_dir / "checkpoints").iterdir()}) != expected:
        raise Problem(f"checkpoints/ holds {sorted(found)}")
    left = {"config.json", "curves.png"}
    left |= {"profile"} if "profiler" in job.choice["techniques"] else set()
    left |= {"tensorboard"} if job.choice.get("tracker") == "tensorboard" else set()
    if missing := {name for name in left if not (run_dir / name).exists()}:
        raise Problem(f"the run left no {', '.join(sorted(missing))}")
    if "profiler" in job.choice["techniques"]:
        json.loads((run_dir / "profile" / "trace.json").read_text(encoding="utf-8"))


def check_output(output: str) -> None:
    for line in output.splitlines():
        if "Warning" in line:
            raise Problem(f"a warning: {line.strip()}")


def run_tests(folder: Path) -> None:
    """The project's own tests, in this process, with all digits."""
    datasets: Any = importlib.import_module("sklearn.datasets")
    datasets.load_digits = datasets.all_digits
    if code := process.run_tests(folder):
        raise Problem(f"the project's own tests fail (pytest ended with {code})")
