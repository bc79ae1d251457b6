"""What is computed from the text of a module, kept in the parent: thousands of projects share most of their files."""

from __future__ import annotations

import ast
import importlib.machinery
import sys
from pathlib import Path
from types import CodeType

from matrix import docstrings
from matrix.jobs import Project

_CODES: dict[tuple[str, str], tuple[CodeType, docstrings.Read]] = {}


def keep(project: Project) -> None:
    """Compiles the modules of a project, in the process that forks. What does not compile is left to the import."""
    for path, text in project.items():
        if path.suffix == ".py" and len(path.parts) == 1 and (path.name, text) not in _CODES:
            try:
                tree = ast.parse(text)
                code = compile(tree, path.name, "exec", dont_inherit=True)
                _CODES[path.name, text] = code, docstrings.read(text, tree)
            except SyntaxError:
                continue


class Kept(importlib.machinery.SourceFileLoader):
    """Loads a module from what is kept of its text."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = Path(self.get_filename(fullname))
        kept = _CODES.get((path.name, path.read_text(encoding="utf-8")))
        if kept is None:
            return super().get_code(fullname)
        docstrings.use(fullname, kept[1])
        return kept[0]


def install(folder: Path) -> None:
    """Imports from this folder, of this process, use the kept code."""
    finder = importlib.machinery.FileFinder(str(folder), (Kept, [".py"]))
    sys.path_importer_cache[str(folder)] = finder
