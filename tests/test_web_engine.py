"""The page's engine renders what the tool renders: every variant of every file, and words of any kind.

Runs the modules of web/ by node, without a browser.
"""

from __future__ import annotations

import base64
import io
import json
import random
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import nodes

from matrix.arrays import covering_array
from matrix.conditions import Conditions, compiled, names_in
from matrix.space import TooManyError
from tests.choices import SPACE
from tests.conftest import ROOT, commit, tree
from tests.web import HOSTILE, javascript
from tricks import UserError
from tricks.template.rendering import GIVEN, Template
from web import build, site
from web.translate import Json, Text, Translator, Unknown

TEMPLATE = SPACE.template
TEXTS = list(SPACE.texts)
# What a filter is tried on where its body has too many variants: blank lines, indented ones, brackets over lines.
SAMPLE = (ROOT / "template/train.py").read_text(encoding="utf-8")


def translator(template: Template) -> Translator:
    return Translator(template.environment, template.root, set(template.questions) | GIVEN)


def parts(conditions: Conditions, statements: list[nodes.Node]) -> Iterator[tuple[nodes.Node, list[dict[str, Any]]]]:
    """Statements with all combinations of what they read; one with too many is taken apart.

    Rendering joins the texts of statements, and nothing that is translated changes what follows it. So where each
    statement is equal, every file is. An `if` is its condition and its bodies; a filter, its body and what it does to a
    text, of which a sample is taken.
    """
    for statement in statements:
        read = names_in(TEMPLATE.environment, [statement])
        if GIVEN & read:
            continue
        try:
            yield statement, [values for values, _ in conditions.cases(read)]
        except TooManyError:
            if isinstance(statement, nodes.If):
                said = [nodes.Output([nodes.TemplateData(text)]) for text in ("yes", "no")]
                condition = nodes.If(statement.test, said[:1], [], said[1:], lineno=statement.lineno)
                branches = [nodes.If(other.test, other.body, [], [], lineno=other.lineno) for other in statement.elif_]
                yield from parts(conditions, [condition, *branches, *statement.body, *statement.else_])
            elif isinstance(statement, nodes.FilterBlock):
                sample = nodes.Output([nodes.TemplateData(SAMPLE)], lineno=statement.lineno)
                alone = nodes.FilterBlock([sample], statement.filter, lineno=statement.lineno)
                yield from parts(conditions, [alone, *statement.body])
            elif isinstance(statement, nodes.Output) and len(statement.nodes) > 1:
                yield from parts(conditions, [nodes.Output([node], lineno=node.lineno) for node in statement.nodes])
            else:
                raise


def test_every_variant_of_every_file() -> None:
    environment, conditions = TEMPLATE.environment, Conditions(SPACE)
    jobs: list[Json] = []
    wanted: list[list[int]] = []
    texts: dict[str, int] = {}
    for path in TEMPLATE.files:
        text = (TEMPLATE.folder / path).read_text(encoding="utf-8")
        tree = environment.parse(text)
        whole = Text(translator(TEMPLATE), path.as_posix())
        joined: list[Json] = []
        for statement in tree.body:
            joined += whole.body([statement])
        assert merged(joined) == whole.body(tree.body)  # a file is its statements, one after the other
        for statement, combinations in parts(conditions, tree.body):
            template = compiled(environment, [statement])
            jobs.append([whole.body([statement]), combinations])
            wanted.append([texts.setdefault(template.render(values), len(texts)) for values in combinations])
    code = """
      const { render } = await load("engine.js");
      const faults = [];
      data.jobs.forEach(([parts, combinations], job) => combinations.forEach((values, index) => {
        const text = render(parts, values);
        if (text !== data.texts[data.wanted[job][index]]) faults.push([job, index, text]);
      }));
      return faults.slice(0, 3);"""
    assert javascript(code, {"jobs": jobs, "wanted": wanted, "texts": list(texts)}) == []
    assert sum(map(len, wanted)) > len(TEMPLATE.files)


def merged(parts: list[Json]) -> list[Json]:
    found: list[Json] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return found


