"""Nothing that is typed or chosen is lost."""

import time

from helpers import done, edit, figure, text_of, wait_for_text


def test_typing_during_an_answer_loses_nothing(page):
    page.wait_for_selector("[data-key='strategy.batch']")
    page.click("[data-chip=network]")
    page.focus("#picker [name=rate]")
    for place, letter in enumerate("40 Gbit/s"):
        page.keyboard.type(letter)
        if place % 3 == 0:
            # Somebody else changes the scenario meanwhile, and answers arrive.
            page.evaluate("""(value) => {
                const slider = document.querySelector("[data-key='strategy.batch']");
                slider.value = value;
                slider.dispatchEvent(new Event("input"));
            }""", 5 + place // 3)
            time.sleep(0.25)
    assert page.input_value("#picker [name=rate]") == "40 Gbit/s"
    assert page.evaluate("document.activeElement.name") == "rate"
    page.keyboard.press("Enter")
    wait_for_text(page, "40 Gbit/s")
    done(page)


def test_typing_in_the_text_loses_nothing(page):
    page.click("#tab-toml")
    page.evaluate("(() => { const text = document.querySelector('#text'); text.focus(); text.setSelectionRange(text.value.length, text.value.length); })()")
    words = "\n# one two three four five six seven eight nine ten\n"
    for letter in words:
        page.keyboard.type(letter)
        time.sleep(0.03)
    time.sleep(0.6)
    assert text_of(page).endswith(words), text_of(page)[-80:]


def test_back_undoes_a_change(page):
    before = figure(page, "step time")
    page.locator("[data-key='strategy.batch']").focus()
    page.keyboard.press("ArrowRight")
    wait_for_text(page, "batch = 64")
    done(page)
    time.sleep(0.4)
    page.go_back()
    wait_for_text(page, "batch = 32")
    done(page)
    assert figure(page, "step time") == before
    # Also the slider that is still held.
    page.wait_for_function("() => document.querySelector(\"[data-key='strategy.batch']\").ariaValueText === '32'")
    page.go_forward()
    wait_for_text(page, "batch = 64")


def test_a_slider_that_is_dragged_is_one_step(page):
    slider = page.locator("[data-key='strategy.batch']")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    wait_for_text(page, "batch = 256")
    time.sleep(0.4)
    page.click("#undo")
    wait_for_text(page, "batch = 32")


def test_an_example_keeps_the_own_scenario_a_step_away(page):
    edit(page, "batch = 32", "batch = 48")
    done(page)
    page.select_option("#example", "several-servers")
    wait_for_text(page, "several")
    assert page.locator("#kept").is_visible()
    page.click("#return")
    wait_for_text(page, "batch = 48")
    done(page)
    assert page.locator("#kept").is_hidden()
