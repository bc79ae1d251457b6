"""The runner finds, names, shrinks and repeats failures, ends what hangs, and runs again only what changed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from matrix import plans
from matrix.jobs import Job, amp_dtypes, digest, parse
from matrix.reaper import descendants
from matrix.results import Results
from matrix.space import Space
from tests.choices import ROOT, SPACE
from tricks.template.rendering import Template


@pytest.fixture
def broken(tmp_path: Path) -> Callable[[str, str, str], Path]:
    """A copy of the template in which one text is replaced, once."""

    def make(name: str, before: str, after: str) -> Path:
        folder = tmp_path / "broken"
        shutil.copytree(ROOT / "template", folder / "template")
        shutil.copy(ROOT / "copier.yml", folder)
        path = folder / "template" / name
        text = path.read_text(encoding="utf-8")
        assert before in text, f"{name} has changed: choose another place to break"
        path.write_text(text.replace(before, after, 1), encoding="utf-8")
        return folder

    return make


def matrix(*arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """`python -m matrix ARGUMENTS`: in a process of its own, since it forks."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    command = [sys.executable, "-m", "matrix", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout)


def told_jobs(output: str, mark: str) -> list[dict[str, Any]]:
    """The jobs of the lines that hold the mark and a command."""
    lines = [line for line in output.splitlines() if mark in line and "python -m matrix one" in line]
    return [json.loads(shlex.split(line.partition("python -m matrix one ")[2])[0]) for line in lines]


THREE = """\
    # {% if accumulation and clipping and debug %}
    raise RuntimeError("these three do not go together")
    # {% endif %}
"""


def test_what_three_options_together_cause_is_found_shrunk_and_repeated(broken: Callable[..., Path]) -> None:
    template = broken("run.py", "    seed_generators(config.seed)\n", f"    torch.manual_seed(config.seed)\n{THREE}")
    vary = "amp,accumulation,clipping,clip,debug,param_groups,cache,task"
    done = matrix("--template", str(template), "--vary", vary, "train", "triples", "--fresh")
    assert done.returncode == 1, done.stdout + done.stderr
    smallest = told_jobs(done.stdout, "smallest")
    assert smallest and "these three do not go together" in done.stdout, done.stdout + done.stderr
    for job in smallest:
        assert set(job["choice"]["techniques"]) == {"accumulation", "clipping", "debug"}, job
        assert job["choice"]["task"] == "image"
    again = matrix("--template", str(template), "one", json.dumps(smallest[0]))
    assert again.returncode == 1 and "these three do not go together" in again.stdout, again.stdout + again.stderr
    assert matrix("one", json.dumps(smallest[0])).returncode == 0, "the template itself has no such fault"


def test_a_project_that_hangs_is_ended_with_what_it_started(broken: Callable[..., Path], tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    hang = (
        "def main() -> int:\n    import subprocess, time\n"
        "    children = [subprocess.Popen(['sleep', '600'], start_new_session=apart) for apart in (False, True)]\n"
        f"    Path({str(mark)!r}).write_text(' '.join(str(child.pid) for child in children))\n"
        "    time.sleep(600)\n"
    )
    template = broken("train.py", "def main() -> int:\n", hang)
    job = Job(SPACE.choice(next(SPACE.rows())))
    began = time.monotonic()
    done = matrix("--template", str(template), "one", job.text(), "--timeout", "5")
    assert done.returncode == 1 and "still running after 5 s" in done.stdout, done.stdout + done.stderr
    assert time.monotonic() - began < 120
    assert gone([int(pid) for pid in mark.read_text().split()])


def test_a_runner_that_is_ended_ends_its_children(broken: Callable[..., Path], tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    hang = f"def main() -> int:\n    import time\n    Path({str(mark)!r}).touch()\n    time.sleep(600)\n"
    template = broken("train.py", "def main() -> int:\n", hang)
    command = [
        sys.executable,
        "-m",
        "matrix",
        "--template",
        str(template),
        "one",
        Job(SPACE.choice(next(SPACE.rows()))).text(),
    ]
    process = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ, OMP_NUM_THREADS="1"))
    try:
        deadline = time.monotonic() + 120
        while not mark.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        children = descendants(process.pid)
        assert children, "the project has not begun"
        process.terminate()
        assert process.wait(30) == 143
    finally:
        process.kill()
    assert gone(children)


