"""Weights of a file: all of them or none, unless a part is asked for; a run with them goes on without the file."""

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import rows, stop_in
from safetensors.torch import save_file
from torch import Tensor

from config import Config
from run import Run

State = dict[str, Tensor]


class Harmful:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def state(begin: Callable[..., Run]) -> State:
    """Weights that no fresh model has."""
    found = begin(seed=5).model.state_dict()
    return {name: (tensor + 1).cpu() if tensor.is_floating_point() else tensor.cpu() for name, tensor in found.items()}


def equal(one: State, other: State) -> bool:
    return all(torch.equal(tensor.cpu(), other[name].cpu()) for name, tensor in one.items())


@pytest.mark.parametrize(
    ("file", "wrap"),
    [
        ("state.pt", lambda state: state),
        ("best.pt", lambda state: {"format": 1, "model": state, "info": {}}),
        (
            "wrapped.pth",
            lambda state: {"state_dict": {f"_orig_mod.module.{name}": tensor for name, tensor in state.items()}},
        ),
        ("model.safetensors", lambda state: state),
    ],
)
def test_a_new_run_begins_with_them(
    begin: Callable[..., Run], state: State, tmp_path: Path, file: str, wrap: Callable[[State], Any]
) -> None:
    path = tmp_path / file
    if path.suffix == ".safetensors":
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
    else:
        torch.save(wrap(state), path)
    run = begin(init_from=path)
    assert equal(state, run.model.state_dict())
    assert run.progress.step == 0 and not run.optimizer.state


def test_a_part_is_taken_only_if_that_is_allowed(
    begin: Callable[..., Run], state: State, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, fresh = tmp_path / "state.pt", begin().model.state_dict()
    new, *middle, reshaped = [name for name, tensor in state.items() if tensor.is_floating_point()]
    given = state | {"foreign.weight": torch.ones(2), reshaped: torch.ones(*state[reshaped].shape, 3)}
    del given[new]
    torch.save(given, path)
    with pytest.raises(SystemExit, match="--init-allow-partial takes what fits") as refused:
        begin(init_from=path)
    run = begin(init_from=path, init_allow_partial=True)
    table = [f"new: {new} ", f"its shape differs: {reshaped} ", "left out: foreign.weight [2]"]
    for text in (str(refused.value), capsys.readouterr().out):
        assert all(line in text for line in table)
    found = run.model.state_dict()
    assert equal({name: fresh[name] for name in (new, reshaped)}, found)
    assert equal({name: state[name] for name in middle}, found)
    torch.save({"foreign.weight": torch.ones(2)}, path)
    with pytest.raises(SystemExit, match="nothing in the file fits this model"):
        begin(init_from=path, init_allow_partial=True)


def test_a_bad_file_is_one_sentence(begin: Callable[..., Run], state: State, tmp_path: Path) -> None:
    whole = tmp_path / "whole.pt"
    torch.save(state, whole)
    content = bytearray(whole.read_bytes())
    largest = max(state.values(), key=lambda tensor: tensor.nbytes)
    content[content.index(largest.numpy().tobytes())] ^= 1
    (tmp_path / "flipped.pt").write_bytes(content)
    (tmp_path / "cut.pt").write_bytes(content[:100])
    (tmp_path / "text.safetensors").write_text("no tensors")
    torch.save({**state, "more": Harmful(tmp_path / "harm")}, tmp_path / "object.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    for name in ("flipped.pt", "cut.pt", "text.safetensors", "object.pt", "list.pt", "absent.pt", "."):
        with pytest.raises(SystemExit, match=r"--init-from .* (is damaged|holds no tensors|cannot be read)") as refused:
            begin(init_from=tmp_path / name)
        assert "\n" not in str(refused.value)
    assert not (tmp_path / "harm").exists()


def test_a_run_goes_on_without_the_file(
    run_in: Callable[..., int], config: Config, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.pt"
    torch.save(state, path)
    config = replace(config, init_from=path)
    assert run_in(tmp_path / "whole", config) == 0
    with monkeypatch.context() as patch:
        stop_in(patch, "step", 2, signal.SIGTERM)
        assert run_in(tmp_path / "cut", config) == 143
    # Ended before its first checkpoint.
    assert run_in(tmp_path / "anew", replace(config, resume=True)) == 0
    path.unlink()
    assert run_in(tmp_path / "cut", replace(config, resume=True)) == 0
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole") == rows(tmp_path / "anew")
