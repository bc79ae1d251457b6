"""The page in a real browser: what it gives equals what the commands give, and it is a page that everybody can use.

Skipped where there is no Chromium: `apt-get install chromium` (.ci/run does it).
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from copier import run_copy, run_update

from tests.choices import SPACE
from tests.conftest import TAG, commit, git, tree
from tests.web import CHROMIUM, FLAGS, HOSTILE, served
from tricks.template import source
from web import build

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'")
if CHROMIUM is None:
    pytest.skip("no Chromium is installed: apt-get install chromium", allow_module_level=True)

TEMPLATE = SPACE.template
TECHNIQUES: list[str] = list(TEMPLATE.questions["techniques"]["choices"].values())
PRESETS: dict[str, list[str]] = TEMPLATE.questions["presets"]["default"]
ALL = ",".join(max(PRESETS.values(), key=len))
READY = "html[data-coloured]"


@pytest.fixture(scope="module")
def folder(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the checkout's tag."""
    out = tmp_path_factory.mktemp("page") / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "CHECKOUT", checkout)
        build.build(out, TAG, str(checkout))
    return out


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[str]:
    with served(folder) as (address, _):
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any, site: str) -> Iterator[Callable[..., Any]]:
    """Opens the page with a link; afterwards: no message on the console, no request but to the page's own origin."""
    said: list[str] = []
    asked: list[str] = []
    own = ["blob:"]
    contexts = []

    def visit(link: str = "", width: int = 1440, height: int = 900, at: str = site, **settings: Any) -> Any:
        own.append(at)
        context = browser.new_context(viewport={"width": width, "height": height}, **settings)
        contexts.append(context)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.set_default_timeout(10_000)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(at + link)
        if settings.get("java_script_enabled", True):
            page.wait_for_selector(READY)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(tuple(own))] == []


def status(page: Any) -> str:
    return str(page.inner_text("#status"))


def tick(page: Any, technique: str) -> None:
    page.locator(f'[name=techniques][value="{technique}"]').click()


def link_of(choice: dict[str, Any]) -> str:
    return "#" + "&".join(
        f"{name}={quote(','.join(value) if isinstance(value, list) else value)}" for name, value in choice.items()
    )


def download(page: Any) -> bytes:
    with page.expect_download() as found:
        page.keyboard.press("Control+Enter")
    data = Path(found.value.path()).read_bytes()
    page.keyboard.press("Escape")
    return data


def unpacked(data: bytes) -> tuple[dict[str, bytes], dict[str, int]]:
    """Files and modes by path within the one folder of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        infos = archive.infolist()
        assert len({info.filename.split("/")[0] for info in infos}) == 1
        files = {info.filename.partition("/")[2]: archive.read(info) for info in infos}
        return files, {info.filename.partition("/")[2]: info.external_attr >> 16 for info in infos}


def drawn(number: int, seed: int) -> list[dict[str, Any]]:
    """Random choices; every second one with hostile words, lists in no order."""
    draw = random.Random(seed)
    found = []
    for index in range(number):
        choice = SPACE.choice(SPACE.draw(draw))
        for value in choice.values():
            if isinstance(value, list):
                draw.shuffle(value)
        if index % 2:
            choice |= {name: draw.choice(HOSTILE) for name in SPACE.texts}
        found.append(choice)
    return found


# --------------------------------------------------------------------------------------------------- what it gives


def test_zips_are_what_copier_writes(visit: Callable[..., Any], checkout: Path, tmp_path: Path) -> None:
    page = visit()
    for index, choice in enumerate(drawn(20, seed=1)):
        page.evaluate("link => { location.hash = link; }", link_of(choice))
        page.wait_for_timeout(20)
        target = tmp_path / str(index)
        data = download(page)
        files, modes = unpacked(data)
        run_copy(str(checkout), target, choice, defaults=True, quiet=True, vcs_ref=TAG)
        assert files == tree(target), choice
        assert modes == {path: (target / path).stat().st_mode for path in files}
        assert index > 3 or download(page) == data
        shutil.rmtree(target)


def test_a_zip_can_be_updated(visit: Callable[..., Any], own_checkout: Path, tmp_path: Path) -> None:
    """Only what the template changes comes with the update."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "CHECKOUT", own_checkout)
        build.build(tmp_path / "site", TAG, str(own_checkout))
    with served(tmp_path / "site") as (address, _):
        page = visit(f"#techniques={ALL}&author={quote(HOSTILE[0])}", at=address)
        data = download(page)
        page.context.close()
    files, _ = unpacked(data)
    project = tmp_path / "project"
    for path, content in files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_bytes(content)
    commit(project)
    shutil.rmtree(project / ".git/hooks", ignore_errors=True)
    (own_checkout / "template/NEW.md").write_text("{{ project_name }}\n", encoding="utf-8")
    commit(own_checkout, "v99.0.0")
    run_update(project, defaults=True, overwrite=True, quiet=True)
    git(project, "add", "-A")
    changed = git(project, "diff", "--cached", "--name-only").splitlines()
    assert sorted(changed) == [".copier-answers.yml", "NEW.md"]


