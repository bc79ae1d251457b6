"""The template's files as sequences of pieces: lines that stand or vanish together, each under one condition.

A piece is what Jinja's syntax tree holds between two of its tags. Each line is marked with its place, so that every
line of a rendering is known by the template's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property, partial
from pathlib import Path

import jinja2
from jinja2 import meta, nodes
from pathspec import PathSpec

from matrix.conditions import Conditions, Values, compiled, names_in
from matrix.diagrams import Diagram
from tricks.template.rendering import GIVEN

MARK = re.compile("\ue000([0-9]+):([0-9]+)\ue001")


@dataclass
class Piece:
    file: str  # of the template; an included file has its own
    node: nodes.Output
    condition: Diagram
    shows: frozenset[str]  # names whose values are printed in it
    line: int  # its first
    blank: bool = True  # it holds empty lines only
    comment: bool = True  # it holds nothing but comments and empty lines


@dataclass
class Text:
    """What a file is in some projects, and for each of its lines the piece and the line of the template."""

    text: str
    lines: list[tuple[int, int]]
    condition: Diagram  # the projects
    example: Values = field(default_factory=dict)


@dataclass
class Source:
    """A file of the template."""

    path: Path
    present: Diagram  # the choices whose project has it
    pieces: list[Piece]
    names: tuple[str, ...]  # whose values decide its text
    marked: jinja2.Template
    whole: jinja2.Template  # all pieces at once, one after the other

    @cached_property
    def shows(self) -> frozenset[str]:
        return frozenset().union(*(piece.shows for piece in self.pieces))

    def render(self, values: Values, condition: Diagram) -> Text:
        return unmarked(self.marked.render(values), condition, values)

    def superset(self, conditions: Conditions) -> list[Text]:
        """All pieces, whatever their conditions: one text for each combination of the values that are printed."""
        return [
            # A tag that strips the line break before it has left two pieces on one line.
            unmarked(re.sub(f"(?<=[^\n])(?={MARK.pattern})", "\n", self.whole.render(values)), when, values)
            for values, when in conditions.cases(self.shows)
        ]

    def at(self, place: tuple[int, int]) -> str:
        """Where a line of the template is, for a reader."""
        return f"{self.pieces[place[0]].file}:{place[1]}" if self.pieces else self.path.as_posix()


def unmarked(marked: str, condition: Diagram, values: Values) -> Text:
    lines, places, place = [], [], (0, 1)
    for line in marked.split("\n"):
        if match := MARK.match(line):
            place, line = (int(match[1]), int(match[2])), line[match.end() :]
        lines.append(line)
        places.append(place)
    return Text("\n".join(lines), places, condition, values)


def beneath_marks(environment: jinja2.Environment, marked: str, name: str, *arguments: object) -> str:
    """The text as a filter changes it without its marks, and the marks again at the lines that are still there."""
    before = marked.split("\n")
    plain = [MARK.sub("", line) for line in before]
    after = environment.call_filter(name, "\n".join(plain), arguments).split("\n")
    ways = SequenceMatcher(None, [line.strip() for line in plain], [line.strip() for line in after], autojunk=False)
    for _, first, last, start, end in ways.get_opcodes():
        for offset in range(end - start):
            if first + offset < last and (match := MARK.match(before[first + offset])):
                after[start + offset] = match[0] + after[start + offset]
    return "\n".join(after)


def sources(conditions: Conditions) -> list[Source]:
    """Every file of the template; the answers file, which records every answer, is left out."""
    template = conditions.space.template
    found = []
    exclusions = list(excluded(conditions))
    for path in template.files:
        if GIVEN & set(template.reads(path)):
            continue
        absent = conditions.any(when for spec, when in exclusions if spec.match_file(path.as_posix()))
        found.append(source(conditions, path, ~absent))
    return found


def source(conditions: Conditions, path: Path, present: Diagram) -> Source:
    template, environment = conditions.space.template, conditions.space.template.environment
    name = (template.folder / path).relative_to(template.root).as_posix()
    reader = Reader(conditions, environment)
    flat: list[nodes.Node] = []
    body = reader.read(name, conditions.true, flat)
    return Source(
        path, present, reader.pieces, template.reads(path), compiled(environment, body), compiled(environment, flat)
    )


@dataclass
class Reader:
    """Takes the syntax trees of a file, and of those that it includes, apart."""

    conditions: Conditions
    environment: jinja2.Environment
    pieces: list[Piece] = field(default_factory=list)

    def read(self, name: str, condition: Diagram, flat: list[nodes.Node]) -> list[nodes.Node]:
        """The body of a file with each line marked; `flat` gets all pieces without their conditions."""
        tree = self.environment.parse(self.environment.loader.get_source(self.environment, name)[0])  # type: ignore[union-attr]
        return self.body(tree.body, name, condition, flat)

    def body(self, body: list[nodes.Node], name: str, when: Diagram, flat: list[nodes.Node]) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        for node in body:
            match node:
                case nodes.Output():
                    found.append(self.output(node, name, when))
                    flat.append(found[-1])
                case nodes.If():
                    test = self.conditions.truth(node.test)
                    inside = self.body(node.body, name, when & test, flat)
                    if node.elif_:
                        raise ValueError(f"{name}:{node.lineno}: write `else` and `if`; `elif` is not taken apart.")
                    other = self.body(node.else_, name, when & ~test, flat)
                    found.append(nodes.If(node.test, inside, [], other))
                case nodes.FilterBlock() if not name.endswith(".md"):
                    found.append(self.filtered(node, name, when, flat))
                case nodes.Include(template=nodes.Const(value=included)):
                    found += self.read(included, when, flat)
                case _:
                    raise ValueError(
                        f"{name}:{node.lineno}: {type(node).__name__} is not taken apart: use if, filter and include."
                    )
        return found

    def filtered(self, node: nodes.FilterBlock, name: str, when: Diagram, flat: list[nodes.Node]) -> nodes.Node:
        """A block of lines that a filter changes; where its argument has a condition, one block for each case."""
        self.environment.filters["beneath_marks"] = partial(beneath_marks, self.environment)

        def block(arguments: list[nodes.Expr], when: Diagram) -> nodes.FilterBlock:
            arguments = [nodes.Const(node.filter.name), *arguments]
            plain = nodes.Filter(None, "beneath_marks", arguments, [], None, None)
            return nodes.FilterBlock(self.body(node.body, name, when, flat), plain)

        test = next((argument.test for argument in node.filter.args if isinstance(argument, nodes.CondExpr)), None)
        if test is None:
            return block(node.filter.args, when)
        blocks = []
        for case, truth in (("expr1", self.conditions.truth(test)), ("expr2", ~self.conditions.truth(test))):
            chosen = [getattr(each, case) if isinstance(each, nodes.CondExpr) else each for each in node.filter.args]
            blocks.append(block(chosen, when & truth))
        return nodes.If(test, blocks[:1], [], blocks[1:])

    def output(self, node: nodes.Output, name: str, condition: Diagram) -> nodes.Output:
        number = len(self.pieces)
        file = name.removeprefix(f"{self.conditions.space.template.config['_subdirectory']}/")
        shown = names_in(self.environment, [nodes.Output(list(node.nodes))])
        piece = Piece(file, node, condition, frozenset(shown), node.lineno)
        self.pieces.append(piece)
        found: list[nodes.Expr] = []
        for index, part in enumerate(node.nodes):
            last = index + 1 == len(node.nodes)
            if not isinstance(part, nodes.TemplateData):
                if not index:
                    found.append(nodes.TemplateData(f"\ue000{number}:{part.lineno}\ue001"))
                piece.blank = piece.comment = False
                found.append(part)
                continue
            lines = part.data.split("\n")
            for place, line in enumerate(lines):
                begins = place > 0 or index == 0
                if begins and (line.strip() or (place + 1 == len(lines) and not last)):
                    if piece.blank:
                        piece.line = part.lineno + place
                    piece.blank = False
                    piece.comment = piece.comment and line.lstrip().startswith("#")
                    lines[place] = f"\ue000{number}:{part.lineno + place}\ue001{line}"
            found.append(nodes.TemplateData("\n".join(lines)))
        return nodes.Output(found)


def excluded(conditions: Conditions) -> Iterator[tuple[PathSpec, Diagram]]:  # type: ignore[type-arg]
    """The patterns of `_exclude` that depend on answers, each with the choices that have it."""
    template = conditions.space.template
    for line in template.config["_exclude"]:
        if "{{" in line:
            for values, when in conditions.cases(meta.find_undeclared_variables(template.environment.parse(line))):
                if pattern := template.evaluate(line, values):
                    yield PathSpec.from_lines("gitignore", [pattern]), when
