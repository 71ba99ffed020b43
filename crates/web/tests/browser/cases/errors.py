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
    page.click("#failure button")
    selected = page.evaluate("(() => { const text = document.querySelector('#text'); return text.value.slice(text.selectionStart, text.selectionEnd); })()")
    assert "vgg61" in selected, selected
    page.click("#tab-form")
    field = page.locator("[name='model.zoo']")
    assert field.get_attribute("aria-invalid") == "true" and field.input_value() == "vgg61"
    assert "vgg16" in page.inner_text("#field-problem")
    edit(page, '"vgg61"', '"vgg19"')
    page.wait_for_selector("#problem", state="hidden")
    done(page)
    assert page.locator("[aria-invalid]").count() == 0


def test_a_text_that_is_no_toml_has_a_line(page):
    edit(page, "[data]", "[data")
    wait_for_state(page, "failed")
    assert re.search(r"line \d+", page.inner_text("#failure")), page.inner_text("#failure")
    assert "▸" in page.inner_text("#lines")


def test_a_wrong_value_is_shown_at_its_field(page):
    page.fill("[name='cluster.network.bandwidth']", "very fast")
    page.press("[name='cluster.network.bandwidth']", "Enter")
    page.wait_for_selector("#field-problem")
    assert page.get_attribute("[name='cluster.network.bandwidth']", "aria-invalid") == "true"
    assert page.get_attribute("[name='cluster.network.bandwidth']", "aria-describedby") == "field-problem"
    assert page.input_value("[name='cluster.network.bandwidth']") == "very fast"
    picture(page, "field-error")
    page.fill("[name='cluster.network.bandwidth']", "25 Gbit/s")
    page.press("[name='cluster.network.bandwidth']", "Enter")
    page.wait_for_selector("#field-problem", state="detached")
    done(page)


def test_the_form_follows_a_text_with_an_error(page):
    edit(page, '"vgg16"', '"vgg61"')
    wait_for_state(page, "failed")
    edit(page, "batch = 32", "batch = 48")
    page.wait_for_function("() => document.querySelector(\"[name='strategy.batch']\").value === '48'")
    assert page.input_value("[name='strategy.architecture']") == "parameter-server"


def test_a_dead_server_is_noticed_and_found_again(page):
    server = page.server
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
    assert page.locator("#failure").is_hidden()


def test_a_lost_upload_says_so(page):
    page.click("#tab-toml")
    page.fill("#text", '[model]\nprofile = "resnet-0123.json"\n')
    wait_for_state(page, "failed")
    words = page.inner_text("#failure")
    assert "lost when the server ends" in words and "Upload the file again" in words, words


def test_a_file_that_is_no_trace_is_refused(page):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(b"nothing of the kind")
        file.flush()
        page.set_input_files("#file", file.name)
        page.wait_for_selector("#upload-state strong")
    assert "import reads" in page.inner_text("#upload-state")
