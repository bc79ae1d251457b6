"""Each schedule follows its closed form, written here a second time and in another way."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import warm
from tests.choices import CHOICES

SCRIPT = """
import json
from schedule import ScheduleConfig, factor
print(json.dumps([[factor(step, total, ScheduleConfig()) for step in range(total)] for total in (1, 7, 20, 1000)]))
"""


def share(value: float, start: float, end: float) -> float:
    """How far `value` is on the way from start to end, from 0 to 1."""
    return min(max((value - start) / (end - start), 0.0), 1.0) if end > start else float(value > start)


def cosine(high: float, low: float, part: float) -> float:
    return low + (high - low) * math.cos(math.pi / 2 * part) ** 2


def expected(kind: str, step: int, total: int) -> float:
    """The share of the largest learning rate: linear warm-up over a tenth of the steps, an end of one hundredth."""
    end, last = 0.01, total - 1
    if kind == "one_cycle":
        warmup = round(0.3 * total)
        if step > warmup:
            return cosine(1, end, share(step, warmup, last))
        return cosine(0.04, 1, (step + 1) / (warmup + 1))
    warmup = round(0.1 * total)
    rise = min(1.0, (step + 1) / (warmup + 1))
    fall = share(step, warmup, last)
    match kind:
        case "warmup_cosine":
            return rise * cosine(1, end, fall)
        case "warmup_linear":
            return rise * (1 - (1 - end) * fall)
        case "chained":
            return rise * math.exp(math.log(end) * fall)
        case "warmup_stable_decay":
            length = max(1, round(0.3 * total))
            return rise * (1 - (1 - end) * share(step, last - length, last) ** 0.5)
    raise AssertionError(f"write the closed form of {kind} here")


@pytest.mark.parametrize("kind", [kind for kind in CHOICES["schedule"] if kind != "plateau"])
def test_factors_are_the_closed_form(render: Callable[..., Path], kind: str) -> None:
    project = render(techniques=["scheduler"], schedule=kind)
    (project / "factors.py").write_text(SCRIPT)
    code, output = warm.script(project, "factors.py")
    assert code == 0, output
    for factors in json.loads(output):
        total = len(factors)
        assert factors == pytest.approx([expected(kind, step, total) for step in range(total)], abs=1e-12), total
