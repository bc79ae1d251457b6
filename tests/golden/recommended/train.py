"""Train the model of model.py on the data of data.py.

python train.py                      # every value: python train.py --help
python train.py --resume             # go on with the newest run
"""

from pathlib import Path

import torch
from torch import Tensor

from checkpoint import plain, save
from clipping import clip
from config import Config, open_run, parse, to_dict
from data import load
from device import at_least_one, find_device, to_device
from evaluation import evaluate
from loader import First, Loader, MicroBatch, windows
from log import Log
from model import count, loss
from resume import resume
from run import Run, build, learning_rates
from schedule import set_rates
from stopping import StopSignal


def backward(run: Run, micro: MicroBatch, seed: Tensor) -> Tensor:
    """Adds the gradient of `seed` times the sum of a micro-batch's losses; returns that sum."""
    batch = to_device(micro.batch, run.device)
    model = run.model
    with torch.autocast(run.device.type, run.dtype, enabled=run.dtype is not None):
        total = loss(model, batch)
    total.backward(gradient=seed)
    return total.detach()


def update(run: Run) -> Tensor:
    """Applies the gradient and counts the step; returns the gradient's norm before clipping, 0-dim, on the device."""
    # Once per optimizer step, and before anything looks at the gradient.
    run.scaler.unscale_(run.optimizer)
    parameters = [parameter for group in run.optimizer.param_groups for parameter in group["params"]]
    norm = clip(parameters, run.config.clipping)
    set_rates(run.optimizer, run.progress, run.config.schedule)
    scale = run.scaler.get_scale()
    run.scaler.step(run.optimizer)
    run.scaler.update()
    # The scale falls where fp16 overflowed and the optimizer skipped the step: then the schedule skips it too.
    run.progress.skipped += run.scaler.get_scale() < scale
    run.progress.next_step()
    return norm


def step(run: Run, window: list[MicroBatch]) -> tuple[Tensor, int | Tensor, Tensor]:
    """One optimizer step on the mean loss over a window of micro-batches, as if they were one large batch.

    Returns the sum of the losses, the number of items, and the gradient's norm before clipping.
    """
    run.optimizer.zero_grad()
    items = at_least_one(sum(count(micro.batch) for micro in window))
    # The division is the seed of the backward pass: exact for any cut of the window, and no operation on the loss.
    seed = torch.ones((), device=run.device) / items
    # Scaling the seed and not the sum: the scaled sum would overflow fp16.
    seed = run.scaler.scale(seed)
    losses = [backward(run, micro, seed) for micro in window]
    return sum(losses[1:], losses[0]), items, update(run)


def train(config: Config, run_dir: Path, device: torch.device) -> int:
    """Trains to the end, or until a signal; returns the exit code."""
    train_source, val_source = load(config.data, config.seed, device)
    if config.overfit_one_batch:
        train_source = val_source = First(train_source, config.batch_size)
    train_loader = Loader(train_source, config.batch_size, config.seed, config.loader, device, shuffle=True)
    val_loader = Loader(val_source, config.batch_size, config.seed, config.loader, device, shuffle=False)
    steps_per_epoch = -(-len(train_loader) // config.accumulation.steps)

    extras = {"config": to_dict(config), "info": plain(train_source.info)}
    run = build(config, extras["info"], device, steps_per_epoch)
    progress = run.progress
    if config.resume:
        resume(run_dir, run)

    def save_as(name: str, parts: dict[str, object]) -> None:
        with log.paused():
            save(run_dir / "checkpoints" / f"{name}.pt", parts, progress, extras)

    def assess() -> None:
        """Evaluates, and keeps the best model."""
        with log.paused():
            scores = evaluate(run, val_loader, stop)
        if not scores:
            return
        log.evaluation(scores)
        progress.evaluated = progress.step
        if scores["loss"] < progress.best:
            progress.best = scores["loss"]
            save_as("best", {"model": run.model})

    def due(every: int) -> bool:
        """Whether something that happens every so many steps, or at the end of each epoch, happens now."""
        at_end = progress.step == progress.total_steps
        return at_end or (progress.step % every == 0 if every else progress.epoch_step == steps_per_epoch)

    stop, stopped = StopSignal(), 0
    log = Log(run_dir, progress, config.log_every, device, skips_overflows=run.scaler.is_enabled())
    try:
        # A signal in the middle of an evaluation leaves it to the resumed run.
        if due(config.eval_every) and progress.evaluated < progress.step:
            assess()
            save_as("last", run.parts())
        while progress.step < progress.total_steps and not stopped:
            if progress.epoch_step == steps_per_epoch:
                progress.next_epoch()
            skip = progress.epoch_step * config.accumulation.steps
            for window in windows(train_loader.epoch(progress.epoch, skip), config.accumulation.steps):
                result = step(run, window)
                log.step([micro.ids for micro in window], *result)
                if log.due():
                    log.training(log.flush() | learning_rates(run.optimizer))
                if due(config.eval_every):
                    assess()
                stopped = stop.number
                if stopped or due(config.checkpoint_every):
                    save_as("last", run.parts())
                if stopped or progress.step == progress.total_steps:
                    break
    finally:
        train_loader.close()
        val_loader.close()
        log.close()
        stop.close()
    log.summary(stopped)
    return 128 + stopped if stopped else 0


def main() -> int:
    config = parse()
    return train(config, open_run(config), find_device())


if __name__ == "__main__":
    raise SystemExit(main())
