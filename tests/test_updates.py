"""A real history: three tagged versions of the template in a repository, and projects that go through them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import copier
import pytest

from tests import releases
from tests.conftest import answers, commit, git, tree
from tricks.template import source, versions
from tricks.template.rendering import Template, write

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose tags are the versions; a folder with a space, as some have. Read only."""
    folder = tmp_path_factory.mktemp("history") / "the template"
    releases.make(releases.VERSIONS[0], folder)
    commit(folder, releases.VERSIONS[0])
    for version in releases.VERSIONS[1:]:
        git_folder = shutil.move(folder / ".git", folder.parent / "git")
        releases.put(folder, version)
        shutil.move(git_folder, folder / ".git")
        commit(folder, version)
    return folder


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Template]:
    folder = tmp_path_factory.mktemp("versions")
    return {version: Template(releases.make(version, folder / version)) for version in releases.VERSIONS}


@pytest.fixture
def project(history: Path, templates: dict[str, Template], tmp_path: Path) -> Callable[..., Path]:
    """A committed project as `copier copy` makes it of a version; `address` is what it records of the template."""

    def make(version: str = "v1.0.0", name: str = "p", address: str = "", **given: Any) -> Path:
        folder = tmp_path / "work" / name
        answers = {"techniques": ["clipping", "scheduler"]} | given
        write(templates[version].render(answers, address or str(history), version), folder)
        commit(folder)
        return folder

    return make


def edit_as_an_owner(folder: Path) -> None:
    for name, before, line in (
        ("train.py", "def step(", "# my loop\n"),
        ("progress.py", "class StopSignal", "# my signals\n"),
        ("clipping.py", "def clip(", "# my clip\n"),
        ("README.md", "## Your data", "My own words.\n"),
    ):
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace(before, line + before, 1), encoding="utf-8")
    (folder / "log.py").rename(folder / "logging_of_mine.py")
    (folder / "mine.py").write_text("x = 1\n", encoding="utf-8")
    commit(folder)


def test_update_follows_renames_and_keeps_edits(tricks: Run, project: Callable[..., Path]) -> None:
    folder = project()
    edit_as_an_owner(folder)
    status = tricks("status", "p")
    assert "at v1.0.0; v1.2.0 is out" in status.output and "log.py -> logging_of_mine.py" in status.output
    assert "clipping.py: +1 -0" in status.output and "Files of your own: 1" in status.output
    before = tree(folder)
    result = tricks("update", "p", "--to", "v1.1.0", "--defaults")
    assert result.exit_code == 0, result.output
    assert not (folder / "progress.py").exists()
    assert "# my signals\n" in (folder / "signals.py").read_text(encoding="utf-8")
    train = (folder / "train.py").read_text(encoding="utf-8")
    assert "# my loop\n" in train and "from signals import" in train
    assert "limit: float" in (folder / "clipping.py").read_text(encoding="utf-8")
    assert answers(folder)["_commit"] == "v1.1.0" and answers(folder)["licence"] == "none"
    commit(folder)
    result = tricks("update", "p")
    assert result.exit_code == 0, result.output
    assert answers(folder)["_commit"] == "v1.2.0" and not (folder / "predict.py").exists()
    assert "# my clip\n" in (folder / "limits.py").read_text(encoding="utf-8")
    assert "# End of this file." in (folder / "logging_of_mine.py").read_text(encoding="utf-8")
    assert "uncommitted changes" in tricks("update", "p").output
    commit(folder)
    assert "Nothing to update" in tricks("update", "p").output
    at_last = tree(folder)
    # At once it comes out the same.
    git(folder, "checkout", "-q", "main~2")
    assert tree(folder) == before
    assert tricks("update", "p", "--defaults").exit_code == 0 and tree(folder) == at_last
    assert tricks("undo", "p").exit_code == 0 and tree(folder) == before


