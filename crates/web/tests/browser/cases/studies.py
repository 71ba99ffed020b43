"""Sweeps, maps, fusion, layers and plans: fields that start filled, an answer that shows what the command prints, and rows
that become the scenario."""

import json
import subprocess

from helpers import done, edit, picture, saved, state, text_of, tool, wait_for_state, wait_for_text


# A transformer of which all plans are tried in no time.
SMALL = """[model]
zoo = "llama3-8b"
sequence = 4096
[[cluster.workers]]
count = 16
device = "h100-sxm5"
[cluster.network]
base = "infiniband-ndr"
[cluster.nodes]
workers = 8
network = "nvlink4"
ports = 8
[strategy.plan]
tensor = 4
pipeline = 2
recompute = ["attention"]
global-batch = 32
"""


def start(page, example, words):
    page.select_option("#example", example)
    wait_for_text(page, words)


def run(page, name):
    tool(page, name)
    page.click(f"#{name}-form [type=submit]")
    done(page, name)
    assert page.locator("#tools .failure:visible").count() == 0, page.inner_text("#tools .failure")


def command(page, *arguments):
    """What the command line writes for the scenario on the page."""
    made = subprocess.run([page.server.program, arguments[0], "-", *arguments[1:], "--json"], input=text_of(page), capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_a_sweep_is_drawn_and_a_row_is_used(page):
    tool(page, "sweep")
    values = page.eval_on_selector_all("#sweep-vary input", "all => all.map((one) => one.value)")
    assert values[0].startswith("workers.0.count=1..") and values[1].startswith("batch="), values
    run(page, "sweep")
    assert page.locator("#sweep-answer figure svg").count() == 1
    assert "Fastest" in page.inner_text("#sweep-answer .sentence"), page.inner_text("#sweep-answer .sentence")
    picture(page, "sweep")
    text, name = saved(page, "#sweep-form [data-download]")
    assert name == "sweep.jsonl" and text.decode() == command(page, "sweep", "--vary", values[0], "--vary", values[1])
    before = text_of(page)
    page.locator("#sweep-answer .use").last.click()
    done(page)
    assert text_of(page) != before


def test_fields_follow_the_scenario_until_they_are_touched(page):
    tool(page, "sweep")
    edit(page, "count = 2", "count = 16")
    page.wait_for_function("() => document.querySelector('#sweep-vary input').value === 'workers.0.count=1..32'")
    tool(page, "sweep")
    page.fill("#sweep-vary input >> nth=0", "workers.0.count=1,2")
    edit(page, "count = 16", "count = 4")
    wait_for_text(page, "count = 4")
    done(page)
    assert page.input_value("#sweep-vary input >> nth=0") == "workers.0.count=1,2"


def test_a_map_shows_epochs_and_a_condition_is_used(page):
    start(page, "sprint", "architecture")
    run(page, "map")
    assert page.locator("#map-answer figure svg").count() == 1
    assert page.inner_text("#map-answer .sentence").startswith("Mapped by oyama2016")
    picture(page, "map")
    nodes, batches, minibatch = (page.input_value(f"#map-{name}") for name in ["nodes", "batches", "minibatch"])
    flags = [flag for pair in [("--nodes", nodes), ("--batches", batches), ("--minibatch", minibatch)] if pair[1] for flag in pair]
    assert json.loads(saved(page, "#map-form [data-download]")[0]) == json.loads(command(page, "map", *flags))
    cells = page.locator("#map-answer tbody tr >> nth=0 >> td").all_inner_texts()
    page.click("#map-answer .use >> nth=0")
    wait_for_text(page, f"batch = {cells[1]}")
    done(page)


def test_a_study_waits_for_its_scenario(page):
    done(page)
    held = []
    page.route("**/api/v1/scenario", lambda route: held.append(route))
    page.select_option("#example", "sprint")
    tool(page, "map")
    page.fill("#map-nodes", "1..3")
    page.click("#map-form [type=submit]")
    held[0].continue_()
    page.unroute("**/api/v1/scenario")
    done(page, "map")
    assert page.inner_text("#map-answer .sentence").startswith("Mapped by oyama2016")
    assert page.input_value("#map-nodes") == "1..3", "what was entered while the scenario was read is kept"


def test_a_map_marks_the_field_that_is_wrong(page):
    start(page, "sprint", "architecture")
    tool(page, "map")
    page.fill("#map-nodes", "4..1")
    page.click("#map-form [type=submit]")
    wait_for_state(page, "failed", "tools")
    assert page.get_attribute("#map-nodes", "aria-invalid") == "true"
    assert "empty" in page.inner_text("#map-problem") and "1..4" in page.inner_text("#map-problem"), page.inner_text("#map-problem")
    page.fill("#map-nodes", "1..4")
    page.click("#map-form [type=submit]")
    done(page, "map")
    assert page.locator("#map-problem").count() == 0 and page.get_attribute("#map-nodes", "aria-invalid") is None


def test_fusion_rules_are_compared_and_one_is_used(page):
    start(page, "all-reduce", "all-reduce")
    run(page, "fuse")
    assert page.locator("#fuse-answer figure svg").count() == 1
    assert page.inner_text("#fuse-answer h3 >> nth=0") == "Rules"
    picture(page, "fusion")
    assert json.loads(saved(page, "#fuse-form [data-download]")[0]) == json.loads(command(page, "fuse"))
    page.locator("#fuse-answer .use").last.click()
    wait_for_text(page, "buckets")
    done(page)


def test_what_is_wrong_for_a_study_is_said_at_its_key(page):
    tool(page, "fuse")
    page.click("#fuse-form [type=submit]")
    wait_for_state(page, "failed", "tools")
    assert "only all-reduce fuses gradients" in page.inner_text("#tools .failure").lower(), page.inner_text("#tools .failure")


def test_layers_are_replaced(page):
    start(page, "layer-replacement", "vgg16")
    run(page, "replace")
    assert "Before and after" in page.inner_text("#replace-answer")
    picture(page, "layers")
    assert json.loads(saved(page, "#replace-form [data-download]")[0]) == json.loads(command(page, "replace"))
    page.click("#replace-answer .use-all")
    wait_for_text(page, "[[model.custom.layers]]")
    done(page)
    assert page.locator("#problem:visible").count() == 0


def test_the_best_plan_is_found_and_used(page):
    tool(page, "toml")
    page.fill("#text", SMALL)
    page.wait_for_selector("#tab-plan:not([hidden])")
    tool(page, "plan")
    assert page.input_value("#plan-nodes") != "" and page.input_value("#plan-global_batch") != ""
    run(page, "plan")
    assert "valid plans" in page.inner_text("#plan-answer .sentence")
    assert "[strategy.plan]" in page.inner_text("#plan-answer .toml")
    picture(page, "best-plan")
    report = json.loads(saved(page, "#plan-form [data-download]")[0])
    page.click("#plan-answer .use-all")
    done(page)
    shown = page.inner_text("#answer [data-figure='step time'] dd >> nth=0")
    step = report["best"]["step_s"]
    unit = {"s": 1, "ms": 1e-3}[shown.split()[1]]
    assert abs(float(shown.split()[0]) * unit / step - 1) < 1e-3, (shown, step)


def test_a_long_study_can_be_cancelled(page):
    # Each of these points is a simulation of 64 workers with 161 transfers in a step: no machine ends all of them within
    # minutes. They are too many for a plot.
    start(page, "async", 'synchronisation = "async"')
    tool(page, "sweep")
    page.fill("#sweep-vary input >> nth=0", "workers.0.count=64")
    page.fill("#sweep-vary input >> nth=1", "batch=1..20000")
    page.click("#sweep-form [type=submit]")
    page.wait_for_function("() => document.querySelector('#tools .status-text').textContent.includes('of 20,000 points')", timeout=60_000)
    page.click("#tools .cancel")
    assert state(page, "tools") in ["none", "stale"], state(page, "tools")
    # The server has stopped too, and takes the next one.
    page.fill("#sweep-vary input >> nth=0", "workers.0.count=1,2")
    page.fill("#sweep-vary input >> nth=1", "batch=32")
    run(page, "sweep")


def test_studies_of_a_link_are_asked_again(page):
    tool(page, "sweep")
    page.fill("#sweep-vary input >> nth=0", "workers.0.count=1,2")
    run(page, "sweep")
    page.wait_for_timeout(500)
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector("#sweep:visible")
    wait_for_text(other, "vgg16")
    other.wait_for_function("() => document.querySelector('#sweep-vary input')?.value === 'workers.0.count=1,2'")
    other.close()
