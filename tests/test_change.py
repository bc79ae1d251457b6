"""add, remove, set and undo on real repositories: what they leave in the work tree and the index."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import TAG, answers, commit, git, tree
from tricks.template.rendering import Template

Run = Callable[..., Any]
Project = Callable[..., Path]


@pytest.fixture
def project(tricks: Run) -> Project:
    """Generates a project and commits it."""

    def make(name: str = "p", *arguments: str) -> Path:
        assert tricks("new", name, "--defaults", *(arguments or ("--preset", "recommended"))).exit_code == 0
        commit(Path(name))
        return Path(name).resolve()

    return make


def insert(path: Path, before: str, line: str) -> None:
    """A line of the owner's before the first line that holds a text."""
    lines = path.read_bytes().decode().split("\n")
    index = next(index for index, text in enumerate(lines) if before in text)
    path.write_bytes("\n".join([*lines[:index], line, *lines[index:]]).encode())


def state(project: Path) -> tuple[Any, ...]:
    """All that a command could change: contents, modes, index, references."""
    modes = {
        path: stat.S_IMODE(path.lstat().st_mode) for path in sorted(project.rglob("*")) if ".git" not in path.parts
    }
    return (
        tree(project),
        modes,
        git(project, "ls-files", "--stage"),
        git(project, "for-each-ref"),
        git(project, "stash", "list"),
    )


def test_add_gives_what_the_new_choice_generates(tricks: Run, project: Project, checkout: Path) -> None:
    folder = project()
    result = tricks("add", "ddp", "export", "p", "-d", "export_formats=onnx")
    assert result.exit_code == 0, result.output
    recorded = {name: value for name, value in answers(folder).items() if not name.startswith("_")}
    assert recorded["techniques"][-2:] == ["ddp", "export"] and recorded["export_formats"] == ["onnx"]
    expected = Template(checkout).render(recorded, str(checkout), TAG)
    assert tree(folder) == {path.as_posix(): text.encode() for path, text in expected.items()}
    assert "+ distributed.py" in result.output and "~ train.py" in result.output
    # The whole change is staged, as after `git merge --no-commit`.
    assert git(folder, "diff") == "" and git(folder, "status", "--porcelain").count("\n") > 5
    commit(folder)
    result = tricks("remove", "ddp", "export", "p")
    assert result.exit_code == 0 and "- distributed.py" in result.output
    assert git(folder, "diff", "--cached", "HEAD~1") == ""


def inside(git_folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in git_folder.rglob("*") if path.is_file()}


def test_edits_stay_and_undo_takes_back_exactly_the_change(tricks: Run, project: Project) -> None:
    folder = project()
    insert(folder / "train.py", "def training_windows(", "# mine")
    (folder / "model.py").write_bytes(b"# caf\xe9, not UTF-8\r\nx = 1")
    (folder / "amp.py").chmod(0o755)
    (folder / "README.md").unlink()
    (folder / "run.py").rename(folder / "running.py")
    (folder / "curves.py").rename(folder / "my_curves.py")
    commit(folder)
    (folder / "notes.txt").write_text("not tracked\n", encoding="utf-8")
    before = state(folder)
    result = tricks("add", "ddp", "p", "--defaults")
    assert result.exit_code == 0, result.output
    assert "run.py: followed to its new name running.py" in result.output
    assert "curves.py: followed" not in result.output  # the change carries nothing to it
    assert "README.md: you deleted it" in result.output
    assert "# mine\n" in (folder / "train.py").read_text(encoding="utf-8")
    assert "distributed" in (folder / "running.py").read_text(encoding="utf-8")
    assert (folder / "amp.py").stat().st_mode & 0o111 and "all_gather" in (folder / "amp.py").read_text(
        encoding="utf-8"
    )
    assert not (folder / "README.md").exists() and (folder / "model.py").read_bytes().startswith(b"# caf\xe9")
    result = tricks("undo", "p")
    assert result.exit_code == 0 and state(folder) == before
    assert "nothing to undo" in tricks("undo", "p").output


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("committed", [False, True])
def test_undo_loses_no_edit_made_since(tricks: Run, project: Project, staged: bool, committed: bool) -> None:
    folder = project()
    clean = tree(folder)
    tricks("add", "ddp", "p", "--defaults")
    if committed:
        commit(folder)
    insert(folder / "train.py", "def training_windows(", "# mine")
    insert(folder / "distributed.py", "import", "# mine, in a file that the change added")
    if staged:
        git(folder, "add", "-A")
    before = state(folder)
    result = tricks("undo", "p")
    assert result.exit_code == 1 and "distributed.py, train.py were edited since `tricks add ddp`" in result.output
    assert state(folder) == before
    # What it says.
    assert "`tricks undo --force` takes the change back" in result.output
    result = tricks("undo", "p", "--force")
    assert result.exit_code == 0 and tree(folder) == clean
    command = result.output.partition("`git apply")[2].partition("`")[0]
    patch = Path(shlex.split(command)[-1])
    assert b"+# mine, in a file" in patch.read_bytes()
    git(folder, "apply", "--3way", "--include", "train.py", str(patch))
    assert tree(folder).keys() == clean.keys() and (folder / "train.py").read_text().count("# mine\n") == 1


