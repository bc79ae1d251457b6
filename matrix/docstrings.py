"""What tyro reads from the source of a Config class, kept in the parent for each distinct text.

tyro parses the module of each class, tokenizes the class and looks for docstrings: more than ten milliseconds a
process, with the same result for the same text.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any
from unittest import mock

from tyro import _docstrings

Read = dict[str, tuple[Any, dict[str, str]]]  # for each dataclass its tokens, and the docstrings of its fields

_OF_MODULE: dict[str, Read] = {}

_tokens: Any = _docstrings._ClassTokenization.make
_fields: Any = _docstrings.parse_docstring_from_object


def read(text: str, tree: ast.Module) -> Read:
    """What tyro finds in a module, without the module."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(line) for line in node.decorator_list):
            lines = text.splitlines(keepends=True)[node.decorator_list[0].lineno - 1 : node.end_lineno]
            stand_in = type(node.name, (), {"__doc__": ast.get_docstring(node, clean=False)})
            with mock.patch.object(inspect, "getsource", return_value="".join(lines)):
                found[node.name] = _tokens.__wrapped__(stand_in), _fields.__wrapped__(stand_in)
    return found


def use(module: str, kept: Read) -> None:
    """In a child: tyro finds this for the classes of the module."""
    _OF_MODULE[module] = kept


def install() -> None:
    """Before the fork."""
    tyro: Any = _docstrings

    def tokens(kind: Any) -> Any:
        kept = _OF_MODULE.get(kind.__module__, {}).get(kind.__qualname__)
        return kept[0] if kept else _tokens(kind)

    def fields(kind: Any) -> Any:
        kept = _OF_MODULE.get(getattr(kind, "__module__", ""), {}).get(getattr(kind, "__qualname__", ""))
        return kept[1] if kept else _fields(kind)

    tyro._ClassTokenization.make = staticmethod(tokens)
    tyro.parse_docstring_from_object = fields