def test_whole_projects_with_hostile_words() -> None:
    """Pairs of all options, and random choices, half of them with words that no one should type."""
    source = random.Random(7)
    rows = covering_array(SPACE, 2, seed=3) + [SPACE.draw(source) for _ in range(300)]
    choices = [SPACE.choice(row) for row in rows]
    for choice in choices[::2]:
        choice |= {name: source.choice(HOSTILE) for name in TEXTS if source.random() < 0.8}
    data = build.translate(TEMPLATE, "v9.9.9", "gh:someone/somewhere")
    expected, table = [], {}
    for choice in choices:
        files = TEMPLATE.render(choice, source="gh:someone/somewhere", commit="v9.9.9")
        expected.append({path.as_posix(): table.setdefault(text, len(table)) for path, text in files.items()})
    code = """
      const { Template } = await load("engine.js");
      const template = new Template(data.template);
      const faults = [];
      data.choices.forEach((choice, index) => {
        const project = template.render(choice);
        const wanted = data.expected[index];
        const paths = [...project.keys()].sort();
        if (String(paths) !== String(Object.keys(wanted).sort())) faults.push([choice, paths]);
        for (const [path, text] of project) if (text !== data.table[wanted[path]]) faults.push([choice, path, text]);
      });
      return [faults.length, faults.slice(0, 2)];"""
    assert javascript(code, {"template": data, "choices": choices, "expected": expected, "table": list(table)}) == [
        0,
        [],
    ]


def test_answers_and_refusals() -> None:
    """The validators say the same, also about answers that no form gives; answers that do not arise are dropped."""
    source = random.Random(5)
    choices: list[dict[str, Any]] = []
    for _ in range(600):
        choice: dict[str, Any] = {}
        for name, question in TEMPLATE.questions.items():
            if not build.shown(question) or source.random() < 0.4:
                continue
            values = list(question.get("choices", {}).values())
            if question.get("multiselect"):
                choice[name] = [value for value in values if source.random() < 0.4]
            else:
                choice[name] = source.choice(values or [*HOSTILE, "", "a\nb", "a\ud800", "x" * 101, " \x85"])
        choices.append({"techniques": []} | choice)
    found = []
    for choice in choices:
        arising = {name: value for name, value in choice.items() if name in TEMPLATE.answer(choice).recorded}
        refusals = TEMPLATE.refusals(arising)
        found.append([refusals, None if refusals else TEMPLATE.answer(arising).recorded])
    code = """
      const { Template } = await load("engine.js");
      const template = new Template(data.template);
      return data.choices.map((choice) => {
        const answered = template.answer(choice);
        const refusals = [...template.refusals(answered).values()];
        return [refusals, refusals.length ? null : answered.recorded];
      });"""
    data = build.translate(TEMPLATE, None, "")
    assert javascript(code, {"template": data, "choices": choices}) == found
    assert 50 < sum(bool(refusals) for refusals, _ in found) < 550


LETTERS = [
    *"aB9 _-.:,'\"\\#&*!|>%@`?[]{}()<>=~+/$^é ßİKÅ",
    *"  \t\x7f\x85\xa0\ufeff\u2028\u200b\u3000\u0130",
    "🎉",
    "𝒳",
    "word ",
    "Zürich",
]


def words(number: int, seed: int) -> list[str]:
    """Random texts, some of them long enough to be folded."""
    source = random.Random(seed)
    found = [
        *HOSTILE,
        "",
        " ",
        "~",
        "~a",
        "---",
        "--- a",
        "...",
        "true",
        "Off",
        "1e5",
        "1.5e+3",
        "0x1F",
        "1_000",
        ".inf",
        "<<",
    ]
    while len(found) < number:
        letters = LETTERS if source.random() < 0.7 else [*"ab ", "'", "word "]
        found.append("".join(source.choices(letters, k=source.choice([1, 2, 3, 5, 9, 40, 90, 130]))))
    return found[:number]


