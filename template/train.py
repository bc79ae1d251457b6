"""Train the model of model.py on the data of data.py.

python train.py                      # every value: python train.py --help
python train.py --resume             # go on with the newest run
# {% if ddp %}
torchrun --nproc-per-node gpu train.py
# {% endif %}
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

# {% filter regex_replace("\n+", "\n") %}
# {% if ddp %}
import distributed

# {% endif %}
from arguments import to_arguments, to_dict

# {% if augmentation %}
from augmentation import noise

# {% endif %}
# {% if cache %}
from cache import cached, hits

# {% endif %}
from check import check
from checkpoint import plain, save

# {% if clipping %}
from clipping import clip

# {% endif %}
from config import Config, open_run, parse

# {% if augmentation %}
from data import augment, load

# {% else %}
from data import load

# {% endif %}
# {% if debug %}
from debug import Hooks

# {% endif %}
# {% if ddp %}
from device import to_device

# {% else %}
from device import divisor, find_device, to_device

# {% endif %}
from evaluation import evaluate

# {% if accumulation %}
from loader import First, Loader, MicroBatch, windows

# {% else %}
from loader import First, Loader, MicroBatch

# {% endif %}
from log import Log

# {% if export %}
from model import count, example_input, loss

# {% else %}
from model import count, loss

# {% endif %}
# {% if profiler %}
from profiling import Profiler

# {% endif %}
from progress import Progress, SaveTimer, StopSignal
from resume import resume
from run import Run, build

# {% if stepwise %}
from schedule import set_rates

# {% endif %}
from scores import METRIC, is_better
from workers import NoBatch

# {% endfilter %}


def step(
    run: Run,
    # {% if accumulation %}
    window: list[MicroBatch],
    # {% else %}
    micro: MicroBatch,
    # {% endif %}
) -> tuple[Tensor, float | Tensor, Tensor]:
    """One optimizer step on the mean loss over all items of its samples.

    # {% if accumulation %}
    A window of micro-batches makes the step of one large batch, however it is cut.

    # {% endif %}
    # {% if ddp %}
    Returns the sum of this rank's losses, the number of items on all ranks, and the gradient's norm before clipping.
    # {% else %}
    Returns the sum of the losses, the number of items, and the gradient's norm before clipping.
    # {% endif %}
    """
    run.optimizer.zero_grad()
    # {% if ddp and accumulation %}
    items = distributed.count_over_ranks(sum(micro.weight * count(micro.batch) for micro in window), run.device)
    # {% endif %}
    # {% if ddp and not accumulation %}
    items = distributed.count_over_ranks(micro.weight * count(micro.batch), run.device)
    # {% endif %}
    # {% if accumulation and not ddp %}
    items = divisor(sum(count(micro.batch) for micro in window))
    # {% endif %}
    # {% if not ddp and not accumulation %}
    items = divisor(count(micro.batch))
    # {% endif %}
    # {% if accumulation %}
    losses = []
    for micro in window:
        # {% if ddp %}
        distributed.sync_gradients(run.replica, micro is window[-1])  # once per step, with its last micro-batch
        # {% endif %}
        batch = to_device(micro.batch, run.device)
        # {% if augmentation %}
        if run.config.augmentation.enabled and not run.config.overfit_one_batch:
            batch = augment(batch, noise(run.config.seed, run.progress.epoch, micro.ids, run.device))
        # {% endif %}
        # {% if amp %}
        with torch.autocast(run.device.type, run.dtype, enabled=run.dtype is not None):
            # {% if ddp %}
            total = loss(run.replica, batch)
            # {% else %}
            total = loss(run.model, batch)
            # {% endif %}
        # {% endif %}
        # {% if ddp and not amp %}
        total = loss(run.replica, batch)
        # {% endif %}
        # {% if not ddp and not amp %}
        total = loss(run.model, batch)
        # {% endif %}
        # {% if ddp %}
        if not micro.weight:  # a repeated one, with which this rank takes part in the sum of gradients
            total = 0 * total
        # DDP averages the gradients over the ranks, which world_size makes a sum again.
        # {% endif %}
        # {% if ddp and amp %}
        run.scaler.scale(total * (distributed.world_size() / items)).backward()
        # {% endif %}
        # {% if ddp and not amp %}
        (total * (distributed.world_size() / items)).backward()
        # {% endif %}
        # {% if amp and not ddp %}
        run.scaler.scale(total / items).backward()
        # {% endif %}
        # {% if not amp and not ddp %}
        (total / items).backward()
        # {% endif %}
        losses.append(total.detach())
    # {% else %}
    batch = to_device(micro.batch, run.device)
    # {% if augmentation %}
    if run.config.augmentation.enabled and not run.config.overfit_one_batch:
        batch = augment(batch, noise(run.config.seed, run.progress.epoch, micro.ids, run.device))
    # {% endif %}
    # {% if amp %}
    with torch.autocast(run.device.type, run.dtype, enabled=run.dtype is not None):
        # {% if ddp %}
        total = loss(run.replica, batch)
        # {% else %}
        total = loss(run.model, batch)
        # {% endif %}
    # {% endif %}
    # {% if ddp and not amp %}
    total = loss(run.replica, batch)
    # {% endif %}
    # {% if not ddp and not amp %}
    total = loss(run.model, batch)
    # {% endif %}
    # {% if ddp %}
    if not micro.weight:  # a repeated one, with which this rank takes part in the sum of gradients
        total = 0 * total
    # DDP averages the gradients over the ranks, which world_size makes a sum again.
    # {% endif %}
    # {% if ddp and amp %}
    run.scaler.scale(total * (distributed.world_size() / items)).backward()
    # {% endif %}
    # {% if ddp and not amp %}
    (total * (distributed.world_size() / items)).backward()
    # {% endif %}
    # {% if amp and not ddp %}
    run.scaler.scale(total / items).backward()
    # {% endif %}
    # {% if not amp and not ddp %}
    (total / items).backward()
    # {% endif %}
    # {% endif %}
    # {% if amp %}
    run.scaler.unscale_(run.optimizer)  # once, and before anything looks at the gradient
    # {% endif %}
    # {% if clipping %}
    norm = clip(run.parameters(), run.config.clipping)
    # {% else %}
    norm = torch.nn.utils.get_total_norm([p.grad for p in run.parameters() if p.grad is not None])
    # {% endif %}
    # {% if stepwise %}
    set_rates(run.optimizer, run.progress, run.config.schedule)
    # {% endif %}
    # {% if amp %}
    run.scaler.step(run.optimizer)
    run.scaler.update()
    # {% if stepwise %}
    if run.scaler.is_enabled():  # where fp16 overflowed the optimizer skips the step, and the schedule with it
        run.progress.skipped += not norm.isfinite()
    # {% endif %}
    # {% else %}
    run.optimizer.step()
    # {% endif %}
    run.progress.next_step()
    # {% if accumulation %}
    return torch.stack(losses).sum(), items, norm
    # {% else %}
    return total.detach(), items, norm
    # {% endif %}


# {% if accumulation %}
def training_windows(loader: Loader, progress: Progress, size: int, stop: StopSignal) -> Iterator[list[MicroBatch]]:
    """The windows of `size` micro-batches that are left of all epochs; the next one once `progress` counts the last."""
    while progress.step < progress.total_steps:
        if progress.epoch_step >= progress.steps_per_epoch:
            progress.next_epoch()
        for window in windows(loader.epoch(progress.epoch, progress.epoch_step * size, stop), size):
            yield window
            if progress.step == progress.total_steps:
                return


# {% else %}
def training_batches(loader: Loader, progress: Progress, stop: StopSignal) -> Iterator[MicroBatch]:
    """The micro-batches that are left of all epochs; the next one once `progress` counts the last."""
    while progress.step < progress.total_steps:
        if progress.epoch_step >= progress.steps_per_epoch:
            progress.next_epoch()
        for micro in loader.epoch(progress.epoch, progress.epoch_step, stop):
            yield micro
            if progress.step == progress.total_steps:
                return


# {% endif %}
def train(config: Config, run_dir: Path, device: torch.device) -> int:
    """Trains to the end, or until a signal; returns the exit code."""
    train_source, val_source = load(config.data, config.seed, device)
    # {% if cache %}
    train_source, val_source = cached(train_source, config.cache), cached(val_source, config.cache)
    # {% endif %}
    if config.overfit_one_batch:
        train_source = val_source = First(train_source, config.batch_size)
    common = (config.batch_size, config.seed, config.loader, device)
    # {% if accumulation %}
    train_loader = Loader(train_source, *common, shuffle=True, window=config.accumulation.steps)
    # {% else %}
    train_loader = Loader(train_source, *common, shuffle=True)
    # {% endif %}
    val_loader = Loader(val_source, *common, shuffle=False)
    # {% if accumulation %}
    steps_per_epoch = -(-len(train_loader) // config.accumulation.steps)
    # {% else %}
    steps_per_epoch = len(train_loader)
    # {% endif %}

    constants = {"config": to_dict(config), "model_arguments": to_arguments(config.model)}
    constants["info"] = plain(train_source.info)
    constants["samples"] = {"training": len(train_source), "validation": len(val_source)}
    # {% if export %}
    batch = val_source.fetch(torch.arange(min(8, len(val_source))), 0)
    constants["example"] = tuple(tensor.cpu() for tensor in example_input(batch))
    # {% endif %}
    run = build(config, constants["info"], device, steps_per_epoch)
    check(run, train_source)
    if config.resume:
        resume(run_dir, run, constants)
    progress, stop, stopped = run.progress, StopSignal(), 0
    timer = SaveTimer(config.checkpoint_minutes)
    # {% if ddp %}
    vote = distributed.StopVote()
    # {% endif %}
    log = Log(run_dir, run, constants["samples"])
    # {% if debug %}
    # {% if amp %}
    hooks = Hooks(run.model, config.debug, device, fp16=run.scaler.is_enabled())
    # {% else %}
    hooks = Hooks(run.model, config.debug, device)
    # {% endif %}
    # {% endif %}
    # {% if profiler %}
    profiler = Profiler(config.profiler, run_dir, device)
    # {% endif %}

    def save_as(name: str, parts: dict[str, Any]) -> None:
        # {% if ddp %}
        distributed.broadcast_buffers(run.model)
        # {% endif %}
        log.settle()
        save(run_dir / "checkpoints" / f"{name}.pt", parts, progress, constants, device, config.keep)
        log.restart_clock()

    def assess() -> None:
        """Evaluates, and keeps the best model."""
        log.settle()
        scores = evaluate(run, val_loader, stop)
        if not scores:  # a signal: the resumed run begins with this evaluation
            return
        # {% if cache %}
        log.evaluation(scores, hits(train_source))
        # {% else %}
        log.evaluation(scores)
        # {% endif %}
        progress.evaluated = progress.step
        # {% if plateau %}
        run.schedule.step(scores[METRIC])
        # {% endif %}
        if is_better(scores[METRIC], progress.best):
            progress.best = scores[METRIC]
            save_as("best", {"model": run.model})
        log.restart_clock()

    try:
        if progress.due(config.eval_every) and progress.evaluated < progress.step:
            assess()
            save_as("last", run.parts())
        # {% if accumulation %}
        for window in training_windows(train_loader, progress, config.accumulation.steps, stop):
            log.step(window, *step(run, window))
            # {% else %}
        for micro in training_batches(train_loader, progress, stop):
            log.step([micro], *step(run, micro))
            # {% endif %}
            if log.due():
                # {% if debug %}
                log.training(hooks.row())
                # {% else %}
                log.training()
                # {% endif %}
            # {% if profiler %}
            profiler.step()
            # {% endif %}
            evaluating, saving = progress.due(config.eval_every), progress.due(config.checkpoint_every)
            if evaluating:
                assess()
            # {% if ddp %}
            # All ranks save and stop at the same step. An evaluation that a signal cut short must not be passed over.
            asked = vote.largest(max(stop.number, int(timer.over())), at_once=evaluating or saving)
            stopped = asked if asked > 1 else 0
            if asked or saving:
                save_as("last", run.parts())
                timer.restart()
            # {% else %}
            stopped = stop.number
            if stopped or saving or timer.over():
                save_as("last", run.parts())
                timer.restart()
            # {% endif %}
            if stopped:
                break
    except NoBatch:  # between two steps: the run is whole
        # {% if ddp %}
        if distributed.world_size() == 1:  # ranks save together, and the others wait for this one in their next step
            save_as("last", run.parts())
        # {% else %}
        save_as("last", run.parts())
        # {% endif %}
        stopped = stop.number
        if not stopped:
            raise
    # {% if debug %}
    except RuntimeError as error:
        hooks.explain(error)
        raise
    # {% endif %}
    finally:
        # {% if profiler %}
        profiler.stop()
        # {% endif %}
        # {% if debug %}
        hooks.remove()
        # {% endif %}
        train_loader.close()
        val_loader.close()
        log.close()
        stop.close()
    log.summary(stopped)
    return 128 + stopped if stopped else 0


def main() -> int:
    config = parse()
    # {% if ddp %}
    device = distributed.start(config.device, config.ddp)
    distributed.check_equal(to_dict(config), "their arguments")
    run_dir = distributed.from_rank_0(lambda: open_run(config))
    code = train(config, run_dir, device)
    distributed.stop()
    return code
    # {% else %}
    return train(config, open_run(config), find_device(config.device))
    # {% endif %}


if __name__ == "__main__":
    raise SystemExit(main())
