"""Changing the choice or the version of a generated project: what would come out, computed without touching a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2

from tricks import UserError
from tricks.project.apply import Step, check_room, steps
from tricks.project.merge import Merged, merge, templates_renames
from tricks.project.read import ANSWERS, Place, Project, check_clean, check_copier
from tricks.template import questions, source
from tricks.template.questions import Question
from tricks.template.rendering import Template
from tricks.template.versions import Origin

Questions = Mapping[str, Question]
Answers = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """What a command would do to a project."""

    project: Project
    command: str
    steps: list[Step]
    merged: Merged
    version: str
    answers: Answers  # as they will be recorded


def prepare(
    project: Project,
    origin: Origin,
    command: str,
    revise: Callable[[Questions, Answers], Answers],
    complete: Callable[[Template, Questions, Answers], Answers],
    version: str | None = None,
) -> Change:
    """The change that a command would make, by default without leaving the version of the template.

    `revise` makes the new answers from the old ones; `complete` answers the questions that they leave open.
    Raises UserError when a precondition does not hold.
    """
    check_clean(project)
    target = version or project.version
    before, after = origin.template(project.version), origin.template(target)
    check_copier(str(after.config.get("_min_copier_version", "0")))
    recorded = before.answer(read_answers(before, project.answers)).recorded
    known = questions.parse(after.config)
    kept = {name: value for name, value in recorded.items() if name in known and not known[name].hidden}
    answers = revise(known, check_answers(known, kept))
    answers = complete(after, known, answers)
    refusals = after.refusals(answers)
    if refusals:
        raise UserError(refusals[0])
    old = render(before, project.answers, project.address, project.version)
    new = render(after, answers, project.address, target)
    moved = templates_renames(before.sources(), after.sources()) if target != project.version else {}
    executable = {path.as_posix() for path in before.executable | after.executable}
    merged = merge(project.place.store, project.files, old, new, moved, command, ANSWERS, executable)
    todo = steps(project.files, merged.files, merged.conflicts)
    check_room(project.place, todo)
    return Change(project, command, todo, merged, target, after.answer(answers).recorded)


def read_answers(template: Template, answers: Answers) -> Answers:
    """A project's answers, checked by the questions of its version; raises UserError for a broken one."""
    known = questions.parse(template.config)
    if "techniques" not in known or not known["techniques"].multiselect:
        raise UserError("This project was made from another template, which has no techniques to choose.")
    # What no question asks for is kept out, as Copier does.
    return check_answers(known, {name: value for name, value in answers.items() if name in known})


def check_answers(known: Questions, answers: Answers) -> Answers:
    try:
        return {name: questions.check(questions.find(known, name), value) for name, value in answers.items()}
    except UserError as error:
        raise UserError(f"In {ANSWERS}: {error}") from error


def render(template: Template, answers: Answers, address: str, version: str) -> dict[str, str]:
    """The files of a choice by path with slashes. Raises UserError where this tool is too old for the template."""
    try:
        return {path.as_posix(): text for path, text in template.render(answers, address, version).items()}
    except (jinja2.TemplateError, KeyError, TypeError) as error:
        raise UserError(
            f"Version {version} of the template cannot be rendered by tricks {source.installed_version()[0]} "
            f"({type(error).__name__}: {error}): update tricks."
        ) from error


def difference(place: Place, todo: Sequence[Step], color: bool) -> str:
    """The change to the files as git shows a difference."""
    store = place.store
    before = {step.path: step.before for step in todo if step.before}
    trees = store.add_trees(before, {step.path: step.after for step in todo if step.after})
    shown = f"--color={'always' if color else 'never'}"
    settings = ("-c", "core.quotePath=false", "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false")
    output = store.git(*settings, "diff", "--no-ext-diff", "--no-textconv", shown, "-M", *trees)
    return output.decode(errors="replace")
