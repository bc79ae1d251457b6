"""Projects that live on: an owner's random edits, the merges of the tool, and what must be true of the result.

Tags tell from which line of the template each generated line comes, so that the place of an edit can be checked where
the same line stands in many places.
"""

from __future__ import annotations

import difflib
import re
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.choices import CHOICES, PRESETS, QUESTIONS
from tricks.project.merge import Merged, merge, templates_renames
from tricks.project.objects import Entry, Files, Store
from tricks.template.rendering import Template

ANSWERS = ".copier-answers.yml"
TAG = re.compile(r"§(\d+)§")
Answers = dict[str, Any]


def tagged(template: Template, folder: Path) -> Template:
    """The same template with a number at the end of each line that can be rendered and is not blank."""
    shutil.copytree(template.root, folder)
    copy = Template(folder)
    for path in [*copy.folder.rglob("*")]:
        if path.is_file() and "{{" not in path.name:
            lines = path.read_text(encoding="utf-8").split("\n")
            for number, line in enumerate(lines):
                if line.strip() and not line.lstrip().startswith("# {"):
                    lines[number] = f"{line}§{number}§"
            path.write_text("\n".join(lines), encoding="utf-8", newline="")
    return copy


@dataclass
class Line:
    """A line of a project; `tag` is its line in the template, None for blank lines."""

    text: str
    tag: int | None = None


@dataclass
class Renderer:
    """One version of the template."""

    template: Template
    tags: Template
    name: str = "v1"
    source: str = "src"

    def texts(self, answers: Answers) -> dict[str, str]:
        return {path.as_posix(): text for path, text in self.template.render(answers, self.source, self.name).items()}

    def lines(self, answers: Answers) -> dict[str, list[Line]]:
        found = {}
        for path, text in self.tags.render(answers, self.source, self.name).items():
            rows = [(TAG.sub("", line), TAG.search(line)) for line in text.split("\n")]
            found[path.as_posix()] = [Line(row, int(tag[1]) if tag else None) for row, tag in rows]
        return found


@dataclass
class Insertion:
    """An edit of lines: a new line, or one in place of another, between two lines of the template."""

    path: str
    text: str
    above: int | None
    below: int | None


