"""Which texts of a file stand for all of its texts.

Every text is that of a project that some choice gives. Looked at are so many that
* each statement whose conditions allow at most sixty-four combinations is seen in all of them; a longer one is taken as
  the sequence of the statements in it;
* any two pieces that can follow each other, with nothing between them, do so in one of the texts;
* each choice in which a name may be undefined, unused or defined twice is among them;
* all pairs of options are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from matrix.conditions import Conditions
from matrix.diagrams import Diagram
from matrix.names import suspects
from matrix.pieces import Source, Text
from matrix.space import Row

WHOLE = 64  # combinations of conditions of a statement that are all looked at


def texts(source: Source, conditions: Conditions, rows: Iterable[Row]) -> list[tuple[Text, Row]]:
    """The distinct texts of a file that are looked at, each with the choice that it was made for.

    Raises SyntaxError when a Python file is not valid with all its branches one after the other.
    """
    found: dict[str, tuple[Text, Row]] = {}
    taken: list[Row] = []
    kept: set[str] = set()

    def take(row: Row) -> None:
        values = conditions.values_of(row, source.names)
        taken.append(row)
        if (identity := repr(values)) not in kept:
            kept.add(identity)
            text = source.render(values, conditions.true)
            found.setdefault(text.text, (text, row))

    for row in rows:
        if conditions.holds(source.present, row):
            take(row)
    seen: set[Diagram] = set()
    for condition in wanted(source, conditions):
        condition &= source.present
        new = condition not in seen and not any(conditions.holds(condition, row) for row in taken)
        if new and conditions.possible(condition):
            take(conditions.smallest(condition))
        seen.add(condition)
    return list(found.values())


def wanted(source: Source, conditions: Conditions) -> Iterator[Diagram]:
    yield from (when for _, when in conditions.cases(source.shows))
    yield from neighbours(source, conditions)
    if source.path.suffix != ".py":
        yield from combinations(conditions, source, set(range(len(source.pieces)))) or []
        return
    whole = source.superset(conditions)[0]
    tree = ast.parse(whole.text, filename=source.path.as_posix())
    places = [place[0] for place in whole.lines]
    yield from suspects(tree, conditions, lambda line: source.pieces[places[line - 1]].condition)
    for statement in tree.body:
        yield from blocks(statement, conditions, source, places)


def blocks(node: ast.AST, conditions: Conditions, source: Source, places: list[int]) -> Iterator[Diagram]:
    """All combinations of a statement's conditions, or of those of the statements in it."""
    first = min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", []))])  # type: ignore[attr-defined]
    pieces = set(places[first - 1 : node.end_lineno])  # type: ignore[attr-defined]
    found = combinations(conditions, source, pieces)
    if found is not None:
        yield from found
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler):
            yield from blocks(child, conditions, source, places)


def combinations(conditions: Conditions, source: Source, pieces: set[int]) -> list[Diagram] | None:
    found = [source.present]
    for condition in dict.fromkeys(source.pieces[piece].condition for piece in sorted(pieces)):
        parts = [part for one in found for part in (one & condition, one & ~condition)]
        found = [part for part in parts if conditions.possible(part)]
        if len(found) > WHOLE:
            return None
    return found


def neighbours(source: Source, conditions: Conditions) -> Iterator[Diagram]:
    """For any two pieces the choices that have both and nothing between; comments and empty lines are seen through."""
    yield from followed(source, conditions, 0, source.present)
    for place, piece in enumerate(source.pieces):
        if not piece.comment:
            yield from followed(source, conditions, place + 1, piece.condition & source.present)


def followed(source: Source, conditions: Conditions, start: int, condition: Diagram) -> Iterator[Diagram]:
    for place in range(start, len(source.pieces)):
        piece = source.pieces[place]
        both = condition & piece.condition
        if conditions.possible(both):
            if piece.comment:  # empty lines are that too
                yield from followed(source, conditions, place + 1, both)
            else:
                yield both
            condition &= ~piece.condition
            if not conditions.possible(condition):
                return
    yield condition
