"""Train the model of model.py on the data of data.py.

python train.py                      # every value: python train.py --help
python train.py --resume             # go on with the newest run
# {% if ddp %}
torchrun --nproc-per-node gpu train.py
# {% endif %}
"""

from pathlib import Path

import torch
from torch import Tensor

# {% filter regex_replace("\n+", "\n") %}
# {% if ddp %}
import distributed

# {% endif %}
# {% if augmentation %}
from augmentation import noise

# {% endif %}
# {% if cache %}
from cache import cached, hits

# {% endif %}
from checkpoint import plain, save

# {% if clipping %}
from clipping import clip

# {% endif %}
from config import Config, open_run, parse, to_dict

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
from device import at_least_one, find_device, to_device

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
from resume import resume
from run import Run, build, learning_rates

# {% if stepwise %}
from schedule import set_rates

# {% endif %}
from stopping import StopSignal


# {% endfilter %}


def backward(run: Run, micro: MicroBatch, seed: Tensor) -> Tensor:
    """Adds the gradient of `seed` times the sum of a micro-batch's losses; returns that sum."""
    batch = to_device(micro.batch, run.device)
    # {% if augmentation %}
    if run.config.augmentation.enabled and not run.config.overfit_one_batch:
        batch = augment(batch, noise(run.config.seed, run.progress.epoch, micro.ids, run.device))
    # {% endif %}
    # {% if ddp %}
    model = run.replica
    # {% else %}
    model = run.model
    # {% endif %}
    # {% if amp %}
    with torch.autocast(run.device.type, run.dtype, enabled=run.dtype is not None):
        total = loss(model, batch)
    # {% else %}
    total = loss(model, batch)
    # {% endif %}
    # {% if ddp %}
    if not micro.weight:  # a repeated one, with which this rank takes part in the sum of gradients
        total = 0 * total
    # {% endif %}
    total.backward(gradient=seed)
    return total.detach()


def update(run: Run) -> Tensor:
    """Applies the gradient and counts the step; returns the gradient's norm before clipping, 0-dim, on the device."""
    # {% if amp %}
    # Once per optimizer step, and before anything looks at the gradient.
    run.scaler.unscale_(run.optimizer)
    # {% endif %}
    parameters = [parameter for group in run.optimizer.param_groups for parameter in group["params"]]
    # {% if clipping %}
    norm = clip(parameters, run.config.clipping)
    # {% else %}
    norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
    # {% endif %}
    # {% if stepwise %}
    set_rates(run.optimizer, run.progress, run.config.schedule)
    # {% endif %}
    # {% if amp %}
    # {% if stepwise %}
    scale = run.scaler.get_scale()
    # {% endif %}
    run.scaler.step(run.optimizer)
    run.scaler.update()
    # {% if stepwise %}
    # The scale falls where fp16 overflowed and the optimizer skipped the step: then the schedule skips it too.
    run.progress.skipped += run.scaler.get_scale() < scale
    # {% endif %}
    # {% else %}
    run.optimizer.step()
    # {% endif %}
    run.progress.next_step()
    return norm


# {% if accumulation %}
def step(run: Run, window: list[MicroBatch]) -> tuple[Tensor, int | Tensor, Tensor]:
    """One optimizer step on the mean loss over a window of micro-batches, as if they were one large batch.

    # {% if ddp %}
    Returns the sum of this rank's losses, the number of items on all ranks, and the gradient's norm before clipping.
    # {% else %}
    Returns the sum of the losses, the number of items, and the gradient's norm before clipping.
    # {% endif %}
    """
    run.optimizer.zero_grad()
    # {% if ddp %}
    items = distributed.count_over_ranks(sum(micro.weight * count(micro.batch) for micro in window), run.device)
    # {% else %}
    items = at_least_one(sum(count(micro.batch) for micro in window))
    # {% endif %}
    # The division is the seed of the backward pass: exact for any cut of the window, and no operation on the loss.
    # {% if ddp %}
    # DDP averages over the ranks, which world_size makes a sum again.
    seed = torch.full((), distributed.world_size(), device=run.device) / items
    # {% else %}
    seed = torch.ones((), device=run.device) / items
    # {% endif %}
    # {% if amp %}
    # Scaling the seed and not the sum: the scaled sum would overflow fp16.
    seed = run.scaler.scale(seed)
    # {% endif %}
    # {% if ddp %}
    losses = []
    for micro in window[:-1]:
        with distributed.no_sync(run.replica):
            losses.append(backward(run, micro, seed))
    losses.append(backward(run, window[-1], seed))
    # {% else %}
    losses = [backward(run, micro, seed) for micro in window]
    # {% endif %}
    return sum(losses[1:], losses[0]), items, update(run)


# {% else %}
def step(run: Run, micro: MicroBatch) -> tuple[Tensor, int | Tensor, Tensor]:
    """One optimizer step on the mean loss over a micro-batch.

    # {% if ddp %}
    Returns the sum of this rank's losses, the number of items on all ranks, and the gradient's norm before clipping.
    # {% else %}
    Returns the sum of the losses, the number of items, and the gradient's norm before clipping.
    # {% endif %}
    """
    run.optimizer.zero_grad()
    # {% if ddp %}
    items = distributed.count_over_ranks(micro.weight * count(micro.batch), run.device)
    # {% else %}
    items = at_least_one(count(micro.batch))
    # {% endif %}
    # The division is the seed of the backward pass: exact for any cut of the window, and no operation on the loss.
    # {% if ddp %}
    # DDP averages over the ranks, which world_size makes a sum again.
    seed = torch.full((), distributed.world_size(), device=run.device) / items
    # {% else %}
    seed = torch.ones((), device=run.device) / items
    # {% endif %}
    # {% if amp %}
    # Scaling the seed and not the sum: the scaled sum would overflow fp16.
    seed = run.scaler.scale(seed)
    # {% endif %}
    return backward(run, micro, seed), items, update(run)


