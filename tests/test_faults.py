"""What may go wrong around a run, and what then must hold: nothing lost, a sentence, no process left."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import warm


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run's log without the measured times."""
    found = [json.loads(line, parse_constant=pytest.fail) for line in (folder / "metrics.jsonl").open()]
    return [{name: value for name, value in row.items() if name != "samples_per_second"} for row in found]


def change(project: Path, name: str, old: str, new: str) -> None:
    """What an owner would edit."""
    text = (project / name).read_text()
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {name}"
    (project / name).write_text(text.replace(old, new))


def text(log: Path) -> str:
    """What a child has written so far, which may not have begun."""
    return log.read_text() if log.exists() else ""


def changed(path: Path) -> float:
    """When a file of another process was last changed; 0 where there is none at the moment."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0


def same(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def test_killed_twenty_times_it_ends_like_the_uninterrupted_run(render: Callable[..., Path], tmp_path: Path) -> None:
    project = render(techniques=["amp", "accumulation", "clipping", "scheduler", "augmentation"])
    arguments = ["--max-steps", "300", "--checkpoint-every", "1", "--eval-every", "7", "--log-every", "1"]
    arguments += ["--batch-size", "32", "--accumulation.steps", "2"]
    code, output = warm.train(project, "--run-dir", str(tmp_path / "whole"), *arguments)
    assert code == 0, output
    draw, kills, cut = random.Random(0), 0, tmp_path / "cut"
    checkpoints = cut / "checkpoints"
    files = [checkpoints / "last.pt", checkpoints / "previous.pt"]
    while kills < 20:
        begun, saved = (cut / "config.json").exists(), any(file.exists() for file in files)
        command = ("train.py", "--run-dir", str(cut), *(["--resume"] if begun else arguments))
        process, log = warm.start(project, *command, name="cut-output")
        # Half of them in the second checkpoint, wherever in it that is; a slow machine makes none in the others' time.
        if kills % 2:
            before, deadline = time.time(), time.monotonic() + 60
            while time.monotonic() < deadline and process.is_alive():
                if changed(files[0]) > before and changed(checkpoints / ".last.pt.unfinished"):
                    break
        else:
            process.join(draw.uniform(0.2, 1.2))
        if process.exitcode is not None:
            break
        process.kill()
        process.join()
        kills += 1
        assert not (saved and "no checkpoint yet" in text(log)), "a kill cost every checkpoint"
    assert kills == 20, f"it was over after {kills} kills"
    code, output = warm.train(project, "--run-dir", str(cut), "--resume")
    assert code == 0 and "no checkpoint yet" not in output, output
    assert rows(cut) == rows(tmp_path / "whole")
    whole, resumed = (torch.load(tmp_path / name / "checkpoints" / "last.pt") for name in ("whole", "cut"))
    assert not [key for key in whole if key != "config" and not same(whole[key], resumed[key])]
    assert not list(cut.rglob(".*")), "a file that was not finished is left"


# Every cut and every flipped byte of a checkpoint, in a process of the project.
DAMAGE = """
import random, sys, zipfile
from pathlib import Path
import torch
from checkpoint import read, save
from progress import Progress
from torch import nn

path = Path("small.pt").absolute()
# One random state for the many: the file stays small.
import checkpoint
checkpoint.random_state = lambda device: {"torch": torch.arange(3)}
extras = {"config": {"lr": 0.1}, "info": {"classes": ["a"]}}
save(path, {"model": nn.Linear(2, 1)}, Progress(), extras, torch.device("cpu"))
whole, content = path.read_bytes(), read(path)

def same(left, right):
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right

def refused(data):
    path.write_bytes(data)
    try:
        found = read(path)
    except ValueError as error:
        assert "damaged or not a checkpoint" in str(error), error
        return True
    assert same(found, content), "a damaged file is taken for a checkpoint"
    return False

assert all(refused(whole[:length]) for length in range(len(whole)))
directory = whole.index(b"PK\\x01\\x02")  # no checksum covers it: each of its bits
for i in range(directory, len(whole)):
    for bit in range(8):
        refused(whole[:i] + bytes([whole[i] ^ 1 << bit]) + whole[i + 1 :])
draw = random.Random(0)
flips = [refused(whole[:i] + bytes([whole[i] ^ 1 << draw.randrange(8)]) + whole[i + 1 :]) for i in range(len(whole))]
print(f"{len(whole)} cuts, {sum(flips)} of {len(flips)} flips refused, the others harmless")
assert sum(flips) > len(flips) / 3
"""


def test_a_checkpoint_cut_or_flipped_anywhere_is_never_taken(render: Callable[..., Path]) -> None:
    project = render(techniques=[])
    (project / "damage.py").write_text(DAMAGE)
    code, output = warm.script(project, "damage.py", timeout=300)
    assert code == 0, output


class Hostile:
    """What a file of a stranger may hold: code that runs when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.target),))


