"""The wheel: it carries the template of its tag byte for byte, and makes projects without git or network."""

from __future__ import annotations

import compileall
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import copier
import pytest

from tests.conftest import ROOT, TAG, answers, commit, git, tree
from tricks.template import source

BUNDLE = "tricks/bundle/"


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a checkout in which the template's files have also been run, linted and opened on a Mac."""
    pytest.importorskip("hatchling", reason="builds a wheel: pip install hatchling")
    folder = tmp_path_factory.mktemp("build") / "checkout"
    shutil.copytree(checkout, folder)
    for name in ("__pycache__/a.pyc", "tests/__pycache__/a.pyc", ".ruff_cache/x", ".DS_Store"):
        (folder / "template" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "template" / name).touch()
    code = "import hatchling.build as b; print(b.build_wheel('dist'))"
    printed = subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)
    return folder / "dist" / printed.stdout.decode().split()[-1]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site folder with the wheel in it, its Python files compiled as pip does."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    compileall.compile_dir(site, quiet=2)
    return site


def test_template_equals_the_tag(wheel: Path, checkout: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(BUNDLE)]
        carried = {name.removeprefix(BUNDLE): archive.read(name) for name in names}
    tagged = git(checkout, "ls-tree", "-r", "-z", "--name-only", TAG, "copier.yml", "template").split("\0")
    expected = {name: (checkout / name).read_bytes() for name in tagged if name}
    assert carried == expected
    assert "template/.gitignore" in carried and "template/{{ _copier_conf.answers_file }}" in carried


def test_nothing_else_is_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    others = {name for name in names if not name.startswith(BUNDLE) and ".dist-info/" not in name}
    assert others == {file.relative_to(ROOT / "generator").as_posix() for file in (ROOT / "generator").rglob("*.py")}
    assert "tricks = tricks.cli.main:main" in entry
    assert f"\nVersion: {TAG[1:]}\n" in metadata


def test_released_tag_holds_this_template() -> None:
    """After a release a changed template needs a new version, or its wheel would name the old tag."""
    if not (ROOT / ".git").exists() or not git(ROOT, "tag", "--list", TAG):
        pytest.skip(f"{TAG} is not tagged yet")
    assert git(ROOT, "diff", "--name-only", TAG, "HEAD", "--", "copier.yml", "template") == ""


def test_project_from_the_wheel_without_git(
    installed: Path, checkout: Path, tmp_path: Path, environment: Callable[..., dict[str, str]]
) -> None:
    command = [sys.executable, "-m", "tricks", "new", "p", "--defaults", "--preset", "everything"]
    result = subprocess.run(command, cwd=tmp_path, env=environment(installed, PATH=""), capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    copier.run_copy(str(checkout), tmp_path / "q", {"preset": "everything"}, defaults=True, quiet=True, vcs_ref="HEAD")
    record = answers(tmp_path / "p")
    assert record["_src_path"] == source.PUBLIC_SOURCE == "gh:org/tricks-template"
    assert record["_commit"] == TAG
    made, expected = tree(tmp_path / "p"), tree(tmp_path / "q")
    address = f"_src_path: {checkout}\n".encode(), f"_src_path: {source.PUBLIC_SOURCE}\n".encode()
    expected[".copier-answers.yml"] = expected[".copier-answers.yml"].replace(*address)
    assert made == expected


def test_such_a_project_is_updated_from_the_public_source(
    installed: Path, own_checkout: Path, tmp_path: Path, environment: Callable[..., dict[str, str]]
) -> None:
    """With git taking the checkout for the public address."""
    command = [sys.executable, "-m", "tricks", "new", "p", "--defaults"]
    subprocess.run(command, cwd=tmp_path, env=environment(installed), check=True, capture_output=True)
    project = tmp_path / "p"
    commit(project)
    (own_checkout / "template/NEWS.md").write_text("news\n", encoding="utf-8")
    commit(own_checkout, "v99.0.0")
    variables = environment(
        installed,
        COPIER_CACHE_DIR=str(tmp_path / "cache"),
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0=f"url.{own_checkout.as_uri()}.insteadOf",
        GIT_CONFIG_VALUE_0=source.PUBLIC_SOURCE.replace("gh:", "https://github.com/") + ".git",
    )
    update = [sys.executable, "-m", "copier", "update", "--defaults"]
    result = subprocess.run(update, cwd=project, env=variables, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert (project / "NEWS.md").is_file() and answers(project)["_commit"] == "v99.0.0"
    assert answers(project)["_src_path"] == source.PUBLIC_SOURCE
