"""Facts about a text that other files depend on: what it imports and defines, which knobs and dependencies it has.

A fact is a tuple of words, first its kind, and the line that makes it. They are taken from a rendered project, or from
a template file with all its branches, where each line has the condition of its piece.
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


def facts(path: Path, text: str, words: Words) -> set[tuple[Fact, int]]:
    """All facts of the text of a file, each with the line that makes it."""
    found: set[tuple[Fact, int]] = {(("file", path.as_posix()), 1)}
    found |= {(("file", f"{parent.as_posix()}/"), 1) for parent in path.parents if parent != Path()}
    for number, line in enumerate(text.split("\n"), 1):
        found |= {
            (("token", token, technique), number)
            for token, technique, pattern in words.patterns
            if token in line and pattern.search(line)
        }
        for name, knob in OPTION.findall(line):
            found.add((("option", name.replace("-", "_"), knob.replace("-", "_")), number))
        for extras in EXTRAS.findall(line):
            found |= {(("asks-extra", extra), number) for extra in extras.split(",")}
        if path.suffix in (".yml", ".yaml"):
            found |= {(("word", word), number) for word in re.findall(r"[\w-]+", line)}
    if path.suffix == ".py":
        found |= set(python(path, text, words))
    elif path.name == "pyproject.toml":
        found |= set(pyproject(text))
    elif path.suffix == ".md":
        found |= set(markdown(text))
    return found


# ------------------------------------------------------------------------------------------------------- Python


def python(path: Path, text: str, words: Words) -> Iterator[tuple[Fact, int]]:
    tree = ast.parse(text, filename=path.as_posix())
    # pytest puts tests/ on the path.
    module = path.stem if path.parts[0] == "tests" else ".".join(path.with_suffix("").parts)
    yield ("module", module), 1
    imported = set()  # modules of the project under their own names
    for statement in tree.body:
        for name in defined(statement):
            yield ("defines", module, name), statement.lineno
        if isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test):
            yield ("script", module), statement.lineno
        if isinstance(statement, ast.Import):
            imported |= {alias.name for alias in statement.names if alias.name in words.modules}
    yield from of_tree(tree, Context(module, frozenset(imported), words, reads=path.parts[0] != "tests"))


@dataclass(frozen=True)
class Context:
    """What decides, besides its own text, which facts a node gives."""

    module: str
    imported: frozenset[str]
    words: Words
    reads: bool  # whether reading a knob counts here
    kinds: tuple[tuple[str, str], ...] = ()  # config classes of names and of attributes of self; "": no config class

    def knowing(self, kinds: dict[str, str]) -> Context:
        return replace(self, kinds=tuple((dict(self.kinds) | kinds).items()))


def of_tree(node: ast.AST, context: Context) -> Iterator[tuple[Fact, int]]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from of_import(node, context)
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        context = context.knowing(annotated(node))
        if node.name == "__post_init__":  # it only refuses values
            context = replace(context, reads=False)
    elif isinstance(node, ast.ClassDef):
        yield from of_class(node, context)
        context = context.knowing(own_kinds(node))
    elif isinstance(node, ast.expr):
        for fact in of_node(node, context):
            yield fact, node.lineno
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # documentation
    for child in ast.iter_child_nodes(node):
        yield from of_tree(child, context)


def of_import(node: ast.Import | ast.ImportFrom, context: Context) -> Iterator[tuple[Fact, int]]:
    modules = context.words.modules
    for alias in node.names:
        yield ("binds", context.module, alias.asname or alias.name), alias.lineno
        name = alias.name if isinstance(node, ast.Import) else node.module or ""
        top = name.partition(".")[0]
        if name in modules:
            yield ("imports", name), alias.lineno
            if isinstance(node, ast.ImportFrom):
                yield ("uses", name, alias.name), alias.lineno
        elif top not in sys.stdlib_module_names:
            yield ("third", top), alias.lineno
            # `torch.utils.tensorboard` is a part of torch that needs tensorboard.
            for part in name.split(".")[1:]:
                yield ("word", part), alias.lineno


def of_class(node: ast.ClassDef, context: Context) -> Iterator[tuple[Fact, int]]:
    """The knobs of a config class with the classes of its parts; the methods that nothing but the project calls."""
    for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
        line = statement.lineno
        if isinstance(statement, ast.FunctionDef) and not node.bases and not statement.name.startswith("__"):
            yield ("method", context.module, node.name, statement.name), line
        if not node.name.endswith("Config") or not isinstance(statement, ast.AnnAssign):
            continue
        if isinstance(statement.target, ast.Name):
            kind = statement.annotation.id if isinstance(statement.annotation, ast.Name) else ""
            yield ("knob", node.name, statement.target.id), line
            if kind.endswith("Config"):
                yield ("part", node.name, statement.target.id, kind), line
            elif not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)):
                yield ("unexplained", node.name, statement.target.id), line


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


def pyproject(text: str) -> Iterator[tuple[Fact, int]]:
    content, lines = toml(text), text.split("\n")

    def line(start: str) -> int:
        return next((number for number, line in enumerate(lines, 1) if line.strip().startswith(start)), 1)

    project = content.get("project", {})
    extras = project.get("optional-dependencies", {})
    for requirement in (item for listed in (project.get("dependencies", []), *extras.values()) for item in listed):
        for number, line_of in enumerate(lines, 1):  # two choices may ask for it, each on a line of its own
            if f'"{requirement}"' in line_of:
                yield ("requires", distribution(requirement)), number
    for extra in extras:
        yield ("extra", extra), line(f"{extra} =")
    for tool in content.get("tool", {}):
        yield ("word", tool), line(f"[tool.{tool}")


def toml(text: str) -> dict[str, Any]:
    """The content of a TOML file. Raises ValueError when it is not valid."""
    return tomllib.loads(text)


def distribution(requirement: str) -> str:
    return re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def markdown(text: str) -> Iterator[tuple[Fact, int]]:
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        for script in re.findall(r"\bpython (?:-m )?([\w/]+\.py)", line):
            yield ("names-file", script), number
        fence = line.startswith("```")
        fenced = fenced != fence
        if fenced or fence:
            continue
        if line.startswith("### "):
            yield ("heading", line.removeprefix("### ")), number
        for ticked in TICKED.findall(line):
            # `tests/` and `amp.py`; not `runs/<time>/`, which a run makes.
            if re.fullmatch(r"[\w/.-]+\.(py|toml|md)|[\w.-]+/", ticked) and not ticked.startswith(("runs", "exports")):
                yield ("names-file", ticked), number
        for link in LINK.findall(line):
            if "://" not in link and not link.startswith("#"):
                yield ("names-file", link), number
