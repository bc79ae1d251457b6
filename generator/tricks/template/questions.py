"""The questions of copier.yml as plain data, and the check of values from outside; imports no Copier."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tricks import UserError


@dataclass(frozen=True)
class Question:
    """One question; a hidden one is computed from others and refuses every value."""

    name: str
    help: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)  # value -> the line shown for it
    multiselect: bool = False
    hidden: bool = False
    default: Any = None  # as written in copier.yml: may hold Jinja
    refusal: str = ""  # a hidden question's sentence


def load(copier_yml: Path) -> dict[str, Question]:
    """All questions by name, in the order in which they are asked."""
    return parse(read(copier_yml))


def read(copier_yml: Path) -> dict[str, Any]:
    """All that copier.yml holds."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where PyYAML has libyaml
    return dict(yaml.load(copier_yml.read_text(encoding="utf-8"), Loader=loader))


def parse(config: Mapping[str, Any]) -> dict[str, Question]:
    """The questions among what copier.yml holds."""
    entries = {name: entry for name, entry in config.items() if not name.startswith("_")}
    given = [name for name, entry in entries.items() if entry.get("when") is not False]
    return {name: _question(name, entry, given) for name, entry in entries.items()}


def _question(name: str, entry: dict[str, Any], given: list[str]) -> Question:
    choices = entry.get("choices", {})
    pairs = choices.items() if isinstance(choices, dict) else ((choice, choice) for choice in choices)
    hidden = entry.get("when") is False
    return Question(
        name=name,
        help=entry.get("help", ""),
        choices={str(value): str(line) for line, value in pairs},
        multiselect=entry.get("multiselect", False),
        hidden=hidden,
        default=entry.get("default"),
        refusal=_refusal(name, entry, given) if hidden else "",
    )


def _refusal(name: str, entry: dict[str, Any], given: list[str]) -> str:
    """A derived value's sentence: it names the question to answer instead, the last one that the value reads."""
    read = re.findall(r"\w+", entry["default"]) if isinstance(entry["default"], str) else []
    sources = [question for question in given if question in read]
    return f"{name} follows from {sources[-1]}: set {sources[-1]} instead." if sources else entry["validator"]


def asked(questions: Mapping[str, Question]) -> list[str]:
    """Names of the questions that take a value."""
    return [question.name for question in questions.values() if not question.hidden]


def presets(questions: Mapping[str, Question]) -> dict[str, list[str]]:
    """Techniques of each preset."""
    return dict(questions["presets"].default)


def from_arguments(questions: Mapping[str, Question], pairs: Iterable[str]) -> dict[str, Any]:
    """Checked answers from `KEY=VALUE` strings; several values by commas or as a YAML list."""
    answers: dict[str, Any] = {}
    for pair in pairs:
        key, _, text = pair.partition("=")
        if key in answers:
            raise UserError(f"{key} is given twice on the command line: give it once.")
        question = find(questions, key)
        answers[key] = check(question, _split(question, text) if question.multiselect else text)
    return answers


def from_file(questions: Mapping[str, Question], path: Path) -> dict[str, Any]:
    """Checked answers from a YAML file; a project's .copier-answers.yml is one."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"The data file {str(path)!r} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1})" if mark else ""
        raise UserError(f"The data file {str(path)!r} is not valid YAML{place}.") from error
    if not isinstance(data, dict):
        raise UserError(f"The data file {str(path)!r} is not a mapping: write lines such as `task: image`.")
    data = {str(key): value for key, value in data.items() if key not in ("_commit", "_src_path")}
    try:
        return {key: check(find(questions, key), value) for key, value in data.items()}
    except UserError as error:
        raise UserError(f"In the data file {str(path)!r}: {error}") from error


def find(questions: Mapping[str, Question], key: str) -> Question:
    question = questions.get(key)
    if question is None:
        raise UserError(f"There is no question {key!r}: {nearest(key, asked(questions))}")
    if question.hidden:
        raise UserError(question.refusal)
    return question


def _split(question: Question, text: str) -> Any:
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{question.name}={text} is not a list: write {question.name}=a,b.") from error


def check(question: Question, value: Any) -> Any:
    """The value itself when it is allowed; what free text says is left to the validators of copier.yml."""
    name = question.name
    if question.multiselect:
        if not isinstance(value, list):
            example = ", ".join(list(question.choices)[:2])
            raise UserError(f"{name} takes a list, not {value!r}: write for example [{example}].")
        for item in value:
            _check_choice(question, item)
        twice = [item for item in value if value.count(item) > 1]
        if twice:
            raise UserError(f"{name} names {twice[0]!r} twice: name it once.")
    elif question.choices:
        _check_choice(question, value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    elif not isinstance(value, str):
        raise UserError(f"{name} takes text, not {value!r}: put it in quotes.")
    return value


def _check_choice(question: Question, value: Any) -> None:
    if not isinstance(value, str) or value not in question.choices:
        raise UserError(f"{question.name} has no value {value!r}: {nearest(str(value), question.choices)}")


def nearest(word: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(word.lower(), list(names), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(names)}."
