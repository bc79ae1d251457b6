"""DDP: two processes make the parameters, the scores and the checkpoints of one process on the same global batches.

Run by torchrun this file is one of the two processes; what they found comes back in a file.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import few_samples, hold, parameters, rows, small_config, stop_in, use_default_dtype

# {% filter regex_replace("\n+", "\n") %}
import distributed
import train

# {% if accumulation %}
from config import AccumulationConfig, Config

# {% else %}
from config import Config

# {% endif %}
from device import named_leaves, to_device
from evaluation import sum_up

# {% if accumulation %}
from loader import First, Loader, windows

# {% else %}
from loader import First, Loader

# {% endif %}
from progress import StopSignal
from run import Run, build

# {% endfilter %}

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("float64", "separable")


def global_config(size: int = 8) -> Config:
    """So many samples in each micro-batch of all processes together."""
    config = replace(small_config(), batch_size=size // distributed.world_size())
    # {% if accumulation %}
    # 26 samples: a window of 8 + 8 + 5, and one of 5.
    return replace(config, accumulation=AccumulationConfig(3))
    # {% else %}
    return config
    # {% endif %}


def trained(training: First, size: int, seen: list[int], device: torch.device) -> Run:
    """Two epochs by hand, in eval mode; notes the ids of this process's own samples in the first."""
    config = global_config(size)
    run = build(config, training.info, device, steps_per_epoch=4)
    hold(run.model, to_device(training.fetch(torch.arange(2), 0), device))
    loader = Loader(training, config.batch_size, 0, config.loader, device, shuffle=True)
    for epoch in range(2):
        # {% if accumulation %}
        for window in windows(loader.epoch(epoch), config.accumulation.steps):
            train.step(run, window)
            seen += [int(i) for micro in window if micro.weight and epoch == 0 for i in micro.ids]
        # {% else %}
        for micro in loader.epoch(epoch):
            train.step(run, micro)
            seen += [int(i) for i in micro.ids if micro.weight and epoch == 0]
        # {% endif %}
    return run


def sums(run: Run, validation: First) -> dict[str, list[float]]:
    """Of all metrics, with their counts; in order of size, since processes join their lists in another one.

    Ten samples divide by two processes and not by their batches; nine leave one process without a last batch.
    """
    stop = StopSignal()
    found = {}
    for size in (10, 9, 1):
        loader = Loader(First(validation, size), run.config.batch_size, 0, run.config.loader, run.device, shuffle=False)
        for name, pair in sum_up(run, loader, stop).items():
            values = torch.cat([torch.as_tensor(leaf, dtype=torch.float64).flatten() for _, leaf in named_leaves(pair)])
            found[f"{name} of {size}"] = values.sort()[0].tolist()
    stop.close()
    return found


def process(folder: Path, name: str) -> None:
    """What each of the two processes does, on a device of that name."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    use_default_dtype(pytest.MonkeyPatch())
    device = distributed.start(name, global_config().ddp)
    (folder / "started").touch()
    training, validation = few_samples(device)
    seen: list[int] = []
    run = trained(training, 8, seen, device)
    found: dict[str, Any] = {
        "parameters": distributed.all_gather(parameters(run)),
        "seen": distributed.all_gather(seen),
        # Five samples, two at a time: in the last step the second process has none.
        "idle": distributed.all_gather(parameters(trained(First(training, 5), 2, [], device))),
    }
    found["sums"] = sums(run, validation)

    # Rank 0's buffers are the ones that count.
    run.model.register_buffer("probe", torch.tensor(float(distributed.rank()), device=device))
    sums(run, validation)
    found["buffers"] = distributed.all_gather(float(run.model.get_buffer("probe")))

    # One process gets a signal in its fourth step, after which an evaluation is due: both stop there, and go on later.
    config = replace(global_config(), epochs=4)
    train.load = lambda *arguments: (training, validation)
    for name in ("whole", "cut"):
        (folder / name).mkdir(exist_ok=True)
    codes = [train.train(config, folder / "whole", device)]
    with pytest.MonkeyPatch.context() as patch:
        if distributed.rank() == 1:
            stop_in(patch, "step", 4, 15)
        codes.append(train.train(config, folder / "cut", device))
    codes.append(train.train(replace(config, resume=True), folder / "cut", device))
    # Where nothing is due both stop a step later.
    (folder / "late").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        if distributed.rank() == 1:
            stop_in(patch, "step", 4, 15)
        codes.append(train.train(replace(config, eval_every=99, checkpoint_every=99), folder / "late", device))
    found["codes"] = distributed.all_gather(codes)
    if distributed.rank() == 0:
        torch.save(found, folder / "found.pt")
    distributed.stop()


@pytest.fixture(scope="module")
def shared(device: torch.device) -> torch.device:
    """Where the two processes train: on the accelerator where there is one for each."""
    two = device.type != "cpu" and distributed.collectives(device) and torch.accelerator.device_count() > 1
    return device if two else CPU


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shared: torch.device) -> Path:
    """The folder in which two processes left what they found."""
    here = Path(__file__).parent
    # --standalone takes a free port.
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__]
    paths = os.pathsep.join([str(here.parent), str(here)])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    for _ in range(2):
        folder = tmp_path_factory.mktemp("two")
        done = subprocess.run(
            [*command, str(folder), shared.type], env=environment, timeout=240, capture_output=True, text=True
        )
        # Now and then gloo does not find the other process: only that gets a second try.
        if (folder / "started").exists():
            break
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    return torch.load(folder / "found.pt", weights_only=True)


@pytest.fixture
def alone(shared: torch.device) -> tuple[Run, list[int], dict[str, list[float]]]:
    """The same in this one process."""
    training, validation = few_samples(shared)
    seen: list[int] = []
    run = trained(training, 8, seen, shared)
    return run, seen, sums(run, validation)


def test_two_processes_train_like_one(
    found: dict[str, Any], alone: tuple[Run, list[int], dict[str, list[float]]], shared: torch.device
) -> None:
    few = trained(First(few_samples(shared)[0], 5), 2, [], shared)
    for (first, second), one in ((found["parameters"], alone[0]), (found["idle"], few)):
        assert torch.equal(first, second), "the ranks drift apart"
        assert torch.allclose(first, parameters(one), rtol=0, atol=1e-10)


def test_samples_are_dealt_out_once(
    found: dict[str, Any], alone: tuple[Run, list[int], dict[str, list[float]]]
) -> None:
    assert sorted(found["seen"][0] + found["seen"][1]) == sorted(alone[1]) == list(range(26))


def test_scores_count_each_sample_once(
    found: dict[str, Any], alone: tuple[Run, list[int], dict[str, list[float]]]
) -> None:
    assert found["sums"].keys() == alone[2].keys()
    for name, expected in alone[2].items():
        assert found["sums"][name] == pytest.approx(expected, rel=1e-9, abs=1e-9 * max(map(abs, expected))), name


def test_buffers_are_those_of_rank_0(found: dict[str, Any]) -> None:
    assert found["buffers"] == [0.0, 0.0]


def test_one_signal_stops_all_and_resume_goes_on(
    found: dict[str, Any], folder: Path, same: Callable[..., bool]
) -> None:
    assert found["codes"] == [[0, 143, 0, 143]] * 2
    assert [row["step"] for row in rows(folder / "late")] == [1, 2, 3, 4, 5]
    assert same(rows(folder / "cut"), rows(folder / "whole"))


if __name__ == "__main__":
    process(Path(sys.argv[1]), sys.argv[2])
