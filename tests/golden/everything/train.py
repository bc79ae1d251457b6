"""Train the model of model.py on the data of data.py.

python train.py                      # every value: python train.py --help
python train.py --resume             # go on with the newest run
torchrun --nproc-per-node gpu train.py
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import distributed
from arguments import to_arguments, to_dict
from augmentation import noise
from cache import cached, hits
from check import check
from checkpoint import plain, save
from clipping import clip
from config import Config, open_run, parse
from data import augment, load
from debug import Hooks
from device import to_device
from evaluation import evaluate
from loader import First, Loader, MicroBatch, windows
from log import Log
from model import count, example_input, loss
from profiling import Profiler
from progress import Progress, SaveTimer, StopSignal
from resume import resume
from run import Run, build
from schedule import set_rates
from scores import METRIC, is_better
from workers import NoBatch


def step(
    run: Run,
    window: list[MicroBatch],
) -> tuple[Tensor, float | Tensor, Tensor]:
    """One optimizer step on the mean loss over all items of its samples.

    A window of micro-batches makes the step of one large batch, however it is cut.

    Returns the sum of this rank's losses, the number of items on all ranks, and the gradient's norm before clipping.
    """
    run.optimizer.zero_grad()
    items = distributed.count_over_ranks(sum(micro.weight * count(micro.batch) for micro in window), run.device)
    losses = []
    for micro in window:
        distributed.sync_gradients(run.replica, micro is window[-1])  # once per step, with its last micro-batch
        batch = to_device(micro.batch, run.device)
        if run.config.augmentation.enabled and not run.config.overfit_one_batch:
            batch = augment(batch, noise(run.config.seed, run.progress.epoch, micro.ids, run.device))
        with torch.autocast(run.device.type, run.dtype, enabled=run.dtype is not None):
            total = loss(run.replica, batch)
        if not micro.weight:  # a repeated one, with which this rank takes part in the sum of gradients
            total = 0 * total
        # DDP averages the gradients over the ranks, which world_size makes a sum again.
        run.scaler.scale(total * (distributed.world_size() / items)).backward()
        losses.append(total.detach())
    run.scaler.unscale_(run.optimizer)  # once, and before anything looks at the gradient
    norm = clip(run.parameters(), run.config.clipping)
    set_rates(run.optimizer, run.progress, run.config.schedule)
    run.scaler.step(run.optimizer)
    run.scaler.update()
    if run.scaler.is_enabled():  # where fp16 overflowed the optimizer skips the step, and the schedule with it
        run.progress.skipped += not norm.isfinite()
    run.progress.next_step()
    return torch.stack(losses).sum(), items, norm


def training_windows(loader: Loader, progress: Progress, size: int, stop: StopSignal) -> Iterator[list[MicroBatch]]:
    """The windows of `size` micro-batches that are left of all epochs; the next one once `progress` counts the last."""
    while progress.step < progress.total_steps:
        if progress.epoch_step >= progress.steps_per_epoch:
            progress.next_epoch()
        for window in windows(loader.epoch(progress.epoch, progress.epoch_step * size, stop), size):
            yield window
            if progress.step == progress.total_steps:
                return


def train(config: Config, run_dir: Path, device: torch.device) -> int:
    """Trains to the end, or until a signal; returns the exit code."""
    train_source, val_source = load(config.data, config.seed, device)
    train_source, val_source = cached(train_source, config.cache), cached(val_source, config.cache)
    if config.overfit_one_batch:
        train_source = val_source = First(train_source, config.batch_size)
    common = (config.batch_size, config.seed, config.loader, device)
    train_loader = Loader(train_source, *common, shuffle=True, window=config.accumulation.steps)
    val_loader = Loader(val_source, *common, shuffle=False)
    steps_per_epoch = -(-len(train_loader) // config.accumulation.steps)

    constants = {"config": to_dict(config), "model_arguments": to_arguments(config.model)}
    constants["info"] = plain(train_source.info)
    constants["samples"] = {"training": len(train_source), "validation": len(val_source)}
    batch = val_source.fetch(torch.arange(min(8, len(val_source))), 0)
    constants["example"] = tuple(tensor.cpu() for tensor in example_input(batch))
    run = build(config, constants["info"], device, steps_per_epoch)
    check(run, train_source)
    if config.resume:
        resume(run_dir, run, constants)
    progress, stop, stopped = run.progress, StopSignal(), 0
    timer = SaveTimer(config.checkpoint_minutes)
    vote = distributed.StopVote()
    log = Log(run_dir, run, constants["samples"])
    hooks = Hooks(run.model, config.debug, device, fp16=run.scaler.is_enabled())
    profiler = Profiler(config.profiler, run_dir, device)

    def save_as(name: str, parts: dict[str, Any]) -> None:
        distributed.broadcast_buffers(run.model)
        log.settle()
        save(run_dir / "checkpoints" / f"{name}.pt", parts, progress, constants, device, config.keep)
        log.restart_clock()

    def assess() -> None:
        """Evaluates, and keeps the best model."""
        log.settle()
        scores = evaluate(run, val_loader, stop)
        if not scores:  # a signal: the resumed run begins with this evaluation
            return
        log.evaluation(scores, hits(train_source))
        progress.evaluated = progress.step
        if is_better(scores[METRIC], progress.best):
            progress.best = scores[METRIC]
            save_as("best", {"model": run.model})
        log.restart_clock()

    try:
        if progress.due(config.eval_every) and progress.evaluated < progress.step:
            assess()
            save_as("last", run.parts())
        for window in training_windows(train_loader, progress, config.accumulation.steps, stop):
            log.step(window, *step(run, window))
            if log.due():
                log.training(hooks.row())
            profiler.step()
            evaluating, saving = progress.due(config.eval_every), progress.due(config.checkpoint_every)
            if evaluating:
                assess()
            # All ranks save and stop at the same step. An evaluation that a signal cut short must not be passed over.
            asked = vote.largest(max(stop.number, int(timer.over())), at_once=evaluating or saving)
            stopped = asked if asked > 1 else 0
            if asked or saving:
                save_as("last", run.parts())
                timer.restart()
            if stopped:
                break
    except NoBatch:  # between two steps: the run is whole
        if distributed.world_size() == 1:  # ranks save together, and the others wait for this one in their next step
            save_as("last", run.parts())
        stopped = stop.number
        if not stopped:
            raise
    except RuntimeError as error:
        hooks.explain(error)
        raise
    finally:
        profiler.stop()
        hooks.remove()
        train_loader.close()
        val_loader.close()
        log.close()
        stop.close()
    log.summary(stopped)
    return 128 + stopped if stopped else 0


def main() -> int:
    config = parse()
    device = distributed.start(config.device, config.ddp)
    distributed.check_equal(to_dict(config), "their arguments")
    run_dir = distributed.from_rank_0(lambda: open_run(config))
    code = train(config, run_dir, device)
    distributed.stop()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
