"""What has to hold across the files of a project, as implications between facts.

Each is checked for all projects at once, on the conditions of the lines that make its facts; and, to confirm that, for
one project at a time.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jinja2 import nodes

from matrix.conditions import Conditions
from matrix.diagrams import Diagram
from matrix.facts import Fact, Words, distribution, facts
from matrix.faults import Fault
from matrix.pieces import Source
from matrix.space import Space

# An owner replaces these; what nothing calls yet waits there for a technique.
OWNERS = ("data", "model")


@dataclass(frozen=True)
class Implication:
    """A project with the fact has one of the others too."""

    fact: Fact
    any_of: frozenset[Fact]
    says: str


def words(space: Space) -> Words:
    modules = set()
    for path in space.template.files:
        if path.suffix == ".py":
            modules.add(path.stem if path.parts[0] == "tests" else ".".join(path.with_suffix("").parts))
    tokens = space.template.config.get("_tricks", {}).get("tokens", {})
    if unknown := tokens.keys() - space.template.questions:
        raise ValueError(f"_tricks.tokens names {', '.join(sorted(unknown))}, and copier.yml has no such value.")
    pairs = [(str(token), technique) for technique, listed in tokens.items() for token in listed]
    return Words(frozenset(modules), tuple(pairs))


def implications(found: Iterable[Fact], known: Words) -> list[Implication]:
    """The rules, for all facts that any project has."""
    every = set(found)
    kinds: dict[str, list[Fact]] = defaultdict(list)
    for fact in every:
        kinds[fact[0]].append(fact)
    parts = {fact[2]: fact[3] for fact in kinds["part"] if fact[1] == "Config"}
    rules: list[Implication] = []

    def rule(fact: Fact, any_of: Iterable[Fact], says: str) -> None:
        rules.append(Implication(fact, frozenset(any_of), says))

    for fact in kinds["imports"]:
        rule(fact, [("module", fact[1])], f"imports {fact[1]}, which the project does not have")
    for fact in kinds["uses"]:
        rule(fact, [("defines", *fact[1:]), ("binds", *fact[1:])], f"uses {fact[1]}.{fact[2]}, which is not defined")
    for fact in kinds["module"]:
        if fact[1].startswith(("test_", "conftest")) or ("script", fact[1]) in every:
            continue
        rule(fact, [("imports", fact[1])], f"nothing imports {fact[1]}")
    for fact in kinds["defines"]:
        _, module, name = fact
        # pytest finds its own; what proofs share waits there for the owner's.
        if module in OWNERS or module.startswith(("test_", "conftest")) or name.startswith("__"):
            continue
        rule(fact, [("uses", module, name), ("uses-own", module, name)], f"defines {name}, which nothing uses")
    for fact in kinds["method"]:
        rule(fact, [("attribute", fact[3])], f"defines {fact[2]}.{fact[3]}, which nothing calls")
    for fact in kinds["third"]:
        providers = sorted(providing(fact[1]))
        rule(
            fact,
            [("requires", name) for name in providers],
            f"imports {fact[1]}, which pyproject.toml does not require",
        )
    for fact in kinds["requires"]:
        uses = [("third", module) for module in provided(fact[1])]
        uses += [("word", word) for word in {fact[1], *provided(fact[1])}]
        rule(fact, uses, f"requires {fact[1]}, which nothing uses")
    for fact in kinds["asks-extra"]:
        rule(fact, [("extra", fact[1])], f"asks for the extra {fact[1]}, which pyproject.toml does not have")
    for fact in kinds["knob"]:
        _, kind, name = fact
        reads = [other for other in kinds["reads"] if other[1] == kind and other[2] == name]
        reads += [
            other
            for other in kinds["reads"]
            if other[1] == "Config" and len(other) > 3 and parts.get(other[2]) == kind and other[3] == name
        ]
        rule(fact, reads, f"declares the knob {kind}.{name}, which nothing reads")
    for fact in kinds["unexplained"]:
        rule(fact, [], f"declares the knob {fact[1]}.{fact[2]} without a docstring, which is its help")
    for fact in kinds["reads"]:
        kind, name = fact[1], fact[2]
        if kind == "Config" or any(other[1] == kind for other in kinds["knob"]):
            rule(fact, [("knob", kind, name)], f"reads {kind}.{name}, which is no knob")
        if kind == "Config" and len(fact) > 3 and name in parts:
            rule(fact, [("knob", parts[name], fact[3])], f"reads {name}.{fact[3]}, which is no knob")
    for fact in kinds["option"]:
        _, part, name = fact
        if part == "data":
            continue
        if name == "*":
            rule(fact, [("knob", "Config", part)], f"names --{part}.*, which no knob has")
        else:
            rule(
                fact,
                [("knob", parts.get(part, ""), name)],
                f"names --{part}.{name}, which is no knob".replace("_", "-"),
            )
    for fact in kinds["names-file"]:
        if fact[1].endswith("/") and ("file", fact[1]) not in every:
            continue  # a folder of the owner's, or one that a run makes
        rule(fact, [("file", fact[1])], f"names {fact[1]}, which the project does not have")
    for fact in kinds["heading"]:
        owners = [technique for token, technique in known.tokens if token == f"### {fact[1]}"]
        says = "of an unchosen technique" if owners else "which is no word under _tricks.tokens"
        rule(fact, [("chosen", name) for name in owners], f"has the section {fact[1]!r} {says}")
    for fact in kinds["token"]:
        rule(fact, [("chosen", fact[2])], f"holds {fact[1]!r}, a word of {fact[2]}, which was not chosen")
    for token, technique in known.tokens:
        says = f"{technique} is chosen, and its word {token!r} is nowhere"
        rule(("chosen", technique), [("token", token, technique)], says)
    return rules


@dataclass(frozen=True)
class Occurrence:
    """A line of the template that makes a fact, and the choices whose projects have the line."""

    where: str
    condition: Diagram


def occurrences(conditions: Conditions, sources: Iterable[Source], known: Words) -> dict[Fact, list[Occurrence]]:
    """All facts of all projects. Raises SyntaxError for a file that is not valid with all its branches."""
    found: dict[Fact, dict[str, Diagram]] = defaultdict(dict)
    for source in sources:
        for text in source.superset(conditions):
            for fact, line in facts(source.path, text.text, known):
                place = text.lines[line - 1]
                condition = source.present
                if fact[0] not in ("file", "module"):
                    piece = source.pieces[place[0]]
                    condition &= piece.condition & text.condition if piece.shows else piece.condition
                where = source.at(place)
                found[fact][where] = found[fact].get(where, conditions.false) | condition
    for _, name in known.tokens:
        found["chosen", name] = {"copier.yml": conditions.truth(nodes.Name(name, "load"))}
    return {fact: [Occurrence(*pair) for pair in places.items()] for fact, places in found.items()}


def check_rules(conditions: Conditions, sources: Iterable[Source]) -> tuple[list[Fault], int]:
    """Faults that need two files to be seen, over all valid choices; and the number of implications."""
    known = words(conditions.space)
    found = occurrences(conditions, sources, known)
    rules = implications(found, known)
    faults = []
    for rule in rules:
        satisfied = conditions.any(other.condition for fact in rule.any_of for other in found.get(fact, []))
        for occurrence in found.get(rule.fact, []):
            if conditions.possible(against := occurrence.condition & ~satisfied):
                faults.append(Fault.of(conditions, occurrence.where, rule.says, conditions.smallest(against)))
    return faults, len(rules)


def check_project(space: Space, project: dict[Path, str], choice: dict[str, object], known: Words) -> set[str]:
    """What the same rules say about one rendered project, without any condition: `file: sentence`."""
    own: dict[Fact, set[str]] = defaultdict(set)
    for path, text in project.items():
        for fact, _ in facts(path, text, known):
            own[fact].add(path.as_posix())
    values = space.template.answer(choice).values
    for _, technique in known.tokens:
        if values[technique] is True:
            own["chosen", technique] = {"copier.yml"}
    return {
        f"{where}: {rule.says}"
        for rule in implications(own, known)
        if rule.fact in own and not any(fact in own for fact in rule.any_of)
        for where in own[rule.fact]
    }


# ------------------------------------------------------------------------------------- modules and distributions


@functools.cache
def installed() -> dict[str, set[str]]:
    """The distributions of each module, of those that are installed here."""
    found = importlib.metadata.packages_distributions()
    return {module: set(map(distribution, names)) for module, names in found.items()}


@functools.cache
def requirers() -> dict[str, set[str]]:
    """For each distribution those that always require it."""
    found: dict[str, set[str]] = defaultdict(set)
    for other in importlib.metadata.distributions():
        for requirement in other.requires or []:
            if "extra ==" not in requirement:
                found[distribution(requirement)].add(distribution(other.metadata["Name"]))
    return found


def providing(module: str) -> set[str]:
    """The distributions that bring a module, by themselves or as a requirement of their own."""
    direct = installed().get(module, {module})
    return direct.union(*(requirers().get(name, set()) for name in direct))


def provided(name: str) -> set[str]:
    """The modules of a distribution."""
    return {module for module, names in installed().items() if name in names} or {name}