def test_words_through_everything_that_prints_them() -> None:
    """Each place of the template and of copier.yml that depends on free text alone, for 20,000 texts."""
    environment = TEMPLATE.environment
    derived = {
        name for name, question in TEMPLATE.questions.items() if not SPACE.scope_of(name) and question["type"] == "str"
    }
    allowed = set(TEXTS) | derived
    translate = translator(TEMPLATE)
    sources = [(TEMPLATE.folder / path).read_text(encoding="utf-8") for path in TEMPLATE.files]
    sources += [
        str(question.get(key, "")) for question in TEMPLATE.questions.values() for key in ("default", "validator")
    ]
    jobs = {}
    for text in sources:
        for output in environment.parse(text).find_all(nodes.Output):
            for expression in output.nodes:
                statement = nodes.Output([expression], lineno=output.lineno)
                read = sorted(names_in(environment, [statement]))
                if read and set(read) <= allowed:
                    jobs[str(expression)] = (
                        Text(translate, "a test").body([statement]),
                        compiled(environment, [statement]),
                        read,
                    )
    texts = words(20_000, 11)
    wanted = [[template.render(dict.fromkeys(read, text)) for text in texts] for _, template, read in jobs.values()]
    code = """
      const { render } = await load("engine.js");
      return data.jobs.map(([parts, names], job) => data.texts.filter((text, index) => {
        const values = Object.fromEntries(names.map((name) => [name, text]));
        return render(parts, values) !== data.wanted[job][index];
      }).slice(0, 3));"""
    sent = {"jobs": [[body, read] for body, _, read in jobs.values()], "texts": texts, "wanted": wanted}
    assert javascript(code, sent) == [[] for _ in jobs]
    assert len(jobs) >= len(TEXTS)


def test_yaml_is_written_and_read_as_by_pyyaml() -> None:
    source = random.Random(2)
    texts = [re.sub("[\x85\u2028]", "", text) for text in words(20_000, 13)]  # line breaks: the validators refuse them
    answers = [
        {
            "project_name": text,
            "b": source.random() < 0.5,
            "some_name": texts[-index - 1],
            "items": source.sample(["amp", "onnx", "no"], k=source.randrange(4)),
        }
        for index, text in enumerate(texts)
    ]  # fmt: skip
    dumped = [yaml.dump(answer, indent=4, allow_unicode=True, default_flow_style=False) for answer in answers]
    code = """
      const { dump, read } = await load("yaml.js");
      const faults = [];
      data.answers.forEach((answer, index) => {
        if (dump(answer) !== data.dumped[index]) faults.push(["dump", dump(answer), data.dumped[index]]);
        let back;
        try { back = read(data.dumped[index]); } catch (error) { back = error.message; }
        const sorted = Object.fromEntries(Object.entries(answer).sort());
        if (JSON.stringify(back) !== JSON.stringify(sorted)) faults.push(["read", data.dumped[index], back]);
      });
      return [faults.length, faults.sort((a, b) => JSON.stringify(a).length - JSON.stringify(b).length).slice(0, 3)];"""
    assert javascript(code, {"answers": answers, "dumped": dumped}) == [0, []]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("techniques: [amp, 'ddp', \"compile\"]\n", {"techniques": ["amp", "ddp", "compile"]}),
        ("techniques:\n  - amp\n  - ddp  # why\n", {"techniques": ["amp", "ddp"]}),
        ("# a\n---\ntask: text # b\nauthor: ''\r\nx: 1:30\n", {"task": "text", "author": "", "x": "1:30"}),
        ("techniques: [amp,\n  ddp]\n", {"techniques": ["amp", "ddp"]}),
        ("techniques:\n- amp\n- dd", {"techniques": ["amp", "dd"]}),
        ("", {}),
        ("__proto__: x\nconstructor: y\n", {"__proto__": "x", "constructor": "y"}),
        ("nonsense", "Line 1"),
        ("task: text\n  - amp\n", {"task": "text - amp"}),
        ("a: 'x\n    - y # z'\nb: q\n", {"a": "x - y # z", "b": "q"}),
        ("- a\n", "Line 1"),
        ("techniques: [amp, dd", "Line 1"),
        ("author: 'half", "Line 1"),
        ('author: "a\\q"', "Line 1"),
        ('author: "\\U00110000"', "Line 1"),
        ("a: 1\na: 2\n", "Line 2"),
        ("a: {b: c}\n", "Line 1"),
        ("a: |\n  text\n", "Line 1"),
        ("<html>\n", "Line 1"),
    ],
)
def test_answers_files_written_by_hand(text: str, wanted: Any) -> None:
    code = """const { read } = await load("yaml.js");
      try { return Object.entries(read(data)); } catch (error) { return error.message; }"""
    found = javascript(code, text)
    if isinstance(wanted, str):
        assert isinstance(found, str) and found.startswith(wanted)
    else:
        assert dict(map(tuple, found)) == wanted


