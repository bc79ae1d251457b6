"""Answers the questions that a change leaves open: by prompts like Copier's, or by their defaults."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from tricks import UserError
from tricks.project.new import Interrupted
from tricks.template import questions
from tricks.template.questions import Question
from tricks.template.rendering import Template

Answers = dict[str, Any]


def completion(pairs: list[str], defaults: bool) -> Callable[[Template, Mapping[str, Question], Answers], Answers]:
    """Answers what is open from `KEY=VALUE` pairs, then by asking; with `defaults` nothing is asked."""

    def complete(template: Template, known: Mapping[str, Question], answers: Answers) -> Answers:
        answers = answers | questions.gather(known, None, pairs, None)
        while not defaults:
            effective = template.answer(answers).recorded
            missing = [name for name in effective if name not in answers]
            if not missing:
                break
            if sys.stdin is None or not sys.stdin.isatty():
                question = known[missing[0]]
                choices = f" ({', '.join(question.choices)})" if question.choices else ""
                raise UserError(
                    f"{question.name} is open{choices} and there is no terminal to ask at: "
                    f"add --defaults, or -d {question.name}=VALUE."
                )
            answers[missing[0]] = ask(template, known[missing[0]], answers, effective[missing[0]])
        effective = template.answer(answers).recorded
        idle = [pair.partition("=")[0] for pair in pairs if pair.partition("=")[0] not in effective]
        if idle:
            raise UserError(f"{idle[0]} has no effect with these techniques: leave it out.")
        return answers

    return complete


def ask(template: Template, question: Question, answers: Answers, default: Any) -> Any:
    """The answer to one question at the terminal. Raises Interrupted on Ctrl-C."""
    import questionary

    def refusal(value: Any) -> bool | str:
        said = template.refusals(answers | {question.name: value})
        return said[0] if said else True

    choices = [
        questionary.Choice(line, value, checked=question.multiselect and value in default)
        for value, line in question.choices.items()
    ]
    if question.multiselect:
        prompt = questionary.checkbox(question.help, choices, validate=refusal)
    elif choices:
        prompt = questionary.select(question.help, choices, default=default)
    else:
        prompt = questionary.text(question.help, default=str(default), validate=refusal)
    try:
        return prompt.unsafe_ask()
    except (KeyboardInterrupt, EOFError) as error:
        raise Interrupted from error