def test_commands_make_the_same_project(visit: Callable[..., Any], checkout: Path, tmp_path: Path) -> None:
    """What "Copy" gives, run by bash; and by PowerShell where there is one."""
    page = visit()
    environment = dict(os.environ, PYTHONPATH=f"{checkout / 'generator'}")
    python = f'"{sys.executable}"'
    functions = {
        "posix": f'copier() {{ {python} -m copier "$@"; }}; tricks() {{ {python} -m tricks "$@"; }}; set -e; ',
        "powershell": f"function copier {{ & {python} -m copier @args }}; "
        f"function tricks {{ & {python} -m tricks @args }}; ",
    }
    shells = {"posix": ["bash", "-c"], "powershell": ["pwsh", "-NoProfile", "-Command"]}
    for index, choice in enumerate(drawn(4, seed=2)):
        page.evaluate("link => { location.hash = link; }", link_of(choice))
        page.wait_for_timeout(20)
        wanted, _ = unpacked(download(page))
        name = page.inner_text("#zip-name")
        for shell, start in shells.items():
            if not shutil.which(start[0]):
                continue
            page.select_option("#shell", shell)
            for tool in ("copier", "tricks"):
                page.click(f"[data-tool={tool}]")
                page.click("#copy-command")
                command = page.evaluate("navigator.clipboard.readText()")
                assert command == page.inner_text("#command-text")
                work = tmp_path / f"{index}-{shell}-{tool}"
                work.mkdir()
                done = subprocess.run(
                    [*start, functions[shell] + command],
                    cwd=work, env=environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                )  # fmt: skip
                assert done.returncode == 0, (command, done.stdout, done.stderr)
                assert tree(work / name) == wanted, command


def test_quotes_of_powershell() -> None:
    """Read as PowerShell documents it (about_Quoting_Rules), since there is none here to try."""
    from tests.web import javascript

    texts = [*HOSTILE, "’", "a'b", "plain", "a,b", "$x", "“"]
    code = 'const { quote } = await load("command.js"); return data.map((text) => quote(text, "powershell"));'
    for text, quoted in zip(texts, javascript(code, texts), strict=True):
        if quoted[0] == "'":
            assert re.sub("(['‘’‚‛])\\1", r"\1", quoted[1:-1]) == text
            assert not re.search("['‘’‚‛]", re.sub("(['‘’‚‛])\\1", "", quoted[1:-1]))
        elif quoted[0] == '"':
            assert quoted[1:-1] == text and not re.search('["$`“”„]', text)
        else:
            assert quoted == text and re.fullmatch(r"[\w+=:./-]+[\w@%+=:./-]*", text)


# ------------------------------------------------------------------------------------------------------- the choice


