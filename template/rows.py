"""metrics.jsonl: strict JSON, a row per logged step and per evaluation."""

import json
import math
import time
from contextlib import suppress
from pathlib import Path
from typing import Any


class Rows:
    """Adds rows to the file, those of `step` and before being kept; raises SystemExit when it cannot be written."""

    def __init__(self, path: Path, step: int) -> None:
        keep(path, step)
        self.file = path.open("a")
        self.waiting: list[dict[str, Any]] = []
        self.written = time.perf_counter()

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row; it is in the file a second later, or with the next row after that."""
        self.waiting.append(row)
        # To write costs more than all else that is done for a row.
        if time.perf_counter() - self.written > 1:
            self.write()

    def write(self) -> None:
        """Writes what waits. Call it before a checkpoint, since a resumed run adds only the rows after it."""
        rows, self.waiting, self.written = self.waiting, [], time.perf_counter()
        if not rows:
            return
        try:
            self.file.writelines(map(line, rows))
            self.file.flush()
        except OSError as error:
            raise SystemExit(f"Cannot write {self.file.name}: {error.strerror}. The checkpoints are whole.") from None

    def close(self) -> None:
        # Rows wait where an error ends the run, and it is that error that has to be told.
        with suppress(OSError):
            self.file.writelines(map(line, self.waiting))
            self.file.close()


def line(row: dict[str, Any]) -> str:
    """The row as strict JSON: a number that is not finite becomes null, which every reader takes."""
    finite = {name: None for name, value in row.items() if isinstance(value, float) and not math.isfinite(value)}
    return json.dumps(row | finite, allow_nan=False) + "\n"


def keep(path: Path, step: int) -> None:
    """Drops the rows after `step`, and a half-written last one: the run is about to write them again."""
    if not path.exists():
        return
    kept = []
    for text in path.read_text().splitlines():
        try:
            row = json.loads(text)
        except ValueError:
            continue
        if row["step"] <= step:
            kept.append(text + "\n")
    unfinished = path.with_name(".metrics.unfinished")
    unfinished.write_text("".join(kept))
    unfinished.replace(path)
