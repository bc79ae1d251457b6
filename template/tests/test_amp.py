"""Mixed precision on the CPU: what fp16 overflows skips the whole step, and the rest sees unscaled gradients."""

import math
from collections.abc import Callable

import pytest
import torch
from conftest import parameters

# {% filter regex_replace("\n+", "\n") %}
import train
from amp import AmpConfig
from checkpoint import restore

# {% if clipping %}
from clipping import ClippingConfig

# {% endif %}
from loader import MicroBatch
from model import loss
from run import Run, learning_rates

# {% endfilter %}


@pytest.fixture(autouse=True)
def float32() -> None:
    """These types are what is tested here."""
    torch.set_default_dtype(torch.float32)


def one_step(run: Run, micro: Callable[[int, int], MicroBatch]) -> float:
    # {% if accumulation %}
    return float(train.step(run, [micro(0, 5), micro(5, 8)])[2])
    # {% else %}
    return float(train.step(run, micro(0, 8))[2])
    # {% endif %}


def applied_step(run: Run, micro: Callable[[int, int], MicroBatch]) -> float:
    """The first step that fp16 does not skip: the scale starts high and finds its size by overflowing."""
    norm = one_step(run, micro)
    while not math.isfinite(norm) and run.scaler.get_scale() > 1:
        norm = one_step(run, micro)
    return norm


def test_overflow_skips_the_whole_step(
    begin: Callable[..., Run], micro: Callable[[int, int], MicroBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(amp=AmpConfig("fp16"))
    before, scale = parameters(run), run.scaler.get_scale()
    with monkeypatch.context() as patch:
        patch.setattr(train, "loss", lambda model, batch: loss(model, batch) * math.inf)
        one_step(run, micro)
    assert torch.equal(parameters(run), before)
    assert run.scaler.get_scale() == scale / 2
    rates = learning_rates(run.optimizer)
    applied_step(run, micro)
    assert not torch.equal(parameters(run), before)
    assert learning_rates(run.optimizer) == rates, "a step that was skipped moves the schedule on"
    # {% if stepwise %}
    assert run.progress.step - run.progress.skipped == 1
    # {% endif %}


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize(("dtype", "bound"), [("bf16", 0.1), ("fp16", 0.02)])
def test_gradient_follows_full_precision(
    begin: Callable[..., Run], micro: Callable[[int, int], MicroBatch], dtype: str, bound: float
) -> None:
    # {% if clipping %}
    # Clipped at a limit that a gradient which was still scaled would exceed everywhere.
    # {% if clip == "norm" %}
    changes = {"clipping": ClippingConfig(max_norm=1e-3)}
    # {% else %}
    changes = {"clipping": ClippingConfig(max_value=0.1)}
    # {% endif %}
    full, mixed = begin(amp=AmpConfig("off"), **changes), begin(amp=AmpConfig(dtype), **changes)
    # {% else %}
    full, mixed = begin(amp=AmpConfig("off")), begin(amp=AmpConfig(dtype))
    # {% endif %}
    norms = [applied_step(run, micro) for run in (full, mixed)]
    assert norms[1] == pytest.approx(norms[0], rel=bound)
    gradients = [
        torch.cat([p.grad.flatten() for p in run.model.parameters() if p.grad is not None]) for run in (full, mixed)
    ]
    assert float((gradients[0] - gradients[1]).norm() / gradients[0].norm()) < bound


def test_scale_survives_a_resume(begin: Callable[..., Run], micro: Callable[[int, int], MicroBatch]) -> None:
    run, resumed = begin(amp=AmpConfig("fp16")), begin(amp=AmpConfig("fp16"))
    applied_step(run, micro)
    run.scaler.update(run.scaler.get_scale() / 4)
    restore({name: part.state_dict() for name, part in run.parts().items()}, resumed.parts())
    assert resumed.scaler.state_dict() == run.scaler.state_dict()


def test_only_fp16_is_scaled(begin: Callable[..., Run]) -> None:
    assert [begin(amp=AmpConfig(dtype)).scaler.is_enabled() for dtype in ("off", "bf16", "fp16")] == [
        False,
        False,
        True,
    ]
