"""Compiled code of project files, kept in the parent: thousands of projects share nearly all of their files."""

from __future__ import annotations

import importlib.machinery
import sys
from pathlib import Path
from types import CodeType

from matrix.jobs import Project

_CODES: dict[tuple[str, str], CodeType] = {}


def keep(project: Project) -> None:
    """Compiles the modules of a project, in the process that forks. What does not compile is left to the import."""
    for path, text in project.items():
        if path.suffix == ".py" and len(path.parts) == 1 and (path.name, text) not in _CODES:
            try:
                _CODES[path.name, text] = compile(text, path.name, "exec", dont_inherit=True)
            except SyntaxError:
                continue


class Kept(importlib.machinery.SourceFileLoader):
    """Loads a module from the kept code of its text."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = Path(self.get_filename(fullname))
        return _CODES.get((path.name, path.read_text(encoding="utf-8"))) or super().get_code(fullname)


def install(folder: Path) -> None:
    """Imports from this folder, of this process, use the kept code."""
    finder = importlib.machinery.FileFinder(str(folder), (Kept, [".py"]))
    sys.path_importer_cache[str(folder)] = finder
