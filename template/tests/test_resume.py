"""Resume: a run that was stopped anywhere and gone on with is, bit for bit, the run that was not stopped."""

import random
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import torch
from conftest import rows, stop_in

# {% filter regex_replace("\n+", "\n") %}
import train
from arguments import from_arguments, to_arguments
from checkpoint import read

# {% if accumulation %}
from config import AccumulationConfig, Config, parse, write_config

# {% else %}
from config import Config, parse, write_config

# {% endif %}
from loader import First, LoaderConfig
from progress import Progress
from resume import check_data
from run_folder import new_folder, open_folder
from scores import METRIC, PICK

# {% endfilter %}


@pytest.mark.parametrize(
    ("function", "number", "workers"),
    [("step", signal.SIGINT, 0), ("evaluate", signal.SIGTERM, 0), ("step", signal.SIGTERM, 2)],
)
def test_run_stopped_everywhere_is_the_uninterrupted_one(
    run_in: Callable[..., int],
    config: Config,
    host_sources: tuple[First, First],
    same: Callable[..., bool],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    function: str,
    number: int,
    workers: int,
) -> None:
    # {% if accumulation %}
    config = replace(config, batch_size=4, accumulation=AccumulationConfig(2))
    # {% endif %}
    if workers:  # through the DataLoader, also where the samples lie on the device
        config = replace(config, epochs=1, loader=LoaderConfig(workers=workers))
        for source in host_sources:
            monkeypatch.setattr(source, "on_device", False)
        monkeypatch.setattr(train, "load", lambda *arguments: host_sources)
    assert run_in(tmp_path / "whole", config) == 0
    codes = [-1]
    while codes[-1]:
        with pytest.MonkeyPatch.context() as patch:
            # In the first step of each run, or in each evaluation, which the next run makes before anything else.
            stop_in(patch, function, 2 if function == "evaluate" and len(codes) > 1 else 1, number)
            codes.append(run_in(tmp_path / "cut", replace(config, resume=len(codes) > 1)))
        if codes[-1]:
            # What a killed run may leave: a row from after its checkpoint, and half a row.
            with (tmp_path / "cut" / "metrics.jsonl").open("a") as log:
                log.write('{"step": 999}\n{"ste')
    assert codes[1:] == [128 + number] * (config.epochs if function == "evaluate" else 4 * config.epochs) + [0]
    assert same(rows(tmp_path / "cut"), rows(tmp_path / "whole"))
    for name in ("last.pt", "best.pt"):
        whole, cut = (read(tmp_path / folder / "checkpoints" / name) for folder in ("whole", "cut"))
        different = [key for key in whole if key != "config" and not same(whole[key], cut[key])]
        assert not different, f"{name}: {different} differ; is something in data.py or model.py random without a seed?"


def test_a_run_saved_by_the_clock_is_the_same_run(
    run_in: Callable[..., int], config: Config, same: Callable[..., bool], tmp_path: Path
) -> None:
    assert run_in(tmp_path / "whole", config) == 0
    # The time is over at each step: they all are saved, and `keep` of them stay.
    assert run_in(tmp_path / "saved", replace(config, checkpoint_minutes=1e-9, keep=3)) == 0
    folder = tmp_path / "saved" / "checkpoints"
    kept = [read(folder / f"{name}.pt") for name in ("last", "previous", "previous-2", "previous-3")]
    assert [content["progress"]["step"] for content in kept] == [8, 7, 6, 5]
    assert {path.name for path in folder.iterdir()} == {
        "best.pt",
        "last.pt",
        "previous.pt",
        "previous-2.pt",
        "previous-3.pt",
    }
    assert same(kept[0]["model"], read(tmp_path / "whole" / "checkpoints" / "last.pt")["model"])
    again = replace(config, epochs=3, resume=True, checkpoint_minutes=1e-9, keep=0)
    # {% if stepwise %}
    again = replace(again, schedule=replace(again.schedule, extend=True))
    # {% endif %}
    assert run_in(tmp_path / "saved", again) == 0
    assert {path.name for path in folder.iterdir()} == {"best.pt", "last.pt"}


def test_random_numbers_go_on_where_they_stopped(
    run_in: Callable[..., int], config: Config, device: torch.device, tmp_path: Path
) -> None:
    """Those of the device, torch, Python and NumPy, which the owner's model or data may draw."""
    numpy = pytest.importorskip("numpy")
    make_step, drawn = train.step, {"whole": [], "again": [], "cut": []}
    for folder, numbers in drawn.items():

        def step(*arguments: Any, numbers: list[Any] = numbers) -> Any:
            on_device = float(torch.rand((), device=device))
            numbers.append((on_device, float(torch.rand(())), random.random(), numpy.random.random()))
            return make_step(*arguments)

        for resume in (False, True) if folder == "cut" else (False,):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(train, "step", step)
                if folder == "cut" and not resume:
                    stop_in(patch, "step", 3, signal.SIGTERM)
                run_in(tmp_path / folder, replace(config, resume=resume))
    assert drawn["whole"] == drawn["again"] == drawn["cut"]


