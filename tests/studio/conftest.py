"""Studio in a real browser: one Studio and one Chromium for all tests of a room."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import browsers

WEBGL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]


@pytest.fixture(scope="session")
def studio() -> Iterator[Any]:
    """Return a Studio that answers on a port of this machine."""
    import uvicorn

    from metricdp.studio import Studio, StudioOptions

    made = Studio(StudioOptions())
    config = uvicorn.Config(made.auth, log_config=None, access_log=False, lifespan="on", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [made.socket]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield made
    server.should_exit = True
    thread.join(10)
    made.close()


@pytest.fixture(scope="session")
def browser(studio: Any) -> Iterator[Any]:
    """Return a browser whose pages have the token of the first one; `asked` lists all it ever asked for.

    A token stays in its tab. The tests open a tab each, so every tab gets the token that the first one exchanged.
    """
    program = browsers.chromium()
    if program is None:
        pytest.skip("chromium is not installed (Debian: apt install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=program, args=["--no-sandbox", *WEBGL])
        context = chromium.new_context(viewport={"width": 1280, "height": 860}, color_scheme="light", locale="en-GB")
        context.asked = []
        context.on("request", lambda request: context.asked.append(request.url))
        page = context.new_page()
        page.goto(studio.address)
        page.wait_for_selector("body[data-ready=feel]", timeout=60_000)
        context.token = page.evaluate("() => sessionStorage.getItem('metricdp-studio')")
        page.close()
        home = studio.address.partition("#")[0].rstrip("/")
        context.add_init_script(
            f"if (location.origin === '{home}') sessionStorage.setItem('metricdp-studio', '{context.token}')"
        )
        yield context
        chromium.close()


@pytest.fixture
def page(browser: Any, studio: Any) -> Iterator[Any]:
    """Return a page whose errors fail the test."""
    found = browser.new_page()
    mistakes: list[str] = []
    found.on("pageerror", lambda error: mistakes.append(str(error)))
    found.on("console", lambda message: mistakes.append(message.text) if message.type == "error" else None)
    found.mistakes = mistakes
    found.home = studio.address.partition("#")[0].rstrip("/")
    yield found
    found.close()
    unexpected = [line for line in mistakes if "status of 4" not in line]  # a refusal is an answer
    assert not unexpected, unexpected
