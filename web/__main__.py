"""`python -m web OUT`: builds the page into a folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tricks import UserError
from web.build import build
from web.translate import Unknown


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m web", description="Build the page that picks techniques.")
    parser.add_argument("out", type=Path, help="the folder to write; what it held is gone")
    parser.add_argument("--revision", help="a tag; without it the work tree, marked as a preview")
    parser.add_argument("--address", default="", help="what projects record as the template's address")
    arguments = parser.parse_args()
    try:
        build(arguments.out, arguments.revision, arguments.address)
    except (Unknown, UserError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    total = sum(path.stat().st_size for path in arguments.out.rglob("*") if path.is_file())
    print(f"{arguments.out}: {total / 1000:,.0f} kB before compression")
    return 0


if __name__ == "__main__":
    sys.exit(main())
