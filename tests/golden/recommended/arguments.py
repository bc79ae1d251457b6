"""The values of a config as JSON, and as the command line that gives them again."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, get_type_hints

import tyro


def to_dict(value: Any) -> Any:
    """The value in JSON's types, which a checkpoint keeps and a resumed run is compared with."""
    if is_dataclass(value) or isinstance(value, Mapping):
        return {word(name): to_dict(part) for name, part in members(value).items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(to_dict, value))
    if isinstance(value, (list, tuple)):
        return [to_dict(part) for part in value]
    return value if value is None or isinstance(value, (bool, int, float)) else word(value)


def to_arguments(value: Any, default: Any = None, option: str = "--") -> list[str]:
    """The command line that gives these values again: whatever type tyro reads comes back as it was.

    `value` is a dataclass, and `default` the one that an empty command line gives.
    """
    default = type(value)() if default is None else default
    kinds = get_type_hints(type(value)) if is_dataclass(value) else {}
    arguments = []
    for name, part in members(value).items():
        before = members(default).get(name)
        flag = option + str(name).replace("_", "-")
        if is_dataclass(part) or (isinstance(part, Mapping) and before):  # tyro fixes the keys of a default
            arguments += to_arguments(part, before, f"{flag}.")
        elif kinds.get(name, type(before)) is bool:
            arguments.append(flag if part else f"{option}no-{flag.removeprefix(option)}")
        elif isinstance(part, (Mapping, list, tuple, set, frozenset)):
            arguments += [flag, *words(part)]
        else:
            arguments.append(f"{flag}={word(part)}")
    return arguments


def from_arguments(kind: type, arguments: Sequence[str]) -> Any:
    """The dataclass whose to_arguments these are. An option that is no longer known is left out."""
    return tyro.cli(kind, args=arguments, return_unknown_args=True)[0]


def members(value: Any) -> dict[Any, Any]:
    """Name and value of each part of a dataclass or a dict."""
    if isinstance(value, Mapping):
        return dict(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}


def words(value: Any) -> list[str]:
    """The words of a collection on a command line."""
    if isinstance(value, Mapping):
        return [text for pair in value.items() for text in words(pair)]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [text for part in value for text in words(part)]
    return [word(value)]


def word(value: Any) -> str:
    return value.name if isinstance(value, Enum) else str(value)
