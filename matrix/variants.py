"""All variants of every template file: its text for each combination of the values that it reads.

A Markdown file reads nearly every option, so its product has no end. It is taken as the sequence of its top-level
sections instead (the top-level nodes of Jinja's syntax tree), each with variants of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta, nodes
from pathspec import PathSpec

from matrix.space import Space, TooManyError
from tricks.template.rendering import GIVEN

MOST = 2**13  # variants of a file
Values = dict[str, Any]


@dataclass
class Unit:
    """A file, or a section of a Markdown file, with its text for each combination of values; None: it is not there."""

    path: Path
    section: int | None  # its place in the file; None: the whole file
    names: tuple[str, ...]
    variants: list[tuple[Values, str | None]] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.path.as_posix() + ("" if self.section is None else f" (section {self.section + 1})")

    @cached_property
    def texts(self) -> dict[str, Values]:
        """Each distinct text, with the first combination of values that gives it."""
        found: dict[str, Values] = {}
        for values, text in self.variants:
            if text is not None:
                found.setdefault(text, values)
        return found


def units(space: Space) -> list[Unit]:
    """Every file of the template, in all its variants; the answers file, which records every answer, is left out.

    Raises TooManyError when a file, or a section, has more than 2^13.
    """
    found, presence = [], Presence(space)
    for path in space.template.files:
        if GIVEN & set(space.template.reads(path)):
            continue
        found += sections(space, path, presence) if path.suffix == ".md" else [whole(space, path, presence)]
    return found


def whole(space: Space, path: Path, presence: Presence) -> Unit:
    deciding, without = presence.of(path)
    names = tuple(sorted({*space.template.reads(path), *deciding}))
    unit = Unit(path, None, names)
    for values in combinations(space, path.as_posix(), names):
        unit.variants.append((values, None if absent(values, without) else space.template.text(path, values)))
    return unit


def sections(space: Space, path: Path, presence: Presence) -> list[Unit]:
    if presence.of(path)[0]:
        raise TooManyError(f"{path} is in some projects only: its sections would depend on that too.")
    environment = space.template.environment
    tree = environment.parse((space.template.folder / path).read_text(encoding="utf-8"))
    found = []
    for index, node in enumerate(tree.body):
        if not isinstance(node, nodes.Output | nodes.If):
            raise TooManyError(
                f"{path}:{node.lineno} sets something for what follows: sections have to be independent."
            )
        part = nodes.Template([node], lineno=node.lineno)
        part.set_environment(environment)
        names = tuple(sorted(meta.find_undeclared_variables(part)))
        code = environment.compile(part)
        template = jinja2.Template.from_code(environment, code, environment.make_globals(None))
        unit = Unit(path, index, names)
        for values in combinations(space, f"{path}, section {index + 1}", names):
            unit.variants.append((values, template.render(values)))
        found.append(unit)
    return found


def combinations(space: Space, label: str, names: tuple[str, ...]) -> list[Values]:
    try:
        found = space.project(names)
    except TooManyError as error:
        raise TooManyError(f"{label} has too many variants: {error}") from None
    if len(found) > MOST:
        raise TooManyError(f"{label} has {len(found)} variants, more than {MOST}: split it, or read fewer values.")
    return found


class Presence:
    """Which values decide whether a project has a file: the lines of `_exclude` that depend on answers."""

    def __init__(self, space: Space) -> None:
        # Each line's names, and the pattern that it gives for each combination of their values.
        self.lines: list[tuple[tuple[str, ...], list[tuple[Values, PathSpec[Any] | None]]]] = []
        for line in space.template.config["_exclude"]:
            if "{{" not in line:
                continue
            names = tuple(sorted(meta.find_undeclared_variables(space.template.environment.parse(line))))
            patterns = []
            for values in space.project(names):
                pattern = space.template.evaluate(line, values)
                patterns.append((values, PathSpec.from_lines("gitignore", [pattern]) if pattern else None))
            self.lines.append((names, patterns))

    def of(self, path: Path) -> tuple[set[str], list[Values]]:
        """The names that decide about a file, and the combinations of their values without it."""
        names: set[str] = set()
        without = []
        for read, patterns in self.lines:
            matching = [values for values, spec in patterns if spec and spec.match_file(path.as_posix())]
            if matching:
                names |= set(read)
                without += matching
        return names, without


def absent(values: Values, without: list[Values]) -> bool:
    return any(other.items() <= values.items() for other in without)
