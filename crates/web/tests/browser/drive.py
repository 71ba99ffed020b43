"""The page as people use it, in headless Chromium: every function of `cases/` is a test, with a fresh page each.

drive.py PROGRAM BROWSER [WORD...]: with words, only tests whose names contain one of them. With ASSETS=1 the files of the
page come from the sources and not from the program, so that they can be changed without building it.
"""

import importlib
import os
import re
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from drive_server import Server
from helpers import ASSETS, done


def cases():
    folder = Path(__file__).parent / "cases"
    for file in sorted(folder.glob("*.py")):
        module = importlib.import_module(f"cases.{file.stem}")
        yield from ((name, test) for name, test in vars(module).items() if name.startswith("test_"))


def serve_sources(context, policy=[]):
    def answer(route):
        name = route.request.url.split("/", 3)[-1].split("#")[0].split("?")[0] or "index.html"
        file = ASSETS / name
        if "/" in name or not file.exists() or "token=" in route.request.url:
            return route.continue_()
        if not policy:
            policy.append(route.fetch().headers.get("content-security-policy", ""))
        kind = {"js": "text/javascript", "html": "text/html", "css": "text/css", "svg": "image/svg+xml"}[name.rsplit(".")[-1]]
        headers = {"content-type": kind, "content-security-policy": policy[0]}
        route.fulfill(body=file.read_bytes(), headers=headers)

    context.route(re.compile(r"^http://[^/]+/[^/]*$"), answer)


def run(name, test, chromium, server):
    context = chromium.new_context(viewport={"width": 1280, "height": 860}, color_scheme="light", has_touch="touch" in name)
    if os.environ.get("ASSETS"):
        serve_sources(context)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.server = server
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("request", lambda request: re.match(r"blob:|data:|http://(127\.0\.0\.1|localhost):", request.url) or wrong.append(f"asks {request.url}"))
    since = time.monotonic()
    try:
        if "from_the_start" not in name:
            # Tests of the landing start from it, others from an example.
            page.goto(server.address if "landing" in name else f"{server.address}#example=quickstart")
            done(page)
        test(page)
        # Browsers note every request that is refused or fails, and some tests are about those.
        wrong = [text for text in wrong if not re.match(r"Failed to load resource.*(401|413|422|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_EMPTY)", text)]
        assert wrong == [], wrong
        print(f"  ok      {name} ({time.monotonic() - since:.1f} s)", flush=True)
        return True
    except Exception as error:
        where = error.__traceback__
        while where.tb_next and "cases" in (where.tb_next.tb_frame.f_code.co_filename):
            where = where.tb_next
        print(f"  FAILED  {name}, line {where.tb_lineno}: {str(error)[:1500]} {wrong}", flush=True)
        return False
    finally:
        context.close()


def main():
    program, browser, *words = sys.argv[1:]
    server = Server(program)
    failed = 0
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser or None, args=["--no-sandbox"])
            for name, test in cases():
                if not words or any(word in name for word in words):
                    failed += not run(name, test, chromium, server)
            chromium.close()
    finally:
        server.stop()
    print(f"the page: {failed} failed" if failed else "the page: all browser tests passed")
    sys.exit(1 if failed else 0)


main()