def test_rows_are_in_the_file_before_the_checkpoint_that_counts_on_them(
    run_in: Callable[..., int], config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, seen = train.save, []

    def look(path: Path, parts: Any, progress: Progress, *more: Any) -> None:
        assert [row["step"] for row in rows(tmp_path) if "grad_norm" in row] == list(range(1, progress.step + 1))
        seen.append(progress.step)
        save(path, parts, progress, *more)

    monkeypatch.setattr(train, "save", look)
    run_in(tmp_path, replace(config, checkpoint_every=3))
    assert {3, 6, 8} <= set(seen)


def test_a_worse_model_never_takes_the_place_of_the_best(
    run_in: Callable[..., int], config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_in(patch, "step", 6, signal.SIGINT)
        run_in(tmp_path, config)
    best = (tmp_path / "checkpoints" / "best.pt").read_bytes()
    monkeypatch.setattr(train, "evaluate", lambda *arguments: {METRIC: 1e9 if PICK is min else -1e9})
    assert run_in(tmp_path, replace(config, resume=True)) == 0
    assert (tmp_path / "checkpoints" / "best.pt").read_bytes() == best


def test_finished_run_has_nothing_to_do(
    run_in: Callable[..., int], config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(tmp_path, config)
    before = (tmp_path / "checkpoints" / "last.pt").read_bytes()
    assert run_in(tmp_path, replace(config, resume=True)) == 0
    assert "Nothing to do" in capsys.readouterr().out
    assert (tmp_path / "checkpoints" / "last.pt").read_bytes() == before


def test_damaged_checkpoint_gives_way_to_the_one_before(
    run_in: Callable[..., int], config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(tmp_path, config)
    last = tmp_path / "checkpoints" / "last.pt"
    content = bytearray(last.read_bytes())
    with zipfile.ZipFile(last) as archive:  # inside its largest part: there is room between them that nothing reads
        part = archive.read(max(archive.infolist(), key=lambda info: info.file_size))
    content[content.index(part) + len(part) // 2] ^= 1
    last.write_bytes(content)
    assert run_in(tmp_path, replace(config, resume=True)) == 0
    assert "is damaged" in capsys.readouterr().out


def test_run_ended_before_its_first_checkpoint_begins_anew(
    run_in: Callable[..., int], config: Config, same: Callable[..., bool], tmp_path: Path
) -> None:
    run_in(tmp_path / "whole", config)
    run_in(tmp_path / "anew", replace(config, resume=True))
    assert same(rows(tmp_path / "anew"), rows(tmp_path / "whole"))


def test_other_data_are_refused_or_go_on_with_the_next_epoch(
    run_in: Callable[..., int],
    config: Config,
    sources: tuple[First, First],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_in(patch, "step", 2, signal.SIGTERM)
        run_in(tmp_path, config)
    again = replace(config, epochs=3, resume=True)
    monkeypatch.setattr(sources[0], "size", 18)  # 3 steps of 8, 5 and 5
    with pytest.raises(SystemExit, match="26 training samples and there are 18"):
        run_in(tmp_path, again)
    # {% if stepwise %}
    again = replace(again, schedule=replace(again.schedule, extend=True))
    # {% endif %}
    with pytest.MonkeyPatch.context() as patch:
        stop_in(patch, "step", 2, signal.SIGTERM)
        run_in(tmp_path, replace(again, resume_data_changed=True))
    assert run_in(tmp_path, again) == 0
    # Two steps of the first epoch, and two whole ones.
    assert [(row["step"], row["epoch"]) for row in rows(tmp_path) if "grad_norm" in row] == [
        (1, 0),
        (2, 0),
        *((step, 1) for step in (3, 4, 5)),
        *((step, 2) for step in (6, 7, 8)),
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="nothing keeps a second run out of a folder there")
def test_one_run_at_a_time_in_a_folder(tmp_path: Path) -> None:
    assert new_folder(tmp_path) != new_folder(tmp_path)
    hold = f"from run_folder import *; open_folder(Path({str(tmp_path)!r}), False); print(flush=True); input()"
    folder = Path(__file__).parents[1]
    with subprocess.Popen([sys.executable, "-c", hold], cwd=folder, stdin=PIPE, stdout=PIPE) as other:
        try:
            assert other.stdout is not None and other.stdout.readline()
            with pytest.raises(SystemExit, match=f"in use by process {other.pid} "):
                open_folder(tmp_path, resume=True)
        finally:
            other.kill()
    assert open_folder(tmp_path, resume=True) == tmp_path, "the lock outlives its process"


def test_other_labels_are_refused() -> None:
    """A renamed class folder would give the model's outputs another meaning in silence."""
    saved = {"info": {"classes": ["cat", "dog"]}, "samples": {"training": 3}}
    assert not check_data(saved, saved, allowed=False)
    with pytest.raises(SystemExit, match=r"classes was .*dog.* and is .*ant"):
        check_data(saved, saved | {"info": {"classes": ["ant", "cat"]}}, allowed=False)
    with pytest.raises(SystemExit, match=r"source\.info is another"):
        check_data(saved, saved | {"info": ["ant", "cat"]}, allowed=False)


def test_config_comes_back_as_it_was(tmp_path: Path) -> None:
    """Whatever types the values of DataConfig have."""
    config = parse([])
    assert from_arguments(Config, to_arguments(config)) == config
    write_config(tmp_path, config)
    again = parse(["--resume", "--run-dir", str(tmp_path)])
    assert replace(again, resume=False, run_dir=None) == config


def test_other_settings_are_refused(run_in: Callable[..., int], config: Config, tmp_path: Path) -> None:
    run_in(tmp_path, config)
    with pytest.raises(SystemExit, match="begun with --lr"):
        run_in(tmp_path, replace(config, resume=True, lr=config.lr / 2))
