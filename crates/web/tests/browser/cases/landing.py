"""The way in: a sentence with chips, a recommendation beside the front, and what follows from a click."""

import time

from helpers import TRACE, done, picture, text_of, wait_for_text


def decided(page):
    done(page, "decide")
    done(page)


def card(page):
    return page.inner_text("#card")


def moved(page):
    """How far the answer is from the top of the page."""
    return page.evaluate("document.querySelector('#card').getBoundingClientRect().top + scrollY")


def test_the_landing_recommends(page):
    decided(page)
    assert page.inner_text("#sentence").startswith("Train Llama 3 70B on 1 T tokens within 30 days, choosing among DGX H100 × 16–64 p5 spot × 16–64"), page.inner_text("#sentence")
    words = card(page)
    for part in ["Take", "90 % interval", "assumed", "Validated on", "risk of being late", "Fits"]:
        assert part.lower() in words.lower(), (part, words)
    assert page.locator("#front .point").count() == 6
    assert page.locator("#card .verdict.good").count() == 1
    assert page.locator("#answer .why .bar").count() == 2 and "Measure this" in page.inner_text("#answer .risk")
    picture(page, "landing", whole=True)


def test_a_point_of_the_landing_changes_card_and_charts(page):
    decided(page)
    before, text = card(page), text_of(page)
    top = moved(page)
    point = page.locator("#front .point[aria-pressed=false]").first
    name = point.get_attribute("aria-label").split(":")[0]
    point.locator(".dot").click()
    assert name in card(page) and card(page) != before and moved(page) == top
    page.wait_for_function("(old) => document.querySelector('#text').value !== old", arg=text)
    decided(page)
    assert f"machines = {name.split(' ')[0]}" in text_of(page)
    # The keyboard does the same, and Back undoes it.
    page.locator("#front [aria-pressed=true]").focus()
    page.keyboard.press("ArrowRight")
    assert name not in page.inner_text("#card .take")


def test_chips_of_the_landing_are_searched(page):
    decided(page)
    page.click("[data-chip=model]")
    page.keyboard.type("gpt2-xl")
    page.keyboard.press("Enter")
    wait_for_text(page, "gpt2-xl")
    decided(page)
    assert page.inner_text("[data-chip=model]").startswith("GPT-2 XL")
    page.click("[data-chip=add]")
    page.keyboard.type("p4d")
    page.keyboard.press("Enter")
    wait_for_text(page, "p4d-24xlarge")
    decided(page)
    assert page.locator("#front .point").count() + page.locator("#options td.bad").count() >= 9
    page.click("[data-chip='plan.offers.2']")
    assert "assumed" in page.get_attribute("#picker [name=hour]", "placeholder")
    page.fill("#picker [name=hour]", "12")
    page.click("#picker .primary")
    wait_for_text(page, "node-hour = 12")
    decided(page)


def test_what_is_not_listed_on_the_landing_is_described(page):
    decided(page)
    page.click("[data-chip=model]")
    page.keyboard.type("no such model")
    assert page.locator("#picker-list [role=option]").count() == 1
    page.keyboard.press("Enter")
    wait_for_text(page, "[model.transformer]")
    page.wait_for_selector("#toml:visible")
    assert page.inner_text("[data-chip=model]") == "a transformer of my own"


def test_the_landing_says_in_red_what_does_not_work(page):
    decided(page)
    page.click("[data-chip=deadline]")
    page.click("#picker .presets button >> nth=0")
    wait_for_text(page, '"7 d"')
    decided(page)
    assert page.locator("#card .verdict.bad").count() == 1 and "Misses 7 d" in card(page), card(page)
    assert page.locator("#front .deadline").count() == 1
    page.click("[data-chip='plan.offers.1']")
    page.click("#picker >> text=Remove")
    page.click("[data-chip='plan.offers.0']")
    page.fill("#picker [name=nodes]", "1")
    page.click("#picker .primary")
    wait_for_text(page, "nodes = [1]")
    done(page, "decide")
    assert "None of these machines" in card(page) and page.locator("#card .verdict.bad").count() == 1, card(page)


def test_nothing_moves_on_the_landing_while_it_computes(page):
    decided(page)
    page.evaluate("""() => {
        window.tops = new Set();
        const look = () => {
            for (const id of ["card", "front", "options", "results", "sliders"]) window.tops.add(`${id} ${Math.round(document.getElementById(id).getBoundingClientRect().top + scrollY)}`);
            requestAnimationFrame(look);
        };
        look();
    }""")
    slider = page.locator("[data-key='strategy.plan.global-batch']")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(200)
    decided(page)
    tops = page.evaluate("[...window.tops]")
    assert len(tops) == 5, tops


def test_sliders_of_the_landing_have_valid_stops_only(page):
    decided(page)
    page.wait_for_selector("[data-key='cluster.machines']")
    keys = page.eval_on_selector_all("#sliders input", "all => all.map((one) => one.dataset.key)")
    assert "strategy.plan.global-batch" in keys and "strategy.plan.tensor" in keys, keys
    # The ends of one of them; a test of the server tries all stops.
    slider = page.locator("[data-key='cluster.machines']")
    for key in ["Home", "End"]:
        text = text_of(page)
        slider.focus()
        page.keyboard.press(key)
        page.wait_for_function("(old) => document.querySelector('#text').value !== old", arg=text)
        decided(page)
        assert page.locator(".problem:visible").count() == 0, page.locator(".problem:visible").all_inner_texts()


