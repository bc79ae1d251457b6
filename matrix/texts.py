"""Checks of a text by itself: each distinct text of each file, once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from matrix.facts import toml
from matrix.space import Space
from matrix.variants import Unit, Values

# Beyond the generated project's own rules: what a careful reviewer would remark on.
RULES = (
    "A,ASYNC,B,C4,DTZ,E,ERA,F,FLY,FURB,G,I,ICN,INT,ISC,LOG,N,NPY,PGH,PIE,PLC,PLE,PLW,PT,PYI,Q,RET,RSE,RUF,SIM,SLOT,T10,"
    "TID,UP,W,YTT"
)
# Left out on purpose: RUF009 as in the project; N812 torch.nn.functional is F everywhere; PLC0415 slow imports stand
# where they are used; PLE0303 a ceiling division is not negative; the rest is taste.
IGNORED = "RUF009,N812,PLC0415,PLE0303,PLW1510,PLW2901,PT012,PT018,RET504,FURB192"


@dataclass(frozen=True)
class Fault:
    """What is wrong, where, and the smallest known values that show it."""

    where: str
    what: str
    values: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.values)
        return f"{self.where}: {self.what}" + (f" [{shown}]" if shown else "")


def fault(unit: Unit, what: str, values: Values) -> Fault:
    return Fault(unit.label, what, tuple((name, repr(value)) for name, value in values.items()))


def check_texts(space: Space, units: Iterable[Unit]) -> list[Fault]:
    """Faults of single texts: syntax, rules, format, what is left of the template's own syntax."""
    units = list(units)
    found = []
    starts = [re.escape(str(space.template.config["_envops"][f"{kind}_start_string"])) for kind in ("block", "comment")]
    # `{{` alone is also Python's, in format strings, and GitHub's.
    delimiter = re.compile("|".join([*starts, rf"\{{\{{-?\s*(?:{'|'.join(space.template.questions)})\b"]))
    for unit in units:
        read = READERS.get(unit.path.suffix)
        for text, values in unit.texts.items():
            if left := delimiter.search(text):
                found.append(fault(unit, f"{left[0]!r} of the template is left in it", values))
            if unit.section is not None:
                continue
            found += [fault(unit, what, values) for what in plain(text)]
            try:
                read(text) if read else None
            except (ValueError, yaml.YAMLError) as error:
                found.append(fault(unit, f"does not parse: {' '.join(str(error).split())}", values))
    for sections in by_path(units).values():
        found += check_markdown(sections)
    return found + ruff(space, [unit for unit in units if unit.path.suffix == ".py"])


READERS: dict[str, Callable[[str], object]] = {
    ".toml": toml,
    ".yml": yaml.safe_load,
    ".yaml": yaml.safe_load,
    ".json": json.loads,
}


def plain(text: str) -> list[str]:
    found = []
    if text and not text.endswith("\n"):
        found.append("does not end with a line break")
    if text.endswith("\n\n") or text.startswith("\n"):
        found.append("begins or ends with an empty line")
    if any(line != line.rstrip() for line in text.split("\n")):
        found.append("has a line with spaces at its end")
    return found


def ruff(space: Space, units: list[Unit]) -> list[Fault]:
    """What `ruff check` and `ruff format` say, all texts in one run."""
    with tempfile.TemporaryDirectory() as folder:
        origin: dict[str, tuple[Unit, Values]] = {}
        texts: dict[str, str] = {}
        for unit in units:
            for text, values in unit.texts.items():
                number = str(len(origin))
                origin[number], texts[number] = (unit, values), text
                target = Path(folder, number) / unit.path
                target.parent.mkdir(parents=True)
                target.write_text(text, encoding="utf-8", newline="")
        known = sorted({path.parts[0].removesuffix(".py") for path in space.template.files if path.suffix == ".py"})
        # The length of a line that each project sets for itself.
        common = ["--isolated", "--no-cache", "--config", "line-length=120", "--target-version", "py310", "."]
        rules = [
            "--select",
            RULES,
            "--ignore",
            IGNORED,
            "--config",
            f"lint.isort.known-first-party={json.dumps(known)}",
        ]
        lint = run_ruff(["check", *common, *rules, "--output-format", "json"], folder)
        found = []
        for entry in json.loads(lint):
            number = Path(entry["filename"]).resolve().relative_to(Path(folder).resolve()).parts[0]
            row = entry["location"]["row"]
            found.append(fault(origin[number][0], f"line {row}: {entry['code']} {entry['message']}", origin[number][1]))
        # Formatted for real and compared: what `--check` prints changes with ruff's version.
        run_ruff(["format", *common], folder)
        for number, (unit, values) in origin.items():
            if Path(folder, number, unit.path).read_text(encoding="utf-8") != texts[number]:
                found.append(fault(unit, "ruff format would change it", values))
    return found


def run_ruff(arguments: list[str], folder: str) -> str:
    done = subprocess.run([sys.executable, "-m", "ruff", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"ruff {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


# ---------------------------------------------------------------------------------------------------- Markdown


@dataclass(frozen=True)
class Place:
    """All that decides whether what follows in a Markdown file is right."""

    fenced: bool = False
    empty: int = 1  # empty lines just before; the start counts as one
    heading: bool = False  # the line before is a heading
    started: bool = False


def by_path(units: Iterable[Unit]) -> dict[Path, list[Unit]]:
    found: dict[Path, list[Unit]] = defaultdict(list)
    for unit in units:
        if unit.section is not None:
            found[unit.path].append(unit)
    return found


def check_markdown(sections: list[Unit]) -> list[Fault]:
    """Faults of every concatenation of the sections' variants, by the places that each section can begin at.

    Sections are combined freely, also where no choice does: more than all projects, so nothing is overlooked.
    """
    places, found = {Place()}, []
    for unit in sections:
        after = set()
        for place in places:
            for text, values in unit.texts.items():
                end, problem = follow(place, text)
                if problem:
                    found.append(fault(unit, problem, values))
                after.add(end)
        places = after
    for place in places:
        if place.fenced:
            found.append(fault(sections[-1], "a block of code is still open at the end", {}))
        if place.empty:
            found.append(fault(sections[-1], "there is an empty line at the end", {}))
    return found


def follow(place: Place, text: str) -> tuple[Place, str]:
    """Where a text leaves off that begins at a place, and the first thing that is wrong in it."""
    fenced, empty, heading, started = place.fenced, place.empty, place.heading, place.started
    problem = ""
    if text and not text.endswith("\n"):
        return place, "a section does not end with a line break"
    for line in text.split("\n")[:-1]:
        if line != line.rstrip():
            problem = problem or f"spaces at the end of {line!r}"
        if not line and not fenced:
            empty += 1
            if empty > 1:
                problem = problem or ("two empty lines follow each other" if started else "an empty line at the start")
            continue
        fence = line.startswith("```")
        title = not fenced and line.startswith("#")
        if heading and not empty:
            problem = problem or f"no empty line after the heading before {line!r}"
        if title and not empty:
            problem = problem or f"no empty line before the heading {line!r}"
        if fence and not fenced and not empty:
            problem = problem or f"no empty line before the block {line!r}"
        fenced = fenced != fence
        empty, heading, started = 0, title, True
    return Place(fenced, min(empty, 2), heading, started), problem