def test_undo_after_conflicts_were_resolved(tricks: Run, project: Project) -> None:
    folder = project()
    insert(folder / "train.py", "run.scaler.unscale_", "    print('mine')")
    commit(folder)
    before = state(folder)
    assert tricks("remove", "amp", "p").exit_code == 3
    (folder / "train.py").write_text("resolved\n", encoding="utf-8")
    git(folder, "add", "train.py")
    assert tricks("undo", "p").exit_code == 1
    result = tricks("undo", "p", "--force")
    assert result.exit_code == 0 and state(folder) == before
    assert b"+resolved" in (folder / ".git/tricks/edits-1.patch").read_bytes()


def test_undo_on_another_branch_touches_and_forgets_nothing(tricks: Run, project: Project) -> None:
    folder = project()
    clean = tree(folder)
    git(folder, "branch", "before")
    tricks("add", "ddp", "p", "--defaults")
    commit(folder)
    git(folder, "switch", "-q", "before")  # at the very commit from which the change was made
    before = state(folder)
    result = tricks("undo", "p")
    assert result.exit_code == 1 and "nothing of it is in these files" in result.output and state(folder) == before
    git(folder, "commit", "-q", "--allow-empty", "-m", "other work")
    assert "undo` takes" not in tricks("status", "p").output
    before = state(folder)
    result = tricks("undo", "p")
    assert result.exit_code == 1 and "was made on branch " in result.output and state(folder) == before
    command = result.output.partition("run `")[2].partition("`")[0]
    git(folder, *shlex.split(command)[1:])
    assert tricks("undo", "p").exit_code == 0 and tree(folder) == clean


def test_undo_goes_with_a_change_to_a_new_branch_and_not_past_a_reset(tricks: Run, project: Project) -> None:
    folder = project()
    clean = tree(folder)
    tricks("add", "ddp", "p", "--defaults")
    git(folder, "switch", "-q", "-c", "with-ddp")
    assert tricks("undo", "p").exit_code == 0 and tree(folder) == clean
    (folder / "notes.txt").write_text("x\n", encoding="utf-8")
    commit(folder)
    tricks("add", "ddp", "p", "--defaults")
    commit(folder)
    git(folder, "reset", "-q", "--hard", "HEAD~2")
    before = state(folder)
    result = tricks("undo", "p")
    assert result.exit_code == 1 and "no longer part of it" in result.output and state(folder) == before


def test_undo_after_the_change_was_committed(tricks: Run, project: Project) -> None:
    folder = project()
    before = tree(folder)
    tricks("add", "ddp", "p", "--defaults")
    commit(folder)
    assert tricks("undo", "p").exit_code == 0
    assert tree(folder) == before and git(folder, "diff", "--cached", "HEAD~1") == ""


