"""Renders the template in memory, as `copier copy` would write it, and without importing Copier.

Answers, files and their order are Copier's. The one thing left out is a Copier user's own settings (`defaults:`): the same
words give the same project on every machine.

A file is rendered once for each combination of the values that it reads, so that thousands of choices cost little more
than their distinct texts.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import yaml
from jinja2 import meta
from jinja2.sandbox import SandboxedEnvironment
from pathspec import PathSpec

# What Copier itself gives to every template besides the answers.
GIVEN = {"_copier_answers", "_copier_conf"}


@dataclass(frozen=True)
class Answered:
    """Answers to all questions: `values` is what the files read, `recorded` what the answers file keeps.

    `asked` names the questions that arise, in their order, with those that are not recorded.
    """

    values: dict[str, Any]
    recorded: dict[str, Any]
    asked: list[str]


@dataclass
class Template:
    """A folder with copier.yml and the files that it renders; what was compiled and rendered is kept."""

    root: Path
    _expressions: dict[str, jinja2.Template] = field(default_factory=dict, repr=False)
    _texts: dict[tuple[Any, ...], str] = field(default_factory=dict, repr=False)
    _first: dict[Path, tuple[dict[str, Any], str]] = field(default_factory=dict, repr=False)
    _paths: dict[str, list[Path]] = field(default_factory=dict, repr=False)
    _names: dict[Path, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @cached_property
    def config(self) -> dict[str, Any]:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return dict(yaml.load((self.root / "copier.yml").read_text(encoding="utf-8"), Loader=loader))

    @cached_property
    def questions(self) -> dict[str, dict[str, Any]]:
        return {name: entry for name, entry in self.config.items() if not name.startswith("_")}

    @cached_property
    def folder(self) -> Path:
        return self.root / str(self.config["_subdirectory"])

    @cached_property
    def environment(self) -> SandboxedEnvironment:
        options = dict(self.config["_envops"])
        options["undefined"] = {"jinja2.StrictUndefined": jinja2.StrictUndefined}[options["undefined"]]
        return SandboxedEnvironment(
            # Copier looks for includes from the folder that holds copier.yml.
            loader=jinja2.FileSystemLoader(self.root),
            extensions=["jinja2_ansible_filters.AnsibleCoreFiltersExtension"],
            cache_size=-1,
            **options,
        )

    @cached_property
    def files(self) -> list[Path]:
        """All files of the template, relative to its folder, whether a choice has them or not."""
        always = PathSpec.from_lines("gitignore", [line for line in self.config["_exclude"] if "{{" not in line])
        found = (path.relative_to(self.folder) for path in sorted(self.folder.rglob("*")) if path.is_file())
        return [path for path in found if not always.match_file(path.as_posix())]

    @cached_property
    def executable(self) -> set[Path]:
        """The files that a project can run by their name."""
        return {path for path in self.files if (self.folder / path).stat().st_mode & 0o100}

    def sources(self) -> dict[str, str]:
        """The texts of the template's files as they are, by path with slashes."""
        return {path.as_posix(): (self.folder / path).read_text(encoding="utf-8") for path in self.files}

    def reads(self, path: Path) -> tuple[str, ...]:
        """The names of the answers that a file's text depends on, through what it includes too."""
        if path not in self._names:
            self._names[path] = tuple(sorted(self._undeclared(self.folder / path)))
        return self._names[path]

    def _undeclared(self, path: Path) -> set[str]:
        tree = self.environment.parse(path.read_text(encoding="utf-8"))
        names = meta.find_undeclared_variables(tree)
        for node in tree.find_all(jinja2.nodes.Include):
            names |= self._undeclared(self.root / node.template.as_const())
        return names

    def evaluate(self, text: str, values: dict[str, Any]) -> str:
        """The value of a Jinja text of copier.yml."""
        if text not in self._expressions:
            self._expressions[text] = self.environment.from_string(text)
        return self._expressions[text].render(values)

    def answer(self, given: dict[str, Any]) -> Answered:
        """The answers to all questions, from those that are given and the defaults. They are not validated."""
        values: dict[str, Any] = {"_copier_conf": {"data": given}, "_copier_answers": {}}
        recorded = {}
        arisen = []
        if "techniques" in given:  # as Copier has it: answers from outside are known from the first question on
            values["techniques"] = given["techniques"]
        for name, question in self.questions.items():
            asked = self.asked(question, values)
            value = given[name] if name in given and asked else self.default(question, values)
            if question.get("multiselect") and isinstance(value, list):
                value = [choice for choice in self.values[name] if choice in value]  # Copier's order
            values[name] = value
            if asked:
                arisen.append(name)
                if name not in self.unrecorded:
                    recorded[name] = value
        return Answered(values, recorded, arisen)

    @cached_property
    def values(self) -> dict[str, list[Any]]:
        """The values that can be chosen, by question."""
        found = {}
        for name, question in self.questions.items():
            choices = question.get("choices", [])
            found[name] = list(choices.values() if isinstance(choices, dict) else choices)
        return found

    @cached_property
    def unrecorded(self) -> set[str]:
        """The questions whose answers do not go into the answers file."""
        own = {name for name, question in self.questions.items() if question.get("secret")}
        return own | set(self.config.get("_secret_questions", []))

    def refusals(self, given: dict[str, Any]) -> list[str]:
        """What the validators of the questions that are asked say against the given answers."""
        answered = self.answer(given)
        # As Copier has it in an update, which knows a whole set of answers.
        outside = {"_copier_conf": {"data": given, "quiet": True}, "_copier_answers": given}
        texts = [
            self.evaluate(str(self.questions[name].get("validator", "")), answered.values | outside).strip()
            for name in answered.recorded
            if name in given
        ]
        return [text for text in texts if text]

    def asked(self, question: dict[str, Any], values: dict[str, Any]) -> bool:
        """Whether a question is asked after these answers."""
        asked = question.get("when", True)
        return bool(parsed(self.evaluate(asked, values)) if isinstance(asked, str) else asked)

    def default(self, question: dict[str, Any], values: dict[str, Any]) -> Any:
        """The answer to a question where none is given."""
        default = question.get("default")
        if not isinstance(default, str):
            return default
        text = self.evaluate(default, values) if "{" in default else default
        return parsed(text) if question["type"] in ("bool", "yaml") or question.get("multiselect") else text

    def paths(self, values: dict[str, Any]) -> list[Path]:
        """The files that a choice has."""
        # One text: to compile forty takes longer than to render a project.
        lines = self.evaluate("\n".join(line for line in self.config["_exclude"] if "{{" in line), values)
        if lines not in self._paths:
            excluded = PathSpec.from_lines("gitignore", [line for line in lines.splitlines() if line])
            self._paths[lines] = [path for path in self.files if not excluded.match_file(path.as_posix())]
        return self._paths[lines]

    def render(
        self, given: dict[str, Any], source: str = "", commit: str = "", only: Container[str] | None = None
    ) -> dict[Path, str]:
        """The texts of a project by path. `source` and `commit` are what its answers file records of the template.

        The texts of files that `only` does not hold are left empty: most of the time goes into compiling them.
        """
        answered = self.answer(given)
        recorded = {name: value for name, value in (("_commit", commit), ("_src_path", source)) if value}
        values = answered.values | {
            "_copier_answers": recorded | answered.recorded,
            "_copier_conf": {"answers_file": self.config["_answers_file"]},
        }
        project = {}
        for path in self.paths(values):
            name = Path(self.evaluate(path.as_posix(), values)) if "{{" in path.name else path
            project[name] = self.text(path, values) if only is None or name.as_posix() in only else ""
        return project

    def message(self, given: dict[str, Any], folder: str) -> str:
        """What copier.yml says after a copy into a folder."""
        values = self.answer(given).values | {"_copier_conf": {"dst_path": folder}}
        return self.evaluate(str(self.config.get("_message_after_copy", "")), values)

    def text(self, path: Path, values: dict[str, Any]) -> str:
        """The text of one file of the template."""
        if path not in self._first:
            # What a file reads costs as much to find out as its text: not for one choice alone.
            self._first[path] = (values, self._rendered(path, values))
            return self._first[path][1]
        names = self.reads(path)
        first, text = self._first[path]
        self._texts.setdefault(self._key(path, names, first), text)
        key = self._key(path, names, values)
        if key not in self._texts:
            self._texts[key] = self._rendered(path, values)
        return self._texts[key]

    def _rendered(self, path: Path, values: dict[str, Any]) -> str:
        # Copier's paths are those of the folder that holds copier.yml.
        template = self.environment.get_template((self.folder / path).relative_to(self.root).as_posix())
        return template.render(values)

    @staticmethod
    def _key(path: Path, names: tuple[str, ...], values: dict[str, Any]) -> tuple[Any, ...]:
        return (path, *(_hashable(values.get(name)) for name in names))


def parsed(text: str) -> Any:
    """The value of a YAML text; nearly all are booleans, for which the parser takes a hundred times as long."""
    return text == "True" if text in ("True", "False") else yaml.safe_load(text)


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | bool | int | None) else repr(value)


def write(project: Mapping[Path, str], folder: Path, executable: Container[Path] = ()) -> None:
    """Writes a rendered project into a folder, which need not exist."""
    for path, text in project.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")
        if path in executable:
            mode = target.stat().st_mode
            target.chmod(mode | (mode & 0o444) >> 2)
