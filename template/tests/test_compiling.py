"""torch.compile: the same parameters as eager, the same names, and no new graph once every batch size was seen."""

from collections.abc import Callable

import pytest
import torch
from conftest import parameters

import compiling
import train
from compiling import CompileConfig, works
from loader import MicroBatch
from run import Run


def steps(run: Run, micro: Callable[[int, int], MicroBatch]) -> None:
    """An epoch with a smaller last batch."""
    for start, stop in ((0, 8), (8, 16), (16, 24), (24, 26)):
        # {% if accumulation %}
        train.step(run, [micro(start, stop)])
        # {% else %}
        train.step(run, micro(start, stop))
        # {% endif %}


@pytest.mark.usefixtures("float64", "deterministic")
def test_compiled_is_eager(
    begin: Callable[..., Run], micro: Callable[[int, int], MicroBatch], device: torch.device
) -> None:
    if not works(device):
        pytest.skip("no compiler on this machine")
    torch._dynamo.reset()
    eager, compiled = begin(), begin(compile=CompileConfig())
    assert list(compiled.model.state_dict()) == list(eager.model.state_dict())
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for run in (eager, compiled):
        steps(run, micro)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert graphs > before, "nothing was compiled"
    assert torch.allclose(parameters(eager), parameters(compiled), rtol=0, atol=1e-6)
    for run in (eager, compiled):
        steps(run, micro)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs


def test_without_a_compiler_it_stays_eager(
    begin: Callable[..., Run],
    micro: Callable[[int, int], MicroBatch],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def no_compiler(*arguments: object, **options: object) -> None:
        raise RuntimeError("No working C++ compiler found")

    monkeypatch.setattr(compiling.torch, "compile", no_compiler)
    run = begin(compile=CompileConfig())
    assert "runs eagerly: No working C++ compiler found" in capsys.readouterr().out
    steps(run, micro)
