"""Profiler: any run leaves a trace of its operators, or one sentence that says how many steps that takes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.profiler import profile

# {% filter regex_replace("\n+", "\n") %}
# {% if ddp %}
import profiling

# {% endif %}
from config import Config
from profiling import Profiler, ProfilerConfig

# {% endfilter %}

CPU = torch.device("cpu")
SHORT = ProfilerConfig(wait=1, warmup=1, active=2)


def events(folder: Path) -> list[str]:
    """The names of all events of a trace."""
    return [event["name"] for event in json.loads((folder / "profile/trace.json").read_text())["traceEvents"]]


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 6])
def test_run_leaves_a_trace_or_a_sentence(
    steps: int,
    config: Config,
    run_in: Callable[..., int],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run_in(tmp_path, replace(config, max_steps=steps, profiler=SHORT))
    output = "".join(capfd.readouterr())
    if steps < 3:
        assert f"Nothing is profiled in {steps} steps, it takes 3: lower --profiler.wait." in output
        assert not (tmp_path / "profile").exists()
        return
    names = events(tmp_path)
    assert any(name.startswith("aten::") for name in names), "the trace names no operator"
    recorded = {name for name in names if name.startswith("ProfilerStep#")}
    assert len(recorded) == 2, "only active steps are recorded, and only once"
    assert "aten::" in (tmp_path / "profile/table.txt").read_text()
    assert {path.name for path in (tmp_path / "profile").iterdir()} == {"trace.json", "table.txt"}
    assert not any(noise in output for noise in ("USDT", "ERROR", "[W")), "the profiler's own log is printed"


def test_nothing_is_begun_after_the_last_recorded_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    prepare = profile.prepare_trace
    monkeypatch.setattr(profile, "prepare_trace", lambda self: (begun.append(1), prepare(self)))
    profiler = Profiler(replace(SHORT, wait=0), tmp_path, CPU)
    for _ in range(6):
        profiler.step()
    assert len(begun) == 1, "with nothing to wait for, torch's schedule begins anew"


def test_crash_leaves_what_was_recorded(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    profiler = Profiler(SHORT, tmp_path, CPU)
    with pytest.raises(ZeroDivisionError):
        try:
            for step in range(4):
                torch.ones(2) @ torch.ones(2)
                if step == 2:
                    raise ZeroDivisionError
                profiler.step()
        finally:
            profiler.stop()
    assert "aten::dot" in events(tmp_path)
    assert "Nothing is profiled" not in capfd.readouterr().out


def test_stop_is_final(tmp_path: Path) -> None:
    profiler = Profiler(SHORT, tmp_path, CPU)
    for _ in range(6):
        profiler.step()
    written = (tmp_path / "profile/trace.json").read_bytes()
    assert profiler.profile is None, "the profiler goes on after its trace is written"
    profiler.stop()
    profiler.stop()
    assert (tmp_path / "profile/trace.json").read_bytes() == written


# {% if ddp %}
def test_only_the_first_rank_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "rank", lambda: 1)
    profiler = Profiler(SHORT, tmp_path, CPU)
    for _ in range(6):
        profiler.step()
    assert not list(tmp_path.iterdir())


# {% endif %}
def test_switched_off_it_does_nothing(tmp_path: Path) -> None:
    profiler = Profiler(replace(SHORT, active=0), tmp_path, CPU)
    for _ in range(6):
        profiler.step()
    profiler.stop()
    assert not list(tmp_path.iterdir())