def test_what_is_in_a_checkpoint_is_never_executed(render: Callable[..., Path], tmp_path: Path) -> None:
    project, folder = render(techniques=["export"], export_formats=["torch_export"]), tmp_path / "run"
    assert warm.train(project, "--run-dir", str(folder), "--max-steps", "2")[0] == 0
    for name in ("last", "previous", "best"):
        torch.save({"format": 1, "model": Hostile(tmp_path / "owned")}, folder / "checkpoints" / f"{name}.pt")
    for command in (("train.py", "--resume", "--run-dir", str(folder)), ("export.py", str(folder))):
        code, output = warm.script(project, *command)
        assert code == 1 and "damaged or not a checkpoint" in output and "Traceback" not in output, output
    assert not (tmp_path / "owned").exists()


def test_every_load_is_of_weights_only(template_folder: Path) -> None:
    loads = [
        line for path in (template_folder / "template").glob("*.py") for line in path.read_text().splitlines()
        if "torch.load(" in line
    ]  # fmt: skip
    assert loads and all("weights_only=True" in line for line in loads)


def test_a_checkpoint_of_another_model_is_refused(render: Callable[..., Path], tmp_path: Path) -> None:
    project, folder = render(techniques=[]), tmp_path / "run"
    assert warm.train(project, "--run-dir", str(folder), "--max-steps", "2")[0] == 0
    before = (folder / "checkpoints" / "last.pt").read_bytes()
    change(project, "model.py", "nn.Linear(4 * 2 * width, classes)", "nn.Linear(4 * 2 * width, classes + 1)")
    code, output = warm.train(project, "--resume", "--run-dir", str(folder), "--max-steps", "3")
    assert code == 1 and "of another model" in output and "Traceback" not in output, output
    assert (folder / "checkpoints" / "last.pt").read_bytes() == before


def test_a_run_folder_that_vanishes_ends_the_run_with_a_sentence(render: Callable[..., Path], tmp_path: Path) -> None:
    project, folder = render(techniques=[]), tmp_path / "run"
    (project / "vanish.py").write_text(
        "import runpy, shutil, torch\n"
        "calls, real = [], torch.optim.AdamW.step\n"
        "def step(self, *arguments):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 5:\n"
        f"        shutil.rmtree({str(folder)!r})\n"
        "    return real(self, *arguments)\n"
        "torch.optim.AdamW.step = step\n"
        "runpy.run_path('train.py', run_name='__main__')\n"
    )
    code, output = warm.script(
        project, "vanish.py", "--run-dir", str(folder), "--max-steps", "9", "--checkpoint-every", "2"
    )
    assert code == 1 and "Cannot write the checkpoint" in output and "Traceback" not in output, output


@pytest.mark.parametrize("workers", ["0", "2"])
def test_dropout_is_resumed_bit_for_bit(render: Callable[..., Path], workers: str) -> None:
    """The owner's model may be random: then the generators of a run are part of what is resumed."""
    project = render(techniques=["scheduler", "clipping"])
    change(project, "model.py", "self.head(self.features(", "self.head(F.dropout(self.features(")
    change(project, "model.py", " / 127.5 - 1))", " / 127.5 - 1), training=self.training))")
    code, output = warm.prove(project, "tests/test_resume.py", "-k", f"stopped_everywhere and {workers}]")
    assert code == 0 and "passed" in output, output


def test_runs_of_one_second_have_folders_of_their_own(render: Callable[..., Path]) -> None:
    project = render(techniques=[])
    rates = ["0.001", "0.002", "0.003"]
    started = [warm.start(project, "train.py", "--lr", lr, "--max-steps", "30", name=f"lr-{lr}") for lr in rates]
    for process, log in started:
        process.join(60)
        assert process.exitcode == 0, log.read_text()
    folders = list((project / "runs").iterdir())
    assert sorted(json.loads((folder / "config.json").read_text())["lr"] for folder in folders) == [0.001, 0.002, 0.003]
    for folder in folders:
        lr = json.loads((folder / "config.json").read_text())["lr"]
        assert {row["lr"] for row in rows(folder) if "lr" in row} == {lr}
        assert [row["step"] for row in rows(folder) if "lr" in row] == [10, 20, 30]


