"""A server that asks for a token."""

from drive_server import Server
from helpers import done


def test_a_token_works_from_the_start(page):
    server = Server(page.server.program, "--token", "open-sesame")
    try:
        assert "token=open-sesame" in server.address, server.address
        page.goto(server.address)
        done(page, "decide")
        assert "token" not in page.url and page.title().startswith("llama3-70b")
        page.reload()
        done(page, "decide")
        other = page.context.browser.new_context()
        stranger = other.new_page()
        stranger.goto(server.address.split("?")[0])
        stranger.wait_for_selector("#problem:visible")
        assert "token" in stranger.inner_text("#problem") and "stepcast serve" in stranger.inner_text("#problem")
        other.close()
    finally:
        server.stop()
