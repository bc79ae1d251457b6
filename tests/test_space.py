"""The option space is copier.yml's: counted, drawn and covered as a walk over all choices of a smaller one confirms."""

from __future__ import annotations

import itertools
import random
import shutil
from pathlib import Path

import pytest

from matrix.arrays import covering_array, covers
from matrix.conditions import Conditions
from matrix.space import Space
from tests.choices import ROOT
from tricks.template.rendering import Template

# What varies in the smaller space.
VARY = ("amp", "clipping", "clip", "scheduler", "export", "torch_export", "onnx", "task", "tracker")


@pytest.fixture(scope="module")
def space() -> Space:
    return Space(Template(ROOT))


@pytest.fixture(scope="module")
def small(space: Space) -> Space:
    only = {name: option.values[:1] for name, option in space.options.items() if name not in VARY}
    return Space(space.template, only | {"schedule": (None, "warmup_cosine", "plateau")})


def taken_by_copier(space: Space, row: dict[str, object]) -> bool:
    """Whether the questions are asked, hidden and validated as a row says: one row at a time, without groups."""
    choice = space.choice(row)
    answered = space.template.answer(choice)
    for question in {option.question for option in space.options.values()}:
        asked = question in answered.recorded
        if asked and (question not in choice or space.refusal(question, answered.values)):
            return False
        if not asked and choice.get(question):
            return False
    return True


def test_the_count_is_that_of_a_walk_over_all_rows(small: Space) -> None:
    rows = (dict(zip(small.options, values, strict=True)) for values in itertools.product(
        *(option.values for option in small.options.values())
    ))  # fmt: skip
    valid = [row for row in rows if taken_by_copier(small, row)]
    assert small.count() == len(valid) > 200
    assert {repr(row) for row in valid} == {repr(row) for row in small.rows()}


def test_drawn_rows_are_valid_and_come_back_from_their_answers(space: Space) -> None:
    source = random.Random(5)
    for _ in range(100):
        row = space.draw(source)
        assert taken_by_copier(space, row)
        assert space.row_of(space.choice(row)) == row


@pytest.mark.parametrize("strength", [2, 3])
def test_covering_arrays_hold_every_combination(small: Space, space: Space, strength: int) -> None:
    assert covers(small, covering_array(small, strength), strength)
    rows = covering_array(space, strength)
    assert len(rows) < {2: 36, 3: 130}[strength] and all(space.valid(row) for row in rows)
    held = {pair for row in rows for pair in itertools.combinations(row.items(), strength)}
    source = random.Random(1)
    assert all(
        pair in held for _ in range(200) for pair in itertools.combinations(space.draw(source).items(), strength)
    )


def test_conditions_hold_for_the_choices_whose_answers_say_so(small: Space) -> None:
    conditions = Conditions(small)
    for row in small.rows():
        answered = small.template.answer(small.choice(row)).values
        row = row | {name: texts[0] for name, texts in small.texts.items()}
        for name in small.template.questions:
            if name not in ("preset", "techniques"):
                holding = [value for value, when in conditions.values(name) if conditions.holds(when, row)]
                assert holding == [answered[name]], (name, row)
    every = itertools.product(*(option.values for option in small.options.values()))
    rows = [dict(zip(small.options, values, strict=True)) for values in every]
    assert all(conditions.holds(conditions.valid, row) == small.valid(row) for row in rows)


def test_the_smallest_choice_has_the_fewest_options_away_from_their_first_value(small: Space) -> None:
    conditions = Conditions(small)
    for text in ("{{ any_technique }}", "{{ onnx and not tensorboard }}", "{{ stepwise and export_packages or text }}"):
        condition = conditions.text(text)
        least = min(
            sum(row[name] != option.values[0] for name, option in small.options.items())
            for row in small.rows()
            if conditions.holds(condition, row)
        )
        smallest = conditions.smallest(condition)
        assert small.valid({name: smallest[name] for name in small.options}) and conditions.holds(condition, smallest)
        assert sum(smallest[name] != option.values[0] for name, option in small.options.items()) == least
    with pytest.raises(ValueError, match="No valid choice"):
        conditions.smallest(conditions.text("{{ plateau and stepwise }}"))


def test_an_option_that_is_added_joins_by_itself(space: Space, tmp_path: Path) -> None:
    text = (ROOT / "copier.yml").read_text(encoding="utf-8")
    line = '    "amp: mixed precision'
    assert line in text
    (tmp_path / "copier.yml").write_text(text.replace(line, f'    "glow: it glows": glow\n{line}'), encoding="utf-8")
    shutil.copytree(ROOT / "template", tmp_path / "template")
    grown = Space(Template(tmp_path))
    assert grown.count() == 2 * space.count()
    assert any(row["glow"] for row in covering_array(grown, 2))


def test_constraints_that_a_validator_adds_hold(space: Space, tmp_path: Path) -> None:
    """The form that a later technique's requirement takes: a sentence of the validator of techniques."""
    text = (ROOT / "copier.yml").read_text(encoding="utf-8")
    before = "{{ 'techniques takes a list.' if _copier_conf.data.get('techniques') is mapping else '' }}"
    after = "{{ 'debug needs ddp.' if 'debug' in techniques and 'ddp' not in techniques else '' }}"
    assert before in text
    (tmp_path / "copier.yml").write_text(text.replace(before, after), encoding="utf-8")
    shutil.copytree(ROOT / "template", tmp_path / "template")
    bound = Space(Template(tmp_path))
    assert bound.count() == space.count() * 3 // 4
    assert all(row["ddp"] or not row["debug"] for row in covering_array(bound, 2))
