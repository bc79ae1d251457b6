"""What is common to all commands: -NAME is a word, an error is one sentence, -h helps, NO_COLOR is honoured."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tricks import Interrupted, UserError
from tricks.git import GitError
from tricks.template import questions, source

# -amp is a word, where -h, -d KEY=VALUE and -dKEY=VALUE are options. typer sees the word behind this character.
SHIELD = "\0"
MINUS_NAME = re.compile(r"-[A-Za-z][\w,]+")


class AsTyped:
    """Takes words as they are. typer's own conversion imports pydantic, a third of the time of `tricks show`."""

    def __init__(self, parameter: Any) -> None:
        self.is_path = parameter.type_descriptor.annotation is Path

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if param.multiple or param.nargs == -1:
            return list(value or ())
        return Path(value) if self.is_path and value is not None else value


class Quick:
    """The parameters of a command, taken as they are typed."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            # An older typer, which has no such method, converts without pydantic.
            parameter.get_runtime_param = lambda parameter=parameter: AsTyped(parameter)
        return parameters


class Command(Quick, TyperCommand):
    """A command in whose words a name may have a minus sign."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [SHIELD + word if MINUS_NAME.fullmatch(word) else word for word in args])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            for parameter in self.params:
                found += parameter.shell_complete(ctx, incomplete) if parameter.name == "words" else []
        return found


class Tool(Quick, TyperGroup):
    """The group of the commands. What one of them raises becomes one sentence and an exit status."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is None and not cmd_name.startswith("-") and not ctx.resilient_parsing:
            raise UserError(f"There is no command {cmd_name!r}: {questions.nearest(cmd_name, self.commands)}")
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            typer.secho(f"Error: {error}", fg="red", err=True, color=ctx.color)
            raise typer.Exit(1) from None
        except GitError as error:
            typer.secho(f"Error: git failed, and nothing was changed: {error}.", fg="red", err=True, color=ctx.color)
            raise typer.Exit(1) from None
        except Interrupted:
            typer.echo("Stopped: nothing was written.", err=True)
            raise typer.Exit(130) from None
        except KeyboardInterrupt:
            typer.echo("Stopped.", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Tool,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def plain(words: list[str]) -> list[str]:
    """Words as they were typed."""
    return [word.removeprefix(SHIELD) for word in words or ()]


def complete_words(incomplete: str) -> list[str]:
    """Names with their sign, and KEY=VALUE; after a comma the next value of the list."""
    known = questions.load(source.copier_yml())
    sign = incomplete[:1] if incomplete[:1] in ("+", "-") else ""
    found: list[str] = []
    if not sign:
        found += questions.presets(known)
    for question in known.values():
        if question.hidden:
            continue
        if question.name == "techniques" or (sign and question.multiselect):
            found += [sign + value for value in question.choices]
        start = f"{question.name}="
        if question.multiselect and incomplete.startswith(start) and "," in incomplete:
            start = incomplete[: incomplete.rindex(",") + 1]
        given = start.partition("=")[2].split(",")
        if not sign:
            # Without what is begun, questions come by their names alone.
            values = [value for value in question.choices if value not in given]
            found += [start + value for value in values] if incomplete.startswith(start) and values else [start]
    return [text for text in found if text.startswith(incomplete)]


def complete_pairs(incomplete: str) -> list[str]:
    return [word for word in complete_words(incomplete) if "=" in word]


def complete_presets(incomplete: str) -> list[str]:
    names = questions.presets(questions.load(source.copier_yml()))
    return [name for name in names if name.startswith(incomplete)]


def given_words(metavar: str) -> Any:
    """The argument of a command that takes words."""
    return typer.Argument(metavar=metavar, callback=plain, autocompletion=complete_words)


NONE: list[str] = []  # a default that nobody changes

# The first forms of the words; they go on to work.
Preset = Annotated[str | None, typer.Option(metavar="NAME", autocompletion=complete_presets, help="The same as NAME.")]
Data = Annotated[
    list[str],
    typer.Option(
        "--data",
        "-d",
        metavar="KEY=VALUE",
        callback=plain,
        autocompletion=complete_pairs,
        help="The same as KEY=VALUE.",
    ),
]
DataFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Answers from a YAML file, also a project's .copier-answers.yml; the words decide over it.",
    ),
]
Defaults = Annotated[bool, typer.Option("--defaults", help="Ask nothing: take the defaults.")]

GRAMMAR = """\b
  recommended        a preset
  amp ddp, amp,ddp   just these techniques
  +ddp -amp          more and less, also of formats and extra files (+onnx)
  schedule=plateau   an answer; lists by commas
"""
