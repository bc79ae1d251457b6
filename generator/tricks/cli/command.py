"""What is common to all commands: -NAME is a word, an error is one sentence, -h helps, NO_COLOR is honoured."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from tricks import Interrupted, UserError
from tricks.git import GitError
from tricks.template import questions, source

# -amp is a word, where -h, -d KEY=VALUE and -dKEY=VALUE are options. click sees the word behind this character.
Function = TypeVar("Function", bound=Callable[..., Any])
SHIELD = "\0"
MINUS_NAME = re.compile(r"-[A-Za-z][\w,]+")


class Command(click.Command):
    """A command in whose words a name may have a minus sign."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [SHIELD + word if MINUS_NAME.fullmatch(word) else word for word in args])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-") and any(parameter.name == "words" for parameter in self.params):
            found += [CompletionItem(word) for word in complete_words(ctx, None, incomplete)]
        return found


class Tool(click.Group):
    """The group of the commands. What one of them raises becomes one sentence and an exit status."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if (
            args
            and self.get_command(ctx, args[0]) is None
            and not args[0].startswith("-")
            and not ctx.resilient_parsing
        ):
            raise UserError(f"There is no command {args[0]!r}: {questions.nearest(args[0], self.commands)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            click.secho(f"Error: {error}", fg="red", err=True, color=ctx.color)
            ctx.exit(1)
        except GitError as error:
            click.secho(f"Error: git failed, and nothing was changed: {error}.", fg="red", err=True, color=ctx.color)
            ctx.exit(1)
        except Interrupted:
            click.echo("Stopped: nothing was written.", err=True)
            ctx.exit(130)
        except KeyboardInterrupt:
            click.echo("Stopped.", err=True)
            ctx.exit(130)


def plain(ctx: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> list[str]:
    """Words as they were typed."""
    return [word.removeprefix(SHIELD) for word in words]


def complete_words(ctx: click.Context, parameter: click.Parameter | None, incomplete: str) -> list[str]:
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


def complete_pairs(ctx: click.Context, parameter: click.Parameter | None, incomplete: str) -> list[str]:
    return [word for word in complete_words(ctx, parameter, incomplete) if "=" in word]


def complete_presets(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    names = questions.presets(questions.load(source.copier_yml()))
    return [name for name in names if name.startswith(incomplete)]


def words(metavar: str) -> Callable[[Function], Function]:
    """The argument of a command that takes words."""
    return click.argument("words", nargs=-1, metavar=metavar, callback=plain, shell_complete=complete_words)


# The first forms of the words; they go on to work.
PRESET = click.option("--preset", metavar="NAME", shell_complete=complete_presets, help="The same as NAME.")
DATA = click.option(
    "--data",
    "-d",
    metavar="KEY=VALUE",
    multiple=True,
    callback=plain,
    shell_complete=complete_pairs,
    help="The same as KEY=VALUE.",
)
DATA_FILE = click.option(
    "--data-file",
    metavar="FILE",
    type=click.Path(),
    help="Answers from a YAML file, also a project's .copier-answers.yml; the words decide over it.",
)
DEFAULTS = click.option("--defaults", is_flag=True, help="Ask nothing: take the defaults.")

GRAMMAR = """\b
  recommended        a preset
  amp ddp, amp,ddp   just these techniques
  +ddp -amp          more and less, also of formats and extra files (+onnx)
  schedule=plateau   an answer; lists by commas
"""
