"""What libraries compute anew in each process, or each time, though it never changes: kept in the parent.

None of it changes a result. The cold sample runs without it.
"""

from __future__ import annotations

import functools
from importlib import metadata
from typing import Any

from matrix import docstrings


def keep() -> None:
    """Replaces these functions by ones that remember. Before the fork."""
    command_lines()
    plugins()
    operators()
    onnx_table()


def command_lines() -> None:
    """tyro forgets the docstrings and types of a class at the end of each call; a resumed run calls it three times."""
    from tyro import _unsafe_cache

    docstrings.install()
    _unsafe_cache.clear_cache = lambda: None


def plugins() -> None:
    """DDP and dynamo read the list of all installed packages in search of plugins."""
    module: Any = metadata
    module.entry_points = functools.cache(module.entry_points)
    for group in ("torch.distributed.backends", "torchrun.handlers", "torch_dynamo_backends"):
        module.entry_points(group=group)


def operators() -> None:
    """torch.export asks the dispatcher for all operators that have a decomposition: no project registers one."""
    from torch._export import utils

    module: Any = utils
    module._materialize_cpp_cia_ops = functools.cache(module._materialize_cpp_cia_ops)
    module._collect_all_valid_cia_ops_for_namespace = functools.cache(module._collect_all_valid_cia_ops_for_namespace)


def onnx_table() -> None:
    """The ONNX exporter reads its thousand translations from their sources; each export gets a table of its own."""
    from torch.onnx._internal.exporter import _registration

    kind: Any = _registration.ONNXRegistry
    read = functools.cache(kind.from_torchlib)

    def from_torchlib(**given: Any) -> Any:
        whole, table = read(**given), kind()
        table._opset_version = whole._opset_version
        table.functions = {target: list(functions) for target, functions in whole.functions.items()}
        return table

    kind.from_torchlib = staticmethod(from_torchlib)
