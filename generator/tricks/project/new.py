"""Writes a project: Copier asks and renders beside the destination, then the result is moved into place."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import shlex
import shutil
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tricks import UserError
from tricks.template.source import Source


@dataclass(frozen=True)
class Written:
    """What was written: file names relative to the project, and copier.yml's closing message.

    `unused` names given answers whose question does not arise with the other answers.
    """

    files: list[Path]
    message: str
    unused: list[str]


class Interrupted(Exception):
    """The person left at a prompt; nothing was written."""


def check_destination(destination: Path) -> Path:
    """The folder that will hold the unfinished project: the destination, or its nearest parent that exists.

    Raises UserError when a project cannot be written to the destination. Called before anything is asked.
    """
    try:
        if destination.is_dir():
            if any(entry.name != ".git" for entry in destination.iterdir()):
                raise UserError(f"The folder {str(destination)!r} is not empty: name a new one.")
            holder = destination
        elif os.path.lexists(destination):
            raise UserError(f"{str(destination)!r} exists and is no folder: name a new one.")
        else:
            holder = next(parent for parent in destination.parents if os.path.lexists(parent))
        if not holder.is_dir():
            raise UserError(f"The folder {str(destination)!r} cannot be created: {str(holder)!r} is a file.")
        os.stat(destination.parent / destination.name)  # tells a name that is too long
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _cannot_write(destination, error) from error
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".tricks-", dir=holder))
    except OSError as error:
        raise _cannot_write(destination, error) from error
    return holder


def write(source: Source, destination: Path, answers: dict[str, Any], defaults: bool) -> Written:
    """Ask what `answers` leaves open (nothing with `defaults`) and write the project to the destination."""
    unfinished = check_destination(destination) / f".tricks-{secrets.token_hex(6)}"
    try:
        worker = _render(source, unfinished, answers, defaults)
        record(unfinished / worker.answers_relpath, source)
        files = sorted(path.relative_to(unfinished) for path in unfinished.rglob("*") if path.is_file())
        _move(unfinished, destination)
    except OSError as error:
        raise _cannot_write(destination, error) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    unused = [name for name in answers if name in worker.answers.hidden and name != "preset"]
    return Written(files, _closing_message(worker, destination), unused)


def _render(source: Source, folder: Path, answers: dict[str, Any], defaults: bool) -> Any:
    from copier import run_copy
    from copier.errors import CopierError, InteractiveSessionError
    from jinja2 import TemplateError

    terminal = sys.stdin is not None and sys.stdin.isatty()
    keyboard = sys.stdin
    try:
        with warnings.catch_warnings(), contextlib.ExitStack() as stack:
            warnings.simplefilter("ignore")
            if not terminal:  # at a pipe that stays open the first prompt would wait for ever
                sys.stdin = io.StringIO()
                stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            return run_copy(str(source.root), folder, answers, defaults=defaults, quiet=True)
    except KeyboardInterrupt as error:
        raise Interrupted from error
    except InteractiveSessionError as error:
        if terminal:
            raise Interrupted from error
        raise UserError(
            "There is no terminal to ask at: add --defaults, or answer every question by -d or --data-file."
        ) from error
    except (CopierError, ValueError) as error:
        raise UserError(_sentence(error)) from error
    except Exception as error:  # a fault of the template or of Copier; jinja2.TemplateNotFound is an OSError
        if isinstance(error, OSError) and not isinstance(error, TemplateError):
            raise
        raise UserError(f"Please report this fault: {type(error).__name__}: {_sentence(error)}") from error
    finally:
        sys.stdin = keyboard


def _sentence(error: Exception) -> str:
    """Copier's message without its preamble."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text.partition("Validation error for question ")[2].partition(": ")[2] or text


def record(answers_file: Path, source: Source) -> None:
    """Write the source's address and version into the answers file, in Copier's own format."""
    text = answers_file.read_text(encoding="utf-8")
    comments = [line for line in text.splitlines(keepends=True) if line.startswith("#")]
    answers = yaml.safe_load(text) | {"_commit": source.commit, "_src_path": source.url}
    body = yaml.safe_dump(answers, indent=4, allow_unicode=True, default_flow_style=False)
    answers_file.write_text("".join(comments) + body, encoding="utf-8", newline="\n")


def _move(unfinished: Path, destination: Path) -> None:
    if destination.is_dir():  # perhaps the current folder of a shell: fill it, leave it in place
        for path in unfinished.iterdir():
            path.rename(destination / path.name)
    else:
        destination.parent.mkdir(parents=True, exist_ok=True)
        unfinished.rename(destination)


def _cannot_write(destination: Path, error: OSError) -> UserError:
    return UserError(f"The project cannot be written to {str(destination)!r}: {error.strerror or error}.")


def _closing_message(worker: Any, destination: Path) -> str:
    """copier.yml's message after a copy, with the destination in place of the folder of the rendering."""
    from jinja2 import Environment

    template = Environment().from_string(worker.template.message_after_copy)
    return template.render(worker.answers.combined, _copier_conf={"dst_path": shlex.quote(str(destination))})