STARTS = """
import sys, time
from pathlib import Path
from tests import warm
process, _ = warm.start(Path(sys.argv[1]), "hang.py")
time.sleep(600)
"""
HANGS = """
import os, subprocess, time
from pathlib import Path
started = [os.getpid(), *(subprocess.Popen(["sleep", "600"], start_new_session=apart).pid for apart in (False, True))]
Path("pids.part").write_text(" ".join(map(str, started)))
Path("pids.part").rename("pids")
time.sleep(600)
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_who_ends_without_a_word(tmp_path: Path, end: signal.Signals) -> None:
    """As pytest does when it is sent SIGTERM: the child, its own children and the warm process go with it."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "hang.py").write_text(HANGS)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "generator")]))
    process = subprocess.Popen([sys.executable, "-c", STARTS, str(project)], cwd=tmp_path, env=environment)
    try:
        deadline = time.monotonic() + 120
        while not (project / "pids").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        pids = [int(pid) for pid in (project / "pids").read_text().split()]
        pids += descendants(process.pid)
        process.send_signal(end)
        process.wait(30)
    finally:
        process.kill()
    assert gone(pids)


def gone(pids: list[int]) -> bool:
    """Whether these processes end within ten seconds."""
    deadline = time.monotonic() + 10
    while not all(zombie(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def zombie(pid: int) -> bool:
    """Whether it has ended, and nobody has asked how; also when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


OUTCOMES = {
    "a loss that does not fall": ("train.py", "    run.progress.next_step()\n", "    for p in run.parameters():\n"
        "        p.data.zero_()\n    run.progress.next_step()\n", "the loss does not fall"),
    "a warning": ("train.py", "    timer = SaveTimer(config.checkpoint_minutes)\n", "    import warnings\n"
        "    warnings.warn('odd')\n    timer = SaveTimer(config.checkpoint_minutes)\n", "a warning"),
    "a number that is no JSON": ("log.py", "json.dumps(row | finite, allow_nan=False)",
        "json.dumps(row | {'x': math.nan})", "which is not JSON"),
    "a checkpoint that is not kept": ("checkpoint.py", "newer.replace(older)", "newer.unlink()",
        "checkpoints/ holds"),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTCOMES)
def test_what_a_run_must_not_do_is_seen(broken: Callable[..., Path], name: str) -> None:
    file, before, after, told = OUTCOMES[name]
    template = broken(file, before, after)
    done = matrix("--template", str(template), "one", Job(SPACE.choice(next(SPACE.rows()))).text())
    assert done.returncode == 1 and told in done.stdout.splitlines()[-1], done.stdout + done.stderr


def test_only_what_changed_runs_again(tmp_path: Path) -> None:
    """The key of a result is that of the rendered files: an option that changes none of them shares it."""
    space = Space(Template(ROOT))
    base = Job(space.choice(next(space.rows())))
    project = space.template.render(base.choice)
    key = digest(project, base, "here")
    assert key == digest(dict(project), base, "here")
    changed = {Path("train.py"): project[Path("train.py")] + "\n"}
    others = [digest(project | changed, base, "here"), digest(project, Job(base.choice, proofs=True), "here")]
    others += [digest(project, Job(base.choice, amp="bf16"), "here"), digest(project, base, "there")]
    assert len({key, *others}) == 5
    kept = Results(tmp_path / "results.jsonl")
    kept.add(key, 1.5)
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"key": "cut')  # a run that was killed while it wrote
    assert Results(tmp_path / "results.jsonl").seconds == {key: 1.5}


def test_the_headline_is_every_combination() -> None:
    jobs = plans.headline(SPACE)
    schedules = len(SPACE.options["schedule"].values)  # off is one of them
    formats = 1 + sum(option.question == "export_formats" for option in SPACE.options.values())
    dtypes = len(amp_dtypes(SPACE.template))  # without the technique, and each type but `off`
    tasks = len(SPACE.options["task"].values)
    assert len({job.text() for job in jobs}) == len(jobs) == tasks * dtypes * 2 * 2 * schedules * formats * 2
    assert all(SPACE.valid(SPACE.row_of(job.choice)) for job in jobs)


def test_a_job_that_is_none_gets_a_sentence() -> None:
    for text, told in (("{", "not a job"), ('{"choice": {"techniques": ["nosuch"]}}', "nosuch"),
                       ('{"choice": {"techniques": ["export"], "export_formats": []}}', "not valid")):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            parse(text, SPACE)
    done = matrix("one", "{")
    assert done.returncode == 1 and "Traceback" not in done.stderr and "not a job" in done.stderr, done.stderr
