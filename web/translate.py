"""Translates Jinja texts into the JSON that engine.js renders, by Jinja's own parser.

A text is a list of parts: a string is literal text, a list is [operation, operands...]. In an expression a string is a
name, and ["=", value] a constant. What engine.js does not know raises Unknown, with file and line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

if sys.version_info >= (3, 11):
    from re import _constants as sre  # type: ignore[attr-defined]
    from re import _parser as sre_parser  # type: ignore[attr-defined]
else:
    import sre_constants as sre
    import sre_parse as sre_parser

Json = Any
COMPARISONS = {"eq": "==", "ne": "!=", "gt": ">", "gteq": ">=", "lt": "<", "lteq": "<=", "in": "in", "notin": "notin"}


class Unknown(Exception):
    """A construct that the page cannot render: the sentence names the file and the line."""


class Translator:
    """Translates the texts of one template."""

    def __init__(self, environment: Environment, root: Path, names: Container[str]) -> None:
        """`names` are the values that a text may read; includes are looked for below `root`."""
        self.environment = environment
        self.root = root
        self.names = names

    def file(self, path: Path) -> list[Json]:
        """The parts of a file; `path` is relative to the root."""
        return self.text((self.root / path).read_text(encoding="utf-8"), path.as_posix())

    def text(self, source: str, where: str) -> list[Json]:
        """The parts of a Jinja text. `where` is the file, or the place in copier.yml, for the sentence of a failure."""
        try:
            tree = self.environment.parse(source)
        except TemplateSyntaxError as error:
            raise Unknown(f"{where}:{error.lineno}: {error.message}.") from error
        return Text(self, where).body(tree.body)


class Text:
    """Translates the nodes of one text."""

    def __init__(self, translator: Translator, where: str) -> None:
        self.translator = translator
        self.where = where

    def refuse(self, node: nodes.Node, what: str) -> Unknown:
        return Unknown(
            f"{self.where}:{node.lineno}: the page cannot render {what}: write it otherwise, "
            "or teach it to web/translate.py and web/engine.js."
        )

    def body(self, statements: list[nodes.Node]) -> list[Json]:
        """Parts of statements that follow each other; neighbouring literal texts become one."""
        parts: list[Json] = []
        for statement in statements:
            for part in self.statement(statement):
                if isinstance(part, str) and parts and isinstance(parts[-1], str):
                    parts[-1] += part
                elif part != "":
                    parts.append(part)
        return parts

    def statement(self, node: nodes.Node) -> list[Json]:
        if isinstance(node, nodes.Output):
            return [
                part.data if isinstance(part, nodes.TemplateData) else ["out", self.expression(part)]
                for part in node.iter_child_nodes()
            ]
        if isinstance(node, nodes.If):
            otherwise = node.else_
            for branch in reversed(node.elif_):
                otherwise = [nodes.If(branch.test, branch.body, [], otherwise, lineno=branch.lineno)]
            return [["if", self.expression(node.test), self.body(node.body), self.body(otherwise)]]
        if isinstance(node, nodes.FilterBlock):
            return [self.filter_block(node.filter, self.body(node.body))]
        if isinstance(node, nodes.Include):
            if not isinstance(node.template, nodes.Const) or node.ignore_missing:
                raise self.refuse(node, "an include whose file is not a constant")
            return self.translator.file(Path(node.template.value))
        raise self.refuse(node, f"the statement {type(node).__name__.lower()}")

    def filter_block(self, node: nodes.Filter | None, body: list[Json]) -> Json:
        if node is None:
            return ["out", ["text", body]]
        return ["out", self.filter(node, self.filtered(node.node, body))]

    def filtered(self, node: nodes.Expr | None, body: list[Json]) -> Json:
        return ["text", body] if node is None else self.filter_block(node, body)[1]  # type: ignore[arg-type]

    # ------------------------------------------------------------------------------------------------ expressions

    def expression(self, node: nodes.Node) -> Json:
        if isinstance(node, nodes.Name):
            if node.name not in self.translator.names:
                raise self.refuse(node, f"the name {node.name!r}, which is no question of copier.yml")
            return node.name
        if isinstance(node, nodes.Const):
            return ["=", self.constant(node)]
        if isinstance(node, nodes.List):
            return ["list", *map(self.expression, node.items)]
        if isinstance(node, nodes.And | nodes.Or):
            return ["and" if isinstance(node, nodes.And) else "or", *map(self.expression, (node.left, node.right))]
        if isinstance(node, nodes.Not):
            return ["not", self.expression(node.node)]
        if isinstance(node, nodes.Compare):
            if len(node.ops) != 1:
                raise self.refuse(node, "a chain of comparisons")
            return [COMPARISONS[node.ops[0].op], self.expression(node.expr), self.expression(node.ops[0].expr)]
        if isinstance(node, nodes.CondExpr):
            if node.expr2 is None:
                raise self.refuse(node, "an `if` without `else` in an expression")
            return ["?", *map(self.expression, (node.test, node.expr1, node.expr2))]
        if isinstance(node, nodes.Add):
            return ["+", self.expression(node.left), self.expression(node.right)]
        if isinstance(node, nodes.Concat):
            return ["~", *map(self.expression, node.nodes)]
        if isinstance(node, nodes.Getattr):
            return ["item", self.expression(node.node), ["=", node.attr]]
        if isinstance(node, nodes.Getitem):
            return ["item", self.expression(node.node), self.expression(node.arg)]
        if isinstance(node, nodes.Filter) and node.node is not None:
            return self.filter(node, self.expression(node.node))
        if isinstance(node, nodes.Test):
            return self.test(node)
        if isinstance(node, nodes.Call):
            return self.call(node)
        raise self.refuse(node, f"the expression {type(node).__name__.lower()}")

    def constant(self, node: nodes.Expr) -> Json:
        if isinstance(node, nodes.Const) and (node.value is None or isinstance(node.value, bool | int | str)):
            return node.value
        raise self.refuse(node, "anything but a constant text, whole number or boolean here")

    def call(self, node: nodes.Call) -> Json:
        function = node.node
        if not isinstance(function, nodes.Getattr) or function.attr != "get" or node.kwargs or node.dyn_args:
            raise self.refuse(node, "a call of anything but `.get`")
        if len(node.args) != 1:
            raise self.refuse(node, "`.get` with a second argument")
        return ["get", self.expression(function.node), self.expression(node.args[0])]

    def test(self, node: nodes.Test) -> Json:
        if node.args or node.kwargs or node.name not in ("defined", "undefined", "mapping"):
            raise self.refuse(node, f"the test {node.name!r}")
        if node.name == "mapping":
            return ["mapping", self.expression(node.node)]
        if not isinstance(node.node, nodes.Name):
            raise self.refuse(node, f"`is {node.name}` of anything but a name")
        found = ["defined", self.expression(node.node)]
        return found if node.name == "defined" else ["not", found]

    def filter(self, node: nodes.Filter, value: Json) -> Json:
        """A filter applied to a translated value; its arguments have to be constants, but for `reject('in', ...)`."""
        translate = FILTERS.get(node.name)
        if translate is None or node.dyn_args or node.dyn_kwargs:
            raise self.refuse(node, f"the filter {node.name!r}")
        named = {str(pair.key): self.constant(pair.value) for pair in node.kwargs}
        try:
            return translate(self, value, node.args, **named)
        except (TypeError, re.error) as error:
            raise self.refuse(node, f"the filter {node.name!r} with these arguments ({error})") from error


# --------------------------------------------------------------------------------------------------------- filters


def plain(name: str) -> Callable[..., Json]:
    """A filter without arguments."""

    def translate(_: Text, value: Json, arguments: list[nodes.Expr]) -> Json:
        if arguments:
            raise TypeError("it takes none here")
        return [name, value]

    return translate


def replace(text: Text, value: Json, arguments: list[nodes.Expr]) -> Json:
    pattern, replacement = exactly(2, arguments)
    return ["replace", value, substitution(text, pattern, text.constant(replacement))]


def substitution(text: Text, pattern: nodes.Expr, replacement: str) -> Json:
    """An expression for pattern, groups and replacement; the pattern may be one of several constants."""
    if isinstance(pattern, nodes.CondExpr) and pattern.expr2 is not None:
        branches = [substitution(text, branch, replacement) for branch in (pattern.expr1, pattern.expr2)]
        return ["?", text.expression(pattern.test), *branches]
    constant = text.constant(pattern)
    return ["=", [*regular(constant), template(constant, replacement)]]


def search(text: Text, value: Json, arguments: list[nodes.Expr]) -> Json:
    (argument,) = exactly(1, arguments)
    return ["search", value, *regular(text.constant(argument))]


def join(text: Text, value: Json, arguments: list[nodes.Expr]) -> Json:
    (argument,) = exactly(1, arguments)
    return ["join", value, text.constant(argument)]


def default(text: Text, value: Json, arguments: list[nodes.Expr]) -> Json:
    (argument,) = exactly(1, arguments)
    if not isinstance(value, str):
        raise TypeError("only a name has a default")
    return ["default", value, text.expression(argument)]


def reject(text: Text, value: Json, arguments: list[nodes.Expr]) -> Json:
    test, container = exactly(2, arguments)
    if text.constant(test) != "in":
        raise TypeError("only 'in' is known")
    return ["reject", value, text.expression(container)]


def to_json(_: Text, value: Json, arguments: list[nodes.Expr], *, ensure_ascii: bool = True) -> Json:
    exactly(0, arguments)
    return ["json", value, bool(ensure_ascii)]


def exactly(number: int, arguments: list[nodes.Expr]) -> list[nodes.Expr]:
    if len(arguments) != number:
        raise TypeError(f"it takes {number} here")
    return arguments


FILTERS: dict[str, Callable[..., Json]] = {
    **{name: plain(name) for name in ("trim", "lower", "length")},
    "default": default,
    "join": join,
    "list": plain("all"),
    "regex_replace": replace,
    "regex_search": search,
    "reject": reject,
    "to_json": to_json,
    "to_nice_yaml": plain("yaml"),
}

# --------------------------------------------------------------------------------------------- regular expressions


def regular(pattern: str) -> tuple[str, int]:
    """A pattern of Python as one of JavaScript that means the same with the flags `gu`, and its number of groups.

    Written anew from Python's own syntax tree, so that nothing rests on the two languages reading it alike. Raises
    TypeError for what is not translated; \\w, \\d and \\s are among it, since they are wider in Python.
    """
    tree = sre_parser.parse(pattern)
    if tree.state.flags & ~(re.UNICODE | re.MULTILINE):
        raise TypeError("flags in a pattern")
    return sequence(tree, bool(tree.state.flags & re.MULTILINE)), tree.state.groups - 1


def sequence(tree: Any, lines: bool) -> str:
    """Parts of a pattern; with `lines`, ^ and $ stand at each line."""
    return "".join(item(operation, argument, lines) for operation, argument in tree)


def item(operation: Any, argument: Any, lines: bool) -> str:
    if operation is sre.LITERAL:
        return character(argument)
    if operation is sre.NOT_LITERAL:
        return f"[^{character(argument)}]"
    if operation is sre.ANY:
        return f"[^{character(10)}]"
    if operation is sre.IN:
        return f"[{''.join(member(*pair) for pair in argument)}]"
    if operation is sre.BRANCH:
        return f"(?:{'|'.join(sequence(branch, lines) for branch in argument[1])})"
    if operation is sre.SUBPATTERN:
        group, added, removed, inner = argument
        if added or removed:
            raise TypeError("flags in a pattern")
        return f"({'?:' if group is None else ''}{sequence(inner, lines)})"
    if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        least, most, inner = argument
        times = f"{{{least},{'' if most is sre.MAXREPEAT else most}}}"
        return f"(?:{sequence(inner, lines)}){times}{'?' if operation is sre.MIN_REPEAT else ''}"
    if operation in (sre.ASSERT, sre.ASSERT_NOT) and argument[0] == 1:  # ahead
        return f"(?{'=' if operation is sre.ASSERT else '!'}{sequence(argument[1], lines)})"
    if operation is sre.FAILURE:
        return "(?!)"
    if operation is sre.AT and (argument, lines) in PLACES:
        return PLACES[argument, lines]
    raise TypeError(f"{str(operation).lower()} in a pattern")


PLACES = {
    (sre.AT_BEGINNING, False): "^",
    (sre.AT_BEGINNING, True): "(?<![^\\n])",
    (sre.AT_BEGINNING_STRING, False): "^",
    (sre.AT_BEGINNING_STRING, True): "^",
    (sre.AT_END, False): "(?=\\n?$)",
    (sre.AT_END, True): "(?![^\\n])",
    (sre.AT_END_STRING, False): "$",
    (sre.AT_END_STRING, True): "$",
}


def member(operation: Any, argument: Any) -> str:
    if operation is sre.NEGATE:
        return "^"
    if operation is sre.LITERAL:
        return character(argument)
    if operation is sre.RANGE:
        return f"{character(argument[0])}-{character(argument[1])}"
    raise TypeError(f"{str(operation).lower()} in a pattern")


def character(code: int) -> str:
    letter = chr(code)
    return letter if letter.isascii() and letter.isalnum() else f"\\u{{{code:x}}}"


def template(pattern: str, replacement: str) -> list[str | int]:
    """A replacement as literal texts and numbers of groups."""
    parsed = sre_parser.parse_template(replacement, re.compile(pattern))
    if isinstance(parsed, list):  # since Python 3.12: texts and numbers, one after the other
        return [part for part in parsed if part != ""]
    groups, literals = parsed
    places: dict[int, int] = dict(groups)
    return [places.get(index, text) for index, text in enumerate(literals) if text != ""]
