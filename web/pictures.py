"""`python -m web.pictures`: the pictures of the page in docs/, taken anew with the system's Chromium."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tests.web import CHROMIUM, FLAGS, served
from tricks.template.source import CHECKOUT
from web.build import build

# Name, width, height, colours, link, the technique to tick then.
PICTURES = [
    ("wide", 1360, 820, "light", "", "ddp"),
    ("narrow", 390, 780, "light", "", "ddp"),
    ("dark", 1360, 820, "dark", "#techniques=amp,ddp&view=changes&mark=bare", ""),
]


def take(page: Page, address: str, technique: str, narrow: bool) -> bytes:
    page.goto(address)
    page.wait_for_selector("html[data-coloured]")
    if technique:
        page.locator(f'[name=techniques][value="{technique}"]').click()
        page.locator("#form").evaluate("form => { form.scrollTop = 0; }")
    if narrow:
        page.click("#see")
    page.wait_for_timeout(1500)  # the lines of each tick are counted, the flash is over
    return page.screenshot()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        build(Path(folder, "page"))
        with served(Path(folder, "page")) as (site, _):
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            for name, width, height, scheme, link, technique in PICTURES:
                page = browser.new_page(viewport={"width": width, "height": height})
                page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                picture = Image.open(io.BytesIO(take(page, site + link, technique, width < 900))).convert("RGB")
                picture.quantize(96, dither=Image.Dither.NONE).save(CHECKOUT / f"docs/page-{name}.png", optimize=True)
                page.close()
            browser.close()


if __name__ == "__main__":
    main()
