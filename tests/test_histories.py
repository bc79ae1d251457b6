"""Random histories: choices, an owner's edits, changes of the choice; what must be true of every one of them.

HISTORIES is the number of examples of each property (`make matrix` draws many more).
"""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests import histories, releases
from tests.choices import CHOICES, TECHNIQUES
from tests.conftest import TAG, commit, git, tree
from tests.histories import Renderer, check_is_generated_plus_edits, check_nothing_lost, choices, edit, start, switch
from tricks.cli import main as cli
from tricks.project.objects import Store
from tricks.template.rendering import Template

HISTORIES = int(os.environ.get("HISTORIES", "40"))
relaxed = settings(
    max_examples=HISTORIES,
    deadline=None,
    derandomize="HISTORIES" not in os.environ,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
    print_blob=True,
)
OWNERS_FILES = ("data.py", "model.py")
TASKS = st.sampled_from(CHOICES["task"])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("store")
    git(folder, "init", "-q")
    return Store(folder)


@pytest.fixture(scope="module")
def renderer(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    return Renderer(template, histories.tagged(template, tmp_path_factory.mktemp("tags") / "template"))


def test_tags_do_not_change_what_is_rendered(renderer: Renderer) -> None:
    answers = {"preset": "everything"}
    lines = {path: "\n".join(line.text for line in rows) for path, rows in renderer.lines(answers).items()}
    assert lines == renderer.texts(answers)
    for path, rows in renderer.lines(answers).items():
        tags = [line.tag for line in rows if line.tag is not None]
        assert tags == sorted(set(tags)), path


@relaxed
@given(data=st.data())
def test_a_path_of_choices_gives_what_the_last_generates_plus_the_edits(
    store: Store, renderer: Renderer, data: st.DataObject
) -> None:
    task = data.draw(TASKS)
    path = data.draw(st.lists(choices(task), min_size=2, max_size=4), label="choices")
    owner = start(store, renderer, path[0])
    for before, after in itertools.pairwise(path):
        if before is path[0] or data.draw(st.booleans(), label="goes on editing"):
            edit(owner, renderer, before, [renderer.texts(choice) for choice in path], data)
        untouched = {name: owner.files.get(name) for name in OWNERS_FILES}
        merged = switch(owner, renderer, before, renderer, after)
        assert {name: owner.files.get(name) for name in OWNERS_FILES} == untouched
        check_nothing_lost(owner)
        if merged.conflicts:
            event("a conflict")
            return
    event("clean, with edits" if owner.insertions or owner.gone_lines else "clean, no line edited")
    check_is_generated_plus_edits(owner, renderer, path[-1])


@relaxed
@given(data=st.data())
def test_add_then_remove_is_the_identity(store: Store, renderer: Renderer, data: st.DataObject) -> None:
    without = data.draw(choices(data.draw(TASKS)), label="choice")
    added = data.draw(st.lists(st.sampled_from(TECHNIQUES), min_size=1, max_size=3, unique=True), label="added")
    without["techniques"] = [name for name in without["techniques"] if name not in added]
    with_them = without | {"techniques": without["techniques"] + added}
    owner = start(store, renderer, without)
    edit(owner, renderer, without, [renderer.texts(with_them)], data)
    before = dict(owner.files)
    if switch(owner, renderer, without, renderer, with_them).conflicts:
        event("a conflict in add")
        return check_nothing_lost(owner)
    if switch(owner, renderer, with_them, renderer, without).conflicts:
        event("a conflict in remove")
        return check_nothing_lost(owner)
    event("clean")
    assert owner.files == before


@settings(relaxed, max_examples=max(HISTORIES // 8, 5))
@given(data=st.data())
def test_the_command_does_the_same_on_disk_and_undo_takes_it_back(
    renderer: Renderer, checkout: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    on_disk = replace(renderer, name=TAG, source=str(checkout))
    before, after = (data.draw(choices("image"), label="choice") for _ in range(2))
    folder = tmp_path_factory.mktemp("project")
    git(folder, "init", "-q")
    owner = start(Store(folder), on_disk, before)
    edit(owner, on_disk, before, [on_disk.texts(after)], data)
    for path in owner.files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(owner.text(path).encode())
    commit(folder)
    as_it_was = tree(folder)
    recorded = on_disk.template.answer(after).recorded
    pairs = [f"{name}={','.join(after[name]) if isinstance(after[name], list) else after[name]}" for name in after]
    pairs = [pair for pair in pairs if pair.partition("=")[0] in recorded]
    result = CliRunner().invoke(cli.app, ["set", *pairs, str(folder)], catch_exceptions=False)
    merged = switch(owner, on_disk, before, on_disk, after)
    assert result.exit_code == (3 if merged.conflicts else 0), result.output
    event("a conflict" if merged.conflicts else "clean")
    found = tree(folder)
    assert found.keys() == owner.files.keys()
    in_conflict = {conflict.path for conflict in merged.conflicts}
    assert all(found[path] == owner.text(path).encode() for path in owner.files if path not in in_conflict)
    for insertion in owner.insertions:
        assert sum(text.count(insertion.text.encode()) for text in found.values()) == 1
    if as_it_was != found or merged.conflicts:
        assert CliRunner().invoke(cli.app, ["undo", str(folder)], catch_exceptions=False).exit_code == 0
    assert tree(folder) == as_it_was and git(folder, "status", "--porcelain") == ""


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Renderer]:
    found = []
    for name in releases.VERSIONS:
        template = Template(releases.make(name, tmp_path_factory.mktemp("version") / name))
        tags = histories.tagged(template, tmp_path_factory.mktemp("tags") / name)
        found.append(Renderer(template, tags, name))
    return found


@relaxed
@given(data=st.data())
def test_update_over_several_versions_equals_step_by_step(
    store: Store, versions: list[Renderer], data: st.DataObject
) -> None:
    answers = data.draw(choices(data.draw(TASKS)), label="choice")
    first, second, third = versions
    owner = start(store, first, answers)
    edit(owner, first, answers, [second.texts(answers), third.texts(answers)], data)
    direct = histories.copy(owner)
    at_once = switch(direct, first, answers, third, answers)
    check_nothing_lost(direct)
    steps = [switch(owner, first, answers, second, answers)]
    check_nothing_lost(owner)
    if not steps[0].conflicts:
        steps.append(switch(owner, second, answers, third, answers))
        check_nothing_lost(owner)
    if at_once.conflicts or any(step.conflicts for step in steps):
        event("a conflict")
        return
    event("clean")
    assert {path: owner.text(path) for path in owner.files} == {path: direct.text(path) for path in direct.files}