def test_a_run_that_goes_on_has_no_second_writer(render: Callable[..., Path], tmp_path: Path) -> None:
    project, folder = render(techniques=[]), tmp_path / "run"
    process, log = warm.start(project, "train.py", "--run-dir", str(folder), "--epochs", "100000", name="first")
    try:
        deadline = time.monotonic() + 60
        while "step     10" not in text(log) and time.monotonic() < deadline:  # told at once, into a file too
            time.sleep(0.05)
        told = log.read_text()
        assert "device" in told and "1,435 training" in told and "step     10  loss" in told, told
        for resume in ([], ["--resume"]):
            code, output = warm.train(project, "--run-dir", str(folder), *resume)
            assert code == 1 and f"in use by process {process.pid}" in output and "Traceback" not in output, output
    finally:
        process.kill()
        process.join()


EXOTIC = """
from enum import Enum
from dataclasses import field


class Kind(Enum):
    RAW = "raw file"
    COOKED = "cooked"


@dataclass(frozen=True)
class Nested:
    kind: Kind = Kind.RAW
    pair: tuple[int, float] = (1, 0.5)


"""
EXOTIC_FIELDS = """    paths: tuple[Path, ...] = ()
    more_paths: list[Path] = field(default_factory=list)
    mixture: dict[str, Path] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=lambda: {"train_part": 0.8, "val": 0.2})
    place: str | Path = ""
    kind: Kind = Kind.COOKED
    kinds: tuple[Kind, ...] = ()
    nested: Nested = Nested()
    limit: int | tuple[int, int] | None = None
    strict: bool = True
    maybe: bool | None = None
    numbers: frozenset[int] = frozenset()
"""
EXOTIC_ARGUMENTS = (
    "--data.paths a b --data.more-paths --data.mixture web x books y --data.shares.val 0.5 --data.kind RAW "
    "--data.place hf://datasets/digits --data.kinds RAW COOKED --data.nested.kind COOKED --data.nested.pair -3 1e-30 "
    "--data.limit 3 4 --data.no-strict --data.maybe False --data.numbers 7"
)


def test_values_of_any_type_come_back_on_resume(render: Callable[..., Path], tmp_path: Path) -> None:
    project = render(techniques=["param_groups", "scheduler"])
    change(
        project,
        "data.py",
        "@dataclass(frozen=True)\nclass DataConfig:\n",
        EXOTIC + "@dataclass(frozen=True)\nclass DataConfig:\n",
    )
    change(project, "data.py", "    root: Path | None = None\n", EXOTIC_FIELDS + "    root: Path | None = None\n")
    code, output = warm.prove(project, "tests/test_resume.py", "-k", "comes_back")
    assert code == 0 and "passed" in output, output
    arguments = ["--run-dir", str(tmp_path / "run"), "--groups.lr-scale", "head", "10", *EXOTIC_ARGUMENTS.split()]
    seen = "    print('\\nconfig', replace(config, resume=False, max_steps=0))\n"
    change(
        project,
        "train.py",
        "    config = parse()\n",
        f"    config = parse()\n    from dataclasses import replace\n{seen}",
    )
    shown = []
    for more in (["--max-steps", "4"], ["--resume"], ["--resume", "--max-steps", "4"]):
        own = arguments if more != ["--resume"] else arguments[:2]
        code, output = warm.train(project, *own, *more)
        assert code == 0, output
        shown.append(next(line for line in output.splitlines() if line.startswith("config")))
    assert shown[0] == shown[1] == shown[2]
    assert "<Kind.RAW: 'raw file'>" in shown[0] and "place='hf://datasets/digits'" in shown[0]
    # A run of before, whose config.json has no arguments, is told which value to give.
    path = tmp_path / "run" / "config.json"
    path.write_text(
        json.dumps({name: value for name, value in json.loads(path.read_text()).items() if name != "arguments"})
    )
    code, output = warm.train(project, *arguments[:2], "--resume", "--max-steps", "4")
    assert code == 1 and "begun with --data.kind RAW, not COOKED: give that" in output, output
    code, output = warm.train(project, *arguments, "--resume", "--max-steps", "4")
    assert code == 0 and "Nothing to do" in output, output


# ------------------------------------------------------------------------------------------------- several processes


@pytest.fixture
def ddp(render: Callable[..., Path]) -> Path:
    return render(techniques=["ddp", "accumulation"], tracker="tensorboard")