def test_a_bandwidth_of_the_landing_goes_and_comes_back(page):
    decided(page)
    page.wait_for_selector("[data-key='cluster.machines']")
    step = "#answer [data-figure='step time'] dd >> nth=0"
    before = page.inner_text(step)
    slider = page.locator("#sliders label:has-text('Bandwidth') input")
    slider.focus()
    for key in ["ArrowLeft", "ArrowRight"]:
        text = text_of(page)
        page.keyboard.press(key)
        page.wait_for_function("(old) => document.querySelector('#text').value !== old", arg=text)
        decided(page)
    assert page.inner_text(step) == before


def test_a_broken_link_of_the_landing_says_so(page):
    page.goto(f"{page.server.address}#1.thisisnolink")
    page.reload()
    page.wait_for_selector("#kept:visible")
    assert "damaged" in page.inner_text("#kept")
    decided(page)


def test_the_landing_fits_small_screens(page):
    decided(page)
    for width, height in [(390, 844), (820, 1180), (1280, 720), (1600, 900)]:
        for scheme in ["light", "dark"]:
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(250)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            # A number stands on the first screen.
            bottom = page.evaluate("document.querySelector('#card dd').getBoundingClientRect().bottom + scrollY")
            assert bottom <= height, (width, bottom)
            assert page.evaluate("document.querySelector('#front svg').getBoundingClientRect().right <= innerWidth")
            picture(page, f"landing-{width}-{scheme}")
            boxes = page.eval_on_selector_all("#front .small", "all => all.map((one) => { const { x, y, width, height } = one.getBBox(); return [x, y, width, height]; })")
            for place, (x, y, w, h) in enumerate(boxes):
                for (x2, y2, w2, h2) in boxes[place + 1:]:
                    assert not (x < x2 + w2 - 1 and x2 < x + w - 1 and y < y2 + h2 - 1 and y2 < y + h - 1), (width, boxes)


def test_the_landing_is_printed_on_two_pages(page):
    decided(page)
    # A sheet of A4 at 96 dots an inch, with margins.
    page.set_viewport_size({"width": 718, "height": 1047})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown = [name for name in ["#sentence", "#card", "#front", "#options", "#answer .risk", "#answer .why"] if page.locator(name).is_visible()]
    assert len(shown) == 6 and page.locator("#tools").is_hidden() and page.locator("#sliders").is_hidden(), shown
    pages = page.pdf(format="A4").count(b"/Type /Page\n") or page.pdf(format="A4").count(b"/Type /Page")
    # The first two hold the decision and its reasons; the tables of the forecast follow.
    tops = page.evaluate("['#options', '#results', '#answer .risk'].map((name) => { const { top, bottom } = document.querySelector(name).getBoundingClientRect(); return [top + scrollY, bottom + scrollY]; })")
    first, second = tops[0][1], tops[2][1] - tops[1][0]
    print(f"    {pages} pages; the decision takes {first:.0f} px, its reasons {second:.0f} px")
    assert first < 1047 and second < 1047 and 3 <= pages <= 8
    page.emulate_media(media="screen")


def test_axe_finds_nothing_on_the_landing(page):
    from cases.plots import axe
    decided(page)
    found = []
    for scheme in ["light", "dark"]:
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)
        found += axe(page, scheme)
        page.click("[data-chip=model]")
        found += axe(page, scheme)
        page.keyboard.press("Escape")
    assert found == [], found


def test_three_tasks_are_timed_from_the_landing(page):
    since = time.monotonic()
    # Buyer: another model, deadline and price, then the cheapest point: six interactions.
    decided(page)
    page.click("[data-chip=model]")
    page.keyboard.type("meta-llama/Llama-3.1-8B-Instruct")
    page.keyboard.press("Enter")
    wait_for_text(page, "llama3-8b")
    page.click("[data-chip=deadline]")
    page.click("#picker .presets button >> nth=1")
    wait_for_text(page, '"14 d"')
    decided(page)
    page.click("#options .use:not([disabled]) >> nth=0")
    assert "Take" in card(page) or "take" in card(page)
    buyer = time.monotonic() - since
    # Engineer: a trace, then what would help.
    since = time.monotonic()
    page.click("[data-way=trace]")
    page.set_input_files("#file", TRACE)
    page.wait_for_function("() => document.querySelector('#upload-state').textContent.length > 40", timeout=60_000)
    if page.locator("#upload-state form").count():
        page.fill("#upload-state input", "32")
        page.click("#upload-state button")
    wait_for_text(page, "alone-", timeout=60_000)
    done(page)
    page.wait_for_selector("section:has(h3:text-is('What would help')) tbody tr")
    engineer = time.monotonic() - since
    # Researcher: an example of a paper, then a curve.
    since = time.monotonic()
    page.select_option("#example", "zeng2023-table7")
    wait_for_text(page, "zeng2023")
    done(page)
    page.wait_for_selector("#answer figure[data-name=scaling] svg")
    researcher = time.monotonic() - since
    print(f"    buyer {buyer:.1f} s, engineer {engineer:.1f} s, researcher {researcher:.1f} s")
