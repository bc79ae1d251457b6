"""Builds the page: a folder of static files, from copier.yml and template/ of a tag or of the work tree.

Every address in it carries a hash of what it leads to: a browser never puts an old script beside a new template.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import yaml
from jinja2 import meta, nodes
from pathspec import PathSpec

from tricks import UserError
from tricks.git import GitError
from tricks.template import source
from tricks.template.rendering import GIVEN, Template
from web.translate import Json, Translator, Unknown

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
STATIC = ("style.css", "icon.svg")
# Names that mean something else in a link (web/link.js).
TAKEN = ("file", "view", "mark", "a", "b")


@dataclass(frozen=True)
class Choice:
    """A value that can be ticked: the parts of its line in copier.yml, and what `_tricks` says about it."""

    value: str
    summary: str
    when: str
    about: str = ""
    costs: str = ""
    follow: list[Field] = field(default_factory=list)


@dataclass(frozen=True)
class Field:
    """A question as the form shows it."""

    name: str
    label: str
    kind: str  # text, one or many
    choices: list[Choice]
    default: Any  # with all other questions at their defaults


def build(out: Path, revision: str | None = None, address: str = "") -> None:
    """Writes the page into a folder, which is made anew.

    `revision` is a tag, and the page then gives projects that can be updated; None takes the work tree, and the page is
    marked as a preview. `address` is what projects record as the template's, by default its public one.

    Raises UserError for a revision that is not there, and Unknown for what the page cannot render.
    """
    with tempfile.TemporaryDirectory(prefix="tricks-page-") as folder:
        root = ROOT
        if revision is not None:
            root = Path(folder)
            try:
                source.git("rev-parse", "--verify", "--quiet", f"refs/tags/{revision}")
                source.unpack(source.CHECKOUT, revision, root)
            except (GitError, UserError) as error:
                raise UserError(f"There is no tag {revision!r} with a template: see `git tag`.") from error
        template = Template(root)
        data = translate(template, revision, address or source.PUBLIC_SOURCE)
        form, presets = fields(template), preset_choices(template)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    write(out, data, form, presets)


# -------------------------------------------------------------------------------------------------- template.json


def translate(template: Template, version: str | None, address: str) -> dict[str, Json]:
    """What engine.js needs of a template."""
    translator = Translator(template.environment, template.root, set(template.questions) | GIVEN)
    exclude = [line for line in template.config["_exclude"] if "{{" in line]
    return {
        "version": version or "",
        "address": address,
        "commit": version or "",
        "source": address if version else "",
        "answersFile": template.config["_answers_file"],
        "questions": [question(translator, name, entry) for name, entry in template.questions.items()],
        "presets": template.questions["presets"]["default"],
        "exclude": [translator.text(line, f"copier.yml, _exclude, {line!r}") for line in exclude],
        "patterns": {pattern: matched(template, pattern) for line in exclude for pattern in patterns(template, line)},
        "files": [
            {
                "path": file_name(template, path),
                "mode": 0o755 if (template.folder / path).stat().st_mode & 0o100 else 0o644,
                "parts": translator.file((template.folder / path).relative_to(template.root)),
            }
            for path in template.files
        ],
    }


def question(translator: Translator, name: str, entry: dict[str, Any]) -> dict[str, Json]:
    """A question: what decides whether it is asked, its default and its validator, translated."""
    where = f"copier.yml, {name}"
    when = entry.get("when", True)
    found: dict[str, Json] = {
        "name": name,
        "when": translator.text(when, f"{where}, when") if isinstance(when, str) else when,
        "form": shown(entry),
    }
    if name in TAKEN:
        raise Unknown(f"{where}: the page's links use this name: take another one.")
    if found["form"] and entry["type"] != "str":
        raise Unknown(f"{where}: the page has no field for the type {entry['type']!r}.")
    if entry.get("secret"):
        found["secret"] = True
    if "choices" in entry:
        found["choices"] = list(entry["choices"].values())
    if entry.get("multiselect"):
        found["multiselect"] = True
    default = entry.get("default")
    yaml_typed = entry["type"] in ("bool", "yaml") or bool(entry.get("multiselect"))
    if isinstance(default, str) and "{" in default:
        found["default"] = translator.text(default, f"{where}, default")
        found["parse"] = yaml_typed
    else:
        found["value"] = yaml.safe_load(default) if isinstance(default, str) and yaml_typed else default
    # A hidden question takes no value, so its validator never speaks here.
    if entry.get("validator") and when is not False:
        found["validator"] = translator.text(entry["validator"], f"{where}, validator")
    return found


def shown(entry: dict[str, Any]) -> bool:
    """Whether the form has a field for a question."""
    return entry.get("when", True) is not False and not entry.get("secret", False)


def patterns(template: Template, line: str) -> list[str]:
    """All patterns that a conditional line of `_exclude` can give. Raises Unknown unless they are constants."""
    tree = template.environment.parse(line)
    where = f"copier.yml, _exclude, {line!r}"
    if any(tree.find_all((nodes.Concat, nodes.Add, nodes.TemplateData))):
        raise Unknown(f"{where}: the page needs whole patterns, not composed ones.")
    if any(node.name != "default" for node in tree.find_all(nodes.Filter)):
        raise Unknown(f"{where}: the page needs whole patterns, not filtered ones.")
    found = {node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str) and node.value}
    if any(pattern.startswith("!") for pattern in found):
        raise Unknown(f"{where}: the page knows no exceptions.")
    return sorted(found)


def matched(template: Template, pattern: str) -> list[int]:
    """Places of the files that a pattern excludes."""
    spec = PathSpec.from_lines("gitignore", [pattern])
    return [index for index, path in enumerate(template.files) if spec.match_file(path.as_posix())]


def file_name(template: Template, path: Path) -> str:
    name = path.as_posix()
    if "{{" not in name:
        return name
    if meta.find_undeclared_variables(template.environment.parse(name)) - GIVEN:
        raise Unknown(f"{name}: the page knows no file names that depend on answers.")
    return template.evaluate(name, {"_copier_conf": {"answers_file": template.config["_answers_file"]}})


# ----------------------------------------------------------------------------------------------------- index.html


def fields(template: Template) -> dict[str, list[Field]]:
    """The form's fields: those of `techniques`, with what follows from each below it; other choices; texts."""
    told = template.config.get("_tricks", {})
    asked = {name: entry for name, entry in template.questions.items() if shown(entry)}
    techniques = set(asked["techniques"]["choices"].values())
    owner = {name: following(template, entry, techniques) for name, entry in asked.items()}
    usual = template.answer({}).values

    def made(name: str) -> Field:
        entry = asked[name]
        kind = "many" if entry.get("multiselect") else "one" if "choices" in entry else "text"
        about = told.get(name, {}) if isinstance(told.get(name, {}), dict) else {}
        choices = [
            choice(value, line, about.get(value, {}), [made(other) for other, of in owner.items() if of == value])
            if name == "techniques"
            else choice(value, line, about.get(value, {}), [])
            for line, value in entry.get("choices", {}).items()
        ]
        return Field(name, str(entry.get("help", name)), kind, choices, usual[name])

    rest = [name for name in asked if name != "techniques" and owner[name] is None]
    return {
        "techniques": [made("techniques")],
        "choices": [made(name) for name in rest if "choices" in asked[name]],
        "texts": [made(name) for name in rest if "choices" not in asked[name]],
    }