def test_a_new_technique_after_the_update(tricks: Run, project: Callable[..., Path], history: Path) -> None:
    folder = project()
    result = tricks("add", "ema", "p")
    assert result.exit_code == 1 and "no technique 'ema'" in result.output and "tricks update" in result.output
    result = tricks("update", "p")
    assert result.exit_code == 1 and "licence is open (none, MIT)" in result.output  # a new question, and no terminal
    assert tricks("update", "p", "-d", "licence=MIT").exit_code == 0
    commit(folder)
    assert tricks("add", "ema", "p", "-d", "decay_shape=rising").exit_code == 0
    assert tricks("set", "clip=sign", "p").exit_code == 1  # uncommitted changes
    commit(folder)
    given = {name: value for name, value in answers(folder).items() if not name.startswith("_")}
    assert given["licence"] == "MIT" and given["decay_shape"] == "rising"
    expected = Template(history).render(given, str(history), "v1.2.0")
    assert tree(folder) == {path.as_posix(): text.encode() for path, text in expected.items()}


@pytest.mark.parametrize("given", [{}, {"techniques": [], "task": "text"}, {"preset": "everything"}], ids=str)
def test_every_older_project_updates(tricks: Run, project: Callable[..., Path], given: dict[str, Any]) -> None:
    given = {"techniques": ["amp", "debug"]} | given
    if "preset" in given:
        del given["techniques"]
    for version in releases.VERSIONS[:-1]:
        folder = project(version, name=f"at {version}", **given)
        assert tricks("update", str(folder), "--defaults").exit_code == 0
        commit(folder)
        assert "Nothing to update: the project is at v1.2.0" in tricks("update", str(folder)).output
        assert tricks("status", str(folder)).output.splitlines()[0].endswith("at v1.2.0.")


def test_versions_do_not_go_backwards(tricks: Run, project: Callable[..., Path]) -> None:
    folder = project("v1.1.0")
    before = tree(folder)
    result = tricks("update", "p", "--to", "v1.0.0")
    assert result.exit_code == 1 and "v1.0.0 is older than v1.1.0" in result.output
    assert "has no version v9: it has v1.0.0, v1.1.0, v1.2.0." in tricks("update", "p", "--to", "v9").output
    assert "Nothing to update" in tricks("update", "p", "--to", "1.1.0").output
    assert tree(folder) == before


def test_git_file_address_without_a_network(
    tricks: Run, project: Callable[..., Path], history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "none")  # git itself would reach nothing
    address = f"git+file://{history.as_posix().replace(' ', '%20')}"
    folder = project(address=address)
    edit_as_an_owner(folder)
    assert tricks("add", "amp", "p").exit_code == 0
    commit(folder)
    assert tricks("update", "p", "--defaults").exit_code == 0
    assert answers(folder)["_src_path"] == address and answers(folder)["_commit"] == "v1.2.0"