def test_what_is_shown_is_what_the_link_says(visit: Callable[..., Any]) -> None:
    """After any clicks the page is that of a fresh load of its link."""
    draw = random.Random(4)
    page, fresh = visit(), visit()
    for _ in range(6):
        for _ in range(8):
            boxes = page.locator("#form input:not([type=text]):visible, #form [data-preset], #form select:visible")
            box = boxes.nth(draw.randrange(boxes.count()))
            if box.evaluate("box => box.tagName") == "SELECT":
                box.select_option(index=draw.randrange(box.locator("option").count()))
            else:
                box.click()
        name = draw.choice(HOSTILE)
        page.fill("[name=project_name]", name)
        if page.locator("#download").is_disabled():
            page.click("[data-preset] >> nth=0")
        page.wait_for_timeout(250)
        fresh.goto("about:blank")
        fresh.goto(page.url)
        fresh.wait_for_selector(READY)
        assert fresh.input_value("[name=project_name]") == name
        assert download(fresh) == download(page)
        ticked = (
            "[...document.querySelectorAll('#form :checked')].filter(it => it.checkVisibility())"
            ".map(it => it.id ?? it.value)"
        )
        assert fresh.evaluate(ticked) == page.evaluate(ticked)
        assert names(fresh) == names(page)


def names(page: Any) -> list[str]:
    """Paths in the file list that the project has."""
    found = page.evaluate(
        "[...document.querySelectorAll('#files [data-open]')].filter(it => !it.querySelector('s'))"
        ".map(it => it.dataset.open)"
    )
    return [str(name) for name in found if name]


def test_a_tick_shows_its_difference(visit: Callable[..., Any]) -> None:
    """The status line, the badges and the marked lines agree with Python's own count of lines."""
    for technique in random.Random(8).sample(TECHNIQUES, 4):
        page = visit("#techniques=")
        assert "Tick a technique" in status(page)
        tick(page, technique)
        if not page.locator("#download").is_enabled():
            continue  # needs another technique
        old, new = (render(page, techniques) for techniques in ([], [technique]))
        new_files, shared = new.keys() - old.keys(), new.keys() & old.keys()
        changed = [path for path in shared if new[path] != old[path]]
        said = status(page)
        assert f"{len(new_files)} new" in said if new_files else "new" not in said
        assert f"{len(changed)} changed" in said if changed else "changed" not in said
        total = sum(text.count("\n") for text in new.values())
        assert f"{len(new)} files, {total:,} lines in all" in said
        numbers = [int(found.replace(",", "")) for found in re.findall(r"[+−]([\d,]+)", said)]
        assert total - sum(text.count("\n") for text in old.values()) == numbers[0] - (
            numbers[1] if len(numbers) > 1 else 0
        )
        page.context.close()


def render(page: Any, techniques: list[str]) -> dict[str, str]:
    """A project with these techniques as the tool renders it, without its answers file."""
    files = TEMPLATE.render({"techniques": techniques})
    return {path.as_posix(): text for path, text in files.items() if path.name != TEMPLATE.config["_answers_file"]}


def test_marks_and_texts(visit: Callable[..., Any]) -> None:
    """A title changes the project, but what the last tick did stays in view; bare loop and nothing are other marks."""
    page = visit("#techniques=")
    tick(page, TECHNIQUES[0])
    before = status(page)
    page.fill("[name=project_name]", "<b>Another</b> title")
    assert status(page) == before
    page.select_option("#mark", "nothing")
    assert page.locator("#code ins, #code del").count() == 0
    page.select_option("#mark", "bare")
    assert status(page) == before  # one tick away from it
    tick(page, TECHNIQUES[1])
    assert status(page) != before
    page.select_option("#mark", "last")
    assert TECHNIQUES[1] in page.inner_text("#command-text")


