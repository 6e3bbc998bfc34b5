"""The page itself: who can use it, how fast it is there, and that it asks nobody else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PROJECT = Path(__file__).parents[2]
AXE = PROJECT / "js" / "node_modules" / "axe-core" / "axe.min.js"
ROOMS = ["feel", "protect", "design", "audit", "budget"]
WAIT = 60_000


def enter(page: Any, room: str) -> None:
    page.goto(f"{page.home}/#{room}")
    page.wait_for_selector(f"body[data-ready={room}]", timeout=WAIT)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_every_room(page: Any, theme: str) -> None:
    """Contrast, labels, roles and order, as axe-core judges them."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (npm ci in js/)")
    enter(page, "feel")
    page.select_option("#theme", theme)
    for room in ROOMS:
        enter(page, room)
        page.wait_for_timeout(150)
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
        faults = [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found["violations"]]
        assert not faults, (room, faults)
    page.select_option("#theme", "auto")


def test_the_rooms_are_reached_and_used_by_keyboard(page: Any) -> None:
    enter(page, "feel")
    page.keyboard.press("Tab")  # the way past the navigation comes first
    assert page.evaluate("() => document.activeElement.className") == "skip"
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the third room
    page.wait_for_selector("body[data-ready=design]", timeout=WAIT)
    assert page.evaluate("() => document.activeElement.id") == "room"


def test_german_is_spoken_after_it_was_chosen(page: Any) -> None:
    enter(page, "protect")
    page.select_option("#language", "de")
    page.wait_for_selector("h1:has-text('Eine Datei schützen')", timeout=WAIT)
    assert page.evaluate("() => document.documentElement.lang") == "de"
    for room in ROOMS:
        enter(page, room)
    assert "Wie fühlt sich" not in page.inner_text("main")
    page.select_option("#language", "en")
    page.wait_for_selector("h1:has-text('What have people spent?')", timeout=WAIT)


def test_german_says_what_is_not_german(page: Any) -> None:
    enter(page, "audit")
    assert page.inner_text("#spoken") == ""
    page.select_option("#language", "de")
    page.wait_for_selector("h1:has-text('Hält es sein Versprechen?')", timeout=WAIT)
    assert "Was metricdp selbst sagt, ist auf Englisch" in page.inner_text("#spoken")
    page.select_option("#language", "en")
    page.wait_for_selector("h1:has-text('Does it keep its promise?')", timeout=WAIT)


def test_a_page_without_the_token_says_how_to_come_in_and_asks_nothing(browser: Any, studio: Any) -> None:
    home = studio.address.partition("#")[0]
    other = browser.browser.new_context(locale="en-GB")
    found = other.new_page()
    asked: list[str] = []
    found.on("request", lambda request: asked.append(request.url))
    found.goto(home)
    found.wait_for_selector("[role=alert]", timeout=WAIT)
    assert "Studio opens with the address" in found.inner_text("[role=alert]")
    found.goto("about:blank")
    found.goto(studio.address)  # whose code was exchanged before
    found.wait_for_selector("[role=alert]", timeout=WAIT)
    assert "used already" in found.inner_text("[role=alert]")
    assert found.url == home
    assert not [url for url in asked if "/studio/" in url or "/v1/" in url]
    other.close()


def test_the_token_is_in_no_address_and_in_no_cookie(page: Any, browser: Any) -> None:
    for room in ROOMS:
        enter(page, room)
    assert not [url for url in browser.asked if browser.token in url]
    assert browser.cookies() == []


def test_a_phone_is_wide_enough(page: Any) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    for room in ROOMS:
        enter(page, room)
        page.wait_for_timeout(100)
        wide = page.evaluate("() => document.documentElement.scrollWidth")
        assert wide <= 360, room
    enter(page, "feel")
    page.check("input[value=both]")
    page.wait_for_selector("#factors td[data-kind=optimal]", timeout=WAIT)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1280, "height": 860})


def test_no_request_leaves_the_machine(page: Any, browser: Any) -> None:
    for room in ROOMS:
        enter(page, room)
    strangers = [url for url in browser.asked if not url.startswith((page.home, "data:", "blob:"))]
    assert len(browser.asked) > 20
    assert not strangers


def test_the_first_view_is_there_soon_and_light(page: Any) -> None:
    """Under a second of the page's own time on a quiet machine; processor time is what a busy one can promise."""
    weights: dict[str, int] = {}

    def weigh(answer: Any) -> None:
        if answer.url.startswith("http"):  # what the page makes itself has a blob's address
            weights[answer.url] = len(answer.body())

    page.on("response", weigh)
    started, before = time.perf_counter(), time.process_time()
    page.goto(f"{page.home}/#feel")
    page.wait_for_selector("h1", timeout=WAIT)
    assert time.process_time() - before < 1.0
    page.wait_for_selector("body[data-ready=feel]", timeout=WAIT)
    assert sum(weights.values()) < 1_500_000, weights  # as they are, before packing
    assert time.perf_counter() - started < 20.0


def test_stable_parts_look_as_they_did(page: Any, tmp_path: Path) -> None:
    """The header and the promise of Feel against pictures in the repository; fonts may differ a little."""
    from PIL import Image, ImageChops, ImageFilter

    enter(page, "feel")
    page.select_option("#theme", "light")
    page.wait_for_selector("dl[data-kind=noise]", timeout=WAIT)
    for name, selector in (("header", "header"), ("promise", "fieldset >> nth=0")):
        kept = Path(__file__).parent / "pictures" / f"{name}.png"
        page.locator(selector).screenshot(path=tmp_path / f"{name}.png")
        made = Image.open(tmp_path / f"{name}.png").convert("L")
        if not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            made.save(kept)
            pytest.fail(f"{kept.name} was drawn: look at it and keep it")
        wanted = Image.open(kept).convert("L")
        assert abs(made.width - wanted.width) <= 8
        assert abs(made.height - wanted.height) <= 8
        small = [one.resize((200, 60)).filter(ImageFilter.GaussianBlur(2)) for one in (made, wanted)]
        differences = np.asarray(ImageChops.difference(*small))
        assert np.mean(differences > 40) < 0.04, name
