"""Plots, screens of all sizes, and people who do not use a mouse."""

import re
import subprocess
import time

from helpers import ROOT, done, picture, tool, wait_for_text


def test_plots_have_a_tooltip(page):
    page.locator("#answer figure >> nth=0").scroll_into_view_if_needed()
    box = page.locator("#answer figure >> nth=0 >> svg").bounding_box()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"])
    page.wait_for_selector("#tip:visible")
    assert re.search(r"\d+ workers", page.inner_text("#tip"))
    assert page.locator(".crosshair").count() == 2
    picture(page, "tooltip")
    page.mouse.move(5, 5)
    page.wait_for_selector("#tip", state="hidden")
    assert page.locator(".crosshair").count() == 0


def test_plots_are_read_by_keyboard(page):
    figure = page.locator("#answer figure >> nth=0")
    figure.focus()
    page.keyboard.press("ArrowRight")
    first = page.inner_text("#tip")
    page.keyboard.press("ArrowRight")
    second = page.inner_text("#tip")
    assert first != second and page.inner_text("#said") == second.replace("\n\n", "; ").replace("\n", "; "), (first, second, page.inner_text("#said"))
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_plots_are_read_by_touch(page):
    page.locator("#answer figure >> nth=0").scroll_into_view_if_needed()
    box = page.locator("#answer figure >> nth=0 >> svg").bounding_box()
    page.touchscreen.tap(box["x"] + 0.5 * box["width"], box["y"] + 0.6 * box["height"])
    page.wait_for_selector("#tip:visible")


def test_dark_mode(page):
    page.emulate_media(color_scheme="dark")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(22, 22, 22)", background
    assert page.evaluate("getComputedStyle(document.querySelector('#answer svg .page')).fill") == "rgb(22, 22, 22)"
    picture(page, "desktop-dark")
    page.emulate_media(color_scheme="light")
    page.click("#theme")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background


def test_phone(page):
    page.set_viewport_size({"width": 360, "height": 780})
    page.select_option("#example", "transformer-pipeline")
    page.wait_for_selector("#tab-layout:not([hidden])")
    for view in ["methods", "timeline", "layout", "plan", "search", "sweep", "map", "fuse", "replace"]:
        page.click(f"#tab-{view}")
        time.sleep(0.2)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is too wide"
    done(page)
    picture(page, "phone")
    page.locator("#answer figure >> nth=0").scroll_into_view_if_needed()
    picture(page, "phone-plot")
    # Labels of plots have at least nine pixels.
    size = page.evaluate("""() => {
        const svg = document.querySelector("#answer figure svg");
        const sizes = [...svg.querySelectorAll("text")].map((text) => parseFloat(getComputedStyle(text).fontSize));
        return Math.min(...sizes) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    }""")
    assert size >= 9, size


def test_large_screens(page):
    page.set_viewport_size({"width": 3840, "height": 2160})
    assert page.evaluate("document.documentElement.scrollWidth") <= 3840


def test_keyboards_and_screen_readers(page):
    # Everything that can be used has a name, and tabs are left and entered as tabs are.
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea')]
            .filter((one) => !one.labels?.length && !one.ariaLabel && !one.textContent.trim()).map((one) => one.outerHTML)""")
    assert nameless == [], nameless
    page.focus("#tab-toml")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-methods"
    assert page.get_attribute("#tab-methods", "aria-selected") == "true"
    page.locator("#methods").wait_for(state="visible")
    page.locator("#toml").wait_for(state="hidden")
    assert page.locator("[role=status]").count() >= 2


def axe(page, scheme):
    """What axe finds on the page as it is; nothing where it cannot be had. Dark mode changes colours alone."""
    folder = ROOT / "target/browser/axe"
    script = folder / "package/axe.min.js"
    if not script.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            name = subprocess.run(["npm", "pack", "--silent", "axe-core@4"], cwd=folder, capture_output=True, text=True, timeout=120, check=True).stdout.strip()
            subprocess.run(["tar", "-xzf", name], cwd=folder, check=True)
        except (OSError, subprocess.SubprocessError):
            print("    skipped: axe cannot be had from npm")
            return []
    # The policy of the page forbids other scripts; the debugger may run one.
    rules = '{ runOnly: ["color-contrast"] }' if scheme == "dark" else ""
    result = page.evaluate(f"(() => {{ {script.read_text()}; return window.axe.run({rules}); }})()")
    return [(one["id"], node["html"][:120]) for one in result["violations"] for node in one["nodes"][:3]]


def test_axe_finds_nothing(page):
    found = []

    def look(views):
        for scheme in ["light", "dark"]:
            page.emulate_media(color_scheme=scheme)
            for view in views:
                tool(page, view)
                # An answer to an earlier question is dim as long as the next one is awaited.
                page.wait_for_function("() => { const { state, own } = document.querySelector('#tools').dataset; return state === 'fresh' ? own === 'true' : !state || state === 'none'; }", timeout=60_000)
                page.wait_for_timeout(400)
                found.extend((scheme, view, *one) for one in axe(page, scheme))

    look(["toml", "methods", "timeline", "search", "map", "replace"])
    page.click("#tab-sweep")
    page.click("#sweep-form [type=submit]")
    done(page, "sweep")
    look(["sweep"])
    page.select_option("#example", "transformer-pipeline")
    page.wait_for_selector("#tab-layout:not([hidden])")
    done(page)
    look(["layout", "plan"])
    assert found == [], found