def choice(value: str, line: str, told: Any, follow: list[Field]) -> Choice:
    """The line of a choice is `value: summary; when`."""
    summary, _, when = str(line).removeprefix(str(value)).removeprefix(":").strip().partition("; ")
    told = told if isinstance(told, dict) else {}
    return Choice(str(value), summary, when, told.get("about", ""), told.get("costs", ""), follow)


def preset_choices(template: Template) -> list[Choice]:
    """The presets, each with the line that copier.yml has for it."""
    lines = {value: line for line, value in template.questions.get("preset", {}).get("choices", {}).items()}
    return [choice(name, lines.get(name, name), {}, []) for name in template.questions["presets"]["default"]]


def following(template: Template, entry: dict[str, Any], techniques: set[str]) -> str | None:
    """The technique that a question follows from: the one that its `when` names."""
    when = entry.get("when")
    if not isinstance(when, str):
        return None
    tree = template.environment.parse(when)
    words = {node.value for node in tree.find_all(nodes.Const)} | {node.name for node in tree.find_all(nodes.Name)}
    named = sorted(words & techniques)
    return named[0] if len(named) == 1 else None


# ---------------------------------------------------------------------------------------------------------- files


def write(out: Path, data: dict[str, Json], form: dict[str, list[Field]], presets: list[Choice]) -> None:
    """All files of the page."""
    for name in ("vendor", "vendor/languages"):
        (out / name).mkdir()
    modules = {path.relative_to(HERE).as_posix() for path in HERE.glob("*.js")}
    vendored = {path.relative_to(HERE).as_posix() for path in (HERE / "vendor").rglob("*.js")}
    for name in sorted({*modules, *vendored, *STATIC, "vendor/LICENSE"}):
        shutil.copyfile(HERE / name, out / name)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (out / "template.json").write_text(text, encoding="utf-8")
    (out / ".nojekyll").touch()
    # Which versions have a page, and where: web/site.py, which publishes several, knows more.
    (out / "versions.json").write_text('{"versions":[],"root":""}', encoding="utf-8")

    def hashed(name: str) -> str:
        return f"{name}?{hashlib.sha256((out / name).read_bytes()).hexdigest()[:12]}"

    imports = {f"./{name}": f"./{hashed(name)}" for name in sorted(modules | vendored)}
    import_map = json.dumps({"imports": imports}, separators=(",", ":"))
    policy = base64.b64encode(hashlib.sha256(import_map.encode()).digest()).decode()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    page = environment.get_template("index.html").render(
        form=form,
        presets=presets,
        version=data["version"],
        template_address=data["address"],
        address=web_address(data["address"]),
        hashed=hashed,
        import_map=import_map,
        import_map_hash=f"sha256-{policy}",
        modules=[f"./{hashed(name)}" for name in sorted(modules)],
    )
    (out / "index.html").write_text(page, encoding="utf-8")


def web_address(address: str) -> str:
    """Where a person reads about the template."""
    short = re.fullmatch(r"gh:([\w.-]+/[\w.-]+)", address)
    return f"https://github.com/{short[1].removesuffix('.git')}" if short else ""
