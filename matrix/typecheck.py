"""A type checker over whole projects: each file among the variants of what it imports.

pyrefly reads what torch's modules say once for all projects: a hundred of them take seconds, where mypy takes two to
four for each. Its rules are those that find faults of a combination (a name, an argument, a return that does not fit),
without those that ask for more annotations than the generated code has.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from matrix.conditions import Conditions
from matrix.faults import Fault, changed
from matrix.pieces import Source, Text
from matrix.space import Row

CONFIG = """\
search-path = [".", "tests"]
preset = "basic"
[errors]
bad-argument-count = true
bad-return = true
bad-unpacking = true
missing-argument = true
missing-import = true
missing-module-attribute = true
no-matching-overload = true
not-callable = true
not-iterable = true
unbound-name = true
unexpected-keyword = true
unknown-name = true
unsupported-operation = true
"""
LINE = re.compile(r"^ERROR (?:.*/)?p(\d+)/(.+?):(\d+):\S+ (.+)$")


def check_types(conditions: Conditions, sources: Iterable[Source], rows: list[Row]) -> list[Fault]:
    """What the type checker says about the projects of these rows, each with the smallest of them that shows it."""
    texts: dict[tuple[int, str], Text] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, row in enumerate(rows):
            for source in sources:
                if source.path.suffix == ".py" and conditions.holds(source.present, row):
                    text = source.render(conditions.values_of(row, source.names), conditions.true)
                    texts[number, source.path.as_posix()] = text
                    target = Path(folder, f"p{number}", source.path)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(text.text, encoding="utf-8", newline="")
            Path(folder, f"p{number}", "pyrefly.toml").write_text(CONFIG, encoding="utf-8")
        files = [str(path.relative_to(folder)) for path in Path(folder).rglob("*.py")]
        Path(folder, "files").write_text("\n".join(files), encoding="utf-8")
        command = ["check", "--output-format", "min-text", "--python-interpreter-path", sys.executable, "@files"]
        done = subprocess.run([sys.executable, "-m", "pyrefly", *command], cwd=folder, capture_output=True, text=True)
    by_path = {source.path.as_posix(): source for source in sources}
    smallest: dict[tuple[str, str], Row] = {}
    for line in done.stdout.splitlines():
        if match := LINE.match(line.strip()):
            number, path, at, what = int(match[1]), match[2], int(match[3]), match[4]
            key = by_path[path].at(texts[number, path].lines[at - 1]), f"type checker: {what}"
            row = smallest.get(key, rows[number])
            smallest[key] = min(row, rows[number], key=lambda one: len(changed(conditions, one)))
    if done.returncode and not smallest:
        raise RuntimeError(f"pyrefly failed: {done.stderr.strip() or done.stdout.strip()}")
    return [Fault.of(conditions, where, what, row) for (where, what), row in smallest.items()]
