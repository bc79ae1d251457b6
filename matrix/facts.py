"""Facts about a text that other files depend on: what it imports and defines, which knobs and dependencies it has.

A fact is a tuple of words, first its kind. Of a whole project they are a set; of all projects each is a truth table
(tables.py). Both are made here from the same texts.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it

Fact = tuple[str, ...]
# `--accumulation.steps 4`, in a README or in a message.
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)\.([a-z][a-z-]*|\*)")
EXTRAS = re.compile(r"\.\[([a-z][a-z,_-]*)\]")
TICKED = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Words:
    """What the facts of all files are told by: the modules of a project, and the tokens of techniques."""

    modules: frozenset[str]
    tokens: tuple[tuple[str, str], ...]  # (token, technique)

    @cached_property
    def patterns(self) -> list[tuple[str, str, re.Pattern[str]]]:
        """Each token as a word of its own."""
        return [(*pair, re.compile(rf"(?<!\w){re.escape(pair[0])}(?!\w)")) for pair in self.tokens]


def facts(path: Path, text: str, words: Words) -> set[Fact]:
    """All facts of a text: of a file, or of a section of a Markdown file."""
    found: set[Fact] = {("file", path.as_posix())}
    for parent in path.parents:
        if parent != Path():
            found.add(("file", f"{parent.as_posix()}/"))
    for token, technique, pattern in words.patterns:
        if token in text and pattern.search(text):
            found.add(("token", token, technique))
    for name, knob in OPTION.findall(text):
        found.add(("option", name.replace("-", "_"), knob.replace("-", "_")))
    for extras in EXTRAS.findall(text):
        found |= {("asks-extra", extra) for extra in extras.split(",")}
    if path.suffix == ".py":
        found |= python(path, text, words)
    elif path.name == "pyproject.toml":
        found |= set(pyproject(text))
    elif path.suffix == ".md":
        found |= set(markdown(text))
    if path.suffix in (".yml", ".yaml"):
        found |= {("word", word) for word in re.findall(r"[\w-]+", text)}
    return found


# ------------------------------------------------------------------------------------------------------- Python


def python(path: Path, text: str, words: Words) -> set[Fact]:
    tree = ast.parse(text)
    # pytest puts tests/ on the path.
    module = path.stem if path.parts[0] == "tests" else ".".join(path.with_suffix("").parts)
    found: set[Fact] = {("module", module)}
    imported = set()  # modules of the project under their own names
    for statement in tree.body:
        found |= {("defines", module, name) for name in defined(statement)}
        if isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test):
            found.add(("script", module))
        if isinstance(statement, ast.Import):
            imported |= {alias.name for alias in statement.names if alias.name in words.modules}
    context = Context(module, frozenset(imported), words, reads=path.parts[0] != "tests")
    return found | of_statements(tree.body, context, text.split("\n"))


@dataclass(frozen=True)
class Context:
    """What decides, besides its own text, which facts a statement gives."""

    module: str
    imported: frozenset[str]
    words: Words
    reads: bool  # whether reading a knob counts here
    kinds: tuple[tuple[str, str], ...] = ()  # config classes of names and of attributes of self; "": no config class

    def knowing(self, kinds: dict[str, str]) -> Context:
        return replace(self, kinds=tuple((dict(self.kinds) | kinds).items()))


# Thousands of texts share nearly all of their statements.
_KNOWN: dict[Context, dict[str, frozenset[Fact]]] = {}


def of_statements(body: list[ast.stmt], context: Context, lines: list[str]) -> set[Fact]:
    found: set[Fact] = set()
    known = _KNOWN.setdefault(context, {})
    for statement in body:
        first = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", []))])
        source = "\n".join(lines[first - 1 : statement.end_lineno])
        if source not in known:
            known[source] = frozenset(of_statement(statement, context, lines))
        found |= known[source]
    return found


def of_statement(statement: ast.stmt, context: Context, lines: list[str]) -> set[Fact]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return set(of_import(statement, context))
    found: set[Fact] = set()
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        context = context.knowing(annotated(statement))
        if statement.name == "__post_init__":  # it only refuses values
            context = replace(context, reads=False)
    elif isinstance(statement, ast.ClassDef):
        found |= set(of_class(statement, context))
        context = context.knowing(own_kinds(statement))
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return found  # documentation
    pending: list[ast.AST] = [statement]
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if isinstance(child, ast.stmt):
                found |= of_statements([child], context, lines)
            else:
                found |= set(of_node(child, context))
                pending.append(child)
    return found


def of_import(node: ast.Import | ast.ImportFrom, context: Context) -> Iterator[Fact]:
    modules = context.words.modules
    for alias in node.names:
        yield ("binds", context.module, alias.asname or alias.name)
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for name in names:
        top = name.partition(".")[0]
        if name in modules:
            yield ("imports", name)
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    yield ("uses", name, alias.name)
        elif top not in sys.stdlib_module_names:
            yield ("third", top)
            # `torch.utils.tensorboard` is a part of torch that needs tensorboard.
            for part in name.split(".")[1:]:
                yield ("word", part)


def of_class(node: ast.ClassDef, context: Context) -> Iterator[Fact]:
    """The knobs of a config class with the classes of its parts; the methods that nothing but the project calls."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and not node.bases and not statement.name.startswith("__"):
            yield ("method", context.module, node.name, statement.name)
        if not node.name.endswith("Config") or not isinstance(statement, ast.AnnAssign):
            continue
        if isinstance(statement.target, ast.Name):
            kind = statement.annotation.id if isinstance(statement.annotation, ast.Name) else ""
            yield ("knob", node.name, statement.target.id)
            if kind.endswith("Config"):
                yield ("part", node.name, statement.target.id, kind)