def test_conflict_is_named_by_line_and_stays_until_it_is_resolved(tricks: Run, project: Project) -> None:
    folder = project()
    insert(folder / "train.py", "run.scaler.unscale_", "    print('mine')")
    insert(folder / "amp.py", "DTYPES", "# mine too")
    commit(folder)
    before = state(folder)
    result = tricks("remove", "amp", "p")
    assert result.exit_code == 3
    assert "amp.py: is no longer part of the project, but you edited it: it is kept." in result.output
    assert "# mine too" in (folder / "amp.py").read_text(encoding="utf-8")
    places = [line.split(":")[1] for line in result.output.splitlines() if line.startswith("  train.py:")]
    first, last = map(int, places[0].split("-"))
    lines = (folder / "train.py").read_text(encoding="utf-8").splitlines()
    assert lines[first - 1] == "<<<<<<< yours" and lines[last - 1] == ">>>>>>> tricks: remove amp"
    assert "    print('mine')" in lines[first:last]
    status = tricks("status", "p")
    assert status.exit_code == 3 and f"train.py:{first}" in status.output and "amp.py (not added" in status.output
    # `git commit` refuses it, and the tool to go on. (`git commit -a` does not refuse it: the next test.)
    with pytest.raises(Exception, match="returned non-zero"):
        git(folder, "commit", "-m", "too early")
    assert "conflicts left in amp.py, train.py" in tricks("add", "ddp", "p", "--defaults").output
    git(folder, "add", "amp.py", "train.py")
    assert tricks("status", "p").exit_code == 3  # the markers are still there
    result = tricks("undo", "p")
    assert result.exit_code == 0 and state(folder) == before
    # Resolved by hand.
    tricks("remove", "amp", "p")
    text = (folder / "train.py").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.py").write_text("".join(line for line in text if line[:7] not in ("<" * 7, "=" * 7, ">" * 7)))
    git(folder, "rm", "-q", "--cached", "amp.py")
    (folder / "amp.py").unlink()
    commit(folder)
    assert tricks("status", "p").exit_code == 0


