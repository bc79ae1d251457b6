"""The way of the data in a real run: what happens in a worker reaches the loop, and nothing waits that need not."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests import accelerator, warm
from tests.conftest import ROOT

# Digits that are not on the device; FAULT is what the fetch of sample 7 meets in the second epoch.
SOURCE = """

class Fetched(TensorSource):
    on_device = False

    def fetch(self, ids, epoch):
        if epoch == 1 and 7 in ids.tolist():
            FAULT
        return super().fetch(ids, epoch)


def load(config, seed, device):
    sources = load_digits(seed, torch.device("cpu"))
    return tuple(Fetched(source.images, source.labels, source.info) for source in sources)
"""
ARGUMENTS = ("--loader.workers", "2", "--batch-size", "32", "--epochs", "2", "--log-every", "1")


@pytest.fixture
def faulty(render: Callable[..., Path]) -> Callable[..., Path]:
    def faulty(fault: str, *techniques: str) -> Path:
        project = render(techniques=list(techniques))
        with (project / "data.py").open("a") as file:
            file.write(SOURCE.replace("FAULT", fault))
        return project

    return faulty


def logged(folder: Path) -> list[dict]:
    """The rows of training steps, without the measured."""
    found = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    return [{name: row[name] for name in ("step", "loss", "lr")} for row in found if "grad_norm" in row]


def goes_on_exactly(project: Path, folder: Path, *arguments: str) -> None:
    """The run was saved between two steps, and ends as if nothing had happened once the fault is gone."""
    steps = logged(folder)[-1]["step"]
    assert 36 <= steps < 72
    assert torch.load(folder / "checkpoints" / "last.pt")["progress"]["step"] == steps
    data = (project / "data.py").read_text()
    (project / "data.py").write_text(data.replace("epoch == 1", "epoch == 99"))
    assert warm.train(project, "--run-dir", str(folder), "--resume")[0] == 0
    whole = folder.with_name("whole")
    assert warm.train(project, "--run-dir", str(whole), *arguments)[0] == 0
    assert logged(folder) == logged(whole)
    left, right = (torch.load(path / "checkpoints" / "last.pt")["model"] for path in (folder, whole))
    assert all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize(
    ("fault", "more", "told"),
    [
        pytest.param("__import__('os').kill(__import__('os').getpid(), 9)", (), "memory ran out", id="killed"),
        pytest.param("__import__('time').sleep(600)", ("--loader.timeout", "2"), "--loader.timeout", id="hangs"),
        pytest.param("raise SystemExit('Cannot read seven.png.')", (), "Cannot read seven.png.", id="unreadable"),
    ],
)
def test_a_fault_in_a_worker_ends_the_run_saved(
    faulty: Callable[..., Path], tmp_path: Path, fault: str, more: tuple[str, ...], told: str
) -> None:
    project, folder = faulty(fault), tmp_path / "run"
    began = time.monotonic()
    code, output = warm.train(project, "--run-dir", str(folder), *ARGUMENTS, *more, timeout=60)
    assert code == 1 and told in output and "Traceback" not in output, output
    assert time.monotonic() - began < 60
    goes_on_exactly(project, folder, *ARGUMENTS)


def test_an_error_of_the_owner_keeps_its_traceback(faulty: Callable[..., Path], tmp_path: Path) -> None:
    code, output = warm.train(faulty("int('seven')"), "--run-dir", str(tmp_path / "run"), *ARGUMENTS, timeout=60)
    assert code not in (0, -1) and "int('seven')" in output and "ValueError" in output, output


@pytest.mark.parametrize("techniques", [(), ("accumulation",)])
def test_a_signal_while_no_batch_comes_stops_the_run_saved(
    faulty: Callable[..., Path], tmp_path: Path, techniques: tuple[str, ...]
) -> None:
    more = ("--accumulation.steps", "2", "--batch-size", "16") if techniques else ()
    project = faulty("open('asleep', 'w').close(); __import__('time').sleep(600)", *techniques)
    folder = tmp_path / "run"
    process, log = warm.start(project, "train.py", "--run-dir", str(folder), *ARGUMENTS, *more, name="stopped")
    deadline = time.monotonic() + 60
    while not (project / "asleep").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)
    os.kill(process.pid, signal.SIGTERM)
    process.join(30)
    code, output = process.exitcode, log.read_text()
    assert code == 143 and "Traceback" not in output, output
    goes_on_exactly(project, folder, *ARGUMENTS, *more)


def test_a_small_shared_memory_is_enough(faulty: Callable[..., Path], tmp_path: Path) -> None:
    """Docker gives 64 MiB; here it is 256 KiB, half of what one batch takes."""
    project = faulty("pass", "cache")
    data = (project / "data.py").read_text()
    (project / "data.py").write_text(
        data.replace(
            "        return super().fetch(ids, epoch)\n",
            "        images, labels = super().fetch(ids, epoch)\n"
            "        return images.repeat(1, 1, 16, 16).float(), labels\n",
        )
    )
    train = ["train.py", "--run-dir", str(tmp_path / "run"), "--loader.workers", "2", "--max-steps", "4"]
    train += ["--batch-size", "8"]
    script = 'mount -t tmpfs -o size=256k tmpfs /dev/shm && exec "$@"'
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a small /dev/shm")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*inside, sys.executable, *train], cwd=project, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "batches come through pipes" in done.stdout, done.stdout + done.stderr
    assert "Error" not in done.stderr, done.stderr


def test_one_cache_serves_the_ranks_of_a_machine(faulty: Callable[..., Path], tmp_path: Path) -> None:
    project, folder = faulty("pass", "ddp", "cache"), tmp_path / "run"
    arguments = ("--run-dir", str(folder), "--loader.workers", "1", "--batch-size", "64", "--epochs", "3")
    for code, output in warm.ranks(project, arguments, arguments, timeout=120):
        assert code == 0, output
    found = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    told = [(row["cache_hits"], row["cache_loads"]) for row in found if "cache_hits" in row]
    # The ranks ask for a few samples at the same time, in check.py and to try the cache, and both load them.
    (hits, loads), samples = told[0], 1435
    assert hits < 20 and samples <= loads < samples + 20
    assert told == [(hits + epoch * samples, loads) for epoch in range(3)]


# Ends with what passes from the host to the simulated accelerator on the way of the data and waits, or is not pinned.
WAITS = """
import sys
from tests.accelerator import record
import train
from config import open_run
from device import find_device
config = train.parse()
with record() as events:
    train.train(config, open_run(config), find_device(config.device))
