"""Records docs/demo.svg, the picture in README.md, from a real session in a pseudo-terminal.

pip install pyte                     # besides what `make test` installs
python docs/record.py

It answers the questions of `tricks new`, as the last commit asks them, trains the project on the CPU, adds a technique
and takes it back, and takes pictures of the screen, which the SVG shows in turn.
"""

import os
import subprocess
import sys
import tempfile
from html import escape
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pexpect
import pyte

ROOT = Path(__file__).resolve().parents[1]
COLUMNS, ROWS = 88, 26  # of a picture; the terminal has many more rows, and a picture shows the last ones
CELL, LINE, LEFT, TOP = 8.4, 18, 18, 42  # pixels, for a font of 14
WIDTH, HEIGHT = round(COLUMNS * CELL) + 2 * LEFT, TOP + ROWS * LINE + LEFT
STILL = 4  # the picture that stands where nothing is animated: the ticked techniques
DRAWN, SHELL = "\x1b[?7h", "$\x1b[m "  # what ends the drawing of a question, and the prompt of the shell
STEPS = [  # keys, two texts to wait for, and for how many seconds the picture is shown
    ("tricks new digit-reader\r", "Name of the project", DRAWN, 1.5),
    ("\r", "What it is for", DRAWN, 0),
    ("\r", "Author", DRAWN, 0),
    ("\r", "What do you train on", DRAWN, 1.2),
    ("\r", "Start from which set", DRAWN, 1.5),
    ("\r", "Which techniques", DRAWN, 3.5),
    ("\r", "Clip", DRAWN, 0.5),
    ("\r", "Learning-rate schedule", DRAWN, 1),
    ("\r", "tracker", DRAWN, 0.5),
    ("\r", "Extra files", DRAWN, 0.5),
    ("\r", "first commit", "(Y/n)", 1),
    ("\r", "ready", SHELL, 1.5),
    ("cd digit-reader && python train.py\r", "epoch   4", "samples/s", 0.8),
    ("", "epoch  13", "samples/s", 0.8),
    ("", "Done", SHELL, 3),
    ("tricks diff add compile | grep -A 16 'b/run.py'\r", "run.py", SHELL, 3.5),
    ("tricks add compile\r", "takes it back", SHELL, 3.5),
    ("tricks undo\r", "is taken back", SHELL, 3),
]
INK, MARKED, GROUND, BUTTONS = "#d3d7df", "#3b4252", "#1d2027", "#4c566a"
# What pyte calls by name; all else is a number.
COLOURS = {
    "default": INK,
    "green": "#a3be8c",
    "red": "#e06c75",
    "brown": "#ebcb8b",
    "cyan": "#88c0d0",
    "blue": "#81a1c1",
}


def record(folder: str) -> list[tuple[str, float]]:
    """Pictures, and for how many seconds each is shown. The folder holds a clone of the repository."""
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    env |= {"PATH": f"{Path(sys.executable).parent}:{env['PATH']}", "PYTHONPATH": f"{folder}/clone/generator"}
    env |= {"BASH_FUNC_tricks%%": '() { python -m tricks "$@"; }', "PS1": r"\[\e[38;5;114m\]$\[\e[m\] "}
    env |= {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "HISTFILE": "/dev/null", "CUDA_VISIBLE_DEVICES": ""}
    env |= {f"GIT_{who}_{what}": "you" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    screen, size = pyte.Screen(COLUMNS, 200), (200, COLUMNS)
    shell = pexpect.spawn("bash --norc --noprofile", [], 300, cwd=folder, env=env, encoding="utf-8", dimensions=size)
    shell.logfile_read = SimpleNamespace(write=pyte.Stream(screen).feed, flush=lambda: None)
    pictures = []
    shell.expect_exact(SHELL)
    for keys, text, end, seconds in STEPS:
        shell.send(keys)
        for awaited in (text, end):
            shell.expect_exact(awaited)
        shell.expect(pexpect.TIMEOUT, timeout=0.2)  # what else is on its way
        if seconds:
            pictures.append((picture(screen), seconds))
    shell.close()
    return pictures


def picture(screen: pyte.Screen) -> str:
    """The last rows; an ellipsis stands for the epochs in the middle."""
    middle = [y for y, text in enumerate(screen.display) if text.startswith("epoch ")][5:-3]
    last = max(y for y, text in enumerate(screen.display) if text.strip())
    shapes = []
    for number, y in enumerate([y for y in range(last + 1) if y not in middle[1:]][-ROWS:]):
        x, top = LEFT, TOP + number * LINE
        if y in middle:
            shapes.append(f'<text x="{x + 2 * CELL}" y="{top + 14}" fill="{INK}">…</text>')
            continue
        # Each stretch of one style is pinned to its cells, what is not ASCII apart: fonts differ in its width.
        cells = [screen.buffer[y][column] for column in range(COLUMNS)]
        for style, group in groupby(cells, lambda c: (c.fg, c.bold, c.reverse, c.data != "" and c.data.isascii())):
            texts = [cell.data for cell in group]
            colour, weight = COLOURS.get(style[0]) or f"#{style[0]}", "bold" if style[1] else "normal"
            width, text = len(texts) * CELL, escape("".join(texts), quote=False)
            if style[2]:
                shapes.append(f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{LINE}" fill="{MARKED}"/>')
            if text.strip():
                place = f'x="{x:.1f}" y="{top + 14}" textLength="{width:.1f}" xml:space="preserve"'
                shapes.append(f'<text {place} fill="{colour}" font-weight="{weight}">{text}</text>')
            x += width
    return "\n".join(shapes)


def animation(pictures: list[tuple[str, float]]) -> str:
    """An SVG in which each picture is visible for its seconds, over and over."""
    total, start, rules, groups = sum(seconds for _, seconds in pictures), 0.0, [], []
    for number, (shapes, seconds) in enumerate(pictures, 1):
        on, off, start = 100 * start / total, 100 * (start + seconds) / total, start + seconds
        frames = f"0%, {off:.2f}% {{ visibility: hidden }} {on:.2f}% {{ visibility: visible }}"
        rules.append(f"@keyframes k{number} {{ {frames} }} #p{number} {{ animation-name: k{number} }}\n")
        groups.append(f'<g id="p{number}" visibility="{"visible" if number == STILL else "hidden"}">\n{shapes}\n</g>\n')
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">
<title>The questions, a first training run, and a technique added and taken back</title><style>
text {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: 14px }}
@media (prefers-reduced-motion: no-preference) {{ g {{ animation: {total:.1f}s step-end infinite }} }}
{"".join(rules)}</style>
<rect width="100%" height="100%" rx="9" fill="{GROUND}"/>
<path d="M22 20h.1m20 0h.1m20 0h.1" stroke="{BUTTONS}" stroke-width="12" stroke-linecap="round"/>
{"".join(groups)}</svg>\n"""


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", ROOT, f"{folder}/clone"], check=True)
        svg = animation(record(folder))
    assert not any(str(path) in svg for path in (folder, ROOT, sys.prefix)), "a path of this machine is shown"
    (ROOT / "docs/demo.svg").write_text(svg, encoding="utf-8")
