"""What the tests of the page share: its modules run by node, and a browser where there is one."""

from __future__ import annotations

import functools
import gzip
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = [
    "  Zürich: \"50 %\" {{ x }} # {% if %} 'ok' \\n",
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "yes",
    "1:30",
    "0o7",
    "2030-01-31",
    "- a",
    "#a",
    "a: b",
    "'",
    '"',
    "\\",
    "$HOME `id` $(id) !!",
    "“curly” ‘quotes’",
    "🎉 emoji 🎉",
    "Ünï cödé İ ſ K",
    "a" * 100,
    "word " * 19 + "end",
    "\ufeffmark",
    "&amp; <b> ~ ^ *x* _y_ [z](w) | |",
    "-x",
    "=",
    "null",
    "٣ digits",
    "a  two  spaces  and a text that goes on behind the eightieth column of its line, folded",
]


def node() -> str:
    """The node to run JavaScript with: the system's, or the one that playwright brings."""
    found = shutil.which("node")
    if found:
        return found
    driver = pytest.importorskip("playwright._impl._driver", reason="neither node nor playwright is installed")
    return str(driver.compute_driver_executable()[0])


def javascript(code: str, data: Any, folder: Path = ROOT / "web") -> Any:
    """What a JavaScript text returns for `data`; it may await, and imports modules of the folder by `load(name)`."""
    program = (
        'import { readFileSync } from "node:fs"; const data = JSON.parse(readFileSync(0, "utf8"));'
        f"const load = (name) => import({json.dumps(folder.as_uri() + '/')} + name);"
        f"const result = await (async () => {{ {code} }})(); process.stdout.write(JSON.stringify(result));"
    )
    # Lone surrogates travel as escapes.
    done = subprocess.run(
        [node(), "--input-type=module", "-e", program],
        input=json.dumps(data),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder as Pages does, compressed; keeps the sizes of what it sent."""

    protocol_version = "HTTP/1.1"
    sent: dict[str, int]

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        body = gzip.compress(path.read_bytes(), 9)
        self.server.sent[self.path] = len(body)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path.name))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """The address of a folder, and what was sent from it: bytes by path."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    server.sent = {}  # type: ignore[attr-defined]
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", server.sent  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
