"""Checks of a text by itself: each of the texts that stand for all of a file, once."""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from matrix import coverage
from matrix.conditions import Conditions, compiled
from matrix.diagrams import Diagram
from matrix.facts import toml
from matrix.faults import Fault, changed
from matrix.pieces import Source, Text
from matrix.samples import smaller
from matrix.space import Row

# Beyond the generated project's own rules: what a careful reviewer would remark on.
RULES = (
    "A,ASYNC,B,C4,DTZ,E,ERA,F,FLY,FURB,G,I,ICN,INT,ISC,LOG,N,NPY,PGH,PIE,PLC,PLE,PLW,PT,PYI,Q,RET,RSE,RUF,SIM,SLOT,T10,"
    "TID,UP,W,YTT"
)
# Left out on purpose: RUF009 as in the project; N812 torch.nn.functional is F everywhere; PLC0415 slow imports stand
# where they are used; PLE0303 a ceiling division is not negative; the rest is taste.
IGNORED = "RUF009,N812,PLC0415,PLE0303,PLW1510,PLW2901,PT012,PT018,RET504,FURB192"


Texts = list[tuple[Source, Text, Row]]
Said = tuple[str, str]  # line of the template, what is wrong there


def representatives(conditions: Conditions, sources: Iterable[Source], rows: list[Row]) -> tuple[Texts, list[Fault]]:
    """The texts that stand for all, and the Python files that cannot be read with all their branches."""
    found: Texts = []
    faults = []
    for source in sources:
        try:
            found += [(source, text, row) for text, row in coverage.texts(source, conditions, rows)]
        except SyntaxError as error:
            line = source.superset(conditions)[0].lines[(error.lineno or 1) - 1]
            what = f"with all branches one after the other it is no valid Python: {error.msg}"
            faults.append(Fault(source.at(line), what))
    return found, faults


def check_texts(conditions: Conditions, sources: list[Source], rows: list[Row]) -> tuple[list[Fault], int]:
    """Faults of single texts: syntax, rules, format, what is left of the template's syntax; and the number of texts."""
    texts, faults = representatives(conditions, sources, rows)
    smallest: dict[tuple[Said, int], tuple[Source, Row]] = {}
    for (source, _, row), all_said in zip(texts, judged(conditions, texts), strict=True):
        for one in all_said:
            key = one, id(source)
            before = smallest.get(key)
            if before is None or len(changed(conditions, row)) < len(changed(conditions, before[1])):
                smallest[key] = source, row
    for (said, _), (source, row) in smallest.items():
        faults.append(Fault.of(conditions, said[0], said[1], shrunk(conditions, source, said, row)))
    for source in sources:
        if source.path.suffix == ".md":
            faults += check_markdown(conditions, source)
    return faults, len(texts)


def shrunk(conditions: Conditions, source: Source, said: Said, row: Row) -> Row:
    """A smaller choice of which the same is said, as long as there is one that differs in one group of options."""
    space = conditions.space
    while True:
        texts = {name: values[0] for name, values in space.texts.items()}
        rows = [row | texts, *(row | lighter for lighter in smaller(space, row))]
        rows = [one for one in rows if one != row and conditions.holds(source.present, one)]
        tried: Texts = [
            (source, source.render(conditions.values_of(one, source.names), conditions.true), one) for one in rows
        ]
        shows = [one for (_, _, one), found in zip(tried, judged(conditions, tried), strict=True) if said in found]
        if not shows:
            return row
        row = min(shows, key=lambda one: len(changed(conditions, one)))


def judged(conditions: Conditions, texts: Texts) -> list[set[Said]]:
    """What is wrong with each text."""
    found = [set(own(conditions, source, text)) for source, text, _ in texts]
    python = [index for index, (source, _, _) in enumerate(texts) if source.path.suffix == ".py"]
    if python:
        for index, said in zip(python, ruff(conditions, [texts[index] for index in python]), strict=True):
            found[index] |= said
    return found


def own(conditions: Conditions, source: Source, text: Text) -> Iterator[Said]:
    """What is wrong with a text that needs no other program to be seen."""
    template = conditions.space.template
    starts = [re.escape(str(template.config["_envops"][f"{kind}_start_string"])) for kind in ("block", "comment")]
    # `{{` alone is also Python's, in format strings, and GitHub's.
    delimiter = re.compile("|".join([*starts, rf"\{{\{{-?\s*(?:{'|'.join(template.questions)})\b"]))
    lines = text.text.split("\n")
    for place, line in zip(text.lines, lines, strict=True):
        if left := delimiter.search(line):
            yield source.at(place), f"{left[0]!r} of the template is left in it"
        if line != line.rstrip():
            yield source.at(place), "spaces at the end of the line"
    if not text.text or source.path.suffix == ".md":
        return
    if lines[-1]:
        yield source.at(text.lines[-1]), "does not end with a line break"
    if not lines[0] or lines[-2:] == ["", ""]:
        yield source.at(text.lines[0 if not lines[0] else -1]), "an empty line at the start or the end of the file"
    try:
        READERS.get(source.path.suffix, str)(text.text)
    except (ValueError, yaml.YAMLError) as error:
        told = re.findall(r"line (\d+)", str(error)) or ["1"]
        place = text.lines[min(int(told[-1]), len(lines)) - 1]
        yield source.at(place), f"does not parse: {' '.join(str(error).split())}"


READERS: dict[str, Callable[[str], object]] = {
    ".toml": toml,
    ".yml": yaml.safe_load,
    ".yaml": yaml.safe_load,
    ".json": json.loads,
}


