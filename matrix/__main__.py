"""python -m matrix COMMAND: see docs/verification.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from generator.rendering import Template
from matrix import static
from matrix.space import ROOT, Space, TooManyError


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m matrix", description=__doc__)
    top.add_argument("--template", type=Path, default=ROOT, help="folder with copier.yml (default: this repository)")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("static", help="check every project as text")
    return top


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    space = Space(Template(given.template.resolve()))
    try:
        result = static.check(space)
    except TooManyError as error:
        print(error, file=sys.stderr)
        return 1
    print(static.report(result))
    return 1 if result.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
