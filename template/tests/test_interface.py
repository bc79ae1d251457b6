"""What data.py and model.py may give, batches of any class and counts of any kind, and what check.py says of others."""

import math
from collections import UserDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

# {% filter regex_replace("\n+", "\n") %}
import check
import model_config
import scores
from checkpoint import load_model
from config import Config
from device import divisor, named_leaves, numbers, split, tree_map
from loader import First, MicroBatch
from run import Run, random_state

# {% endfilter %}


class Pair(NamedTuple):
    left: Any
    right: Any


class Encoding(UserDict[str, Any]):
    """As libraries make them: a mapping with attributes besides its items."""

    def __init__(self, data: dict[str, Any], language: str) -> None:
        super().__init__(data)
        self.language = language


def nest() -> Any:
    """Six samples in containers of many classes."""
    x = torch.arange(6.0)
    inner = Pair([x, "text"], (x[:, None].expand(6, 13).clone(), None))
    return Encoding({"a": x, "b": inner, "c": deque([x, 7]), "names": ["u", "v"], "n": 6}, language="en")


def test_batches_of_any_classes_are_walked() -> None:
    found = tree_map(lambda tensor: tensor + 1, nest())
    assert isinstance(found, Encoding)
    assert found.language == "en"
    assert isinstance(found["b"], Pair)
    assert isinstance(found["c"], deque)
    for (name, before), (_, after) in zip(named_leaves(nest()), named_leaves(found), strict=True):
        if isinstance(before, Tensor):
            assert torch.equal(before + 1, after), name
        else:
            assert before == after, f"{name} is no tensor and has changed"


def test_split_divides_tensors_and_puts_the_parts_where_memory_is_aligned() -> None:
    parts = list(split(nest(), [1, 3, 2]))
    assert [part["a"].tolist() for part in parts] == [[0], [1, 2, 3], [4, 5]]
    assert [part["b"].right[0].shape for part in parts] == [(1, 13), (3, 13), (2, 13)]
    assert all(part["names"] == ["u", "v"] for part in parts)
    pointers = [leaf.data_ptr() for part in parts for _, leaf in named_leaves(part) if isinstance(leaf, Tensor)]
    assert not [pointer for pointer in pointers if pointer % 64]


@pytest.mark.parametrize("items", [0, 0.0, 0.3, 2, 2.5])
def test_only_a_count_of_zero_is_special(items: float) -> None:
    expected = items or 1
    assert divisor(items) == expected
    assert float(divisor(torch.tensor(items))) == expected
    assert numbers([items, torch.tensor(0.5), 3]) == [items, 0.5, 3]


def test_sums_of_any_kind_become_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    def finish(sums: dict[str, Any], counts: dict[str, float]) -> dict[str, Any]:
        return {"trace": sums["matrix"].trace() / counts["matrix"], "longest": max(map(len, sums["texts"]))}

    monkeypatch.setattr(scores.model, "finish", finish, raising=False)
    totals: scores.Totals = {}
    for items in (2, 0.5):
        loss, matrix = torch.tensor(3.0), torch.eye(2, dtype=torch.int64)
        scores.add(totals, {"loss": (loss, items), "matrix": (matrix, 2), "texts": (["a" * 5], 1), "none": (0.0, 0)})
    found = scores.finished(totals)
    assert math.isnan(found.pop("none")), "the mean of nothing is no number"
    assert found == {"loss": 6 / 2.5, "trace": 1, "longest": 5}


def test_the_best_is_never_what_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for pick, worse, better in ((min, 2.0, 1.0), (max, 1.0, 2.0)):
        monkeypatch.setattr(scores, "PICK", pick)
        assert scores.is_better(worse, math.inf), "the first one is the best so far"
        assert scores.is_better(better, worse)
        assert not any(scores.is_better(score, better) for score in (worse, better, math.nan, math.inf, -math.inf))


def test_the_owners_files_have_no_fault_and_the_check_leaves_no_trace(
    begin: Callable[..., Run], sources: tuple[First, First], same: Callable[..., bool]
) -> None:
    run = begin()
    before = random_state(run.device), {name: value.clone() for name, value in run.model.state_dict().items()}
    for source in sources:
        check.check(run, source)
    assert same(before, (random_state(run.device), dict(run.model.state_dict())))
    assert run.model.training


