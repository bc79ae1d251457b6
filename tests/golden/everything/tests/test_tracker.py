"""TensorBoard shows the numbers of metrics.jsonl."""

import json
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