def own_kinds(node: ast.ClassDef) -> dict[str, str]:
    found = {"self": node.name} if node.name.endswith("Config") else {}
    for method in node.body:  # what __init__ is given under a name, self has under the same
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            found |= {f"self.{name}": kind for name, kind in annotated(method).items() if kind}
    return found


def of_node(node: ast.AST, context: Context) -> Iterator[Fact]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        for word in re.findall(r"[\w-]+", node.value):
            yield ("word", word)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield ("uses-own", context.module, node.id)
    elif isinstance(node, ast.Attribute):
        yield ("attribute", node.attr)
        chain = dotted(node)
        if len(chain) == 2 and chain[0] in context.imported:
            yield ("uses", *chain)
        if context.reads:
            yield from knob_reads(chain, dict(context.kinds))


def knob_reads(chain: list[str], kinds: dict[str, str]) -> Iterator[Fact]:
    """The knob of `run.config.amp.dtype`, or of `config.dtype` where config is an AmpConfig.

    Without an annotation, `config` is taken for a Config.
    """
    for cut in (2, 1):
        if len(chain) > cut and (kind := kinds.get(".".join(chain[:cut]))):
            yield ("reads", kind, *chain[cut:])
            return
    if "config" in chain[:-1] and not (chain[0] == "config" and "config" in kinds):
        yield ("reads", "Config", *chain[chain.index("config") + 1 :])


def defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return [statement.target.id]
    return []


def annotated(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    found = {}
    for argument in arguments:
        if argument.annotation is not None:
            name = argument.annotation.id if isinstance(argument.annotation, ast.Name) else ""
            found[argument.arg] = name if name.endswith("Config") else ""
    return found


def dotted(node: ast.expr) -> list[str]:
    """The names of `a.b.c`; none for anything else."""
    found = []
    while isinstance(node, ast.Attribute):
        found.append(node.attr)
        node = node.value
    return [node.id, *reversed(found)] if isinstance(node, ast.Name) else []


# --------------------------------------------------------------------------------------------------- other files


def pyproject(text: str) -> Iterator[Fact]:
    content = toml(text)
    project = content.get("project", {})
    for requirement in project.get("dependencies", []):
        yield ("requires", distribution(requirement))
    for extra, requirements in project.get("optional-dependencies", {}).items():
        yield ("extra", extra)
        for requirement in requirements:
            yield ("requires", distribution(requirement))
    for tool in content.get("tool", {}):
        yield ("word", tool)


def toml(text: str) -> dict[str, Any]:
    """The content of a TOML file. Raises ValueError when it is not valid."""
    return tomllib.loads(text)


def distribution(requirement: str) -> str:
    return re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def markdown(text: str) -> Iterator[Fact]:
    outside = re.sub(r"```.*?```", "", text, flags=re.S)
    for line in outside.splitlines():
        if line.startswith("### "):
            yield ("heading", line.removeprefix("### "))
    for ticked in TICKED.findall(outside):
        # `tests/` and `amp.py`; not `runs/<time>/`, which a run makes.
        if re.fullmatch(r"[\w/.-]+\.(py|toml|md)|[\w.-]+/", ticked) and not ticked.startswith(("runs", "exports")):
            yield ("names-file", ticked)
    for link in LINK.findall(outside):
        if "://" not in link and not link.startswith("#"):
            yield ("names-file", link)
    for script in re.findall(r"\bpython (?:-m )?([\w/]+\.py)", text):
        yield ("names-file", script)