# {% endif %}
def train(config: Config, run_dir: Path, device: torch.device) -> int:
    """Trains to the end, or until a signal; returns the exit code."""
    train_source, val_source = load(config.data, config.seed, device)
    # {% if cache %}
    train_source, val_source = cached(train_source, config.cache), cached(val_source, config.cache)
    # {% endif %}
    if config.overfit_one_batch:
        train_source = val_source = First(train_source, config.batch_size)
    train_loader = Loader(train_source, config.batch_size, config.seed, config.loader, device, shuffle=True)
    val_loader = Loader(val_source, config.batch_size, config.seed, config.loader, device, shuffle=False)
    # {% if accumulation %}
    steps_per_epoch = -(-len(train_loader) // config.accumulation.steps)
    # {% else %}
    steps_per_epoch = len(train_loader)
    # {% endif %}

    extras = {"config": to_dict(config), "info": plain(train_source.info)}
    run = build(config, extras["info"], device, steps_per_epoch)
    progress = run.progress
    if config.resume:
        resume(run_dir, run)
    # {% if export %}
    batch = val_source.fetch(torch.arange(min(8, len(val_source))), 0)
    extras["example"] = tuple(tensor.cpu() for tensor in example_input(batch))
    # {% endif %}

    def save_as(name: str, parts: dict[str, object]) -> None:
        # {% if ddp %}
        distributed.broadcast_buffers(run.model)
        # {% endif %}
        with log.paused():
            save(run_dir / "checkpoints" / f"{name}.pt", parts, progress, extras, device)

    def assess() -> None:
        """Evaluates, and keeps the best model."""
        with log.paused():
            scores = evaluate(run, val_loader, stop)
        if not scores:
            return
        # {% if cache %}
        log.evaluation(scores, hits(train_source))
        # {% else %}
        log.evaluation(scores)
        # {% endif %}
        progress.evaluated = progress.step
        # {% if plateau %}
        run.schedule.step(scores["loss"])
        # {% endif %}
        if scores["loss"] < progress.best:
            progress.best = scores["loss"]
            save_as("best", {"model": run.model})

    def due(every: int) -> bool:
        """Whether something that happens every so many steps, or at the end of each epoch, happens now."""
        at_end = progress.step == progress.total_steps
        return at_end or (progress.step % every == 0 if every else progress.epoch_step == steps_per_epoch)

    stop, stopped = StopSignal(), 0
    # {% if ddp %}
    vote = distributed.StopVote()
    # {% endif %}
    # {% if amp %}
    log = Log(run_dir, progress, config.log_every, device, skips_overflows=run.scaler.is_enabled())
    # {% else %}
    log = Log(run_dir, progress, config.log_every, device)
    # {% endif %}
    # {% if debug %}
    hooks = Hooks(
        run.model,
        config.debug,
        device,
        # {% if amp %}
        fp16=run.scaler.is_enabled(),
        # {% endif %}
        # {% if ddp %}
        rank=distributed.rank(),
        # {% endif %}
    )
    # {% endif %}
    # {% if profiler %}
    # {% if ddp %}
    profiler = Profiler(config.profiler, run_dir, device, distributed.rank())
    # {% else %}
    profiler = Profiler(config.profiler, run_dir, device)
    # {% endif %}
    # {% endif %}
    try:
        # A signal in the middle of an evaluation leaves it to the resumed run.
        if due(config.eval_every) and progress.evaluated < progress.step:
            assess()
            save_as("last", run.parts())
        while progress.step < progress.total_steps and not stopped:
            if progress.epoch_step == steps_per_epoch:
                progress.next_epoch()
            # {% if accumulation %}
            skip = progress.epoch_step * config.accumulation.steps
            for window in windows(train_loader.epoch(progress.epoch, skip), config.accumulation.steps):
                result = step(run, window)
            # {% else %}
            for micro in train_loader.epoch(progress.epoch, progress.epoch_step):
                result = step(run, micro)
                # {% endif %}
                # {% if accumulation %}
                log.step([micro.ids for micro in window], *result)
                # {% else %}
                log.step([micro.ids], *result)
                # {% endif %}
                if log.due():
                    # {% if debug %}
                    log.training(log.flush() | learning_rates(run.optimizer) | hooks.row())
                    # {% else %}
                    log.training(log.flush() | learning_rates(run.optimizer))
                    # {% endif %}
                # {% if profiler %}
                profiler.step()
                # {% endif %}
                if due(config.eval_every):
                    assess()
                # {% if ddp %}
                # All ranks stop at the same step. An evaluation that a signal cut short must not be passed over.
                stopped = vote.largest(stop.number, at_once=due(config.eval_every) or due(config.checkpoint_every))
                # {% else %}
                stopped = stop.number
                # {% endif %}
                if stopped or due(config.checkpoint_every):
                    save_as("last", run.parts())
                if stopped or progress.step == progress.total_steps:
                    break
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
