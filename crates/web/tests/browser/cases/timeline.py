"""The timeline, to work with."""

from helpers import done, picture, wait_for_text


def opened(page):
    page.select_option("#example", "async")
    wait_for_text(page, "async")
    page.click("#tab-timeline")
    done(page, "timeline")
    page.locator("#lanes").scroll_into_view_if_needed()
    return page.inner_text("#window")


def settled(page, old):
    page.wait_for_function("(old) => document.querySelector('#window').textContent !== old", arg=old)
    return page.inner_text("#window")


def test_the_timeline_zooms(page):
    whole = opened(page)
    page.click("[data-move=in]")
    near = settled(page, whole)
    page.focus("#lanes")
    page.keyboard.press("ArrowRight")
    settled(page, near)
    page.wait_for_timeout(400)
    picture(page, "timeline")
    page.keyboard.press("0")
    page.wait_for_function("(old) => document.querySelector('#window').textContent === old", arg=whole)


def test_letters_move_the_timeline(page):
    whole = opened(page)
    page.focus("#lanes")
    page.keyboard.press("w")
    near = settled(page, whole)
    page.keyboard.press("d")
    right = settled(page, near)
    page.keyboard.press("a")
    assert settled(page, right) == near
    page.keyboard.press("s")
    page.wait_for_function("(old) => document.querySelector('#window').textContent === old", arg=whole)


def test_dragging_moves_the_picture_at_once(page):
    whole = opened(page)
    page.click("[data-move=in]")
    settled(page, whole)
    page.wait_for_timeout(400)
    # No answer of the server is needed for it.
    page.route("**/api/v1/timeline", lambda route: None)
    page.locator("#lanes").scroll_into_view_if_needed()
    box = page.locator("#lanes").bounding_box()
    page.mouse.move(box["x"] + 600, box["y"] + 60)
    page.mouse.down()
    before = page.evaluate("document.querySelector('#lanes').toDataURL()")
    page.mouse.move(box["x"] + 540, box["y"] + 60, steps=4)
    after = page.evaluate("document.querySelector('#lanes').toDataURL()")
    page.mouse.up()
    assert after != before


def test_a_click_shows_details_and_a_range_is_measured(page):
    opened(page)
    box = page.locator("#lanes").bounding_box()
    page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 31)
    page.wait_for_function("() => document.querySelector('#details').textContent.includes(' to ')")
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 500, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 700, box["y"] + 60, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_function("() => document.querySelector('#details').textContent.includes(' between ')")


def test_operations_are_found(page):
    opened(page)
    names = page.evaluate("async () => (await (await fetch('/api/v1/timeline', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ scenario: document.querySelector('#text').value, steps: 5 }) })).json()).names")
    page.fill("#find", names[0][:6])
    assert "in sight" in page.inner_text("#window")
    page.press("#find", "Enter")
    assert names[0][:6].lower() in page.inner_text("#details").lower()


def test_a_long_timeline_stays_small(page):
    page.select_option("#example", "gpt3-175b")
    wait_for_text(page, "gpt3-175b")
    page.click("#tab-timeline")
    page.fill("#steps", "1")
    page.press("#steps", "Enter")
    done(page, "timeline")
    longest = page.evaluate("""async () => {
        const since = performance.now();
        document.querySelector("[data-move=in]").click();
        await new Promise(requestAnimationFrame);
        return performance.now() - since;
    }""")
    nodes = page.evaluate("document.querySelectorAll('#timeline *').length")
    print(f"    {page.inner_text('#window')} {nodes} nodes, {longest:.0f} ms to zoom")
    assert nodes < 100


def test_two_fingers_zoom_by_touch(page):
    whole = opened(page)
    page.evaluate(
        """() => {
            const lanes = document.querySelector("#lanes");
            const { left, top } = lanes.getBoundingClientRect();
            const send = (kind, id, x) => lanes.dispatchEvent(new PointerEvent(kind, { pointerId: id, pointerType: "touch", clientX: left + x, clientY: top + 50, bubbles: true, button: kind === "pointermove" ? -1 : 0 }));
            lanes.setPointerCapture = () => {};
            send("pointerdown", 11, 400);
            send("pointerdown", 12, 500);
            send("pointermove", 11, 350);
            send("pointermove", 12, 600);
            send("pointerup", 11, 350);
            send("pointerup", 12, 600);
        }""")
    settled(page, whole)
