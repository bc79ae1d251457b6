"""Fixtures that several test files share."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tricks.cli import main as cli
from tricks.template import source
from tricks.template.rendering import Template, write

ROOT = Path(__file__).resolve().parent.parent
TAG = "v1.0.0"  # of the checkout that the tests make


def git(folder: Path, *arguments: str) -> str:
    """Output of git in a folder, with an author of its own and no configuration of the machine's."""
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgSign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, tag: str = "") -> None:
    """Commit everything in the folder, making it a repository first where it is none."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "state")
    if tag:
        git(folder, "tag", tag)


def copy_sources(folder: Path) -> Path:
    """A copy of what makes the tool and the template, as it lies in the working tree."""
    junk = shutil.ignore_patterns("__pycache__", "*.py[cod]", ".*_cache")
    folder.mkdir(exist_ok=True)
    for name in ("generator", "template"):
        shutil.copytree(ROOT / name, folder / name, ignore=junk)
    for name in ("copier.yml", "pyproject.toml", "LICENSE", ".gitignore", ".gitattributes", ".git_archival.txt"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "README.md").write_text("# A copy\n", encoding="utf-8")
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """Contents by relative name."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The present tool and template in a git repository of their own, tagged with the version. Read only."""
    folder = copy_sources(tmp_path_factory.mktemp("checkout"))
    commit(folder, TAG)
    return folder


@pytest.fixture
def own_checkout(checkout: Path, tmp_path: Path) -> Path:
    """A checkout that the test may change."""
    return Path(shutil.copytree(checkout, tmp_path / "own checkout"))


@pytest.fixture
def tricks(checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Runs `tricks` in this process, in an empty current folder, with the checkout's template."""
    monkeypatch.setattr(source, "CHECKOUT", checkout)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return lambda *arguments: CliRunner().invoke(cli.app, list(arguments), catch_exceptions=False)


def answers(project: Path) -> dict[str, Any]:
    """What a project's answers file holds."""
    return dict(yaml.safe_load((project / ".copier-answers.yml").read_text(encoding="utf-8")))


@pytest.fixture(autouse=True)
def no_user_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the settings of Copier nor the git identity of the machine reach a test."""
    settings = tmp_path_factory.getbasetemp() / "settings.yml"
    settings.write_text("{}", encoding="utf-8")
    monkeypatch.setenv("COPIER_SETTINGS_PATH", str(settings))
    for variable in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{variable}_NAME", "test")
        monkeypatch.setenv(f"{variable}_EMAIL", "test@example.org")


@pytest.fixture
def environment() -> Callable[..., dict[str, str]]:
    """Environment in which `python -m tricks` runs the package of a checkout, or of a site folder."""

    def make(folder: Path, **more: str) -> dict[str, str]:
        return dict(
            os.environ,
            PYTHONPATH=os.pathsep.join([str(folder / "generator"), str(folder)]),
            PYTHONDONTWRITEBYTECODE="1",
            **more,
        )

    return make


@pytest.fixture(scope="session")
def template_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template as it lies in the working tree, outside git: rendered as it is, without a commit."""
    return copy_sources(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="session")
def template(template_folder: Path) -> Template:
    """The same, to be rendered in memory."""
    return Template(template_folder)


@pytest.fixture
def render(template: Template, tmp_path: Path) -> Callable[..., Path]:
    """Renders a project from the given answers and the defaults, as Copier would; returns its folder."""

    def render(name: str = "project", **answers: Any) -> Path:
        write(template.render(answers), tmp_path / name)
        return tmp_path / name

    return render