def test_a_file_that_goes_is_shown_struck(visit: Callable[..., Any]) -> None:
    old, new = (set(TEMPLATE.render({"techniques": names})) for names in ([TECHNIQUES[0]], []))
    path = sorted(path.as_posix() for path in old - new)[0]
    page = visit(f"#techniques={TECHNIQUES[0]}&file={path}")
    assert page.get_attribute("#code", "aria-label") == path
    tick(page, TECHNIQUES[0])
    assert page.locator("#code .row").count() == page.locator("#code del.row").count() > 0
    assert page.locator(f'#files [data-open="{path}"] s').count() == 1
    tick(page, TECHNIQUES[1])
    assert page.get_attribute("#code", "aria-label") == "train.py"


def test_refusals_are_copier_ymls_and_block_what_cannot_be(visit: Callable[..., Any]) -> None:
    page = visit()
    files = names(page)
    page.fill("[name=project_name]", " ")
    (refusal,) = TEMPLATE.refusals({"project_name": " ", "techniques": []})
    assert page.inner_text("#refusal-project_name") == refusal
    assert refusal in status(page) and names(page) == files
    assert page.locator("#download").is_disabled() and page.locator("#copy-command").is_disabled()
    assert page.inner_text("#download-why") == refusal
    page.keyboard.press("Control+Enter")
    assert refusal in page.inner_text("#toast")
    page.fill("[name=project_name]", "fine")
    assert page.locator("#download").is_enabled() and page.inner_text("#refusal-project_name") == ""


def test_follow_up_questions_come_and_go_with_their_technique(visit: Callable[..., Any]) -> None:
    """What was answered comes back with the technique; meanwhile it is not given."""
    owner, name = next(
        (choice.value, field) for choice in build.fields(TEMPLATE)["techniques"][0].choices for field in choice.follow
    )
    other = [choice.value for choice in name.choices][-1]
    page = visit(f"#techniques={owner}&{name.name}={other}")
    assert name.name in page.inner_text("#command-text")
    tick(page, owner)
    assert page.locator(f'[data-question="{name.name}"]').is_hidden()
    assert name.name not in page.inner_text("#command-text")
    tick(page, owner)
    assert page.locator(f'[data-question="{name.name}"]').is_visible()
    assert other in page.inner_text("#command-text")


def test_presets(visit: Callable[..., Any]) -> None:
    page = visit()
    other = visit()
    for name, techniques in PRESETS.items():
        page.click(f"[data-preset={name}]")
        assert page.get_attribute(f"[data-preset={name}]", "aria-pressed") == "true"
        ticked = page.evaluate("[...document.querySelectorAll('[name=techniques]:checked')].map(it => it.value)")
        assert sorted(ticked) == sorted(techniques)
        other.evaluate("link => { location.hash = link; }", f"#preset={name}")
        other.wait_for_timeout(20)
        assert names(other) == names(page)


# -------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("#techniques=nosuch", "techniques has no value “nosuch”."),
        ("#nosuch=1", "There is no question “nosuch”."),
        ("#__proto__=1&constructor=2", "There is no question “__proto__”."),
        ("#preset=toString", "There is no preset “toString”."),
        ("#package_name=x", "There is no question “package_name”."),
        ("#project_name=%E0%A4%A&techniques=", "The link's part “project_name=%E0%A4%A” cannot be read."),
        ("#file=nosuch.py", "The project has no file “nosuch.py”."),
        ("#mark=nosuch&view=nosuch", "There is no mark “nosuch”."),
        ("#nosuch=<img src=x onerror=alert(1)>", "There is no question “nosuch”."),
        ("#techniques=<img src=x onerror=alert(1)>", "techniques has no value “<img src=x onerror=alert(1)>”."),
        ("#a=techniques%3Dnosuch&b=techniques%3D", "techniques has no value “nosuch”."),
        ("#" + "&" * 1000 + "=" * 1000, "There is no question “”."),
    ],
)
def test_unknown_parts_of_a_link_are_named(visit: Callable[..., Any], link: str, said: str) -> None:
    page = visit(link)
    assert said in page.inner_text("#faults")
    assert page.locator("#faults img").count() == 0 and page.locator("#code .row").count() > 10


