"""What people come for: a recording, a better configuration."""

from helpers import RECORDED, TRACE, done, picture, text_of, wait_for_text


def test_a_trace_starts_as_bulk_synchronous_all_reduce(page):
    page.set_input_files("#file", TRACE)
    page.wait_for_function("() => document.querySelector('#upload-state').textContent.length > 40", timeout=60_000)
    if page.locator("#upload-state form").count():
        assert "how many samples" in page.inner_text("#upload-state"), page.inner_text("#upload-state")
        picture(page, "ask-batch")
        page.fill("#upload-state input", "32")
        page.click("#upload-state button")
    wait_for_text(page, "alone-", timeout=60_000)
    text = text_of(page)
    assert 'architecture = "all-reduce"' in text and 'synchronisation = "bsp"' in text, text
    page.wait_for_selector("#upload-state a")
    assert page.get_attribute("#upload-state a", "download") == "alone.json"
    assert "steps of" in page.inner_text("#upload-state")
    done(page)
    assert page.locator("#results .failure:visible").count() == 0, page.inner_text("#results .failure")


def test_a_batch_that_is_missing_is_asked_for(page):
    layers = b"layer,forward_ms,backward_ms,bytes\nfirst,1,2,4000\nsecond,2,3,8000\n"
    page.click("[data-way=trace]")
    page.set_input_files("#file", {"name": "my layers.csv", "mimeType": "text/csv", "buffer": layers})
    page.wait_for_selector("#upload-state form")
    assert "--batch" not in page.inner_text("#upload-state")
    page.fill("#upload-state input", "16")
    page.click("#upload-state button")
    page.wait_for_function("() => document.querySelector('#upload-state').textContent.includes('my layers.csv:')")
    wait_for_text(page, "my-layers", timeout=60_000)
    done(page)


def test_a_recording_of_a_real_job_is_uploaded(page):
    if not RECORDED.exists():
        print("    skipped: the measurements are not at hand")
        return
    page.set_input_files("#file", RECORDED)
    page.wait_for_function("() => document.querySelector('#upload-state').textContent.length > 60", timeout=60_000)
    if page.locator("#upload-state form").count():
        page.fill("#upload-state input", "32")
        page.click("#upload-state button")
    wait_for_text(page, "resnet50_b32-", timeout=60_000)
    page.wait_for_selector("#upload-state a")
    assert "3 steps of" in page.inner_text("#upload-state"), page.inner_text("#upload-state")
    done(page)
    assert page.locator("#results .failure:visible").count() == 0, page.inner_text("#results .failure")
    assert page.locator("#answer figure svg").count() >= 2


def test_a_file_can_be_dropped(page):
    page.evaluate(
        """(text) => {
            const data = new DataTransfer();
            data.items.add(new File([text], "alone.json"));
            dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
        }""", TRACE.read_text())
    page.wait_for_function("() => document.querySelector('#upload-state').textContent.length > 20", timeout=60_000)


def test_what_would_help_is_applied_with_a_click(page):
    page.select_option("#example", "several-servers")
    wait_for_text(page, "several")
    done(page)
    rows = page.locator("section:has(h3:text-is('What would help')) tbody tr")
    expected = rows.filter(has_text="2× bandwidth").locator("td").nth(1).inner_text()
    assert page.locator("button[aria-label^='Use:']").count() >= 5
    page.click("button[aria-label='Use: 2× bandwidth']")
    page.wait_for_function("() => document.querySelector('#results .status-text').textContent !== '' || document.querySelector('#text').value.includes('bandwidth =')")
    wait_for_text(page, "bandwidth")
    done(page)
    assert page.locator("#answer [data-figure='step time'] dd").first.inner_text() == expected


def test_a_row_of_the_scaling_table_is_applied(page):
    page.click("summary:text-is('Scaling')")
    before = page.inner_text("#results .answered")
    page.click("button[aria-label='Use: 8 workers']")
    page.wait_for_function("(before) => document.querySelector('#results .answered').innerText !== before", arg=before)
    done(page)


def test_a_search_starts_from_the_example(page):
    page.select_option("#example", "search")
    wait_for_text(page, "cheaply")
    page.click("#tab-search")
    done_fields = page.eval_on_selector_all("#search-vary input", "all => all.map((one) => one.value)")
    assert "workers.0.count=0..16" in done_fields and page.input_value("#search-minimize") == "cost", done_fields
    assert page.eval_on_selector_all("#search-subject_to input", "all => all.map((one) => one.value)") == ["deadline<=1d", "minibatch<=2048"]
    assert page.get_attribute("#tools", "data-state") == "none"
    for place, values in enumerate(["workers.0.count=0..4", "workers.1.count=0..4", "servers.count=1..2"]):
        page.fill(f"#search-vary input >> nth={place}", values)
    page.click("#search-form [type=submit]")
    done(page, "search")
    assert page.locator("#search-answer figure svg").count() == 1
    picture(page, "search")
    # The best, then a point of the front.
    before = text_of(page)
    page.click("#search-answer .use >> nth=0")
    done(page)
    best = text_of(page)
    assert best != before
    assert page.get_attribute("#tools", "data-state") == "stale"
    page.locator("#search-answer g[data-index] circle").first.click(force=True)
    page.click("#tip button")
    page.wait_for_function("(old) => document.querySelector('#text').value !== old", arg=best)
    done(page)


def test_a_search_of_any_scenario_has_fields(page):
    page.click("#tab-search")
    values = page.eval_on_selector_all("#search-vary input", "all => all.map((one) => one.value)")
    assert len(values) >= 3 and all("=" in value for value in values), values
    page.click("#add-search-vary")
    page.keyboard.type("network.bandwidth=10 Gbit/s,25 Gbit/s")
    page.click("#search-form [type=submit]")
    done(page, "search")
    assert page.locator("#search-answer table tbody tr").count() > 3
