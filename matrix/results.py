"""Results of earlier runs, under the hash of what they depend on: a line of JSON each."""

from __future__ import annotations

import json
from pathlib import Path


class Results:
    """What passed before; failures are not kept, and run again."""

    def __init__(self, path: Path | None) -> None:
        """None: nothing is kept."""
        self.path = path
        self.seconds: dict[str, float] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                    self.seconds[entry["key"]] = entry["seconds"]
                except (ValueError, KeyError, TypeError):  # the last line of a run that was killed
                    continue

    def add(self, key: str, seconds: float) -> None:
        self.seconds[key] = seconds
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "seconds": round(seconds, 3)}) + "\n")