@dataclass(frozen=True)
class Values:
    width: int = 1


def test_a_model_is_built_with_the_values_of_its_run_and_filled_once(
    run_in: Callable[..., int], config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[Any] = []
    filled: list[nn.Module] = []
    build, rest = model_config.model.build_model, () if config.model == model_config.NoValues() else (config.model,)

    def recorded(info: dict[str, Any], values: Values) -> nn.Module:
        used.append(values)
        return build(info, *rest)

    monkeypatch.setattr(model_config.model, "build_model", recorded)
    monkeypatch.setattr(model_config.model, "load_pretrained", filled.append, raising=False)
    monkeypatch.setattr(model_config, "ModelConfig", Values)
    monkeypatch.setattr("checkpoint.ModelConfig", Values)
    wide = replace(config, model=Values(3), epochs=1)
    assert run_in(tmp_path / "run", wide) == 0
    assert run_in(tmp_path / "run", replace(wide, resume=True)) == 0
    load_model(tmp_path / "run")
    assert used == [Values(3)] * 3
    assert len(filled) == 1


def not_repeatable(ids: Tensor, epoch: int) -> Any:
    return {"x": torch.rand(len(ids))}


def not_divisible(ids: Tensor, epoch: int) -> Any:
    return {"x": torch.zeros(len(ids)), "name": [f"sample {i}" for i in ids.tolist()]}


@pytest.mark.parametrize(
    ("module", "name", "function", "sentence"),
    [
        ("check", "count", lambda batch: None, "count has to return a number of items, 0 or more; it returns None"),
        ("check", "count", lambda batch: -1, "it returns -1"),
        ("check", "loss", lambda model, batch: torch.zeros(2), r"it returns a tensor \[2\]"),
        ("check", "loss", lambda model, batch: torch.zeros(()), "without a gradient"),
        ("check", "metrics", lambda model, batch: 3.0, r"dict of \(sum, count\) by name; it returns 3.0"),
        ("check", "metrics", lambda model, batch: {"loss": 3.0}, r"\(sum, count\) for 'loss'; it returns 3.0"),
        ("check", "metrics", lambda model, batch: {"other": (3.0, 2)}, r"not among the scores \['other'\]"),
        ("source", "fetch", not_repeatable, "Random changes belong in augment"),
        ("source", "fetch", not_divisible, r"the batch\['name'\]\[1\] is no tensor and differs"),
        (
            "source",
            "fetch",
            lambda ids, epoch: {"x": torch.zeros(5)},
            r"the batch\['x'\] of 2 samples has the shape \[5\]",
        ),
        ("source", "fetch", lambda ids, epoch: ["text"], "no tensor in what fetch returns"),
    ],
)
def test_each_fault_is_a_sentence(
    begin: Callable[..., Run],
    sources: tuple[First, First],
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    name: str,
    function: Callable[..., Any],
    sentence: str,
) -> None:
    run = begin()
    monkeypatch.delattr(scores.model, "finish", raising=False)
    monkeypatch.setattr(scores, "METRIC", "loss")
    monkeypatch.setattr(check, "METRIC", "loss")
    if module == "source":
        monkeypatch.setattr(sources[0], "on_device", True)
    monkeypatch.setattr(check if module == "check" else sources[0], name, function)
    with pytest.raises(SystemExit, match=sentence):
        check.check(run, sources[0])


@pytest.mark.usefixtures("separable")
def test_a_mean_for_a_loss_is_told(
    begin: Callable[..., Run],
    sources: tuple[First, First],
    micro: Callable[[int, int], MicroBatch],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loss, count = check.loss, check.count
    if not all(float(count(micro(index, index + 1).batch)) for index in range(2)):
        pytest.skip("one of the first two samples has no items: the sum and the mean of both are the same")
    monkeypatch.setattr(check, "loss", lambda model, batch: loss(model, batch) / count(batch))
    run = begin()
    if run.model.training:
        pytest.skip("the loss is there in training mode only, where dropout may hide what it is")
    with pytest.raises(SystemExit, match="loss returns a mean"):
        check.check(run, sources[0])
