"""Every number of a generated project: a value that cannot be ends the program with a sentence that names it."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import warm
from tests.choices import CHOICES, PRESETS

# What no knob of that type can mean; -1 lets --loader.workers choose.
SCRIPT = """
import contextlib, dataclasses, io, typing
from config import Config, parse

BAD = {int: ("-2", "1.5"), float: ("-1", "nan", "-inf")}

def knobs(kind, prefix=""):
    for field in dataclasses.fields(kind):
        hint = typing.get_type_hints(kind)[field.name]
        if dataclasses.is_dataclass(hint):
            if field.name != "data":  # the owner's: data.load looks at it
                yield from knobs(hint, f"{prefix}{field.name}.")
        elif hint in BAD:
            yield f"--{prefix}{field.name}".replace("_", "-"), BAD[hint]

found = 0
for knob, values in knobs(Config):
    for value in values:
        told = io.StringIO()
        try:
            with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
                parse([knob, value])
        except SystemExit as error:
            assert error.code not in (0, None), (knob, value)
            assert knob in told.getvalue(), (knob, value, told.getvalue())
            found += 1
        else:
            raise AssertionError(f"{knob} {value} is taken")
print("refused", found)
"""


@pytest.mark.parametrize(("schedule", "clip"), list(zip(CHOICES["schedule"], itertools.cycle(CHOICES["clip"]))))
def test_numbers_that_cannot_be_are_refused(render: Callable[..., Path], schedule: str, clip: str) -> None:
    project = render(techniques=PRESETS["everything"], schedule=schedule, clip=clip)
    (project / "knobs.py").write_text(SCRIPT)
    code, output = warm.script(project, "knobs.py")
    assert code == 0, output
    assert int(output.split("refused ")[1]) > 30, output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--seed", "4294967296"), "--seed"),
        (("--groups.lr-scale", "head", "-1"), "--groups.lr-scale head"),
        (("--groups.lr-scale", "nosuch", "2"), "this model has"),
        (("--groups.no-decay", "nosuch"), "this model has"),
        (("--schedule.min-factor", "1"), "--schedule.min-factor"),
        (("--ddp.timeout", "1e9"), "--ddp.timeout"),
        (("--accumulation.steps", "2", "--compile.mode", "reduce-overhead"), "max-autotune-no-cudagraphs"),
    ],
)
def test_values_that_cannot_be_get_a_sentence(
    render: Callable[..., Path], arguments: tuple[str, ...], told: str
) -> None:
    project = render(techniques=PRESETS["everything"], schedule="plateau")
    code, output = warm.train(project, "--compile.mode", "off", "--max-steps", "1", *arguments)
    assert code not in (0, -1), output
    assert told in " ".join(output.replace("│", " ").split()), output
    assert "Traceback" not in output, output


def test_info_that_json_cannot_hold_is_refused_before_the_first_step(render: Callable[..., Path]) -> None:
    project = render(techniques=[])
    data = project / "data.py"
    data.write_text(data.read_text().replace('"size": 8,', '"size": torch.tensor(8),'))
    code, output = warm.train(project, "--max-steps", "1", "--run-dir", "run")
    assert code == 1 and "source.info" in output and "Traceback" not in output, output
    assert not (project / "run" / "checkpoints").exists()


def test_an_owners_own_error_keeps_its_traceback(render: Callable[..., Path]) -> None:
    project = render(techniques=[])
    data = project / "data.py"
    text = data.read_text()
    assert "        ids = ids.to(" in text
    data.write_text(text.replace("        ids = ids.to(", "        int('seven')\n        ids = ids.to("))
    code, output = warm.train(project, "--max-steps", "1")
    assert code == 1 and "Traceback" in output and "int('seven')" in output, output