def test_every_step_saved_and_logged_once(ddp: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    arguments = ("--run-dir", str(folder), "--max-steps", "8", "--checkpoint-every", "1", "--log-every", "1")
    for code, output in warm.ranks(ddp, arguments, arguments, timeout=60):
        assert code == 0, output
    assert [row["step"] for row in rows(folder) if "grad_norm" in row] == list(range(1, 9))
    assert len(list((folder / "tensorboard").iterdir())) == 1


def test_unequal_arguments_are_refused(ddp: Path) -> None:
    for code, output in warm.ranks(ddp, ("--max-steps", "2"), ("--max-steps", "2", "--lr", "0.1"), timeout=60):
        assert code == 1 and "disagree about their arguments" in output and "Traceback" not in output, output


def test_an_overflow_on_one_rank_is_skipped_by_all(render: Callable[..., Path], tmp_path: Path) -> None:
    project, folder = render(techniques=["ddp", "amp", "scheduler"]), tmp_path / "run"
    poison = "total * (float('inf') if distributed.rank() == 1 and run.progress.step == 3 else 1.0)"
    change(project, "train.py", "scale(total * ", f"scale({poison} * ")
    state = "(run.scaler.get_scale(), [p.double().sum().item() for p in run.model.parameters()])"
    change(project, "train.py", "    log.summary(", f"    distributed.check_equal({state}, 'state')\n    log.summary(")
    arguments = ("--run-dir", str(folder), "--max-steps", "8", "--log-every", "1", "--amp.dtype", "fp16")
    for code, output in warm.ranks(project, arguments, arguments, timeout=60):
        assert code == 0 and "Warning" not in output, output
    steps = [row for row in rows(folder) if "grad_norm" in row]
    assert steps[3]["grad_norm"] is None
    assert steps[4]["lr"] == steps[3]["lr"] != steps[5]["lr"], "the schedule skips what the optimizer skips"


def test_a_full_disk_ends_every_rank(ddp: Path, tmp_path: Path) -> None:
    change(ddp, "checkpoint.py", 'unfinished.open("wb")', 'Path("/dev/full").open("wb", buffering=0)')
    arguments = ("--run-dir", str(tmp_path / "run"), "--max-steps", "4", "--checkpoint-every", "2")
    (first, told), (second, silent) = warm.ranks(ddp, arguments, arguments, timeout=60)
    assert (first, second) == (1, 1)
    assert "No space left" in told and "Traceback" not in told + silent, told + silent


def test_a_rank_that_hangs_does_not_hold_the_others(ddp: Path, tmp_path: Path) -> None:
    change(
        ddp,
        "train.py",
        "    run.optimizer.zero_grad()\n",
        "    run.optimizer.zero_grad()\n"
        "    __import__('time').sleep(20 * distributed.rank() * (run.progress.step == 2))\n",
    )
    arguments = ("--run-dir", str(tmp_path / "run"), "--max-steps", "6", "--ddp.timeout", "4")
    (first, output), _ = warm.ranks(ddp, arguments, arguments, timeout=60)
    # Had it waited for the other to wake, it would have gone on and ended well.
    assert first not in (0, -1), output
    assert "Timed out" in output or "timeout" in output.lower(), output


@pytest.mark.parametrize("allowed", [True, False])
def test_a_layer_without_gradient_needs_the_option(ddp: Path, tmp_path: Path, allowed: bool) -> None:
    change(ddp, "model.py", "        self.head = ", "        self.unused = nn.Linear(1, 1)\n        self.head = ")
    arguments = ["--run-dir", str(tmp_path / "run"), "--max-steps", "4"]
    arguments += ["--ddp.find-unused-parameters"] if allowed else []
    for code, output in warm.ranks(ddp, tuple(arguments), tuple(arguments), timeout=60):
        assert (code == 0) == allowed and code != -1, output
        assert allowed or "find_unused_parameters" in output, output


def test_a_crash_of_one_rank_ends_the_launcher_with_its_traceback(ddp: Path, tmp_path: Path) -> None:
    change(
        ddp,
        "train.py",
        "    run.optimizer.zero_grad()\n",
        "    run.optimizer.zero_grad()\n"
        "    if distributed.rank() == 1 and run.progress.step == 2:\n"
        "        int('seven')\n",
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    command += ["--run-dir", str(tmp_path / "run"), "--max-steps", "6"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with (tmp_path / "output").open("w") as output:
        process = subprocess.Popen(
            command, cwd=ddp, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    code = process.wait(90)
    text = (tmp_path / "output").read_text()
    assert code != 0 and "int('seven')" in text, text
    with pytest.raises(ProcessLookupError):
        for _ in range(50):
            os.killpg(process.pid, 0)
            time.sleep(0.2)


def test_two_runs_at_once_do_not_collide(ddp: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1", "train.py"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen([*command, "--max-steps", "3", "--run-dir", str(tmp_path / name)], cwd=ddp, env=environment)
        for name in ("one", "two")
    ]
    assert [process.wait(120) for process in processes] == [0, 0]
    assert rows(tmp_path / "one") == rows(tmp_path / "two")
