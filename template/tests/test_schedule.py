# {% if plateau %}
"""Schedule: the learning rate falls when the validation loss has stalled, for every group alike, and after a resume."""

# {% else %}
"""Schedule: the learning rate of every optimizer step is the closed form, for every group, and after a resume."""

# {% endif %}
# {% if plateau %}
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import rows, stop_in
from torch import nn

from config import Config
from schedule import ScheduleConfig, build_schedule


def test_rate_falls_when_the_loss_stalls() -> None:
    weights = [nn.Parameter(torch.zeros(1)) for _ in range(2)]
    optimizer = torch.optim.SGD([{"params": weights[:1], "lr": 1.0}, {"params": weights[1:], "lr": 0.01}])
    schedule = build_schedule(optimizer, ScheduleConfig(factor=0.5, patience=1))
    rates = []
    for score in (3.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0):
        schedule.step(score)
        rates.append([group["lr"] for group in optimizer.param_groups])
    assert [rate for rate, _ in rates] == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25]
    assert all(small == pytest.approx(large / 100) for large, small in rates)


def test_training_asks_after_each_evaluation(run_in: Callable[..., int], config: Config, tmp_path: Path) -> None:
    # No loss is low enough to count as an improvement on the first one where the rate hardly moves the parameters.
    config = replace(config, epochs=4, lr=1e-12, schedule=ScheduleConfig(factor=0.5, patience=0))
    with pytest.MonkeyPatch.context() as patch:
        stop_in(patch, "step", 10, signal.SIGTERM)
        run_in(tmp_path, config)
    run_in(tmp_path, replace(config, resume=True))
    rates = [row["lr"] for row in rows(tmp_path) if "grad_norm" in row]
    assert rates[3::4] == pytest.approx([1e-12, 1e-12, 0.5e-12, 0.25e-12], rel=1e-6, abs=0)


# {%- else %}
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import rows, stop_in
from torch import nn

from config import Config
from progress import Progress
from schedule import ScheduleConfig, factor, set_rates


@pytest.mark.parametrize("total", [1, 2, 3, 10, 1000])
def test_curve(total: int) -> None:
    config = ScheduleConfig()
    factors = [factor(step, total, config) for step in range(total)]
    assert all(0 < value <= 1 for value in factors)
    if total >= 10:
        assert max(factors) > 0.9
        assert factors[-1] == pytest.approx(config.end)
        assert factors[-2] > factors[-1], "the end comes a step early"
        peak = factors.index(max(factors))
        assert factors[:peak] == sorted(factors[:peak])
        assert factors[peak:] == sorted(factors[peak:], reverse=True)


def test_every_step_follows_the_curve(run_in: Callable[..., int], config: Config, tmp_path: Path) -> None:
    for resume in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            stop_in(patch, "step", 3, signal.SIGTERM)
            run_in(tmp_path, replace(config, resume=resume))
    assert [row["step"] for row in rows(tmp_path) if "grad_norm" in row] == list(range(1, 7))
    run_in(tmp_path, replace(config, resume=True))
    rates = [row["lr"] for row in rows(tmp_path) if "grad_norm" in row]
    total = len(rates)
    assert rates == [config.lr * factor(step, total, config.schedule) for step in range(total)]


def test_groups_keep_their_ratio() -> None:
    weights = [nn.Parameter(torch.zeros(1)) for _ in range(2)]
    optimizer = torch.optim.SGD([{"params": weights[:1], "lr": 1.0}, {"params": weights[1:], "lr": 0.01}])
    for step in range(10):
        set_rates(optimizer, Progress(step=step, total_steps=10), ScheduleConfig())
        large, small = (group["lr"] for group in optimizer.param_groups)
        assert large == factor(step, 10, ScheduleConfig())
        assert small == pytest.approx(large / 100)


def test_other_length_has_to_be_asked_for(
    run_in: Callable[..., int], config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(tmp_path, config)
    longer = replace(config, epochs=config.epochs + 1, resume=True)
    with pytest.raises(SystemExit, match="planned for"):
        run_in(tmp_path, longer)
    assert run_in(tmp_path, replace(longer, schedule=replace(config.schedule, extend=True))) == 0
    assert "planned steps become" in capsys.readouterr().out


# {%- endif +%}
