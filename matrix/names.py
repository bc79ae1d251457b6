"""Names within a file: under which conditions one is used that nothing binds, or bound and not used.

What is found are suspects: choices that are rendered for ruff to look at, so that a wrong suspicion costs nothing.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from matrix.conditions import Conditions
from matrix.diagrams import Diagram

KNOWN = {*dir(builtins), "__file__", "__name__", "__doc__"}
Scope = tuple[int, ...]  # the lines, and columns, of the functions and classes around


@dataclass(frozen=True)
class Occurrence:
    name: str
    scope: Scope
    kind: str  # "use", or how it is bound: "import", "define", "assign", "argument"
    line: int


class Walk(ast.NodeVisitor):
    """All occurrences of names in a module, each with the scope that it belongs to."""

    def __init__(self) -> None:
        self.scope: Scope = ()
        self.classes: set[Scope] = set()
        self.outer: dict[Scope, set[str]] = defaultdict(set)  # declared global or nonlocal
        self.found: list[Occurrence] = []

    def add(self, name: str, kind: str, line: int) -> None:
        scope = self.scope
        while scope and name in self.outer[scope]:
            scope = scope[:-2]
        self.found.append(Occurrence(name, scope, kind, line))

    def inside(self, node: ast.AST, parts: list[ast.AST], is_class: bool = False) -> None:
        before, self.scope = self.scope, (*self.scope, node.lineno, node.col_offset)  # type: ignore[attr-defined]
        if is_class:
            self.classes.add(self.scope)
        for part in parts:
            self.visit(part)
        self.scope = before

    def visit_Name(self, node: ast.Name) -> None:
        self.add(node.id, "use" if isinstance(node.ctx, ast.Load) else "assign", node.lineno)

    def visit_alias(self, node: ast.alias) -> None:
        self.add((node.asname or node.name).partition(".")[0], "import", node.lineno)

    def visit_arg(self, node: ast.arg) -> None:
        self.add(node.arg, "argument", node.lineno)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.add(node.name, "assign", node.lineno)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.outer[self.scope] |= set(node.names)

    visit_Nonlocal = visit_Global

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.add(node.name, "define", node.lineno)
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self.inside(node, [*node.body], is_class=True)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.add(node.name, "define", node.lineno)
        arguments = node.args
        of_arguments = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        of_arguments += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
        outside = [*node.decorator_list, *arguments.defaults, *arguments.kw_defaults, node.returns]
        outside += [argument.annotation for argument in of_arguments]
        for part in outside:
            if part is not None:
                self.visit(part)
        self.inside(node, [*of_arguments, *node.body])

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.inside(node, [node.args, node.body])

    def visit_GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp) -> None:
        self.inside(node, list(ast.iter_child_nodes(node)))

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp


def suspects(tree: ast.Module, conditions: Conditions, when: Callable[[int], Diagram]) -> Iterator[Diagram]:
    """Conditions under which ruff may find an undefined, an unused or a twice defined name.

    `tree` holds all branches at once; `when` gives the condition of one of its lines.
    """
    walk = Walk()
    walk.visit(tree)
    bound: dict[tuple[str, Scope], list[tuple[str, Diagram]]] = defaultdict(list)
    used: dict[tuple[str, Scope], Diagram] = defaultdict(lambda: conditions.false)
    for occurrence in walk.found:
        if occurrence.kind != "use":
            bound[occurrence.name, occurrence.scope].append((occurrence.kind, when(occurrence.line)))
    for occurrence in walk.found:
        if occurrence.kind != "use":
            continue
        condition, binders, scope = when(occurrence.line), conditions.false, occurrence.scope
        while True:  # a class's names are not those of its methods
            if scope == occurrence.scope or scope not in walk.classes:
                used[occurrence.name, scope] |= condition
                binders |= conditions.any(other for _, other in bound.get((occurrence.name, scope), []))
            if not scope:
                break
            scope = scope[:-2]
        if occurrence.name not in KNOWN:
            yield condition & ~binders
    for (name, scope), binders_here in bound.items():
        for index, (kind, condition) in enumerate(binders_here):
            if kind == "import" or (kind == "assign" and scope and scope not in walk.classes):
                yield condition & ~used[name, scope]
            if kind in ("import", "define"):
                yield from (condition & other for also, other in binders_here[:index] if also in ("import", "define"))
