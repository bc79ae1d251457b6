"""Training: the model learns, every layer takes part, and the log says what happened."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import COUPLED

import train
from checkpoint import load_model
from config import AccumulationConfig, Config
from curves import draw
from device import named_leaves, to_device, tree_map
from evaluation import evaluate, sum_up
from loader import First, Loader, LoaderConfig, MicroBatch
from model import count, loss, metrics
from progress import StopSignal
from run import Run, training_mode
from scores import METRIC, PICK, Totals, add


def test_one_batch_is_learnt_by_heart(begin: Callable[..., Run], micro: Callable[..., MicroBatch]) -> None:
    run, batch = begin(max_steps=50), micro(0, 8)
    before = float(loss(run.model, batch.batch).detach())
    for _ in range(50):
        train.step(run, [batch])
    after = float(loss(run.model, batch.batch).detach())
    assert after < before - 0.1 * abs(before), (
        "the loss on one batch hardly falls: look at model.loss and the gradients"
    )


def test_every_parameter_gets_a_gradient(begin: Callable[..., Run], micro: Callable[..., MicroBatch]) -> None:
    run, batch = begin(), micro(0, 8)
    train.step(run, [batch])
    idle = [
        name
        for name, parameter in run.model.named_parameters()
        if parameter.requires_grad and (parameter.grad is None or not parameter.grad.abs().sum() > 0)
    ]
    assert not idle, f"no gradient reaches {idle}: they take no part in the loss"


@pytest.mark.usefixtures("float64", "separable")
def test_loss_is_a_sum_over_items(begin: Callable[..., Run], micro: Callable[..., MicroBatch]) -> None:
    run = begin()
    whole, parts = micro(0, 7).batch, [micro(0, 4).batch, micro(4, 7).batch]
    assert math.isclose(sum(float(count(part)) for part in parts), float(count(whole)), rel_tol=1e-10), COUPLED
    losses = [float(loss(run.model, part).detach()) for part in parts]
    # The bound follows from what is summed, which may cancel out.
    bound = 1e-10 * sum(map(abs, losses))
    assert math.isclose(float(loss(run.model, whole).detach()), sum(losses), rel_tol=0, abs_tol=bound), COUPLED


@pytest.mark.parametrize("workers", [0, 2])
def test_order_is_a_function_of_seed_and_epoch(host_sources: tuple[First, First], workers: int) -> None:
    source = host_sources[0]
    source.on_device = False  # through the DataLoader

    def ids(seed: int, epoch: int, skip: int = 0) -> list[int]:
        loader = Loader(source, 8, seed, LoaderConfig(workers=workers), torch.device("cpu"), shuffle=True)
        found = [int(i) for micro in loader.epoch(epoch, skip) for i in micro.ids]
        loader.close()
        return found

    first = ids(0, 0)
    assert sorted(first) == list(range(26))
    assert ids(0, 0) == first
    assert ids(0, 1) != first
    assert ids(1, 0) != first
    assert ids(0, 0, skip=2) == first[16:]


@pytest.mark.usefixtures("float64")
def test_log_is_strict_json_with_each_step_once(
    run_in: Callable[..., int], config: Config, sources: tuple[First, First], tmp_path: Path
) -> None:
    config = replace(config, batch_size=4, accumulation=AccumulationConfig(2))
    assert run_in(tmp_path, config) == 0
    rows = [json.loads(line, parse_constant=pytest.fail) for line in (tmp_path / "metrics.jsonl").open()]
    steps, scores = ([row for row in rows if name in row] for name in ("grad_norm", f"val_{METRIC}"))
    assert [row["step"] for row in steps] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [row["step"] for row in scores] == [4, 8]
    # An epoch's loss is the mean over its items, not the mean of the steps' means.
    loader = Loader(sources[0], config.batch_size, config.seed, config.loader, torch.device("cpu"), shuffle=True)
    for epoch, row in enumerate(scores):
        items = [float(count(micro.batch)) for micro in loader.epoch(epoch)]
        items = [sum(items[first : first + 2]) for first in range(0, len(items), 2)]
        losses = [step["loss"] for step in steps if step["epoch"] == epoch]
        total = sum(loss * number for loss, number in zip(losses, items, strict=True))
        assert row["train_loss"] == pytest.approx(total / sum(items), rel=1e-12)
    draw(tmp_path)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("float64", "separable")
@torch.no_grad()
def test_scores_are_of_all_samples_once(begin: Callable[..., Run], sources: tuple[First, First]) -> None:
    run, stop = begin(), StopSignal()
    run.model.eval()
    ids, size = torch.arange(len(sources[1])), 3
    totals: list[Totals] = [{}, {}]  # sample by sample; and the sizes of what is summed, which may cancel out
    for each in ids.split(1):
        found = metrics(run.model, to_device(sources[1].fetch(each, 0), run.device))
        add(totals[0], found)
        add(totals[1], {name: (tree_map(torch.abs, score), items) for name, (score, items) in found.items()})
    for size in (3, len(ids)):
        loader = Loader(sources[1], size, 0, run.config.loader, run.device, shuffle=False)
        found = sum_up(run, loader, stop)
        for (name, value), (_, expected), (_, scale) in zip(*map(named_leaves, (found, *totals)), strict=True):
            value, expected, scale = (torch.as_tensor(x, device="cpu") for x in (value, expected, scale))
            bound = 1e-4 if expected.dtype == torch.float32 else 1e-10
            assert ((value - expected).abs() <= bound * scale).all(), f"metrics{name}: {COUPLED}"
    assert run.model.training, "evaluate named_leaves the model in training mode"
    stop.close()


@pytest.mark.usefixtures("deterministic")
def test_best_checkpoint_gives_the_logged_scores(
    run_in: Callable[..., int],
    begin: Callable[..., Run],
    config: Config,
    sources: tuple[First, First],
    tmp_path: Path,
) -> None:
    """To the last digit: what was evaluated is what was saved, and what predict.py and exports will use."""
    assert run_in(tmp_path, config) == 0
    found = [json.loads(line) for line in (tmp_path / "metrics.jsonl").open()]
    logged = PICK((row for row in found if row.get(f"val_{METRIC}") is not None), key=lambda row: row[f"val_{METRIC}"])
    run, stop = begin(), StopSignal()
    run.model.load_state_dict(load_model(tmp_path)[0].state_dict())
    loader = Loader(sources[1], config.batch_size, config.seed, config.loader, run.device, shuffle=False)
    scores = evaluate(run, loader, stop)
    stop.close()
    assert {f"val_{name}": score for name, score in scores.items() if math.isfinite(score)}.items() <= logged.items()


def test_a_run_ends_inside_an_epoch(run_in: Callable[..., int], config: Config, tmp_path: Path) -> None:
    assert run_in(tmp_path, replace(config, max_steps=6)) == 0
    assert load_model(tmp_path, "last")[1]["progress"]["step"] == 6


def test_frozen_norms_keep_their_statistics() -> None:
    frozen, norm = torch.nn.BatchNorm1d(2).requires_grad_(False), torch.nn.BatchNorm1d(2)
    training_mode(torch.nn.Sequential(frozen, norm))
    assert not frozen.training and norm.training


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_what_is_not_finite_stops_the_run(
    run_in: Callable[..., int], config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    calls = []

    def broken(model: torch.nn.Module, batch: object) -> torch.Tensor:
        total = loss(model, batch)
        calls.append(1)
        if len(calls) != 6:
            return total
        # The root of 0 is 0, and its slope is infinite: times 0 that is a NaN.
        return total * math.nan if what == "loss" else total + (total * 0).sqrt()

    monkeypatch.setattr(train, "loss", broken)
    with pytest.raises(SystemExit, match=rf"Step \d+: the {what} is not finite. Samples of that step: \["):
        run_in(tmp_path, replace(config, checkpoint_every=1, log_every=100))
    kept = torch.load(tmp_path / "checkpoints" / "last.pt", weights_only=True)
    assert all(bool(value.isfinite().all()) for value in kept["model"].values())
