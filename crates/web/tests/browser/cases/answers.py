"""Which question the answer belongs to."""

import json
import time

from helpers import done, download, edit, figure, picture, saved, state, wait_for_state, wait_for_text

SLOW = "stale-synchronous"


def greyed(page):
    return page.get_attribute("#results", "data-own") == "false"


def test_a_cancelled_run_leaves_a_labelled_answer(page):
    old = figure(page, "step time")
    # No answer comes before the click.
    page.route("**/api/v1/predict", lambda route: None)
    page.select_option("#example", SLOW)
    wait_for_state(page, "running")
    assert greyed(page)
    wait_for_text(page, "ssp")
    page.click("#results .cancel")
    wait_for_state(page, "stale")
    if figure(page, "step time") == old:
        assert greyed(page) and "vgg16 on 2 × NVIDIA Quadro RTX 4000" in page.inner_text("#results .status-text"), page.inner_text("#results .status-text")
        assert "vgg16" in page.inner_text("#results .answered")
        text, name = download(page, "toml")
        forecast = json.loads(download(page, "json")[0])
        assert name == "vgg16.toml" and b"vgg16" in text and forecast["scenario"]["model"]["zoo"] == "vgg16"
    picture(page, "stale")
    assert page.locator("#results .again").is_visible()


def test_an_invalid_question_leaves_a_labelled_answer(page):
    edit(page, '"vgg16"', '"vgg61"')
    wait_for_state(page, "failed")
    assert greyed(page) and "Still shown: vgg16" in page.inner_text("#results .status-text")
    assert "vgg61" in page.inner_text("#problem")
    picture(page, "invalid")
    edit(page, '"vgg61"', '"vgg16"')
    wait_for_state(page, "fresh")
    assert not greyed(page) and page.locator("#results .failure").is_hidden()


def test_a_refused_method_leaves_a_labelled_answer(page):
    page.select_option("#method", "liu2022")
    wait_for_state(page, "failed")
    assert greyed(page) and "strategy.architecture" in page.inner_text("#results .failure")
    assert "--method" not in page.inner_text("#results .failure")


def test_a_change_replaces_the_run_at_once(page):
    page.select_option("#example", SLOW)
    wait_for_state(page, "running")
    wait_for_text(page, "ssp")
    since = time.monotonic()
    page.select_option("#example", "quickstart")
    wait_for_text(page, "vgg16")
    done(page)
    took = time.monotonic() - since
    print(f"    from a run of the engine to another answer: {took:.2f} s")
    assert took < 3 and "vgg16" in page.inner_text("#results .answered")


def test_changes_do_not_wait_for_the_engine(page):
    page.select_option("#example", SLOW)
    wait_for_text(page, "ssp")
    slider = page.locator("[data-key='strategy.batch']")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => !document.querySelector('#text').value.includes('batch = 32')", timeout=30_000)
    assert state(page) == "running"
    # The run may end at any time, and hides the button.
    page.evaluate("() => document.querySelector('#results .cancel').click()")


def test_the_headline_comes_first(page):
    page.select_option("#example", "async")
    wait_for_text(page, "async")
    since = time.monotonic()
    page.wait_for_function("() => document.querySelector('#results .answered').textContent.includes('resnet50')", timeout=60_000)
    first = time.monotonic() - since
    assert state(page) in ("running", "fresh")
    begun = state(page)
    page.wait_for_selector("#answer figure[data-name=scaling]", timeout=90_000)
    scaling = time.monotonic() - since
    done(page)
    print(f"    headline after {first:.1f} s ({begun}), scaling after {scaling:.1f} s, all after {time.monotonic() - since:.1f} s")
    assert "What would help" in page.inner_text("#answer")


def test_answers_are_kept(page):
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/predict") else None)
    slider = page.locator("[data-key='strategy.batch']")
    slider.focus()
    page.keyboard.press("ArrowRight")
    wait_for_text(page, "batch = 64")
    done(page)
    page.keyboard.press("ArrowLeft")
    wait_for_text(page, "batch = 32")
    done(page)
    assert len(asked) == 1, asked


def test_answers_are_announced(page):
    page.locator("[data-key='strategy.batch']").focus()
    page.keyboard.press("ArrowRight")
    wait_for_text(page, "batch = 64")
    done(page)
    said = page.inner_text("#said")
    assert said.startswith("Answer for vgg16 on 2 × NVIDIA Quadro RTX 4000") and "step takes" in said, said
    assert page.get_attribute("#said", "role") == "status"


def moved(page, batch):
    """Moves the slider of batches to the right, again if a busy machine lost the key."""
    slider = page.locator("[data-key='strategy.batch']")
    for _ in range(6):
        if str(batch) not in (slider.get_attribute("aria-valuetext") or ""):
            slider.focus()
            page.keyboard.press("ArrowRight")
        try:
            return wait_for_text(page, f"batch = {batch}", timeout=10_000)
        except Exception:
            continue
    raise AssertionError(f"the slider does not reach {batch}")


def test_answers_are_pinned_and_kept_in_the_link(page):
    page.click("#pin")
    for batch in [64, 128, 256]:
        moved(page, batch)
        done(page)
        page.click("#pin") if batch < 256 else None
    difference = page.locator("[data-pinned='throughput'] .difference >> nth=0").inner_text()
    titles = page.locator("#pinned thead span").all_inner_texts()
    assert difference.startswith("−") and len(titles) == 3 and "batch 32" in titles[0], (difference, titles)
    picture(page, "pinned")
    time.sleep(0.5)
    page.reload()
    done(page)
    assert page.locator("#pinned thead span").all_inner_texts() == titles
    page.click("#pinned button[aria-label^='Show'] >> nth=0")
    wait_for_text(page, "batch = 32")
    done(page)
    for _ in titles:
        page.click("#pinned button[aria-label^='Unpin'] >> nth=0")
    assert page.locator("#pinned").is_hidden()
