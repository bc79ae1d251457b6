"""Asks the questions that are open, in Copier's order, at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tricks import Interrupted, UserError
from tricks.template.questions import Question
from tricks.template.rendering import Template

if TYPE_CHECKING:
    import questionary

Answers = dict[str, Any]


def terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def ask_open(
    template: Template, known: Mapping[str, Question], given: Answers, suggested: Mapping[str, str]
) -> Answers:
    """The given answers and those of the person to all other questions that arise; `suggested` are defaults of ours.

    Raises UserError where there is no terminal, and Interrupted.
    """
    answers = dict(given)
    while True:
        state = template.answer(answers)
        missing = [
            name for name in state.asked if name not in answers and not (name == "preset" and "techniques" in answers)
        ]
        if not missing:
            return answers
        question = known[missing[0]]
        if not terminal():
            choices = f" ({', '.join(question.choices)})" if question.choices else ""
            raise UserError(
                f"There is no terminal to ask at, and {question.name} is open{choices}: "
                f"add --defaults, or {question.name}=VALUE."
            )
        default = suggested.get(question.name, state.values[question.name])
        answers[question.name] = ask(template, question, answers, default)


def ask(template: Template, question: Question, answers: Answers, default: Any) -> Any:
    """The answer to one question. Raises Interrupted on Ctrl-C and Ctrl-D."""
    import questionary  # a fifth of a second, which `--defaults` need not wait for

    def refusal(value: Any) -> bool | str:
        said = template.refusals(answers | {question.name: value or default if typed else value})
        return said[0] if said else True

    typed = not question.choices
    choices = [
        questionary.Choice(line, value, checked=question.multiselect and value in default)
        for value, line in question.choices.items()
    ]
    if question.multiselect:
        prompt = questionary.checkbox(question.help, choices, validate=refusal)
    elif choices:
        prompt = questionary.select(question.help, choices, default=default)
    else:  # what is typed replaces the default, which is only shown
        prompt = questionary.text(question.help, validate=refusal, placeholder=[("class:placeholder", str(default))])
    answer = answered(prompt)
    return answer or default if typed else answer


def confirm(sentence: str) -> bool:
    """Yes or no, by default yes. Raises Interrupted on Ctrl-C and Ctrl-D."""
    import questionary

    return bool(answered(questionary.confirm(sentence, default=True)))


def answered(prompt: questionary.Question) -> Any:
    try:
        return prompt.unsafe_ask()
    except (KeyboardInterrupt, EOFError) as error:
        raise Interrupted from error
