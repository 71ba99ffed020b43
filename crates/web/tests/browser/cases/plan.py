"""The plan of a transformer: its ranks, its memory, its pipeline."""

from helpers import done, picture, wait_for_text


def plan(page, example="transformer-pipeline"):
    page.select_option("#example", example)
    page.wait_for_selector("#tab-layout:not([hidden])")
    page.click("#tab-layout")
    done(page, "layout")


def test_only_transformers_have_plans(page):
    assert page.locator("#tab-layout").is_hidden() and page.locator("#tab-plan").is_hidden()
    plan(page)
    page.select_option("#example", "quickstart")
    wait_for_text(page, "vgg16")
    done(page)
    assert page.locator("#tab-layout").is_hidden() and page.locator("#layout").is_hidden()


def test_a_plan_is_drawn(page):
    plan(page)
    names = page.eval_on_selector_all("#layout-answer figure", "all => all.map((one) => one.dataset.name)")
    assert names == ["ranks", "memory", "pipeline"], names
    assert "ranks" in page.inner_text("#layout-answer .sentence")
    groups = page.locator("#layout-answer section:has(h3:text-is('Groups')) tbody tr")
    assert groups.count() >= 2
    # The table that repeats a plot is folded.
    folded = page.eval_on_selector_all("#layout-answer details:not([open]) summary", "all => all.map((one) => one.textContent)")
    assert "Memory of a rank" in folded and "Stages" in folded, folded
    picture(page, "plan", whole=True)
    page.emulate_media(color_scheme="dark")
    picture(page, "plan-dark", whole=True)


def test_ranks_are_coloured_by_role(page):
    plan(page)
    title = "() => document.querySelector('#layout-answer figure svg .title').textContent"
    assert page.evaluate(title).endswith("by stage"), page.evaluate(title)
    page.select_option("#layout-role", "node")
    page.wait_for_function(f"() => ({title})().endsWith('by machine')")
    done(page, "layout")
    page.focus("#layout-answer figure >> nth=0")
    page.keyboard.press("ArrowRight")
    assert "rank 0: stage 0" in page.inner_text("#tip"), page.inner_text("#tip")


def test_large_plans_are_folded(page):
    plan(page, "plan-175b")
    assert "4,096 ranks on 512 machines" in page.inner_text("#layout-answer .sentence"), page.inner_text("#layout-answer .sentence")
    tiles = page.locator("#layout-answer figure[data-name=ranks] g[data-tip] rect").count()
    assert 64 <= tiles <= 600, tiles
    size = page.evaluate("document.querySelector('#layout-answer').innerHTML.length")
    assert size < 1_000_000, size


def test_a_plan_fits_a_phone(page):
    page.set_viewport_size({"width": 360, "height": 780})
    plan(page, "plan-175b")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("#layout-answer figure >> nth=0").scroll_into_view_if_needed()
    picture(page, "phone-plan")
    # The chosen tab is in sight.
    box = page.locator("#tab-layout").bounding_box()
    assert 0 <= box["x"] and box["x"] + box["width"] <= 360, box
