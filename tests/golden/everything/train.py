"""Train the model of model.py on the data of data.py.

python train.py                      # every value: python train.py --help
python train.py --resume             # go on with the newest run
torchrun --nproc-per-node gpu train.py
"""

from pathlib import Path

import torch
from torch import Tensor

import distributed
from augmentation import noise
from cache import cached, hits
from checkpoint import plain, save
from clipping import clip
from config import Config, open_run, parse, to_dict
from data import augment, load
from debug import Hooks
from device import find_device, to_device
from evaluation import evaluate
from loader import First, Loader, MicroBatch, windows
from log import Log
from model import count, example_input, loss
from profiling import Profiler
from resume import resume
from run import Run, build, learning_rates
from schedule import set_rates
from stopping import StopSignal


def backward(run: Run, micro: MicroBatch, seed: Tensor) -> Tensor:
    """Adds the gradient of `seed` times the sum of a micro-batch's losses; returns that sum."""
    batch = to_device(micro.batch, run.device)
    if run.config.augmentation.enabled and not run.config.overfit_one_batch:
        batch = augment(batch, noise(run.config.seed, run.progress.epoch, micro.ids, run.device))
    model = run.replica
    with torch.autocast(run.device.type, run.dtype, enabled=run.dtype is not None):
        total = loss(model, batch)
    if not micro.weight:  # a repeated one, with which this rank takes part in the sum of gradients
        total = 0 * total
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

    Returns the sum of this rank's losses, the number of items on all ranks, and the gradient's norm before clipping.
    """
    run.optimizer.zero_grad()
    items = distributed.count_over_ranks(sum(micro.weight * count(micro.batch) for micro in window), run.device)
    # The division is the seed of the backward pass: exact for any cut of the window, and no operation on the loss.
    # DDP averages over the ranks, which world_size makes a sum again.
    seed = torch.full((), distributed.world_size(), device=run.device) / items
    # Scaling the seed and not the sum: the scaled sum would overflow fp16.
    seed = run.scaler.scale(seed)
    losses = []
    for micro in window[:-1]:
        with distributed.no_sync(run.replica):
            losses.append(backward(run, micro, seed))
    losses.append(backward(run, window[-1], seed))
    return sum(losses[1:], losses[0]), items, update(run)


def train(config: Config, run_dir: Path, device: torch.device) -> int:
    """Trains to the end, or until a signal; returns the exit code."""
    train_source, val_source = load(config.data, config.seed, device)
    train_source, val_source = cached(train_source, config.cache), cached(val_source, config.cache)
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
    batch = val_source.fetch(torch.arange(min(8, len(val_source))), 0)
    extras["example"] = tuple(tensor.cpu() for tensor in example_input(batch))

    def save_as(name: str, parts: dict[str, object]) -> None:
        distributed.broadcast_buffers(run.model)
        with log.paused():
            save(run_dir / "checkpoints" / f"{name}.pt", parts, progress, extras)

    def assess() -> None:
        """Evaluates, and keeps the best model."""
        with log.paused():
            scores = evaluate(run, val_loader, stop)
        if not scores:
            return
        log.evaluation(scores, hits(train_source))
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
    hooks = Hooks(
        run.model,
        config.debug,
        device,
        fp16=run.scaler.is_enabled(),
        rank=distributed.rank(),
    )
    profiler = Profiler(config.profiler, run_dir, device, distributed.rank())
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
                    log.training(log.flush() | learning_rates(run.optimizer) | hooks.row())
                profiler.step()
                if due(config.eval_every):
                    assess()
                # All ranks stop at the same step; asking costs a wait for the device, so not in every step on a GPU.
                if device.type == "cpu" or log.due() or due(config.eval_every) or due(config.checkpoint_every):
                    stopped = distributed.max_over_ranks(stop.number)
                if stopped or due(config.checkpoint_every):
                    save_as("last", run.parts())
                if stopped or progress.step == progress.total_steps:
                    break
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
    device = distributed.start(find_device(), config.ddp)
    distributed.check_equal(to_dict(config), "their arguments")
    run_dir = distributed.from_rank_0(lambda: open_run(config))
    code = train(config, run_dir, device)
    distributed.stop()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
