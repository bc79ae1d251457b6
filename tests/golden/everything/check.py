"""Whether data.py and model.py keep what the rest asks of them: python check.py, with the values of train.py.

A run asks the same before its first step. Two samples go through every function; each fault is one sentence.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from augmentation import noise
from checkpoint import plain
from config import parse
from data import augment, load
from device import find_device, named_leaves, to_device
from model import count, example_input, group, loss, metrics
from run import Run, build, random_state, set_random_state, training_mode
from scores import METRIC, finished


def check(run: Run, source: Any) -> None:
    """Raises SystemExit with a sentence for each fault; the run and all generators stay as they are."""
    random = random_state(run.device)
    buffers = {name: buffer.clone() for name, buffer in run.model.named_buffers()}
    with torch.compiler.set_stance("force_eager"):  # a graph for two samples would serve nobody
        found = [*faults(run, source)]
    training_mode(run.model)
    for name, before in buffers.items():  # running statistics
        run.model.get_buffer(name).copy_(before)
    set_random_state(random, run.device)
    if found:
        raise SystemExit("\n".join(found))


def faults(run: Run, source: Any) -> Iterator[str]:
    ids = torch.arange(min(2, len(source)))
    batches = [source.fetch(part, 0) for part in (ids, *ids.split(1))]
    broken = [*batch_faults(source, ids, batches[0])]
    yield from broken
    if broken or len(ids) < 2:
        return
    batches = [to_device(batch, run.device) for batch in batches]
    if augment(batches[0], noise(0, 0, ids, run.device)) is None:
        yield "data.py: augment returns nothing; it has to return the batch."
    example = example_input(batches[0])
    if not (isinstance(example, tuple) and all(isinstance(part, Tensor) for part in example)):
        yield "model.py: example_input has to return a tuple of tensors, the inputs of forward; () to export nothing."
    if odd := [name for name, parameter in run.model.named_parameters() if not isinstance(group(name, parameter), str)]:
        yield f"model.py: group has to return a name for each parameter, and does not for {odd[0]}."
    items = [count(batch) for batch in batches]
    if odd := [value for value in items if not is_number(value) or not 0 <= float(value) < math.inf]:
        yield f"model.py: count has to return a number of items, 0 or more; it returns {shown(odd[0])}."
        return
    training_mode(run.model)
    total = call(run, loss, batches[0])
    if not (isinstance(total, Tensor) and total.ndim == 0 and total.is_floating_point()):
        yield f"model.py: loss has to return a floating-point tensor of no dimension; it returns {shown(total)}."
    elif not total.requires_grad:
        yield "model.py: loss returns a number without a gradient: is it detached, or is no parameter trainable?"
    elif is_mean(run, batches, [float(value) for value in items]):
        yield (
            "model.py: loss returns a mean, and has to return the sum over the items that count counts "
            '(reduction="sum"): what divides it is the number of items of the whole step.'
        )
    yield from metric_faults(run, batches[0])


def batch_faults(source: Any, ids: Tensor, batch: Any) -> Iterator[str]:
    found, again = [*named_leaves(batch)], [*named_leaves(source.fetch(ids, 0))]
    if not any(isinstance(leaf, Tensor) for _, leaf in found):
        yield "data.py: there is no tensor in what fetch returns: it has to be a nest of mappings and sequences."
    elif [name for name, _ in found] != [name for name, _ in again] or not all(map(same, found, again)):
        yield (
            "data.py: fetch returns something else when it is asked for the same ids and epoch again: a resumed run "
            "would be another one. Random changes belong in augment."
        )
    if not source.on_device:
        return
    # The samples of many batches are fetched at once, and then divided.
    for name, leaf in found:
        if isinstance(leaf, Tensor) and leaf.shape[:1] != ids.shape:
            yield (
                f"data.py: {name} of {len(ids)} samples has the shape {list(leaf.shape)}; the first dimension " + DIVIDE
            )
    alone = dict(named_leaves(source.fetch(ids[:1], 0)))
    for name, leaf in found:
        if not isinstance(leaf, Tensor) and (name not in alone or alone[name] != leaf):
            yield f"data.py: {name} is no tensor and differs from sample to sample: it " + DIVIDE
            return


DIVIDE = "cannot be divided by samples, as a source asks for whose on_device is True. Set on_device = False."


def metric_faults(run: Run, batch: Any) -> Iterator[str]:
    run.model.eval()
    with torch.no_grad():
        found = call(run, metrics, batch)
    if not isinstance(found, Mapping):
        yield f"model.py: metrics has to return a dict of (sum, count) by name; it returns {shown(found)}."
        return
    for name, pair in found.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and is_number(pair[1])):
            yield f"model.py: metrics has to return (sum, count) for {name!r}; it returns {shown(pair)}."
            return
        if not isinstance(pair[0], list | Tensor | int | float):
            yield f"model.py: the sum of {name!r} is {shown(pair[0])}: it has to be a number, a tensor or a list."
            return
    try:
        scores = finished(found)
    except (ArithmeticError, ValueError, RuntimeError) as error:
        print(f"model.finish makes no scores of two samples ({error}): mend it, if more would not help.")
        return
    if METRIC not in scores:
        yield (
            f"model.py: {METRIC!r} chooses the best model and is not among the scores {sorted(scores)}: add it to "
            'metrics (or finish), or name another one, as in BEST = "accuracy", max.'
        )


def is_mean(run: Run, batches: list[Any], items: list[float]) -> bool:
    """Whether the loss of both samples is the mean of their losses, where it is not their sum as well."""
    run.model.eval()
    try:
        with torch.no_grad():
            both, one, other = (float(call(run, loss, batch)) for batch in batches)
    except Exception:  # some models have a loss in training mode only, where it gave one a moment ago
        return False
    mean = (one * items[1] + other * items[2]) / (items[0] or 1)
    return math.isclose(both, mean, rel_tol=1e-3) and not math.isclose(both, one + other, rel_tol=0.1)


def call(run: Run, function: Callable[..., Any], batch: Any) -> Any:
    with torch.autocast(run.device.type, run.dtype, enabled=run.dtype is not None):
        return function(run.model, batch)


def same(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    if not isinstance(one[1], Tensor):
        return True
    left, right = one[1], other[1]
    return left.shape == right.shape and torch.allclose(left, right, rtol=0, atol=0, equal_nan=True)


def is_number(value: Any) -> bool:
    return value.numel() == 1 if isinstance(value, Tensor) else isinstance(value, int | float)


def shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {list(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    return f"{value!r:.60}" if value is None or isinstance(value, int | float | str) else f"a {type(value).__name__}"


def main() -> None:
    config = parse()
    device = find_device(config.device)
    sources = load(config.data, config.seed, device)
    if not (isinstance(sources, tuple | list) and len(sources) == 2):
        raise SystemExit(
            f"data.py: load has to return a source for training and one for validation, not {shown(sources)}."
        )
    for source, which in zip(sources, ("training", "validation"), strict=True):
        for name in ("fetch", "__len__", "on_device", "info"):
            if not hasattr(source, name):
                raise SystemExit(f"data.py: the {which} source has no {name}.")
    run = build(config, plain(sources[0].info), device, steps_per_epoch=1)
    for source in sources:
        check(run, source)
    print("data.py and model.py keep what the rest asks of them.")


if __name__ == "__main__":
    main()
