"""Schedule: the learning rate of every optimizer step is the closed form, for every group, and after a resume."""

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