def test_differences_lead_from_one_text_to_the_other_and_are_shortest() -> None:
    source = random.Random(3)
    letters = ["a", "  b", "    c", "", "d"]
    pairs = [
        [source.choices(letters[: source.randrange(1, 6)], k=source.randrange(9)) for _ in "ab"] for _ in range(20_000)
    ]
    code = """
      const { difference } = await load("diff.js");
      return data.map(([a, b]) => difference(a, b));"""
    for (a, b), steps in zip(pairs, javascript(code, pairs), strict=True):
        assert [i for sign, i, _ in steps if sign != "+"] == list(range(len(a)))
        assert [j for sign, _, j in steps if sign != "-"] == list(range(len(b)))
        assert all(a[i] == b[j] for sign, i, j in steps if sign == " ")
        assert sum(sign == " " for sign, _, _ in steps) == common(a, b)
        assert not any(steps[k][0] == "+" and steps[k + 1][0] == "-" for k in range(len(steps) - 1))


def common(a: list[str], b: list[str]) -> int:
    """The length of a longest common subsequence."""
    row = [0] * (len(b) + 1)
    for left in a:
        before = row[:]
        for j, right in enumerate(b):
            row[j + 1] = before[j] + 1 if left == right else max(before[j + 1], row[j])
    return row[-1]


def test_whole_blocks_are_marked() -> None:
    a = ["def a():", "    return 1", "", "", "def c():", "    return 1"]
    b = ["def a():", "    return 1", "", "", "def b():", "    return 1", "", "", "def c():", "    return 1"]
    code = """const { difference } = await load("diff.js");
      return difference(data[0], data[1]).map(([sign]) => sign).join("");"""
    assert javascript(code, [a, b]) == "    ++++  "
    assert javascript(code, [b, a]) == "    ----  "


def test_zip() -> None:
    files = [
        ["p/a.py", "print('ü')\n", 0o644],
        ["p/b c/run.sh", "#!/bin/sh\n", 0o755],
        ["p/leer", "", 0o644],
        ["p/é", "x", 0o644],
    ]
    code = """const { zip } = await load("zip.js");
      return Buffer.from(await zip(data).arrayBuffer()).toString("base64");"""
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(javascript(code, files)))) as archive:
        assert archive.testzip() is None
        found = [[info.filename, archive.read(info).decode(), info.external_attr >> 16] for info in archive.infolist()]
    assert found == [[name, text, 0o100000 | mode] for name, text, mode in files]


# ------------------------------------------------------------------------------------------------------- the build


