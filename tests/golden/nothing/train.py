"""Train the model of model.py on the data of data.py.

python train.py                      # every value: python train.py --help
python train.py --resume             # go on with the newest run
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from arguments import to_arguments, to_dict
from check import check
from checkpoint import plain, save
from config import Config, open_run, parse
from data import load
from device import divisor, find_device, to_device
from evaluation import evaluate
from loader import First, Loader, MicroBatch
from log import Log
from model import count, loss
from progress import Progress, SaveTimer, StopSignal
from resume import resume
from run import Run, build
from scores import METRIC, is_better
from workers import NoBatch


def step(
    run: Run,
    micro: MicroBatch,
) -> tuple[Tensor, float | Tensor, Tensor]:
    """One optimizer step on the mean loss over all items of its samples.

    Returns the sum of the losses, the number of items, and the gradient's norm before clipping.
    """
    run.optimizer.zero_grad()
    items = divisor(count(micro.batch))
    batch = to_device(micro.batch, run.device)
    total = loss(run.model, batch)
    (total / items).backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in run.parameters() if p.grad is not None])
    run.optimizer.step()
    run.progress.next_step()
    return total.detach(), items, norm


def training_batches(loader: Loader, progress: Progress, stop: StopSignal) -> Iterator[MicroBatch]:
    """The micro-batches that are left of all epochs; the next one once `progress` counts the last."""
    while progress.step < progress.total_steps:
        if progress.epoch_step >= progress.steps_per_epoch:
            progress.next_epoch()
        for micro in loader.epoch(progress.epoch, progress.epoch_step, stop):
            yield micro
            if progress.step == progress.total_steps:
                return


def train(config: Config, run_dir: Path, device: torch.device) -> int:
    """Trains to the end, or until a signal; returns the exit code."""
    train_source, val_source = load(config.data, config.seed, device)
    if config.overfit_one_batch:
        train_source = val_source = First(train_source, config.batch_size)
    common = (config.batch_size, config.seed, config.loader, device)
    train_loader = Loader(train_source, *common, shuffle=True)
    val_loader = Loader(val_source, *common, shuffle=False)
    steps_per_epoch = len(train_loader)

    constants = {"config": to_dict(config), "model_arguments": to_arguments(config.model)}
    constants["info"] = plain(train_source.info)
    constants["samples"] = {"training": len(train_source), "validation": len(val_source)}
    run = build(config, constants["info"], device, steps_per_epoch)
    check(run, train_source)
    if config.resume:
        resume(run_dir, run, constants)
    progress, stop, stopped = run.progress, StopSignal(), 0
    timer = SaveTimer(config.checkpoint_minutes)
    log = Log(run_dir, run, constants["samples"])

    def save_as(name: str, parts: dict[str, Any]) -> None:
        log.settle()
        save(run_dir / "checkpoints" / f"{name}.pt", parts, progress, constants, device, config.keep)
        log.restart_clock()

    def assess() -> None:
        """Evaluates, and keeps the best model."""
        log.settle()
        scores = evaluate(run, val_loader, stop)
        if not scores:  # a signal: the resumed run begins with this evaluation
            return
        log.evaluation(scores)
        progress.evaluated = progress.step
        if is_better(scores[METRIC], progress.best):
            progress.best = scores[METRIC]
            save_as("best", {"model": run.model})
        log.restart_clock()

    try:
        if progress.due(config.eval_every) and progress.evaluated < progress.step:
            assess()
            save_as("last", run.parts())
        for micro in training_batches(train_loader, progress, stop):
            log.step([micro], *step(run, micro))
            if log.due():
                log.training()
            evaluating, saving = progress.due(config.eval_every), progress.due(config.checkpoint_every)
            if evaluating:
                assess()
            stopped = stop.number
            if stopped or saving or timer.over():
                save_as("last", run.parts())
                timer.restart()
            if stopped:
                break
    except NoBatch:  # between two steps: the run is whole
        save_as("last", run.parts())
        stopped = stop.number
        if not stopped:
            raise
    finally:
        train_loader.close()
        val_loader.close()
        log.close()
        stop.close()
    log.summary(stopped)
    return 128 + stopped if stopped else 0


def main() -> int:
    config = parse()
    return train(config, open_run(config), find_device(config.device))


if __name__ == "__main__":
    raise SystemExit(main())