def test_markup_in_every_text_stays_text(visit: Callable[..., Any]) -> None:
    for words in (HOSTILE[1], HOSTILE[2]):
        link = link_of({"techniques": TECHNIQUES[:1]} | dict.fromkeys(SPACE.texts, words))
        page = visit()
        for view in ("&view=changes&mark=bare", "&file=README.md", "&file=pyproject.toml", "&file=.copier-answers.yml"):
            page.evaluate("link => { location.hash = link; }", link + view)
            page.locator("#code", has_text="project" if "view" in view else words.split("(")[0][-5:]).wait_for()
            assert page.locator("#code img, #code script, main img").count() == 0
        assert words in page.inner_text("#code")
        page.context.close()


def test_no_template_is_said(browser: Any, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "broken")
    (tmp_path / "broken/template.json").unlink()
    with served(tmp_path / "broken") as (address, _):
        page = browser.new_page()
        page.goto(address)
        page.locator("#status", has_text="cannot be loaded").wait_for(timeout=10_000)
        page.close()


def test_without_scripts_the_form_is_readable(visit: Callable[..., Any]) -> None:
    page = visit(java_script_enabled=False)
    assert "copier copy" in page.inner_text("noscript")
    assert page.locator("[name=techniques]").count() == len(TECHNIQUES)


# ---------------------------------------------------------------------------------------------- compare, in a project


def test_two_choices_are_compared_by_one_link(visit: Callable[..., Any]) -> None:
    one, two = TECHNIQUES[:1], TECHNIQUES[1:3]
    page = visit(f"#techniques={','.join(one)}")
    page.click("#compare")
    page.click("#pin")
    for technique in (*one, *two):
        tick(page, technique)
    page.wait_for_timeout(250)
    assert "#a=" in page.url and "b=" in page.url
    other = visit(f"#techniques={','.join(two)}")
    other.click("#compare")
    other.fill("#other", f"https://example.org/#techniques={','.join(one)}")
    other.click("#other-take")
    third = visit(page.url[page.url.index("#") :])
    assert status(page) == status(other) == status(third)
    assert third.input_value("#mark") == "reference"
    old, new = render(page, one), render(page, two)
    assert f"{len(new.keys() - old.keys())} new, {len(old.keys() - new.keys())} gone" in status(page)
    said = status(page)
    page.click("#swap")
    assert f"{len(old.keys() - new.keys())} new, {len(new.keys() - old.keys())} gone" in status(page)
    page.click("#swap")
    assert status(page) == said
    page.click("#unpin")
    assert page.locator("#reference").is_hidden()


def answers_file(tmp_path: Path, checkout: Path, choice: dict[str, Any]) -> Path:
    run_copy(str(checkout), tmp_path / "project", choice, defaults=True, quiet=True, vcs_ref=TAG)
    return tmp_path / "project"