def test_a_remote_is_fetched_once_and_works_offline(
    tricks: Run,
    project: Callable[..., Path],
    history: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: tmp_path / "cache")
    settings = tmp_path / "gitconfig"
    remote = tmp_path / "remote"
    git(tmp_path, "clone", "-q", "--bare", str(history), str(remote))
    git(remote, "tag", "-d", "v1.2.0")
    settings.write_text(f'[url "{remote.as_uri()}"]\n  insteadOf = https://example.org/t.git\n', encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    folder = project(address="https://example.org/t.git")
    result = tricks("add", "amp", "p")
    assert result.exit_code == 0, result.output
    commit(folder)
    git(remote, "tag", "v1.2.0", "main")
    assert "v1.2.0 is out" in tricks("status", "p").output
    remote.rename(tmp_path / "gone")
    assert tricks("remove", "amp", "p").exit_code == 0  # from the cache
    commit(folder)
    status = tricks("status", "p")
    assert status.exit_code == 0 and "Whether there is a newer version is not known" in status.output
    assert "gone or cannot be reached" in tricks("update", "p", "--defaults").output
    assert tricks("update", "p", "--to", "v1.2.0", "--defaults").exit_code == 0  # in the cache too
    assert answers(folder)["_commit"] == "v1.2.0"


def test_plain_copier_update_gives_the_same_where_the_merge_is_clean(
    tricks: Run, project: Callable[..., Path], tmp_path: Path
) -> None:
    """Edits in files of the owner's own; docs/changing-a-project.md lists what differs otherwise."""
    ours = project()
    (ours / "mine.py").write_text("x = 1\n", encoding="utf-8")
    commit(ours)
    theirs = Path(shutil.copytree(ours, tmp_path / "work" / "plain"))
    seconds = {"tricks": 0.0, "copier": 0.0}

    def timed(name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        before = time.perf_counter()
        result = function(*arguments, **options)
        seconds[name] += time.perf_counter() - before
        return result

    plain = {"defaults": True, "overwrite": True, "quiet": True}
    for choice in (["clipping", "scheduler", "amp", "ddp"], ["scheduler"]):
        present = answers(ours)["techniques"]
        added, removed = set(choice) - set(present), set(present) - set(choice)
        if added:
            assert timed("tricks", tricks, "add", *added, "p", "--defaults").exit_code == 0
        if removed:
            assert timed("tricks", tricks, "remove", *removed, "p").exit_code == 0
        commit(ours)
        timed("copier", copier.run_update, theirs, {"techniques": choice}, vcs_ref="v1.0.0", **plain)
        assert tree(theirs) == tree(ours)
        commit(theirs)
    assert timed("tricks", tricks, "update", "p", "--defaults").exit_code == 0
    timed("copier", copier.run_update, theirs, **plain)
    assert tree(theirs) == tree(ours)
    assert seconds["tricks"] < seconds["copier"]


def test_order_of_versions() -> None:
    ascending = ["v1.0rc1", "v1.0.0", "v1.2.0", "v1.2.0-3-gabc1234", "v1.2.0-12-g0123456", "1.10"]
    numbers = [versions.number(version) for version in ascending]
    assert numbers == sorted(set(numbers))
    assert [versions.number(commit) for commit in ("abc1234", "1234567", "main")] == [None] * 3


def test_the_installed_package_needs_no_network(
    tricks: Run, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = shutil.copytree(checkout, tmp_path / "bundle", ignore=shutil.ignore_patterns(".git"))
    monkeypatch.setattr(source, "BUNDLE", Path(bundle))
    (tmp_path / "version.txt").write_text("1.0.0", encoding="utf-8")
    monkeypatch.setattr(source, "PACKAGE", tmp_path)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: tmp_path / "cache")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "none")
    assert tricks("new", "p", "--defaults").exit_code == 0
    folder = Path("p")
    commit(folder)
    before = tree(folder)
    assert answers(folder)["_src_path"] == source.PUBLIC_SOURCE
    assert tricks("add", "ddp", "p").exit_code == 0 and tricks("undo", "p").exit_code == 0
    assert tree(folder) == before
    status = tricks("status", "p")
    assert (
        status.exit_code == 0 and "is not known: The template gh:" in status.output and "Changed" not in status.output
    )
    result = tricks("update", "p")
    assert result.exit_code == 1 and "gone or cannot be reached" in result.output and result.output.count("\n") == 1
    assert "Nothing to update" in tricks("update", "p", "--to", "v1.0.0").output
    assert list((tmp_path / "cache").iterdir()) == []


def test_file_names_suit_every_system(templates: dict[str, Template]) -> None:
    reserved = {"con", "prn", "aux", "nul", *(f"{device}{number}" for device in ("com", "lpt") for number in range(10))}
    names = [path.as_posix() for path in templates["v1.0.0"].render({"preset": "everything", "tracker": "tensorboard"})]
    assert len({name.lower() for name in names}) == len(names)  # nor do two differ by case alone
    for name in names:
        assert name.isascii() and not set(name) & set('<>:"\\|?* '), name
        assert not {part.partition(".")[0].lower() for part in name.split("/")} & reserved, name
