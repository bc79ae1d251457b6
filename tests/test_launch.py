"""On which device a run trains, and with which others, whoever started it: --device, torchrun, srun, mpirun."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tests import accelerator, warm
from tests.choices import ROOT
from tricks.cli.doctor import report

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def module(name: str) -> ModuleType:
    """A file of the template that needs no rendering, as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"template_{name}", ROOT / "template" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


# ---------------------------------------------------------------------------------------------------------- launchers


def srun(rank: int, size: int, nodes: str, tasks: str, **more: str) -> dict[str, str]:
    """What srun sets in the task `rank`, as Slurm 22.05 does."""
    step = {"SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": nodes, "SLURM_STEP_TASKS_PER_NODE": tasks}
    step |= {"SLURM_STEP_NUM_TASKS": str(size), "SLURM_LOCALID": str(rank % 2), "SLURM_JOB_ID": "17"}
    return step | {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(size), **more}


def open_mpi(rank: int, size: int, local: int) -> dict[str, str]:
    """What Open MPI 4.1 sets with `local` processes on each machine."""
    values = {"RANK": rank, "SIZE": size, "LOCAL_RANK": rank % local, "LOCAL_SIZE": local}
    return {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in values.items()} | {"PMIX_NAMESPACE": "503644161"}


def mpich(rank: int, size: int, local: int) -> dict[str, str]:
    """What MPICH 4.0 sets."""
    values = {"PMI_RANK": rank, "PMI_SIZE": size, "MPI_LOCALRANKID": rank % local, "MPI_LOCALNRANKS": local}
    return {name: str(value) for name, value in values.items()}


MEET = {"MASTER_ADDR": "head", "MASTER_PORT": "29500"}


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], tuple[int, list[str | None]]]:
    """processes(environment): the number that launcher.py finds in it, and then the values of NAMES."""
    launcher = module("launcher")

    def processes(environment: dict[str, str]) -> tuple[int, list[str | None]]:
        environment = dict(environment)
        monkeypatch.setattr(launcher.os, "environ", environment)
        try:
            return launcher.processes(), [environment.get(name) for name in NAMES]
        finally:
            monkeypatch.undo()

    return processes


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        # A batch script is a single process, and so is one task of srun or mpirun.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "17"}, None),
        (srun(0, 1, "n1", "1"), None),
        (open_mpi(0, 1, 1), None),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        # A cluster that sets RANK alone: one process per machine, or one device visible to each.
        ({"RANK": "1", "WORLD_SIZE": "2", **MEET}, ["1", "2", None, None, "head", "29500"]),
        ({"RANK": "3", "WORLD_SIZE": "4", "SLURM_LOCALID": "1", **MEET}, ["3", "4", "1", None, "head", "29500"]),
        (srun(3, 4, "n[1-2]", "2(x2)"), ["3", "4", "1", "2", "n1", "25661"]),
        (srun(0, 2, "n7", "2"), ["0", "2", "0", "2", "127.0.0.1", "25661"]),
        (srun(1, 3, "rack[1-2]n[03,07-09]-ib,login", "2,1"), ["1", "3", "1", "2", "rack1n03-ib", "25661"]),
        (srun(1, 4, "n[1-2]", "2(x2)") | MEET, ["1", "4", "1", "2", "head", "29500"]),
        # torchrun or mpirun as a task of srun: the inner launcher counts.
        (srun(1, 2, "n[1-2]", "1(x2)") | {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
         | MEET, ["5", "8", "1", "4", "head", "29500"]),
        (srun(0, 2, "n[1-2]", "1(x2)") | mpich(3, 4, 2) | MEET, ["3", "4", "1", "2", "head", "29500"]),
        (open_mpi(1, 2, 2), ["1", "2", "1", "2", "127.0.0.1", "26119"]),
        (open_mpi(3, 4, 2) | {"MASTER_ADDR": "head"}, ["3", "4", "1", "2", "head", "26119"]),
        (mpich(1, 2, 2) | {"MASTER_PORT": "29500"}, ["1", "2", "1", "2", "127.0.0.1", "29500"]),
    ],
)  # fmt: skip
def test_each_launcher_is_understood(
    processes: Callable[..., Any], environment: dict[str, str], expected: list[str | None] | None
) -> None:
    count, found = processes(environment)
    if expected is None:
        assert count == 1
        return
    assert found[:5] == expected[:5] and str(count) == expected[1]
    # Derived, or as it was given.
    assert found[5] == expected[5] or ("MASTER_PORT" not in environment and 10_000 <= int(found[5] or 0) < 30_000)