def test_committed_markers_are_found_by_status_and_by_the_generated_checks(tricks: Run, project: Project) -> None:
    folder = project("p", "recommended", "extras=pre_commit,github_actions")
    step = next(
        step["run"]
        for step in yaml.safe_load((folder / ".github/workflows/ci.yml").read_text())["jobs"]["test"]["steps"]
        if step.get("name") == "No conflict markers"
    )
    hooks = yaml.safe_load((folder / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    hook = next(hook for hook in hooks if hook["id"] == "conflict-markers")

    def checks() -> list[bool]:
        """Whether the workflow's step, the hook (as pre-commit runs a pygrep) and `tricks status` pass."""
        workflow = subprocess.run(["bash", "-e", "-c", step], cwd=folder, capture_output=True)
        texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
        found = any(re.search(hook["entry"].encode(), line) for text in texts for line in text.splitlines())
        return [workflow.returncode == 0, not found, tricks("status", "p").exit_code == 0]

    assert checks() == [True, True, True]
    insert(folder / "train.py", "run.scaler.unscale_", "    print('mine')")
    commit(folder)
    assert tricks("remove", "amp", "p").exit_code == 3
    git(folder, "commit", "-q", "-a", "-m", "git takes the markers along")
    assert checks() == [False, False, False]
    text = (folder / "train.py").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.py").write_text("".join(line for line in text if line[:7] != "<" * 7), encoding="utf-8")
    git(folder, "commit", "-q", "-a", "-m", "half of them")
    assert checks() == [False, False, False]
    assert "conflicts left in train.py" in tricks("add", "ddp", "p", "--defaults").output


@pytest.mark.parametrize("style", ["merge", "diff3", "zdiff3"])
def test_settings_of_git_do_not_matter(tricks: Run, project: Project, style: str) -> None:
    folder = project()
    for name, value in {
        "merge.conflictStyle": style,
        "diff.noprefix": "true",
        "diff.external": "false",
        "diff.renames": "false",
        "merge.renames": "false",
        "core.quotePath": "true",
        "color.ui": "always",
        "diff.algorithm": "patience",
        "status.showUntrackedFiles": "all",
        "commit.gpgSign": "true",
    }.items():
        git(folder, "config", name, value)
    insert(folder / "train.py", "run.scaler.unscale_", "    print('mine')")
    git(folder, "-c", "commit.gpgSign=false", "commit", "-qam", "mine")
    result = tricks("remove", "amp", "p", "--dry-run")
    assert result.exit_code == 3 and "+++ b/train.py" in result.output
    result = tricks("remove", "amp", "p")
    text = (folder / "train.py").read_text(encoding="utf-8")
    assert result.exit_code == 3 and "<<<<<<< yours\n" in text and ">>>>>>> tricks: remove amp\n" in text
    assert ("||||||| before\n" in text) == (style != "merge")


def test_dry_run_and_diff_show_what_would_be_applied_and_change_nothing(tricks: Run, project: Project) -> None:
    folder = project()
    insert(folder / "train.py", "def training_windows(", "# mine")
    commit(folder)
    git(folder, "config", "core.splitIndex", "true")  # git would write the shared part of an index beside the real one
    before, in_git = state(folder), inside(folder / ".git")
    shown = tricks("add", "ddp", "p", "--defaults", "--dry-run")
    assert shown.exit_code == 0 and state(folder) == before
    assert inside(folder / ".git") == in_git
    assert tricks("diff", "add", "ddp", "p", "--defaults").stdout == shown.stdout
    tricks("add", "ddp", "p", "--defaults")
    applied = git(folder, "diff", "--cached", "-M")
    assert shown.stdout.strip() == applied.strip()


def test_a_project_in_a_folder_of_a_repository(tricks: Run, tmp_path: Path) -> None:
    top = tmp_path / "work" / "mono répo"
    (top / "other").mkdir(parents=True)
    (top / "other/train.py").write_text("print()\n", encoding="utf-8")
    folder = top / "my projects" / "数字"
    assert tricks("new", str(folder), "--defaults", "--no-git").exit_code == 0
    insert(folder / "train.py", "def training_windows(", "# mine")
    commit(top)
    (top / "other/train.py").write_text("edited\n", encoding="utf-8")  # not our business
    before = tree(top), git(top, "ls-files", "--stage")
    result = tricks("add", "ddp", str(folder), "--defaults")
    assert result.exit_code == 0, result.output
    assert (folder / "distributed.py").is_file() and not (top / "distributed.py").exists()
    assert "# mine" in (folder / "train.py").read_text(encoding="utf-8")
    assert git(top, "diff", "--name-only") == "other/train.py"
    assert all(
        name.startswith("my projects/数字/")
        for name in git(top, "diff", "--cached", "--name-only", "-z").split("\0")[:-1]
    )
    assert tricks("status", str(folder)).exit_code == 0
    assert tricks("undo", str(folder)).exit_code == 0
    assert (tree(top), git(top, "ls-files", "--stage")) == before


@pytest.mark.parametrize("converted", [True, False], ids=["autocrlf", "committed with CRLF"])
def test_windows_line_endings(tricks: Run, project: Project, converted: bool) -> None:
    folder = project()
    git(folder, "config", "core.autocrlf", str(converted).lower())
    for path in folder.rglob("*"):
        if path.is_file() and ".git" not in path.parts:
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    insert(folder / "train.py", "def training_windows(", "# mine\r")
    git(folder, "-c", "core.safecrlf=false", "add", "-A")
    git(folder, "commit", "-qm", "CRLF")
    before = state(folder)
    result = tricks("add", "ddp", "p", "--defaults")
    assert result.exit_code == 0, result.output
    for path in git(folder, "diff", "--name-only", "--diff-filter=M", "HEAD").splitlines():
        if path == ".copier-answers.yml" and not converted:
            continue  # always as the template writes it
        data = (folder / path).read_bytes()
        assert data.count(b"\n") == data.count(b"\r\n"), path
        stored = git(folder, "ls-files", "--eol", path).split()[0]
        assert stored == ("i/lf" if converted else "i/crlf"), path
    assert b"# mine\r\n" in (folder / "train.py").read_bytes()
    assert git(folder, "diff", "--stat") == ""
    assert tricks("undo", "p").exit_code == 0 and state(folder) == before


def test_sha256_repositories_and_linked_work_trees(tricks: Run, project: Project) -> None:
    folder = project()
    shutil.rmtree(folder / ".git")
    git(folder, "init", "-q", "--object-format=sha256")
    commit(folder)
    git(folder, "worktree", "add", "-q", "../linked", "-b", "linked")
    insert(folder / "train.py", "def training_windows(", "# mine")
    commit(folder)
    before = state(folder)
    assert tricks("add", "ddp", "p", "--defaults").exit_code == 0
    assert "nothing to undo" in tricks("undo", "linked").output
    assert tricks("remove", "amp", "linked").exit_code == 0
    assert tricks("undo", "p").exit_code == 0 and state(folder)[:3] == before[:3]
    assert tricks("undo", "linked").exit_code == 0 and git(Path("linked"), "status", "--porcelain") == ""


def test_a_change_that_cannot_be_written_leaves_everything_as_it_was(tricks: Run, project: Project) -> None:
    folder = project()
    before = state(folder)
    (folder / ".git/index.lock").touch()
    result = tricks("add", "ddp", "p", "--defaults")
    assert result.exit_code == 1 and "everything is as it was" in result.output and result.output.count("\n") == 1
    (folder / ".git/index.lock").unlink()
    assert state(folder) == before and "nothing to undo" in tricks("undo", "p").output


def test_a_change_that_was_killed_halfway_can_be_undone(
    tricks: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tricks.project import worktree

    folder = project()
    before = state(folder)
    with monkeypatch.context() as patch:
        patch.setattr(worktree, "set_index", lambda *_: os._exit(9))
        child = os.fork()
        if child == 0:
            tricks("add", "ddp", "p", "--defaults")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (folder / "distributed.py").exists()
    assert tricks("undo", "p").exit_code == 0 and state(folder) == before


def test_a_renamed_folder_gets_the_new_files_too(tricks: Run, project: Project) -> None:
    folder = project()
    (folder / "tests").rename(folder / "proofs")
    commit(folder)
    before = tree(folder)
    assert tricks("add", "ddp", "p", "--defaults").exit_code == 0
    assert (folder / "proofs/test_distributed.py").is_file() and not (folder / "tests").exists()
    commit(folder)
    assert tricks("remove", "ddp", "p").exit_code == 0 and tree(folder) == before


def test_set(tricks: Run, project: Project) -> None:
    folder = project()
    before = tree(folder)
    assert tricks("set", "schedule=plateau", "clip=value", "p").exit_code == 0
    assert answers(folder)["schedule"] == "plateau" and "max_value" in (folder / "clipping.py").read_text()
    commit(folder)
    assert tricks("set", "schedule=warmup_cosine", "clip=norm", "p").exit_code == 0 and tree(folder) == before
    commit(folder)
    assert "Nothing to change" in tricks("set", "clip=norm", "p").output
    assert "Nothing to change" in tricks("add", "amp", "p").output
    assert tricks("set", "preset=minimal", "p").exit_code == 0 and answers(folder)["techniques"] == []


def test_the_order_of_the_recorded_techniques(tricks: Run, project: Project) -> None:
    folder = project("p", "-d", "techniques=ddp,amp")
    text = (folder / ".copier-answers.yml").read_text(encoding="utf-8")
    (folder / ".copier-answers.yml").write_text(text.replace("- amp\n- ddp\n", "- ddp\n- amp\n"), encoding="utf-8")
    commit(folder)
    before = tree(folder)
    tricks("add", "compile", "p")
    assert answers(folder)["techniques"] == ["amp", "ddp", "compile"]  # that of the choices, as Copier has it
    commit(folder)
    tricks("remove", "compile", "p")
    assert answers(folder)["techniques"] == ["amp", "ddp"]
    assert {**tree(folder), ".copier-answers.yml": b""} == {**before, ".copier-answers.yml": b""}
    commit(folder)
    other = project("q", "-d", "techniques=amp,ddp")
    tricks("add", "accumulation", "q")
    assert answers(other)["techniques"] == ["amp", "accumulation", "ddp"]


def test_one_grammar(tricks: Run, project: Project) -> None:
    folder = project("p", "recommended")
    assert tricks("set", "+ddp", "-amp", "schedule=plateau", "p").exit_code == 0
    assert answers(folder)["techniques"] == ["accumulation", "clipping", "scheduler", "param_groups", "ddp"]
    assert answers(folder)["schedule"] == "plateau"
    commit(folder)
    assert tricks("add", "export", "+pre_commit", "export_formats=onnx", "p").exit_code == 0
    assert answers(folder)["export_formats"] == ["onnx"] and answers(folder)["extras"] == ["pre_commit"]
    commit(folder)
    assert tricks("remove", "ddp,export", "pre_commit", "p").exit_code == 0
    assert answers(folder)["extras"] == [] and "export_formats" not in answers(folder)
    commit(folder)
    assert tricks("set", "minimal", "p").exit_code == 0 and answers(folder)["techniques"] == []
    commit(folder)
    assert tricks("set", "amp", "ddp", "p").exit_code == 0 and answers(folder)["techniques"] == ["amp", "ddp"]


def test_the_project_is_found_from_its_sub_folders(
    tricks: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project()
    (folder / "a/b").mkdir(parents=True)
    for place in (folder, folder / "tests", folder / "a/b"):
        monkeypatch.chdir(place)
        assert tricks("status").exit_code == 0
        assert "+++ b/distributed.py" in tricks("diff", "add", "ddp").stdout
        assert tricks("add", "ddp").exit_code == 0 and (folder / "distributed.py").exists()
        assert tricks("undo").exit_code == 0 and not (folder / "distributed.py").exists()
    monkeypatch.chdir(folder.parent)
    assert tricks("status").exit_code == 1
    assert tricks("status", "p/tests").exit_code == 0
