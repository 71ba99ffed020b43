"""What everybody does first: look, choose, change, keep."""

import json
import time

from helpers import done, download, edit, figure, picture, saved, text_of, wait_for_text


def test_the_quick_start_is_answered(page):
    assert page.title().startswith("vgg16 on 2 × NVIDIA Quadro RTX 4000"), page.title()
    assert "bottleneck" in page.inner_text(".sentence")
    assert page.locator("#answer figure svg").count() >= 2
    assert "3.3" in figure(page, "step time")
    picture(page, "desktop-light")


def test_examples_can_be_chosen(page):
    names = page.eval_on_selector_all("#example option", "all => all.map((option) => option.value)")
    assert len(names) > 10
    page.select_option("#example", "several-servers")
    wait_for_text(page, "several")
    done(page)
    assert page.locator(".problem:visible").count() == 0


def test_a_slider_changes_text_sentence_and_answer(page):
    before = figure(page, "step time")
    slider = page.locator("[data-key='strategy.batch']")
    slider.focus()
    page.keyboard.press("ArrowRight")
    wait_for_text(page, "batch = 64")
    done(page)
    assert page.inner_text("[data-chip=batch]") == "batch 64"
    assert figure(page, "step time") != before
    # Within a tenth of a second; a busy machine may take longer now and then.
    times = []
    for _ in range(5):
        old = page.inner_text("#results .answered")
        times.append(page.evaluate(
            """async (old) => {
                const slider = document.querySelector("[data-key='cluster.workers.0.count']");
                const since = performance.now();
                slider.value = Number(slider.value) + 1;
                slider.dispatchEvent(new Event("input"));
                const same = () => document.querySelector("#results .answered").innerText === old || !document.body.dataset.done.includes("forecast");
                while (same() && performance.now() - since < 5000) await new Promise(requestAnimationFrame);
                return performance.now() - since;
            }""", old))
    times.sort()
    print(f"    slider to answer: {times[0]:.0f} ms at best, {times[len(times) // 2]:.0f} ms median of {len(times)}")


def test_the_text_changes_the_sentence(page):
    edit(page, "vgg16", "alexnet")
    page.wait_for_function("() => document.title.startsWith('alexnet')")
    assert "AlexNet" in page.inner_text("[data-chip=model]")
    assert "# How fast" in text_of(page), "comments stay"


def test_methods_stand_side_by_side(page):
    page.click("#tab-methods")
    done(page, "methods")
    assert page.locator("#compared table").first.locator("tbody tr").count() >= 3
    assert "Methods that do not apply" in page.inner_text("#compared")
    picture(page, "methods")
    page.click("button[aria-label='Use the method zeng2023']")
    done(page)
    assert page.input_value("#method") == "zeng2023" and "zeng2023" in page.inner_text("#answer")


def test_everything_can_be_downloaded(page):
    text, name = download(page, "toml")
    assert name == "vgg16.toml" and b"[model]" in text
    forecast = json.loads(download(page, "json")[0])
    assert forecast["prediction"]["method"] == "layerwise"
    assert download(page, "csv")[0].startswith(b"workers,")
    assert b"Reproduce this report" in download(page, "html")[0]
    for place in range(page.locator("#answer figure").count()):
        figure_ = f"#answer figure >> nth={place} >> "
        assert saved(page, figure_ + "[data-plot=svg]")[0].startswith(b"<svg")
        assert saved(page, figure_ + "[data-plot=png]")[0].startswith(b"\x89PNG")
    page.click("#tab-timeline")
    done(page, "timeline")
    assert len(saved(page, "[data-download=perfetto]")[0]) > 1000
    assert saved(page, "[data-download=timeline-svg]")[0].startswith(b"<svg")


def test_a_link_shows_the_same(page):
    page.click("#tab-methods")
    page.locator("[data-key='strategy.batch']").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.hash.length > 20 && document.querySelector('#text').value.includes('batch = 64')")
    time.sleep(0.5)
    other = page.context.new_page()
    other.goto(page.url)
    wait_for_text(other, "batch = 64")
    assert other.get_attribute("#tab-methods", "aria-selected") == "true"
    other.close()


def test_links_are_copied_over_plain_http(page):
    # Browsers have no clipboard for pages that come over HTTP from another machine.
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.evaluate("document.addEventListener('copy', () => (window.copied = document.activeElement.value))")
    page.click("#share")
    page.click("#copy")
    page.wait_for_function("() => document.querySelector('#copy').textContent === 'Copied'")
    assert "#1." in page.evaluate("window.copied")


def test_the_theme_is_remembered(page):
    page.click("#theme")
    page.click("#theme")
    page.reload()
    done(page)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