def small(folder: Path, text: str = "", question: str = "", exclude: str = "") -> Template:
    """A template of one file."""
    settings = yaml.safe_load((ROOT / "copier.yml").read_text(encoding="utf-8"))
    kept = {name: settings[name] for name in ("_subdirectory", "_envops", "_answers_file", "presets")}
    kept["techniques"] = {"type": "str", "multiselect": True, "default": "[]", "choices": {"amp": "amp"}}
    (folder / "template").mkdir()
    (folder / "template/a.txt").write_text(text, encoding="utf-8")
    config = kept | {"_exclude": [exclude or "x"]} | (yaml.safe_load(question) or {})
    (folder / "copier.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return Template(folder)


@pytest.mark.parametrize(
    "text",
    [
        "\n# {% for x in techniques %}\n# {% endfor %}\n",
        "\n# {% set x = 1 %}\n",
        "\n# {% macro m() %}\n# {% endmacro %}\n",
        "\n# {% with x = 1 %}\n# {% endwith %}\n",
        "\n{{ techniques | shuffle }}\n",
        "\n{{ techniques | tojson }}\n",
        "\n{{ techniques | to_json(indent=2) }}\n",
        "\n{{ techniques is iterable }}\n",
        "\n{{ techniques[0:1] }}\n",
        "\n{{ 'a' | regex_replace('\\\\w', 'b') }}\n",
        "\n{{ 'a' | regex_replace('(?i)a', 'b') }}\n",
        "\n{{ 'a' | regex_replace('(', 'b') }}\n",
        "\n{{ 'a' | regex_replace('(?<=a)b', 'b') }}\n",
        "\n{{ 'a' | regex_replace(techniques, 'b') }}\n",
        "\n{{ 1.5 }}\n",
        "\n{{ techniques.index('amp') }}\n",
        "\n{{ unknown }}\n",
        "\n# {% include techniques %}\n",
        "\n{{ 'a' if techniques }}\n",
        "\n# {% if %}\n",
    ],
)
def test_build_refuses_what_the_engine_does_not_know(tmp_path: Path, text: str) -> None:
    with pytest.raises(Unknown, match=r"^template/a\.txt:2: .*\.$"):
        build.translate(small(tmp_path, text), None, "")


@pytest.mark.parametrize(
    ("question", "exclude"),
    [
        ("file: {type: str}", ""),
        ("number: {type: int, default: 3}", ""),
        ("", "{{ '/' ~ 'a' }}"),
        ("", "{{ '!/a' if techniques else '' }}"),
        ("", "{{ '/A' | lower }}"),
    ],
)
def test_build_refuses_questions_and_exclusions(tmp_path: Path, question: str, exclude: str) -> None:
    with pytest.raises(Unknown, match=r"^copier\.yml, .*: "):
        build.translate(small(tmp_path, "", question, exclude), None, "")


def test_regular_expressions() -> None:
    """Patterns and replacements of both languages, on random texts."""
    from web.translate import regular, template

    cases = [
        ("[^a-z0-9]+", "_"),
        ("^a|b$", "<>"),
        ("(a)(b)?", r"\2\1"),
        ("\n+", "\n"),
        ("a{2,3}?", "x"),
        ("(?:ab|b)*", "-"),
        (r"\.|[\]\-^]", r"\\"),
        ("$", "!"),
        ("(?m)^a|b$", "<>"),
        ("(?m)^$", "-"),
        ("(?!)", "-"),
        ("a(?!b)(.)", r"\1\1"),
        ("a(?=b)", "_"),
        (r"\Aa|b\Z", "_"),
    ]
    source = random.Random(1)
    texts = ["".join(source.choices("ab.]^-\n0", k=source.randrange(8))) for _ in range(500)]
    code = """
      const { render } = await load("engine.js");
      const replaced = (text, call) => render([["out", ["replace", ["=", text], ["=", call]]]], {});
      return data.cases.map((call) => data.texts.map((text) => replaced(text, call)));"""
    calls = [[*regular(pattern), template(pattern, replacement)] for pattern, replacement in cases]
    found = javascript(code, {"cases": calls, "texts": texts})
    assert found == [[re.sub(pattern, replacement, text) for text in texts] for pattern, replacement in cases]


def test_the_site_holds_every_version(own_checkout: Path, tmp_path: Path) -> None:
    """Each tag's page comes from that tag's own code and stays as it was; the newest is at the top."""
    shutil.copytree(ROOT / "web", own_checkout / "web", ignore=shutil.ignore_patterns("__pycache__"))
    commit(own_checkout, "v98.0.0")
    first = site.build_site(own_checkout, tmp_path / "first")
    (own_checkout / "template/NEW.md").write_text("{{ project_name }}\n", encoding="utf-8")
    commit(own_checkout, "v99.0.0")
    assert [first, site.build_site(own_checkout, tmp_path / "site")] == [["v98.0.0"], ["v98.0.0", "v99.0.0"]]
    old, new = tree(tmp_path / "first/v98.0.0"), tree(tmp_path / "site/v98.0.0")
    assert {name: text for name, text in old.items() if name != "versions.json"} == {
        name: text for name, text in new.items() if name != "versions.json"
    }
    assert json.loads(new["versions.json"]) == {"versions": ["v98.0.0", "v99.0.0"], "root": "../"}
    top = json.loads((tmp_path / "site/template.json").read_text(encoding="utf-8"))
    assert top["version"] == "v99.0.0" and "NEW.md" in [file["path"] for file in top["files"]]
    assert (tmp_path / "site/.nojekyll").exists()


def test_a_tag_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^There is no tag 'v0\.0\.99' with a template"):
        build.build(tmp_path / "page", "v0.0.99")
    assert not (tmp_path / "page").exists()


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_vendored_files_are_those_of_the_package(tmp_path: Path) -> None:
    """As package-lock.json has them; skipped where the registry cannot be reached."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / "web" / name, tmp_path / name)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    if subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60).returncode:
        pytest.skip("npm ci did not reach its registry")
    package = tmp_path / "node_modules/@highlightjs/cdn-assets"
    vendored = tree(ROOT / "web/vendor")
    assert vendored == {
        name: ((package / name) if name == "LICENSE" else package / "es" / name).read_bytes() for name in vendored
    }
