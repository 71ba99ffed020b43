"""The timeline, to work with."""

from helpers import done, picture, wait_for_text


def opened(page):
    page.select_option("#example", "async")
    wait_for_text(page, "async")
    page.click("#tab-timeline")
    done(page, "timeline")
    page.wait_for_selector("#lanes svg", timeout=30_000)
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
    page.wait_for_function("() => document.querySelector('#lanes .bars').getAttribute('transform') === 'matrix(1 0 0 1 0 0)'")
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
    box = page.locator("#lanes").bounding_box()
    page.mouse.move(box["x"] + 600, box["y"] + 60)
    page.mouse.down()
    before = page.get_attribute("#lanes .bars", "transform")
    page.mouse.move(box["x"] + 540, box["y"] + 60, steps=4)
    after = page.get_attribute("#lanes .bars", "transform")
    page.mouse.up()
    assert after != before, after
    assert page.locator("#ruler span").count() >= 3


def test_a_click_shows_details(page):
    opened(page)
    bar = page.locator("#lanes .bars g rect").first
    bar.click(force=True)
    page.wait_for_function("() => document.querySelector('#details').textContent.includes(' to ')")


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


def test_colours_are_the_same_in_every_plot(page):
    legend = page.evaluate("""() => [...document.querySelectorAll("#answer figure[data-name=breakdown] .plot > text")]
        .filter((text) => text.textContent === "compute").map((text) => text.previousElementSibling.getAttribute("fill"))[0]""")
    # Every plot of the page has patterns of its own.
    assert legend.startswith("url(#") and legend.endswith("-series-0)"), legend
    page.click("#tab-timeline")
    done(page, "timeline")
    classes = page.evaluate("""() => [...document.querySelectorAll("#lanes .bars rect")].map((rect) => rect.getAttribute("class"))""")
    assert any(name.startswith("s0 ") for name in classes)
