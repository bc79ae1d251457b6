"""TensorBoard shows the numbers of metrics.jsonl."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from config import Config


def test_same_numbers(run_in: Callable[..., int], config: Config, tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run_in(tmp_path, config)
    events = reader.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    seen = {name: {event.step: event.value for event in events.Scalars(name)} for name in events.Tags()["scalars"]}
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").open()]
    for row in rows:
        for name, value in row.items():
            if name != "step" and value is not None:
                assert seen[name][row["step"]] == pytest.approx(value, rel=1e-6)
    assert any(name.startswith("val_") for name in seen)


def test_without_the_package_the_run_goes_on(
    run_in: Callable[..., int],
    config: Config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert run_in(tmp_path, config) == 0
    assert capsys.readouterr().out.count("TensorBoard is not installed") == 1
    assert (tmp_path / "metrics.jsonl").read_text().count("val_loss") == config.epochs