def test_a_launch_has_one_port_and_another_has_another(processes: Callable[..., Any]) -> None:
    ports = [processes(srun(rank, 4, "n[1-2]", "2(x2)"))[1][5] for rank in range(4)]
    other = processes(srun(0, 4, "n[1-2]", "2(x2)", SLURM_STEP_ID="1"))[1][5]
    assert set(ports) == {ports[0]} != {other}


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"RANK": "0"}, "export the number of processes as WORLD_SIZE"),
        ({"RANK": "2", "WORLD_SIZE": "2", **MEET}, "RANK is '2' and WORLD_SIZE '2'"),
        ({"RANK": "one", "WORLD_SIZE": "2", **MEET}, "RANK is 'one'"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "no MASTER_ADDR and no MASTER_PORT"),
        (open_mpi(1, 4, 2), "no MASTER_ADDR"),
        (mpich(1, 2, 2), "no MASTER_PORT"),
    ],
)
def test_what_is_missing_is_said(processes: Callable[..., Any], environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(SystemExit, match=sentence):
        processes(environment)


@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
def test_two_processes_of_a_launcher_train_together(render: Callable[..., Path], tmp_path: Path, launcher: str) -> None:
    project, port = render(techniques=["ddp"]), warm.free_port()
    arguments = ("train.py", "--max-steps", "3", "--log-every", "1", "--run-dir", str(tmp_path / "run"))
    places = [srun(rank, 2, "n7", "2") if launcher == "srun" else mpich(rank, 2, 2) for rank in range(2)]
    commands = [(arguments, place | {"MASTER_PORT": port}) for place in places]
    for code, output in warm.launched(project, *commands, timeout=90):
        assert code == 0, output
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    assert [row["step"] for row in rows if "grad_norm" in row] == [1, 2, 3]


def test_a_port_that_is_taken_is_said(render: Callable[..., Path]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        variables = mpich(0, 2, 2) | {"MASTER_PORT": str(taken.getsockname()[1])}
        [(code, output)] = warm.launched(render(techniques=["ddp"]), (("train.py",), variables), timeout=60)
    assert code == 1 and "cannot meet at 127.0.0.1:" in output and "Traceback" not in output, output


# Of two ranks one gets SIGTERM in its third step, where no row, evaluation or checkpoint is due for long.
SIGNAL = """
import signal, sys
import distributed, train
rank, make_step, steps = int(sys.argv.pop(1)), train.step, []

def step(*arguments):
    steps.append(1)
    if len(steps) == 3 and distributed.rank() == rank:
        signal.raise_signal(signal.SIGTERM)
    return make_step(*arguments)

train.step = step
raise SystemExit(train.main())
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_signal_waits_for_one_step_at_most(render: Callable[..., Path], tmp_path: Path, ranks: int) -> None:
    project, port = render(techniques=["ddp"]), warm.free_port()
    (project / "signalled.py").write_text(SIGNAL)
    rare = [word for name in ("log", "eval", "checkpoint") for word in (f"--{name}-every", "500")]
    arguments = ("signalled.py", str(ranks - 1), "--max-steps", "500", "--run-dir", str(tmp_path / "run"), *rare)
    variables = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    commands = [(arguments, variables | {"RANK": str(rank)}) for rank in range(ranks)]
    for code, output in warm.launched(project, *commands, timeout=90):
        assert code == 143, output
    stopped = torch.load(tmp_path / "run" / "checkpoints" / "last.pt", weights_only=True)["progress"]["step"]
    assert stopped == (3 if ranks == 1 else 4)


# ------------------------------------------------------------------------------------------------------------- devices


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A machine with cuda:0 and cuda:1, as far as find_device looks; the indices that were made current."""
    current: list[int] = []
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr(torch.accelerator, "set_device_index", current.append)
    return current


def test_device_names(two_gpus: list[int]) -> None:
    find_device = module("device").find_device
    assert [str(find_device(name)) for name in ("auto", "cpu", "cuda", "cuda:1")] == ["cuda", "cpu", "cuda", "cuda:1"]
    assert two_gpus == [1], "only a device with a number is made the current one"
    for name in ("mps", "gpu", "", "xpu:0"):
        with pytest.raises(SystemExit, match=f"--device {name}: .* no such device .* auto, cuda or cpu"):
            find_device(name)
    for name in ("cuda:2", "cuda:-1", "cuda:", "cuda:300"):
        with pytest.raises(SystemExit, match=f"--device {name}: the devices of this machine are cuda:0 to cuda:1"):
            find_device(name)


def test_a_device_that_is_not_there_is_one_sentence(render: Callable[..., Path]) -> None:
    code, output = warm.train(render(techniques=[]), "--device", "mps")
    assert code == 1 and output.count("\n") == 1 and "--device mps" in output, output


def test_a_process_takes_the_device_of_its_place(render: Callable[..., Path]) -> None:
    project = render(techniques=["ddp"])
    (project / "places.py").write_text(
        "import os, torch, distributed\n"
        "from torch import device\n"
        "print([distributed.collectives(device(name)) for name in ('cpu', 'cuda', 'mps', 'meta')])\n"
        "torch.accelerator.set_device_index = lambda index: None\n"
        "def own(count, name, **variables):\n"
        "    torch.accelerator.device_count = lambda: count\n"
        "    os.environ.pop('LOCAL_RANK', None)\n"
        "    os.environ.update(variables)\n"
        "    try:\n"
        "        return str(distributed.own_device(device('cuda'), name))\n"
        "    except SystemExit as error:\n"
        "        return str(error)\n"
        "print(own(8, 'auto', LOCAL_RANK='5'))\n"
        "print(own(1, 'auto', LOCAL_RANK='5'), own(1, 'cuda'))\n"
        "print(own(4, 'auto', LOCAL_RANK='5'))\n"
        "print(own(4, 'auto'))\n"
        "print(own(4, 'cuda:1', LOCAL_RANK='1'))\n"
    )
    code, output = warm.script(project, "places.py")
    assert code == 0, output
    backends, own, visible, more, placeless, single = output.splitlines()
    assert backends in ("['gloo', None, None, None]", "['gloo', 'nccl', None, None]")
    assert (own, visible) == ("cuda:5", "cuda:0 cuda:0")
    assert "More processes than devices" in more and "start 4 at most" in more
    assert "as LOCAL_RANK" in placeless and "give cuda" in single


def test_elsewhere_the_optimizer_is_what_pytorch_takes(render: Callable[..., Path]) -> None:
    """fused=False would forbid foreach too: 88 kernels a step for 11 parameters instead of 8."""
    project = render(techniques=[])
    (project / "built.py").write_text(
        "import torch\nfrom config import Config\nfrom run import build\n"
        "info = {'channels': 1, 'size': 8, 'classes': ['a', 'b']}\n"
        "for name in ('cpu', 'meta'):\n"
        "    defaults = build(Config(), info, torch.device(name), 1).optimizer.defaults\n"
        "    print(defaults['fused'], defaults['foreach'])\n"
    )
    assert warm.script(project, "built.py") == (0, "True None\nNone None\n")


# ------------------------------------------------------------------------------------------- a simulated accelerator


@pytest.fixture
def simulated(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python in a project on a machine with the accelerator `sim`, for which PyTorch has no collectives."""
    variables = os.environ | accelerator.entry_point(tmp_path / "entry point") | {"OMP_NUM_THREADS": "1"}

    def simulated(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=project, env=variables, capture_output=True, text=True, timeout=300)
        if "UnavailableError" in done.stderr:
            pytest.skip(done.stderr.strip().splitlines()[-1])
        return done

    return simulated


def test_a_run_goes_on_on_another_kind_of_device(
    render: Callable[..., Path], simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    project, last = render(techniques=[]), tmp_path / "run" / "checkpoints" / "last.pt"
    arguments = ("train.py", "--run-dir", str(tmp_path / "run"))
    done = simulated(project, *arguments, "--max-steps", "2")
    assert done.returncode == 0, done.stderr
    content = torch.load(last, map_location="cpu", weights_only=True)
    assert content["random"][0]["device_type"] == accelerator.NAME and "device" in content["random"][0]
    # On a device whose generator has another state: begun there, it was a RuntimeError here.
    content["random"][0] |= {"device_type": "other", "device": torch.zeros(16, dtype=torch.uint8)}
    torch.save(content, last)
    done = simulated(project, *arguments, "--resume", "--max-steps", "3")
    assert done.returncode == 0 and "goes on on sim and was on other" in done.stdout, done.stdout + done.stderr
    code, output = warm.train(project, *arguments[1:], "--resume", "--max-steps", "4")
    assert code == 0 and "goes on on cpu and was on sim" in output, output
    done = simulated(project, *arguments, "--resume", "--max-steps", "5", "--device", "cpu")
    assert done.returncode == 0 and "goes on on" not in done.stdout, done.stdout + done.stderr


def test_doctor_knows_a_device_without_collectives(
    render: Callable[..., Path], simulated: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    project = render(techniques=["amp", "ddp", "compile"])
    done = simulated(project, str(ROOT / "generator" / "tricks" / "cli" / "probe.py"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["device"], found["ddp"]) == (accelerator.NAME, "none")
    lines = list(report(found | {"count": 2}))
    assert "ddp: PyTorch has no collectives for sim; several processes train on the CPU" in lines
    assert "ddp" not in lines[-1]


def test_the_tests_of_a_project_run_on_its_accelerator(
    render: Callable[..., Path], simulated: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    project = render(techniques=["clipping"])
    (project / "tests" / "test_place.py").write_text(
        "from conftest import parameters\n\n\n"
        "def test_place(begin, micro):\n"
        "    assert {next(begin().model.parameters()).device.type, micro(0, 2).batch[0].device.type} == {'sim'}\n"
    )
    files = ("tests/test_place.py", "tests/test_clipping.py")  # all of them: docs/verification.md
    done = simulated(project, "-m", "pytest", "-p", "no:cacheprovider", "--device", "auto", *files)
    assert done.returncode == 0, done.stdout
    done = simulated(project, "-m", "pytest", "-p", "no:cacheprovider", "--device", "cuda", *files)
    assert done.returncode == 4 and "--device cuda: PyTorch finds no such device" in done.stderr, done.stderr
