"""A running job: its log and its ranks against the forecast; and the page itself over a long time."""

import io
import os
import tarfile
import time

from helpers import ROOT, done, figure, picture, tool, wait_for_text

RANKS = ROOT / "crates/study/tests/ranks"
LINE = " [2024-05-01 {:02}:{:02}:00] iteration {:8}/    1000 | consumed samples: 1 | elapsed time per iteration (ms): 6000.0 | lm loss: 9.1 |\n"


def log(lines):
    """A step takes 6 s, a line tells of ten."""
    return "".join(LINE.format(at // 60, at % 60, 10 * at) for at in range(1, lines + 1))


def test_ranks_of_a_job_are_checked(page):
    page.select_option("#example", "all-reduce")
    wait_for_text(page, "all-reduce")
    done(page)
    link = page.url
    tool(page, "check")
    page.set_input_files("#check-files", RANKS / "pauses.csv")
    done(page, "check")
    assert "rank 2, every 10 steps" in page.inner_text("#check-answer .sentence"), page.inner_text("#check-answer")
    assert "Who is slow" in page.inner_text("#check-answer")
    picture(page, "check")
    # The link has no files: the fields stay, and the page asks for them again.
    page.wait_for_function("(old) => location.href !== old", arg=link)
    # The example and the tool are written one after the other.
    page.wait_for_timeout(1_000)
    page.reload()
    page.wait_for_selector("#check:visible")
    assert "not kept in the link" in page.inner_text("#check-form")
    page.set_input_files("#check-files", [])


def test_a_log_is_followed(page):
    page.evaluate("""(text) => {
        window.text = text;
        window.showOpenFilePicker = async () => [{ getFile: async () => new File([window.text], "train.log", { lastModified: window.text.length }) }];
    }""", log(30))
    tool(page, "check")
    page.fill("#check-deadline", "3 h")
    page.click("#check-form button:text-is('Choose files')")
    done(page, "check")
    before = page.inner_text("#check-answer")
    assert "30 %" in before and "300 of 1,000 steps" in before and "followed" in page.inner_text("#check-form"), before
    page.evaluate("(text) => { window.text = text; }", log(60))
    page.wait_for_function("() => document.querySelector('#check-answer').innerText.includes('600 of 1,000 steps')", timeout=30_000)
    picture(page, "follow")


def test_an_archive_of_traces_says_who_is_slow(page):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for file in sorted((RANKS / "h200/pauses").iterdir()):
            archive.add(file, file.name)
    page.click("[data-way=trace]")
    page.set_input_files("#file", {"name": "ranks.tar", "mimeType": "application/x-tar", "buffer": packed.getvalue()})
    page.wait_for_function("() => document.querySelector('#upload-state').textContent.length > 40", timeout=60_000)
    if page.locator("#upload-state form").count():
        page.fill("#upload-state input", "32")
        page.click("#upload-state button")
    wait_for_text(page, "ranks-", timeout=60_000)
    page.wait_for_selector("#upload-state .sentence")
    assert "pauses (rank 3, every 8 steps)" in page.inner_text("#upload-state .sentence")


def test_fine_tuning_starts_from_the_landing(page):
    page.click("[data-way=tune]")
    wait_for_text(page, "[model.adapters]")
    done(page)
    assert page.inner_text("#sentence").startswith("Fine-tune Llama 3 8B by QLoRA (nf4) of rank 16 on 50 M tokens in sequences of 4096 tokens with 1 ×"), page.inner_text("#sentence")
    words = page.inner_text("#answer")
    assert words.startswith("Fits:") and "costs" in words and figure(page, "training") and figure(page, "cost"), words[:300]
    # Ranks, lengths and devices are chips; what does not fit is said first.
    page.click("[data-chip=sequence]")
    page.click("#picker .presets button:text-is('16384')")
    wait_for_text(page, "sequence = 16384")
    page.click("[data-chip=adapters]")
    page.click("#picker .presets button:text-is('rank 64')")
    wait_for_text(page, "rank = 64")
    page.click("[data-chip=adapters]")
    page.click("#picker .presets button:text-is('LoRA')")
    wait_for_text(page, 'base = "bf16"')
    done(page)
    assert "LoRA of rank 64" in page.inner_text("#sentence")
    assert page.locator("#answer .bad").count() > 0 or not page.inner_text("#answer").startswith("Fits"), page.inner_text("#answer")[:300]
    picture(page, "fine-tuning")


def test_keys_of_a_slider_are_not_lost(page):
    page.evaluate("""() => {
        const fetched = window.fetch;
        window.stops = 0;
        window.fetch = async (path, options) => {
            const slow = { "/api/v1/scenario": 900, "/api/v1/stops": 300 }[path] ?? 0;
            const answer = await fetched(path, options);
            await new Promise((resolve) => setTimeout(resolve, slow));
            window.stops += path === "/api/v1/stops";
            return answer;
        };
    }""")
    said = "#sliders label:has([data-key='strategy.batch']) output"
    page.locator("[data-key='strategy.batch']").focus()
    seen = []
    for key in ["ArrowRight", "ArrowRight", "ArrowLeft", "ArrowRight", "ArrowRight"]:
        page.keyboard.press(key)
        seen.append(page.inner_text(said))
        # Stops of the answers before come while the server does not know of the key yet.
        for _ in range(12):
            page.wait_for_timeout(150)
            assert page.inner_text(said) == seen[-1], (seen, page.inner_text(said))
    wait_for_text(page, f"batch = {seen[-1]}")
    done(page)
    assert page.evaluate("window.stops") > 0 and page.evaluate("document.activeElement.dataset.key") == "strategy.batch"


def test_nothing_leaks(page):
    """LEAK_MINUTES says for how long sliders move; a few seconds otherwise."""
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable")

    def used():
        for _ in range(3):
            client.send("HeapProfiler.collectGarbage")
        found = {one["name"]: one["value"] for one in client.send("Performance.getMetrics")["metrics"]}
        return found["JSHeapUsedSize"] / 1e6, found["Nodes"], found["JSEventListeners"]

    sizes, since = [], time.monotonic()
    lasts = 60 * float(os.environ.get("LEAK_MINUTES", "0.1"))
    slider = page.locator("[data-key='strategy.batch']")
    moves = 0
    while time.monotonic() - since < lasts or len(sizes) < 5:
        # More answers than the page keeps.
        for _ in range(50):
            slider.focus()
            page.keyboard.press("ArrowRight" if moves // 4 % 2 else "ArrowLeft")
            page.wait_for_timeout(20)
            moves += 1
        count = page.locator("[data-key='cluster.workers.0.count']")
        count.focus()
        page.keyboard.press("ArrowRight" if len(sizes) % 8 < 4 else "ArrowLeft")
        done(page)
        sizes.append(used())
    (first, nodes, listeners), (last, nodes_now, listeners_now) = sizes[len(sizes) // 3], sizes[-1]
    print(f"    {moves} moves in {time.monotonic() - since:.0f} s: {first:.2f} MB, then {last:.2f} MB; {nodes:.0f} nodes, then {nodes_now:.0f}; {listeners:.0f} listeners, then {listeners_now:.0f}")
    assert last < 1.15 * first + 1 and nodes_now < 1.2 * nodes + 500, sizes


def test_what_to_measure_from_the_start(page):
    page.goto(f"{page.server.address}#example=plan-offers")
    done(page, "decide")
    done(page)
    tool(page, "advise")
    page.click("#advise-form [type=submit]")
    done(page, "advise")
    words = page.inner_text("#advise-answer")
    assert words.startswith(("Measure first", "Nothing is worth measuring")) and "Experiments" in words, words
