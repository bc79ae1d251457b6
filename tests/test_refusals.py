"""What `tricks new` refuses: one sentence, and nothing written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Variables = Callable[..., dict[str, str]]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-d", "techniques=ampp"], "did you mean 'amp'?"),
        (["-d", "amp=true"], "amp follows from techniques"),
        (["--preset", "everythin"], "did you mean 'everything'?"),
        (["--preset", "minimal", "-d", "techniques=amp"], "leave out one"),
        (["--data-file", "none.yml"], "No such file"),
        (["-d", "project_name=a\nb"], "The name holds a line break"),
        (["-d", "project_name= "], "The name is empty"),
        (["-d", "project_name=\udcff"], "The name holds"),
        (["-d", "project_name=" + "x" * 101], "longer than 100 characters"),
        (["-d", "author=\x1b[31m"], "The author holds a line break, a control character"),
        (["-d", "techniques=export", "-d", "export_formats="], "Choose at least one export format"),
    ],
)
def test_wrong_value_is_one_sentence_and_writes_nothing(tricks: Run, arguments: list[str], sentence: str) -> None:
    result = tricks("new", "p", "--defaults", *arguments)
    assert result.exit_code == 1 and sentence in result.output, result.output
    assert result.output.startswith("Error: ") and result.output.count("\n") == 1
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("destination", "sentence"),
    [
        ("full", "'full' is not empty"),
        ("file", "'file' exists and is no folder"),
        ("file/p", "cannot be created: 'file' is a file"),
        ("file/p/q", "cannot be created: 'file' is a file"),
        ("link", "'link' exists and is no folder"),
        ("x" * 300, "File name too long"),
        ("/proc/tricks", "cannot be written to '/proc/tricks'"),
        ("/dev/null/p", "cannot be created: '/dev/null' is a file"),
    ],
)
def test_impossible_destination_is_refused_before_any_question(tricks: Run, destination: str, sentence: str) -> None:
    Path("full").mkdir()
    Path("full/x").touch()
    Path("file").touch()
    Path("link").symlink_to("nowhere")
    before = sorted(Path().rglob("*"))
    result = tricks("new", destination)
    assert result.exit_code == 1 and sentence in result.output, result.output
    assert result.output.count("\n") == 1
    assert sorted(Path().rglob("*")) == before


def test_failure_while_writing_leaves_nothing(tricks: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (OSError(28, "No space left on device"), KeyboardInterrupt()):

        def fail(*_: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr("tricks.project.new.commit", fail)
        result = tricks("new", "a/p", "--defaults")
        assert result.exit_code in (1, 130) and "Traceback" not in result.output
        assert os.listdir() == []