way = ("augmentation.py", "loader.py", "workers.py", "fetch", "to_device")
events = [event for event in events if any(name in place for place in event.stack[:3] for name in way)]
events = [event for event in events if not any("check.py" in place for place in event.stack)]  # before the first step
print(len(events), "events")
bad = [str(event) for event in events if event.waits or not event.pinned]
sys.exit("; ".join(bad) if bad or len(events) < 24 else 0)
"""


@pytest.mark.parametrize("workers", [None, "0", "2"])
def test_no_copy_of_a_batch_or_its_ids_waits(faulty: Callable[..., Path], tmp_path: Path, workers: str | None) -> None:
    project = faulty("pass", "accumulation", "augmentation")
    if workers is None:  # the samples lie on the device
        data = (project / "data.py").read_text()
        (project / "data.py").write_text(
            data.replace("    on_device = False\n", "").replace('torch.device("cpu")', "device")
        )
    (project / "tests").rename(project / "shipped")  # `tests` is the repository's
    (project / "waits.py").write_text(WAITS)
    variables = accelerator.entry_point(tmp_path / "entry point")
    variables["PYTHONPATH"] += os.pathsep + str(ROOT)
    arguments = ["--max-steps", "12", "--accumulation.steps", "2", "--batch-size", "32", "--eval-every", "6"]
    arguments += ["--loader.workers", workers] if workers else []
    done = subprocess.run(
        [sys.executable, "waits.py", *arguments],
        cwd=project,
        env=os.environ | variables | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    if "UnavailableError" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
