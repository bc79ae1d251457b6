"""Projects as their owner runs them: fresh interpreters, torchrun, worker processes, real files, wrong values."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.choices import CHOICES, PRESETS

SHORT = ("--max-steps", "4", "--batch-size", "64")


def run(project: Path, *arguments: str, timeout: float = 180, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a project: ("train.py", ...) for python, ("-m", ...) likewise."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=project,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").open()]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Forty small pictures of two kinds, of different sizes."""
    for kind, colour in (("red", (200, 30, 30)), ("blue", (30, 30, 200))):
        folder = tmp_path / "photos" / kind
        folder.mkdir(parents=True)
        for index in range(20):
            Image.new("RGB", (20 + index, 30), colour).save(folder / f"{index}.png")
    return tmp_path / "photos"


def test_everything_from_training_to_prediction(render: Callable[..., Path], photos: Path, tmp_path: Path) -> None:
    formats = [name for name in CHOICES["export_formats"] if name != "aotinductor"]
    project = render(techniques=PRESETS["everything"], export_formats=formats, tracker="tensorboard")
    folder = tmp_path / "run"
    done = run(
        project, "train.py", "--data.root", str(photos), "--epochs", "3", "--batch-size", "8",
        "--compile.mode", "off", "--profiler.wait", "1", "--run-dir", str(folder),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stdout + done.stderr
    loads = [row["cache_loads"] for row in rows(folder) if "cache_loads" in row]
    assert loads[0] == loads[-1] == 32, "later epochs decode nothing"
    assert json.loads((folder / "profile" / "trace.json").read_text())["traceEvents"]
    exported = run(project, "export.py", str(folder))
    assert exported.returncode == 0, exported.stdout + exported.stderr
    assert "Warning" not in exported.stderr, exported.stderr
    predicted = run(project, "predict.py", str(folder), str(photos / "red" / "3.png"))
    assert predicted.returncode == 0 and "red" in predicted.stdout, predicted.stdout + predicted.stderr


def test_text_is_continued(render: Callable[..., Path], tmp_path: Path) -> None:
    project = render(task="text", techniques=[])
    (tmp_path / "book.txt").write_text("the cat sat on the mat. " * 400)
    folder = tmp_path / "run"
    done = run(
        project, "train.py", "--data.root", str(tmp_path / "book.txt"), "--max-steps", "40", "--run-dir", str(folder)
    )
    assert done.returncode == 0, done.stderr
    assert rows(folder)[-1]["val_bits_per_byte"] < 4
    nothing = run(project, "predict.py", str(folder))
    assert nothing.returncode == 1 and "at least one input" in nothing.stderr, nothing.stderr
    predicted = run(project, "predict.py", str(folder), "the cat")
    assert predicted.returncode == 0 and predicted.stdout.startswith("the cat"), predicted.stderr


def test_torchrun_and_plain_python(render: Callable[..., Path], tmp_path: Path) -> None:
    project = render(techniques=["ddp", "accumulation", "amp"])
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    both = run(project, *launcher, "train.py", *SHORT, "--run-dir", str(tmp_path / "two"))
    assert both.returncode == 0, both.stderr
    alone = run(project, "train.py", "--max-steps", "4", "--batch-size", "128", "--run-dir", str(tmp_path / "one"))
    assert alone.returncode == 0, alone.stderr
    two, one = rows(tmp_path / "two"), rows(tmp_path / "one")
    assert [row["step"] for row in two] == [row["step"] for row in one]
    for name in ("val_loss", "train_loss"):
        assert two[-1][name] == pytest.approx(one[-1][name], rel=1e-4)


@pytest.mark.skipif(
    not any(shutil.which(name) for name in ("g++", "clang++", "c++")), reason="no C++ compiler on this machine"
)
def test_aotinductor_package_is_compiled_and_loads_elsewhere(render: Callable[..., Path]) -> None:
    project = render(techniques=["export"], export_formats=["aotinductor"])
    done = run(project, "-m", "pytest", "tests/test_export.py", timeout=400)
    assert done.returncode == 0, done.stdout


def test_spawned_workers(render: Callable[..., Path], photos: Path, tmp_path: Path) -> None:
    """How macOS and Windows start them: everything that travels has to pickle."""
    project = render(techniques=["cache", "augmentation"])
    (project / "spawned.py").write_text(
        "import multiprocessing, runpy\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.set_start_method('spawn')\n"
        "    runpy.run_path('train.py', run_name='__main__')\n"
    )
    done = run(
        project, "spawned.py", "--data.root", str(photos), "--epochs", "2", "--batch-size", "8",
        "--loader.workers", "2", "--run-dir", str(tmp_path / "run"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "run")[-1]["cache_loads"] == 32


def broken_image(photos: Path) -> None:
    (photos / "red" / "5.png").write_bytes(b"no image")


def empty_class(photos: Path) -> None:
    (photos / "green").mkdir()


@pytest.mark.parametrize(
    ("spoil", "arguments", "told"),
    [
        (None, ("--lr", "-1"), "--lr"),
        (None, ("--batch-size", "0"), "--batch-size"),
        (None, ("--epochs", "many"), "--epochs"),
        (None, ("--nosuch", "3"), "--nosuch"),
        (None, ("--run-dir", "train.py"), "train.py"),
        (None, ("--run-dir", "train.py/below"), "train.py"),
        (None, ("--resume",), "no run"),
        (None, ("--resume", "--run-dir", "nosuch"), "nosuch"),
        (None, ("--data.root", "nosuch"), "nosuch"),
        (None, ("--data.root", "train.py"), "train.py"),
        (broken_image, ("--data.root", "PHOTOS", "--epochs", "1", "--loader.workers", "2"), "5.png"),
        (broken_image, ("--data.root", "PHOTOS", "--epochs", "1", "--loader.workers", "0"), "5.png"),
        (empty_class, ("--data.root", "PHOTOS"), "green"),
    ],
)
def test_wrong_values_get_a_sentence(
    render: Callable[..., Path], photos: Path, spoil: Any, arguments: tuple[str, ...], told: str
) -> None:
    project = render(techniques=[])
    if spoil:
        spoil(photos)
    done = run(project, "train.py", *(argument.replace("PHOTOS", str(photos)) for argument in arguments))
    assert done.returncode not in (0, -9), done.stdout
    assert told in done.stderr + done.stdout
    assert "Traceback" not in done.stderr, done.stderr


def test_more_batch_than_data_trains(render: Callable[..., Path], tmp_path: Path) -> None:
    project = render(techniques=[])
    done = run(project, "train.py", "--batch-size", "5000", "--epochs", "2", "--run-dir", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "run")[-1]["step"] == 2


def test_full_disk_is_told_and_costs_nothing(render: Callable[..., Path], tmp_path: Path) -> None:
    """/dev/full stands for a disk without space: every write to it fails as one would there."""
    project = render(techniques=[])
    (project / "full.py").write_text(
        "import runpy, sys, checkpoint\n"
        "from pathlib import Path\n"
        "real, calls = Path.open, []\n"
        "def fail(path, mode='r', *rest, **more):\n"
        "    if mode == 'wb':\n"
        "        calls.append(1)\n"
        "        if len(calls) > 4:\n"
        "            return open('/dev/full', 'wb', buffering=0)\n"
        "    return real(path, mode, *rest, **more)\n"
        "Path.open = fail\n"
        "runpy.run_path('train.py', run_name='__main__')\n"
    )
    folder = tmp_path / "run"
    done = run(project, "full.py", "--max-steps", "20", "--checkpoint-every", "2", "--run-dir", str(folder))
    assert done.returncode == 1 and "No space left" in done.stderr and "Traceback" not in done.stderr, done.stderr
    resumed = run(project, "train.py", "--resume", "--run-dir", str(folder), "--max-steps", "20")
    assert resumed.returncode == 0, resumed.stderr
    assert [row["step"] for row in rows(folder) if "grad_norm" in row] == [10, 20]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_ctrl_c_with_workers_saves_and_leaves_nobody(
    render: Callable[..., Path], photos: Path, tmp_path: Path, start: str
) -> None:
    """A terminal sends Ctrl-C to every process of the group, the workers too."""
    project = render(techniques=[])
    (project / "started.py").write_text(
        "import multiprocessing, runpy\n"
        "if __name__ == '__main__':\n"
        f"    multiprocessing.set_start_method({start!r})\n"
        "    runpy.run_path('train.py', run_name='__main__')\n"
    )
    folder = tmp_path / "run"
    command = [sys.executable, "started.py", "--data.root", str(photos), "--epochs", "10000", "--batch-size", "8"]
    command += ["--loader.workers", "2", "--checkpoint-every", "5", "--run-dir", str(folder)]
    with (tmp_path / "output").open("w") as output:
        process = subprocess.Popen(command, cwd=project, stdout=output, stderr=output, start_new_session=True)
    deadline = time.monotonic() + 120
    while not (folder / "checkpoints" / "previous.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    try:
        code = process.wait(60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    text = (tmp_path / "output").read_text()
    assert code == 130 and "Traceback" not in text, text
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.killpg(process.pid, 0)
            time.sleep(0.2)


def test_a_run_is_resumed_twice_and_survives_a_refusal(render: Callable[..., Path], tmp_path: Path) -> None:
    project = render(techniques=[])
    folder = ("--run-dir", str(tmp_path / "run"))
    assert run(project, "train.py", *SHORT, *folder).returncode == 0
    assert "begun with --lr" in run(project, "train.py", "--resume", "--lr", "1", *folder).stderr
    for steps in ("6", "8"):
        done = run(project, "train.py", "--resume", "--max-steps", steps, *folder)
        assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "run")[-1]["step"] == 8
