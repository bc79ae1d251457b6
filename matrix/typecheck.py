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

from matrix.space import Choice, Space
from matrix.texts import Fault
from tricks.template.rendering import write

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
LINE = re.compile(r"^ERROR (?:.*/)?p(\d+)/(.+)$")


def check_types(space: Space, choices: Iterable[Choice]) -> list[Fault]:
    """What the type checker says about these projects."""
    with tempfile.TemporaryDirectory() as folder:
        rendered: list[Choice] = []
        for choice in choices:
            project = Path(folder, f"p{len(rendered)}")
            write(space.template.render(choice), project)
            (project / "pyrefly.toml").write_text(CONFIG, encoding="utf-8")
            rendered.append(choice)
        files = [str(path.relative_to(folder)) for path in Path(folder).rglob("*.py")]
        Path(folder, "files").write_text("\n".join(files), encoding="utf-8")
        command = ["check", "--output-format", "min-text", "--python-interpreter-path", sys.executable, "@files"]
        done = subprocess.run([sys.executable, "-m", "pyrefly", *command], cwd=folder, capture_output=True, text=True)
    found = []
    for line in done.stdout.splitlines():
        if match := LINE.match(line.strip()):
            shown = tuple((name, repr(value)) for name, value in rendered[int(match[1])].items())
            found.append(Fault(match[2], "type checker, in a project of this choice", shown))
    if done.returncode and not found:
        raise RuntimeError(f"pyrefly failed: {done.stderr.strip() or done.stdout.strip()}")
    return found