def ruff(conditions: Conditions, texts: Texts) -> list[set[Said]]:
    """What `ruff check` and `ruff format` say of each text, all in one run."""
    files = conditions.space.template.files
    known = sorted({path.parts[0].removesuffix(".py") for path in files if path.suffix == ".py"})
    # The length of a line that each project sets for itself.
    common = ["--isolated", "--no-cache", "--config", "line-length=120", "--target-version", "py310", "."]
    isort = f"lint.isort.known-first-party={json.dumps(known)}"
    found: list[set[Said]] = [set() for _ in texts]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, str(number)) / source.path for number, (source, _, _) in enumerate(texts)]
        rules = ["--select", RULES, "--config", isort, "--ignore"]

        def write() -> None:
            for path, (_, text, _) in zip(paths, texts, strict=True):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text.text, encoding="utf-8", newline="")

        write()
        lint = run_ruff(["check", *common, *rules, f"{IGNORED},I001", "--output-format", "json"], folder)
        for entry in json.loads(lint):
            number = int(Path(entry["filename"]).resolve().relative_to(Path(folder).resolve()).parts[0])
            source, text, _ = texts[number]
            place = text.lines[min(entry["location"]["row"], len(text.lines)) - 1]
            found[number].add((source.at(place), f"{entry['code']} {entry['message']}"))
        # Done for real and compared: of a block of imports ruff names the first line only, of a format none.
        for what, change in (
            ("I001 ruff would sort the imports otherwise", ["check", "--fix", *common, *rules[2:4], "--select", "I"]),
            ("ruff format would change it", ["format", *common]),
        ):
            run_ruff(change, folder)
            after = [path.read_text(encoding="utf-8") for path in paths]
            for number, place in reformatted(texts, after):
                found[number].add((place, what))
            write()
    return found


def reformatted(texts: Texts, after: list[str]) -> Iterator[tuple[int, str]]:
    """The texts that ruff changed, each with lines of the template: as few as stand beside all changes.

    A missing empty line lies between two lines, and one of them is where the mistake is.
    """
    hunks: list[tuple[int, set[str]]] = []
    for number, ((source, before, _), changed_text) in enumerate(zip(texts, after, strict=True)):
        if before.text != changed_text:
            matcher = difflib.SequenceMatcher(None, before.text.split("\n"), changed_text.split("\n"), False)
            for tag, first, last, _, _ in matcher.get_opcodes():
                if tag != "equal":
                    lines = before.lines[first:last] or before.lines[max(first - 1, 0) : first + 1]
                    hunks.append((number, {source.at(place) for place in lines}))
    while hunks:
        place = Counter(sorted(place for _, places in hunks for place in places)).most_common(1)[0][0]
        yield from ((number, place) for number, places in hunks if place in places)
        hunks = [hunk for hunk in hunks if place not in hunk[1]]


def run_ruff(arguments: list[str], folder: str) -> str:
    done = subprocess.run([sys.executable, "-m", "ruff", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1) and arguments[0] != "format":  # what does not parse is told by `check`
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


def check_markdown(conditions: Conditions, source: Source) -> list[Fault]:
    """Faults of every text of a Markdown file, by the places that each piece can begin at.

    Each place is known with the choices that lead to it, so that all texts are looked at and no others.
    """
    places = {Place(): source.present}
    found: list[Fault] = []

    def tell(line: tuple[int, int], what: str, when: Diagram) -> None:
        if conditions.possible(when):
            found.append(Fault.of(conditions, source.at(line), what, conditions.smallest(when)))

    for number, piece in enumerate(source.pieces):
        template = compiled(conditions.space.template.environment, [piece.node])
        after: dict[Place, Diagram] = defaultdict(lambda: conditions.false)
        for place, when in places.items():
            after[place] |= when & ~piece.condition
            for values, printed in conditions.cases(piece.shows):
                end, problem = follow(place, template.render(values))
                after[end] |= when & piece.condition & printed
                if problem:
                    tell(
                        (number, piece.node.nodes[0].lineno + problem[0]), problem[1], when & piece.condition & printed
                    )
        places = {place: when for place, when in after.items() if conditions.possible(when)}
    last = source.pieces[-1]
    for place, when in places.items():
        if place.fenced:
            tell((len(source.pieces) - 1, last.line), "a block of code is still open at the end", when)
        if place.empty:
            tell((len(source.pieces) - 1, last.line), "there is an empty line at the end", when)
    return found


def follow(place: Place, text: str) -> tuple[Place, tuple[int, str] | None]:
    """Where a text leaves off that begins at a place, and the first thing that is wrong in it."""
    fenced, empty, heading, started = place.fenced, place.empty, place.heading, place.started
    problem: tuple[int, str] | None = None
    for number, line in enumerate(text.split("\n")[:-1]):
        if not line and not fenced:
            empty += 1
            if empty > 1:
                what = "two empty lines follow each other" if started else "an empty line at the start"
                problem = problem or (number, what)
            continue
        fence = line.startswith("```")
        title = not fenced and line.startswith("#")
        if heading and not empty:
            problem = problem or (number, f"no empty line after the heading before {line!r}")
        if title and not empty:
            problem = problem or (number, f"no empty line before the heading {line!r}")
        if fence and not fenced and not empty:
            problem = problem or (number, f"no empty line before the block {line!r}")
        fenced = fenced != fence
        empty, heading, started = 0, title, True
    return Place(fenced, min(empty, 2), heading, started), problem
