"""The wheel: it carries the template of its tag byte for byte, and makes projects without git or network."""

from __future__ import annotations

import compileall
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import copier
import pytest

from tests.conftest import ROOT, TAG, answers, commit, git, tree
from tricks.template import source

BUNDLE = "tricks/bundle/"


def build(folder: Path, kind: str = "wheel") -> Path:
    """A wheel or sdist of a folder, as pip makes it."""
    code = f"import hatchling.build as b; print(b.build_{kind}('dist'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "dist" / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a checkout in which the template's files have also been run, linted and opened on a Mac."""
    folder = tmp_path_factory.mktemp("build") / "checkout"
    shutil.copytree(checkout, folder)
    for name in ("__pycache__/a.pyc", "tests/__pycache__/a.pyc", ".ruff_cache/x", ".DS_Store"):
        (folder / "template" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "template" / name).touch()
    return build(folder)


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
    modules = {file.relative_to(ROOT / "generator").as_posix() for file in (ROOT / "generator").rglob("*.py")}
    assert others == modules | {"tricks/version.txt"}
    assert "tricks = tricks.cli.main:main" in entry
    assert f"\nVersion: {TAG[1:]}\n" in metadata


def change_template(checkout: Path) -> None:
    path = checkout / "template/train.py"
    path.write_text(path.read_text(encoding="utf-8") + "\n\n# Of today.\n", encoding="utf-8")


Way = Callable[[Path, Path], Path]


def between_tags(checkout: Path, scratch: Path) -> Path:
    change_template(checkout)
    commit(checkout)
    return build(checkout)


def without_tags(checkout: Path, scratch: Path) -> Path:
    git(checkout, "tag", "-d", TAG)
    return between_tags(checkout, scratch)


def of_uncommitted_files(checkout: Path, scratch: Path) -> Path:
    change_template(checkout)
    return build(checkout)


def of_an_sdist(checkout: Path, scratch: Path) -> Path:
    change_template(checkout)
    commit(checkout)
    with tarfile.open(build(checkout, "sdist")) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        tar.extractall(scratch)
    return build(next(scratch.iterdir()))


def of_an_archive(checkout: Path, scratch: Path) -> Path:
    change_template(checkout)
    commit(checkout)
    git(checkout, "archive", "--output", str(scratch / "a.tar"), "HEAD")
    with tarfile.open(scratch / "a.tar") as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        tar.extractall(scratch / "unpacked")
    return build(scratch / "unpacked")


@pytest.mark.parametrize("way", [between_tags, without_tags, of_uncommitted_files, of_an_sdist, of_an_archive])
def test_every_wheel_knows_its_template(
    own_checkout: Path, tmp_path: Path, environment: Callable[..., dict[str, str]], way: Way
) -> None:
    """It records a version that the repository has, changes its own projects without network, and they update later."""
    (tmp_path / "scratch").mkdir()
    site = tmp_path / "site"
    zipfile.ZipFile(way(own_checkout, tmp_path / "scratch")).extractall(site)
    alone = environment(site, GIT_ALLOW_PROTOCOL="none", XDG_CACHE_HOME=str(tmp_path / "no cache"))
    project = tmp_path / "p"

    def tricks(variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tricks", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)

    made = tricks(alone, "new", "p", "--defaults", "--git")
    assert made.returncode == 0, made.stderr
    version = answers(project)["_commit"]
    assert tricks(alone, "--version").stdout.startswith(f"tricks {version}")
    dirty = way is of_uncommitted_files
    assert ("with uncommitted changes" in made.stderr) == dirty and made.stderr.count("\n") == dirty
    assert git(own_checkout, "rev-parse", f"{version}^{{commit}}") == git(own_checkout, "rev-parse", "HEAD")
    assert version == TAG if dirty else version.startswith(f"{TAG}-1-g") or way is without_tags
    assert "# Of today." in (project / "train.py").read_text(encoding="utf-8")
    status = tricks(alone, "status", "p")
    assert status.returncode == 0 and "Changed by you" not in status.stdout, status.stdout
    assert tricks(alone, "add", "ddp", "p").returncode == 0
    commit(project)
    # Later the repository has a release; git takes the folder for the public address.
    git(own_checkout, "commit", "-q", "--allow-empty", "-m", "before the news")
    change_template(own_checkout)
    (own_checkout / "template/NEWS.md").write_text("news\n", encoding="utf-8")
    commit(own_checkout, "v99.0.0")
    online = environment(
        site,
        XDG_CACHE_HOME=str(tmp_path / "cache"),
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0=f"url.{own_checkout.as_uri()}.insteadOf",
        GIT_CONFIG_VALUE_0=source.PUBLIC_SOURCE.replace("gh:", "https://github.com/") + ".git",
    )
    assert "v99.0.0 is out" in tricks(online, "status", "p").stdout
    updated = tricks(online, "update", "p")
    assert updated.returncode == 0, updated.stderr
    assert (project / "NEWS.md").is_file() and answers(project)["_commit"] == "v99.0.0"


def test_project_from_the_wheel_without_git(
    installed: Path, checkout: Path, tmp_path: Path, environment: Callable[..., dict[str, str]]
) -> None:
    command = [
        sys.executable,
        "-m",
        "tricks",
        "new",
        "p",
        "everything",
        "--defaults",
        "--no-git",
        "project_name=My own",
    ]
    result = subprocess.run(command, cwd=tmp_path, env=environment(installed, PATH=""), capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    copier.run_copy(
        str(checkout),
        tmp_path / "q",
        {"preset": "everything", "project_name": "My own"},
        defaults=True,
        quiet=True,
        vcs_ref="HEAD",
    )
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
