"""copier.yml as data, the checked values of the tool, and the same values given to plain Copier."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tricks import UserError
from tricks.template import questions

KNOWN = questions.load(ROOT / "copier.yml")

REFUSED = {
    "techniques=ampp": "techniques has no value 'ampp': did you mean 'amp'?",
    "techniques=AMP": "techniques has no value 'AMP': did you mean 'amp'?",
    "techniques=[amp, nosuch]": "techniques has no value 'nosuch'",
    "techniques=amp,amp": "techniques names 'amp' twice",
    "techniques=[amp, ddp": "is not a list",
    "techniques=[[amp]]": "techniques has no value ['amp']",
    "tehcniques=amp": "There is no question 'tehcniques': did you mean 'techniques'?",
    "colour=red": "There is no question 'colour': choose from project_name",
    "amp=true": "amp follows from techniques: set techniques instead.",
    "package_name=x": "package_name follows from project_name: set project_name instead.",
    "presets={}": "This value follows from the other answers: leave it out.",
    "task=imag": "task has no value 'imag': did you mean 'image'?",
    "preset=recomended": "preset has no value 'recomended': did you mean 'recommended'?",
    "schedule=cosine": "schedule has no value 'cosine': did you mean 'warmup_cosine'?",
}


@pytest.mark.parametrize(("pair", "sentence"), REFUSED.items())
def test_wrong_argument_is_refused_in_a_sentence(pair: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        questions.from_arguments(KNOWN, [pair])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(UserError, match="techniques is given twice"):
        questions.from_arguments(KNOWN, ["techniques=amp", "techniques=ddp"])


@pytest.mark.parametrize("text", ["amp,ddp", "amp, ddp", "[amp, ddp]", ' ["amp", ddp]'])
def test_forms_of_a_list(text: str) -> None:
    assert questions.from_arguments(KNOWN, [f"techniques={text}"]) == {"techniques": ["amp", "ddp"]}


@pytest.mark.parametrize("text", ["", "[]"])
def test_empty_list(text: str) -> None:
    assert questions.from_arguments(KNOWN, [f"techniques={text}"]) == {"techniques": []}


@pytest.mark.parametrize("text", ["", "a=b", "[x]", "yes", "null", "1e5", "{{ 7*7 }}"])
def test_free_text_stays_as_it_is(text: str) -> None:
    assert questions.from_arguments(KNOWN, [f"author={text}"]) == {"author": text}


@pytest.mark.parametrize(
    ("text", "sentence"),
    {
        ": [": "is not valid YAML (line 1)",
        "\x00": "is not valid YAML",
        "- amp\n": "is not a mapping",
        "": "is not a mapping",
        "techniqes: [amp]": "There is no question 'techniqes': did you mean 'techniques'?",
        "1: 2": "There is no question '1'",
        "techniques: amp": "techniques takes a list, not 'amp': write for example [amp, accumulation].",
        "techniques: {amp: true}": "techniques takes a list",
        "techniques:": "techniques takes a list",
        "techniques: [amp, 3]": "techniques has no value 3",
        "tracker: false": "tracker has no value False",
        "author:": "author takes text, not None",
        "author: yes": "author takes text, not True: put it in quotes.",
        "author: 2020-01-01": "author takes text",
        "ddp: true": "ddp follows from techniques",
    }.items(),
)
def test_wrong_data_file_is_refused_in_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "answers.yml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        questions.from_file(KNOWN, file)
    assert sentence in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_data_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"author: \xe9")
    for name, sentence in {
        "none": "No such file",
        ".": "Is a directory",
        "latin": "not valid YAML",
    }.items():
        with pytest.raises(UserError, match=sentence):
            questions.from_file(KNOWN, tmp_path / name)


def test_data_file_may_be_an_answers_file(tmp_path: Path) -> None:
    file = tmp_path / "answers.yml"
    file.write_text("_commit: v1\n_src_path: /x\nproject_name: 2024\ntechniques: [ddp]\n", encoding="utf-8")
    assert questions.from_file(KNOWN, file) == {"project_name": "2024", "techniques": ["ddp"]}


def test_presets_and_hidden_questions_are_consistent() -> None:
    presets = questions.presets(KNOWN)
    assert list(presets) == list(KNOWN["preset"].choices)
    assert presets["everything"] == list(KNOWN["techniques"].choices)
    assert all(set(chosen) <= set(KNOWN["techniques"].choices) for chosen in presets.values())
    for question in KNOWN.values():
        if question.hidden:
            assert "{{" not in question.refusal and question.refusal.endswith("."), question.name
        else:
            assert question.help, question.name
