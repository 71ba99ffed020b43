"""What the cases share: where things are, and how to wait for them."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
ASSETS = ROOT / "crates/web/assets"
TRACE = ROOT / "fuzz/seeds/kineto/alone.json"
# Three steps of ResNet-50 as PyTorch's profiler recorded them, where the measurements are at hand.
RECORDED = ROOT.parent / "shared/data/measured/kineto_h200/resnet50_b32.json.gz"
PICTURES = os.environ.get("SCREENSHOTS")


def picture(page, name, whole=False):
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}.png", full_page=whole)


def done(page, view="forecast"):
    page.wait_for_selector(f"body[data-done~={view}]", timeout=60_000)


def state(page, lane="results"):
    return page.get_attribute(f"#{lane}", "data-state")


def wait_for_state(page, name, lane="results", timeout=30_000):
    page.wait_for_selector(f"#{lane}[data-state={name}]", timeout=timeout)


def figure(page, name):
    return page.locator(f"#answer [data-figure='{name}'] dd").first.inner_text()


def text_of(page):
    return page.input_value("#text")


def wait_for_text(page, words, timeout=60_000):
    page.wait_for_function("(words) => document.querySelector('#text').value.includes(words)", arg=words, timeout=timeout)


def tool(page, name):
    """Opens a tool of the drawer."""
    if page.get_attribute(f"#tab-{name}", "aria-selected") != "true":
        page.click(f"#tab-{name}")


def download(page, what):
    if page.locator("#sharing").is_hidden():
        page.click("#share")
    return saved(page, f"#sharing [data-download={what}]")


def edit(page, old, new):
    """Changes the text as somebody who types does."""
    tool(page, "toml")
    assert old in text_of(page), (old, text_of(page))
    page.fill("#text", text_of(page).replace(old, new))


def saved(page, selector):
    with page.expect_download() as download:
        page.click(selector)
    return Path(download.value.path()).read_bytes(), download.value.suggested_filename
