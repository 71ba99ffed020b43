"""Errors where they happen, and a server that goes away."""

import re
import tempfile

from helpers import done, edit, picture, state, text_of, wait_for_state, wait_for_text


def test_errors_say_where_and_what_to_do(page):
    edit(page, '"vgg16"', '"vgg61"')
    page.wait_for_selector("#problem:visible")
    words = page.inner_text("#problem")
    assert "model.zoo" in words and "line" in words and "vgg16" in words, words
    line = 1 + text_of(page)[: text_of(page).index("vgg61")].count("\n")
    assert f"▸{line}\n" in page.inner_text("#lines"), page.inner_text("#lines")
    assert page.get_attribute("#text", "aria-invalid") == "true"
    page.click("#problem button")
    selected = page.evaluate("(() => { const text = document.querySelector('#text'); return text.value.slice(text.selectionStart, text.selectionEnd); })()")
    assert "vgg61" in selected, selected
    # Said once, with the chip marked.
    assert page.get_attribute("[data-chip=model]", "aria-invalid") == "true" and page.locator(".problem:visible").count() == 1
    edit(page, '"vgg61"', '"vgg19"')
    page.wait_for_selector("#problem", state="hidden")
    done(page)
    assert page.locator("[aria-invalid]").count() == 0


def test_a_text_that_is_no_toml_has_a_line(page):
    edit(page, "[data]", "[data")
    wait_for_state(page, "failed")
    assert re.search(r"line \d+", page.inner_text("#problem")), page.inner_text("#problem")
    assert "▸" in page.inner_text("#lines")


def test_a_wrong_value_is_shown_at_its_chip(page):
    page.click("[data-chip=network]")
    page.fill("#picker [name=rate]", "very fast")
    page.click("#picker .primary")
    page.wait_for_selector("#problem:visible")
    assert page.get_attribute("[data-chip=network]", "aria-invalid") == "true"
    assert page.get_attribute("[data-chip=network]", "aria-describedby") == "problem"
    assert page.inner_text("[data-chip=network]") == "very fast" and page.inner_text("[data-chip=architecture]") == "parameter-server"
    picture(page, "field-error")
    page.click("[data-chip=network]")
    page.fill("#picker [name=rate]", "25 Gbit/s")
    page.click("#picker .primary")
    page.wait_for_selector("#problem", state="hidden")
    done(page)


def test_a_dead_server_is_noticed_and_found_again(page):
    server = page.server
    page.wait_for_selector("[data-key='strategy.batch']")
    server.stop()
    try:
        page.locator("[data-key='strategy.batch']").focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("#server:visible")
        assert state(page) == "failed" and page.get_attribute("#results", "data-own") == "false"
        picture(page, "no-server")
    finally:
        server.start()
    page.wait_for_selector("#server", state="hidden")
    wait_for_text(page, "batch = 64")
    done(page)
    assert page.locator("#results .failure").is_hidden()


def test_a_lost_upload_says_so(page):
    page.click("#tab-toml")
    page.fill("#text", '[model]\nprofile = "resnet-0123.json"\n')
    wait_for_state(page, "failed")
    words = page.inner_text("#problem")
    assert "lost when the server ends" in words and "Upload the file again" in words, words


def test_a_file_that_is_no_trace_is_refused(page):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(b"nothing of the kind")
        file.flush()
        page.click("[data-way=trace]")
        page.set_input_files("#file", file.name)
        page.wait_for_selector("#upload-state strong")
    assert "import reads" in page.inner_text("#upload-state")
