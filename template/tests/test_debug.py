"""Debug: the hooks see every step and change none; anomaly mode names the layer that made a NaN."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import parameters
from torch import Tensor, nn

import train
from config import Config
from debug import DebugConfig, Hooks
from loader import MicroBatch
from run import Run

ANOMALY = DebugConfig(hooks=False, anomaly=True)
Begin, Micro = Callable[..., Run], Callable[[int, int], MicroBatch]


def advance(run: Run, micro: Micro, steps: int = 3) -> None:
    for start in range(0, 8 * steps, 8):
        # {% if accumulation %}
        train.step(run, [micro(start, start + 8)])
        # {% else %}
        train.step(run, micro(start, start + 8))
        # {% endif %}


def watched(run: Run, micro: Micro) -> tuple[list[str], dict[str, float]]:
    """Makes three steps with hooks on; returns the layers that ran, and the last row."""
    hooks = Hooks(run.model, DebugConfig(), run.device)
    advance(run, micro)
    row = hooks.row()
    hooks.remove()
    return [name for name in hooks.layers if math.isfinite(row[f"debug/{name}/activation_mean"])], row


@pytest.mark.usefixtures("deterministic")
def test_hooks_change_nothing_and_are_removed(begin: Begin, micro: Micro, same: Callable[..., bool]) -> None:
    plain, hooked = begin(), begin()
    advance(plain, micro)
    watched(hooked, micro)
    assert same(parameters(plain), parameters(hooked))
    assert not any(module._forward_hooks for module in hooked.model.modules())


def test_statistics_are_those_of_the_last_step(begin: Begin, micro: Micro) -> None:
    run, outputs = begin(), []
    layer = watched(begin(), micro)[0][-1]
    module = run.model.get_submodule(layer)
    module.register_forward_hook(lambda module, inputs, output: outputs.append(output.detach()))
    row = watched(run, micro)[1]
    expected = {"activation_mean": outputs[-1].mean(), "activation_std": outputs[-1].std(correction=0)}
    if gradients := [parameter.grad for parameter in module.parameters() if parameter.grad is not None]:
        expected["grad_norm"] = nn.utils.get_total_norm(gradients)
    for what, value in {**expected, "activation_nonfinite": 0}.items():
        assert math.isclose(row[f"debug/{layer}/{what}"], value, rel_tol=1e-4, abs_tol=1e-6), what


# {% if compile %}
@pytest.mark.usefixtures("deterministic")
def test_hooks_fire_in_a_compiled_model(begin: Begin, micro: Micro) -> None:
    run, eager = begin(), watched(begin(), micro)[1]
    torch.compiler.reset()
    run.model.compile(backend="aot_eager")
    assert watched(run, micro)[1] == pytest.approx(eager, rel=1e-4, abs=1e-6, nan_ok=True)


# {% endif %}
def test_layer_without_gradient_is_named(begin: Begin, micro: Micro, capsys: Any) -> None:
    run = begin()
    run.model.register_parameter("idle", nn.Parameter(torch.zeros(2, device=run.device)))
    watched(run, micro)
    assert "No gradient reaches idle:" in capsys.readouterr().out


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_anomaly_mode_names_the_layer(begin: Begin, micro: Micro, direction: str) -> None:
    run, layer = begin(), watched(begin(), micro)[0][-1]

    def poison(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        # The root of 0 is 0, and its slope is infinite: times 0 that is a NaN in the backward pass.
        return output * torch.nan if direction == "forward" else output + (output * 0).sqrt()

    run.model.get_submodule(layer).register_forward_hook(poison)
    hooks = Hooks(run.model, ANOMALY, run.device)
    with pytest.raises(SystemExit, match=f"layer {layer} "):
        try:
            advance(run, micro)
        except RuntimeError as error:
            hooks.explain(error)
            raise
        finally:
            hooks.remove()
    assert not torch.is_anomaly_enabled()


# {% if amp %}
def test_overflow_of_fp16_is_no_anomaly(begin: Begin, micro: Micro) -> None:
    run, layer = begin(), watched(begin(), micro)[0][0]
    run.model.get_submodule(layer).register_forward_hook(lambda module, inputs, output: output + torch.inf)
    hooks = Hooks(run.model, ANOMALY, run.device, fp16=True)
    advance(run, micro, steps=1)
    hooks.remove()


# {% endif %}
def test_rows_of_a_run_have_them(config: Config, run_in: Callable[..., int], tmp_path: Path) -> None:
    run_in(tmp_path, replace(config, max_steps=2, debug=DebugConfig()))
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert all(any(name.startswith("debug/") for name in row) for row in rows if "lr" in row)