def test_a_projects_answers_start_the_page(visit: Callable[..., Any], checkout: Path, tmp_path: Path) -> None:
    """Dropped, chosen or pasted; the command that the page then shows makes of the project what the page shows."""
    choice = {"techniques": TECHNIQUES[:2], "author": HOSTILE[0], "project_name": HOSTILE[-1]}
    project = answers_file(tmp_path, checkout, choice)
    commit(project)
    text = (project / ".copier-answers.yml").read_text(encoding="utf-8")
    page = visit()
    page.click("#in-project")
    page.set_input_files("#answers-file", str(project / ".copier-answers.yml"))
    page.locator("#reference").wait_for()
    assert f"Your project, made from {TAG}" in page.inner_text("#reference") and page.inner_text("#faults") == ""
    assert "nothing to change" in page.inner_text("#command-text") and "Nothing differs" in status(page)
    assert unpacked(download(page))[0] == tree(project)
    pasted, dropped = visit(), visit()
    pasted.evaluate(
        "text => { const data = new DataTransfer(); data.setData('text/plain', text);"
        " document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true })); }", text,
    )  # fmt: skip
    dropped.evaluate(
        "text => { const data = new DataTransfer(); data.items.add(new File([text], '.copier-answers.yml'));"
        " const settings = { dataTransfer: data, bubbles: true, cancelable: true };"
        " document.body.dispatchEvent(new DragEvent('drop', settings)); }", text,
    )  # fmt: skip
    for other in (pasted, dropped):
        other.locator("#reference").wait_for()
        assert other.inner_text("#reference") == page.inner_text("#reference")
    tick(page, TECHNIQUES[2])
    assert page.inner_text("#command-text").startswith(f"tricks add {TECHNIQUES[2]}")
    tick(page, TECHNIQUES[0])
    command = page.inner_text("#command-text")
    assert command.startswith("tricks set techniques=")
    environment = dict(os.environ, PYTHONPATH=f"{checkout / 'generator'}")
    words = [sys.executable, "-m", "tricks", *command.split()[1:], "--defaults"]
    done = subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert unpacked(download(page))[0] == tree(project)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("techniques: [amp", "Line 1 begins a list that does not end"),
        ("author: 'half", "Line 1 begins quotes that do not end"),
        ("not yaml at all", "Line 1 is not `name: value`"),
        ("a: b", "This answers no question"),
        ("", "This answers no question"),
        ("techniques: []\nproject_name: ' '", "The name is empty"),
    ],
)
def test_what_is_no_answers_file_is_named(visit: Callable[..., Any], text: str, said: str) -> None:
    page = visit()
    files = names(page)
    page.click("#in-project")
    page.fill("#answers", text)
    page.click("#answers-take")
    assert said in page.inner_text("#answers-refusal")
    page.keyboard.press("Escape")
    assert names(page) == files