@dataclass
class Owner:
    """A project under edit, and what its owner did to it."""

    store: Store
    files: Files
    insertions: list[Insertion] = field(default_factory=list)
    gone_lines: dict[str, Counter[str]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def wrote(self, line: str) -> bool:
        return line.startswith("# owner ")

    def has_edited(self, path: str) -> bool:
        return path in self.gone_lines or any(insertion.path == path for insertion in self.insertions)

    def text(self, path: str) -> str:
        return self.store.read([self.files[path].oid])[self.files[path].oid].decode()

    def write(self, path: str, text: str) -> None:
        added = self.store.add_files({path: text.encode()})[path]
        self.files[path] = Entry(self.files[path].mode if path in self.files else added.mode, added.oid)


def start(store: Store, renderer: Renderer, answers: Answers) -> Owner:
    texts = renderer.texts(answers)
    return Owner(store, store.add_files({path: text.encode() for path, text in texts.items()}))


def edit(owner: Owner, renderer: Renderer, answers: Answers, others: list[dict[str, str]], data: st.DataObject) -> None:
    """One to six random edits of a project, half of them where other renderings differ from it."""
    lines = present(owner, renderer, answers)
    changes: dict[str, dict[int, tuple[str, str]]] = {}
    for _ in range(data.draw(st.integers(1, 6), label="edits")):
        kind = data.draw(st.sampled_from(["insert", "insert", "change", "change", "delete", "rename", "drop"]))
        path = data.draw(st.sampled_from(sorted(lines)), label="file")
        if path in owner.deleted:
            continue
        here = owner.renamed.get(path, path)
        if kind == "drop" and path not in changes and not owner.has_edited(path):
            owner.deleted.add(path)
            owner.renamed.pop(path, None)
            del owner.files[here]
        elif kind == "rename" and path not in owner.renamed:
            folder, slash, name = path.rpartition("/")
            owner.renamed[path] = data.draw(st.sampled_from([f"{folder}{slash}own_{name}", f"own/{name}"]))
            owner.files[owner.renamed[path]] = owner.files.pop(path)
        elif kind in ("insert", "change", "delete"):
            texts = [other[path].split("\n") for other in others if path in other]
            hot = sorted(boundaries([line.text for line in lines[path]], texts))
            anywhere = st.integers(0, len(lines[path]) - 2)
            place = data.draw(st.sampled_from(hot) | anywhere if hot else anywhere, label="line")
            if place not in changes.get(path, {}) and (kind == "insert" or not owner.wrote(lines[path][place].text)):
                owner.count += 1
                changes.setdefault(path, {})[place] = (kind, f"# owner {owner.count}, {kind}")
    for path, todo in changes.items():
        if path not in owner.deleted:
            apply_edits(owner, path, lines[path], todo)


def present(owner: Owner, renderer: Renderer, answers: Answers) -> dict[str, list[Line]]:
    """The lines of a project without conflicts, with their tags where there is no doubt about them."""
    found = {}
    for path, lines in renderer.lines(answers).items():
        if path in owner.deleted or path == ANSWERS:
            continue
        texts = owner.text(owner.renamed.get(path, path)).split("\n")
        kept = [text for text in texts if not owner.wrote(text)]
        places = zip(align(kept, lines), align(kept[::-1], lines[::-1])[::-1], strict=True)
        tags = iter([lines[first].tag if first == len(lines) - 1 - last else None for first, last in places])
        found[path] = [Line(text, None if owner.wrote(text) else next(tags)) for text in texts]
    return found


def boundaries(lines: list[str], others: list[list[str]]) -> set[int]:
    """The lines beside and inside what other renderings of a file have instead."""
    found: set[int] = set()
    for other in others:
        for kind, first, end, _, _ in difflib.SequenceMatcher(None, lines, other, autojunk=False).get_opcodes():
            if kind != "equal":
                found |= set(range(max(first - 1, 0), min(end + 1, len(lines) - 1)))
    return found


def apply_edits(owner: Owner, path: str, lines: list[Line], todo: dict[int, tuple[str, str]]) -> None:
    result: list[str] = []
    for index, line in enumerate(lines):
        kind, text = todo.get(index, ("", ""))
        if kind in ("insert", "change"):
            below = lines[index:] if kind == "insert" else lines[index + 1 :]
            owner.insertions.append(Insertion(path, text, nearest(lines[:index][::-1]), nearest(below)))
            result.append(text)
        if kind in ("change", "delete"):
            owner.gone_lines.setdefault(path, Counter())[line.text] += 1
        else:
            result.append(line.text)
    owner.write(owner.renamed.get(path, path), "\n".join(result))


def nearest(lines: list[Line]) -> int | None:
    return next((line.tag for line in lines if line.tag is not None), None)


def switch(owner: Owner, old: Renderer, before: Answers, new: Renderer, after: Answers) -> Merged:
    """The merge of a change of choice or version; the owner's files become its result."""
    moved = {} if old is new else templates_renames(old.template.sources(), new.template.sources())
    merged = merge(owner.store, owner.files, old.texts(before), new.texts(after), moved, "change", ANSWERS)
    owner.files = dict(merged.files)
    there = new.texts(after)
    for path in list(owner.renamed):
        if path not in there and moved.get(path) not in there and not merged.conflicts:
            del owner.renamed[path]  # gone with its technique; comes back under its own name
    owner.deleted = {path for path in owner.deleted if path in there or path in moved}
    return merged


def check_nothing_lost(owner: Owner) -> None:
    """Each line that the owner wrote is there, once."""
    everything = Counter(line.rstrip("\r") for path in owner.files for line in owner.text(path).split("\n"))
    for insertion in owner.insertions:
        assert everything[insertion.text] == 1, f"{insertion.text!r} of {insertion.path} is lost or doubled"


def check_is_generated_plus_edits(owner: Owner, renderer: Renderer, answers: Answers) -> None:
    """The project is what the choice generates with the owner's edits, each in its own place."""
    generated = renderer.lines(answers)
    expected = {owner.renamed.get(path, path) for path in generated if path not in owner.deleted}
    assert set(owner.files) == expected
    for path, lines in generated.items():
        if path in owner.deleted or path == ANSWERS:
            continue
        own = {insertion.text: insertion for insertion in owner.insertions if insertion.path == path}
        result = owner.text(owner.renamed.get(path, path)).split("\n")
        kept = [line for line in result if not owner.wrote(line)]
        missing = Counter(line.text for line in lines) - Counter(kept)
        assert missing <= owner.gone_lines.get(path, Counter()), f"{path} lacks {missing}"
        first = align(kept, lines)
        last = [len(lines) - 1 - index for index in align(kept[::-1], lines[::-1])][::-1]
        seen = 0
        for line in result:
            if not owner.wrote(line):
                seen += 1
                continue
            edit_there = own[line]  # fails for a line that belongs to another file
            tags_above = [tag for index in first[:seen] if (tag := lines[index].tag) is not None]
            tags_below = [tag for index in last[seen:] if (tag := lines[index].tag) is not None]
            if edit_there.below is not None and tags_above:
                assert max(tags_above) < edit_there.below, f"{path}: {line!r} is too low"
            if edit_there.above is not None and tags_below:
                assert min(tags_below) > edit_there.above, f"{path}: {line!r} is too high"


def align(kept: list[str], lines: list[Line]) -> list[int]:
    """For each kept line the earliest generated line that it can be; fails where one was not generated."""
    found, index = [], 0
    for text in kept:
        while index < len(lines) and lines[index].text != text:
            index += 1
        assert index < len(lines), f"{text!r} was not generated here"
        found.append(index)
        index += 1
    return found


@st.composite
def choices(draw: st.DrawFn, task: str) -> Answers:
    """A random choice, presets included."""
    preset = draw(st.sampled_from([None, *PRESETS]))
    answers: Answers = {"task": task}
    for name, values in CHOICES.items():
        if name in ("preset", "task"):
            continue
        if name == "techniques" and preset:
            answers[name] = PRESETS[preset]
        elif QUESTIONS[name].get("multiselect"):
            least = 1 if name == "export_formats" else 0
            answers[name] = draw(st.lists(st.sampled_from(values), unique=True, min_size=least))
        else:
            answers[name] = draw(st.sampled_from(values))
    return answers


def copy(owner: Owner) -> Owner:
    return replace(
        owner,
        files=dict(owner.files),
        insertions=list(owner.insertions),
        gone_lines={path: Counter(lines) for path, lines in owner.gone_lines.items()},
        deleted=set(owner.deleted),
        renamed=dict(owner.renamed),
    )
