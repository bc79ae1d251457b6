"""Resume: a run that was stopped anywhere and gone on with is, bit for bit, the run that was not stopped."""

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import rows, stop_in

from checkpoint import read
from config import Config


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(equal, left, right))
    return left == right


@pytest.mark.parametrize(
    ("function", "call", "number"),
    [
        ("step", 1, signal.SIGINT),
        ("step", 2, signal.SIGTERM),
        ("evaluate", 1, signal.SIGTERM),
        ("evaluate", 2, signal.SIGINT),
    ],
)
def test_resumed_run_is_the_uninterrupted_one(
    run_in: Callable[..., int], config: Config, tmp_path: Path, function: str, call: int, number: int
) -> None:
    assert run_in(tmp_path / "whole", config) == 0
    with pytest.MonkeyPatch.context() as patch:
        stop_in(patch, function, call, number)
        assert run_in(tmp_path / "cut", config) == 128 + number
    assert run_in(tmp_path / "cut", replace(config, resume=True)) == 0
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")
    for name in ("last.pt", "best.pt"):
        whole, cut = (read(tmp_path / folder / "checkpoints" / name) for folder in ("whole", "cut"))
        different = [key for key in whole if key != "config" and not equal(whole[key], cut[key])]
        assert not different, f"{name}: {different} differ; is something in data.py or model.py random without a seed?"


def test_finished_run_has_nothing_to_do(
    run_in: Callable[..., int], config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(tmp_path, config)
    before = (tmp_path / "checkpoints" / "last.pt").read_bytes()
    assert run_in(tmp_path, replace(config, resume=True)) == 0
    assert "Nothing to do" in capsys.readouterr().out
    assert (tmp_path / "checkpoints" / "last.pt").read_bytes() == before


def test_damaged_checkpoint_gives_way_to_the_one_before(
    run_in: Callable[..., int], config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(tmp_path, config)
    last = tmp_path / "checkpoints" / "last.pt"
    content = bytearray(last.read_bytes())
    content[len(content) // 2] ^= 1
    last.write_bytes(content)
    assert run_in(tmp_path, replace(config, resume=True)) == 0
    assert "is damaged" in capsys.readouterr().out


def test_other_settings_are_refused(run_in: Callable[..., int], config: Config, tmp_path: Path) -> None:
    run_in(tmp_path, config)
    with pytest.raises(SystemExit, match="begun with --lr"):
        run_in(tmp_path, replace(config, resume=True, lr=config.lr / 2))