def test_a_project_of_another_version(visit: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    """Unknown questions and values are named; the way to the page of that version is shown where there is one."""
    shutil.copytree(folder, tmp_path / "site")
    (tmp_path / "site/versions.json").write_text('{"versions": ["v0.0.7"], "root": "./"}', encoding="utf-8")
    text = "_commit: {}\ntechniques: [nosuch]\nold_question: <img src=x>\n"
    with served(tmp_path / "site") as (address, _):
        page = visit(at=address)
        for version, said in (("v0.0.7", "Open the page of v0.0.7."), ("v0.0.8", "There is no page of v0.0.8.")):
            page.click("#in-project")
            page.fill("#answers", text.format(version))
            page.click("#answers-take")
            page.locator("#faults", has_text=said).wait_for()
            faults = page.inner_text("#faults")
            assert "“nosuch”" in faults and "“old_question”" in faults
            if "Open" in said:
                assert page.get_attribute("#faults a", "href") == "./v0.0.7/#techniques="
        page.context.close()


# -------------------------------------------------------------------------------------------------- for everybody


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_nothing(visit: Callable[..., Any], width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(f"#techniques={TECHNIQUES[0]}&mark=bare&nosuch=1", width=width, color_scheme=scheme, bypass_csp=True)

    def check() -> None:
        found = axe.run(page)
        assert found.response["violations"] == [], found.generate_report()

    page.locator("details").first.evaluate("it => { it.open = true; }")
    check()
    if width == 390:
        page.click("#see")
        check()
    page.evaluate("document.querySelector('#files [data-open=\"\"]').click()")
    check()
    for button, dialog in (("#in-project", "#open"), ("#compare", "#comparing"), ("#download", "#taken")):
        page.click(button)
        page.locator(dialog).wait_for()
        check()
        page.keyboard.press("Escape")
    page.locator("[name=project_name]").evaluate(
        "it => { it.value = ''; it.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    check()


def test_all_of_it_by_keyboard(visit: Callable[..., Any]) -> None:
    """Tab goes through the form, the actions, the files, the code and the command; every stop has a visible focus."""
    page = visit(f"#techniques={TECHNIQUES[0]}")
    seen: list[str] = []
    place = (
        "(() => { const at = document.activeElement; const style = getComputedStyle(at);"
        " const part = at.closest('#form, #actions, #toolbar, #files, #code, #command, footer');"
        " return [part?.id ?? '', style.outlineStyle]; })()"
    )
    for _ in range(400):
        page.keyboard.press("Tab")
        where, outline = page.evaluate(place)
        if page.evaluate("document.activeElement === document.body"):
            break
        assert outline != "none"
        if not seen or seen[-1] != where:
            seen.append(where)
        if where == "":
            break
    assert seen[:6] == ["form", "actions", "toolbar", "files", "code", "command"]
    page.focus(f'[name=techniques][value="{TECHNIQUES[1]}"]')
    page.keyboard.press("Space")
    changed = page.evaluate(
        "[...document.querySelectorAll('#files [data-open]')].map(it => it.querySelector('.badge').textContent"
        " && it.dataset.open).filter(Boolean)"
    )
    walked = []
    for _ in changed:
        walked.append(page.get_attribute("#code", "aria-label"))
        page.keyboard.press("Alt+ArrowDown")
    assert sorted(walked) == sorted(changed)
    page.keyboard.press("Alt+ArrowUp")
    assert page.get_attribute("#code", "aria-label") == walked[-1]
    page.focus("[name=project_name]")
    page.keyboard.press("Alt+ArrowDown")
    assert page.get_attribute("#code", "aria-label") == walked[-1]


@pytest.mark.parametrize("width", [320, 390, 768, 900, 901, 1100])
def test_nothing_is_cut_off(visit: Callable[..., Any], width: int) -> None:
    """No sideways scrolling of the page, and targets of 24 pixels or more; also with a name of a hundred letters."""
    page = visit(f"#techniques={ALL}&project_name={'m' * 100}&nosuch={'x' * 300}", width=width)
    for view in ("form", "code"):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        small = page.evaluate(
            "[...document.querySelectorAll('button, select, summary, input[type=text], .tick label')]"
            ".filter(it => it.checkVisibility())"
            ".filter(it => it.getBoundingClientRect().height < 23.9).map(it => it.outerHTML)"
        )
        assert small == []
        if width > 900:
            break
        if view == "form":
            page.click("#see")
            assert page.locator("#code").is_visible() and page.locator("#file").is_visible()


def test_a_phone_shows_what_a_tick_did_and_the_code(visit: Callable[..., Any]) -> None:
    page = visit("#techniques=", width=390, height=844, has_touch=True, is_mobile=True)
    page.locator(f'[name=techniques][value="{TECHNIQUES[0]}"]').tap()
    assert re.search(r"\+\d+", page.inner_text("#bar-status"))
    page.locator("#see").tap()
    path = page.evaluate("document.querySelector('#file').options[1].value")
    page.select_option("#file", path)
    assert page.get_attribute("#code", "aria-label") == path


def test_nothing_moves_where_motion_is_unwanted(visit: Callable[..., Any]) -> None:
    for motion, names_ in (("reduce", {"none"}), ("no-preference", {"flash"})):
        page = visit("#techniques=", reduced_motion=motion)
        tick(page, TECHNIQUES[0])
        found = page.evaluate("getComputedStyle(document.querySelector('#code ins, #code del')).animationName")
        assert {found} == names_
        page.context.close()


def test_a_readme_section_tells_what_goes_wrong(visit: Callable[..., Any]) -> None:
    """Each technique that is explained shows the section that it adds to the README."""
    page = visit("#techniques=")
    old = TEMPLATE.render({"techniques": []})[Path("README.md")]
    for technique in TECHNIQUES:
        new = TEMPLATE.render({"techniques": [technique]}).get(Path("README.md"), "")
        heading = [line for line in new.splitlines() if line.startswith("### ") and line not in old.splitlines()]
        if TEMPLATE.refusals({"techniques": [technique]}) or not heading:
            continue
        details = page.locator(f"[data-technique={technique}] > details")
        details.locator("summary").click()
        assert heading[0].removeprefix("### ") in details.locator(".readme h2").inner_text()
        assert len(details.locator(".readme").inner_text()) > 80


def test_copying_code_takes_the_file_alone(visit: Callable[..., Any]) -> None:
    """Neither numbers nor signs are part of what is selected."""
    page = visit(f"#techniques={TECHNIQUES[0]}&mark=nothing")
    selected = page.evaluate(
        "(() => { const range = document.createRange();"
        " range.selectNodeContents(document.querySelector('#code .lines'));"
        " getSelection().removeAllRanges(); getSelection().addRange(range); return getSelection().toString(); })()"
    )
    wanted = TEMPLATE.render({"techniques": TECHNIQUES[:1]})[Path("train.py")]
    assert [line for line in selected.split("\n") if line] == [line for line in wanted.split("\n") if line]
    page.click("#copy-file")
    assert page.evaluate("navigator.clipboard.readText()") == wanted


# ---------------------------------------------------------------------------------------------------------- budgets

SENT = 180_000  # bytes, compressed as Pages does; docs/decisions/0008-what-the-page-sends.md
READY_WITHIN = 2.0  # seconds at 1.6 Mbit/s, 150 ms, CPU four times slower


def test_it_is_small_and_soon_there(browser: Any, folder: Path) -> None:
    with served(folder) as (address, sent):
        context = browser.new_context()
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.send(
            "Network.emulateNetworkConditions",
            {"offline": False, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 90_000},
        )
        session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        began = time.perf_counter()
        page.goto(address, wait_until="commit")
        page.locator("html[data-ready]").wait_for(state="attached", timeout=30_000)
        ready = time.perf_counter() - began
        page.locator(READY).wait_for(state="attached", timeout=30_000)
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        session.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        fast = ticks(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        slow = ticks(page)
        context.close()
    print(
        f"{sum(sent.values())} bytes, paint {paint:.0f} ms, ready {ready:.2f} s, "
        f"tick {fast:.0f} ms, {slow:.0f} ms at CPU/4"
    )
    assert sum(sent.values()) < SENT
    # Twice the budget: other tests share this machine's cores.
    assert paint < 2000 and ready < 2 * READY_WITHIN
    assert fast < 200 and slow < 800


def ticks(page: Any) -> float:
    """Milliseconds from a click to the frame that shows it, the median over all techniques."""
    return float(
        page.evaluate(
            "(async () => { const times = [];"
            " for (const box of document.querySelectorAll('[name=techniques]')) {"
            " const began = performance.now(); box.click();"
            " await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));"
            " times.push(performance.now() - began); }"
            " return times.sort((a, b) => a - b)[times.length >> 1]; })()"
        )
    )


def test_addresses_carry_hashes(folder: Path) -> None:
    """An old script never meets a new template."""
    page = (folder / "index.html").read_text(encoding="utf-8")
    for name in re.findall(r'(?:src|href)="([^"#h][^"]*)"', page):
        path, _, found = name.partition("?")
        assert found and (folder / path).is_file(), name
    for path in folder.rglob("*.js"):
        for name in re.findall(r'(?:from|import\()\s*["`](\./[^"`$]+)["`]', path.read_text(encoding="utf-8")):
            assert f'"{name}":' in page
    assert "template.json?" in page


def test_the_same_source_gives_the_same_page(checkout: Path, folder: Path, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(source, "CHECKOUT", checkout)
        build.build(tmp_path / "again", TAG, str(checkout))
    assert tree(tmp_path / "again") == tree(folder)


def test_a_preview_says_what_it_is(visit: Callable[..., Any], tmp_path: Path) -> None:
    build.build(tmp_path / "preview")
    with served(tmp_path / "preview") as (address, _):
        page = visit(at=address)
        assert "preview" in page.inner_text("footer") and "preview" in page.inner_text("#command-note")
        files, _ = unpacked(download(page))
        assert not {"_commit", "_src_path"} & set(yaml.safe_load(files[".copier-answers.yml"]))
        page.context.close()
