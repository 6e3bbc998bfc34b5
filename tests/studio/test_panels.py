"""Every room as a person would use it, mistakes included, in a real Chromium."""

from __future__ import annotations

import io
import json
import math
import re
import struct
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import metricdp as mdp
from metricdp.artifacts import inspect
from metricdp.places import bundled_trips

WAIT = 60_000  # milliseconds: two cores may be busy


def enter(page: Any, room: str) -> None:
    page.goto(f"{page.home}/#{room}")
    page.wait_for_selector(f"body[data-ready={room}]", timeout=WAIT)


def text(page: Any, selector: str) -> str:
    return str(page.locator(selector).inner_text())


def dropped(page: Any, selector: str, path: Path) -> None:
    page.set_input_files(selector, str(path))


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table as people have it: semicolons, decimal commas, a column that gives the place away."""
    table = bundled_trips(trips=8)
    rows = ["person;Latitude;Longitude;geohash;fare"]
    for trip, lat, lon in zip(*(table[name].to_pylist() for name in ("trip", "lat", "lon")), strict=True):
        cells = [f"p{trip}", f"{lat:.6f}".replace(".", ","), f"{lon:.6f}".replace(".", ","), f"ez3f{trip}k2", "7,50"]
        rows.append(";".join(cells))
    path = tmp_path_factory.mktemp("studio") / "trips.csv"
    path.write_text("\r\n".join(rows) + "\r\n", encoding="utf-8")
    return path


def tiles(path: Path) -> None:
    """Write a PMTiles archive (version 3) with one picture for the whole world, nothing compressed."""
    from PIL import Image

    picture = io.BytesIO()
    Image.new("RGB", (256, 256), (200, 220, 210)).save(picture, "PNG")
    tile, facts = picture.getvalue(), b"{}"
    length = bytes([len(tile) % 128 + 128, len(tile) // 128])  # a varint of two bytes
    directory = bytes([1, 0, 1]) + length + bytes([1])  # one entry: tile 0, run 1, its length, offset 0 + 1
    starts = [127, 127 + len(directory), 127 + len(directory) + len(facts)]
    offsets = [starts[0], len(directory), starts[1], len(facts), starts[2], 0, starts[2], len(tile), 1, 1, 1]
    corners = [-1_800_000_000, -850_000_000, 1_800_000_000, 850_000_000]
    head = b"PMTiles\x03" + struct.pack("<11Q6B4iB2i", *offsets, 1, 1, 1, 2, 0, 0, *corners, 0, 0, 0)
    path.write_bytes(head + directory + facts + tile)


def test_feel_shows_a_cloud_and_the_circles_that_the_law_says(page: Any) -> None:
    enter(page, "feel")
    assert text(page, "#wish") == "2x at 200 m"
    page.wait_for_selector("dl[data-kind=noise]", timeout=WAIT)
    # Planar Laplace noise at ln 2 per 200 m: Gamma(2) quantiles 1.6783 and 4.7439 over epsilon, rounded up.
    assert "490 m" in text(page, "dl[data-kind=noise]")
    assert "1.4 km" in text(page, "dl[data-kind=noise]")
    assert "2x" in text(page, "table")
    page.locator("#distance").press("ArrowLeft")  # one step less, by keyboard
    page.wait_for_function("() => document.querySelector('#wish').textContent.includes('150 m')")
    page.check("input[value=both]")
    page.wait_for_selector("dl[data-kind=optimal]", timeout=WAIT)
    assert "no mechanism with this guarantee that reports these places can do better than" in text(
        page, "dl[data-kind=optimal]"
    )


def test_feel_moves_where_somebody_clicks_or_presses_enter(page: Any) -> None:
    enter(page, "feel")
    page.wait_for_selector("dl[data-kind=noise]", timeout=WAIT)
    with page.expect_request("**/studio/feel") as asked:
        page.locator("#map canvas").click(position={"x": 120, "y": 90})
    clicked = json.loads(asked.value.post_data)["place"]
    with page.expect_request("**/studio/feel") as asked:
        page.locator("#map canvas").press("Enter")
    middle = json.loads(asked.value.post_data)["place"]
    assert clicked[0] > middle[0]
    assert clicked[1] < middle[1]


def test_feel_says_no_number_that_is_none_and_no_endless_one(page: Any) -> None:
    """Two times at 20 m: half of the reports are the crossing itself, and noise tells quarters apart for sure."""
    enter(page, "feel")
    page.check("input[value=both]")
    page.locator("#distance").press("Home")
    page.wait_for_function(
        "() => document.querySelector('#wish').textContent === '2x at 20 m' && !document.querySelector('[aria-busy]')"
        " && document.querySelectorAll('#factors td[data-kind=optimal]').length === 4"
        " && document.querySelector('#factors td[data-kind=noise]').textContent.trim() === '1.69x'",
        timeout=WAIT,
    )
    said = text(page, "main")
    assert "NaN" not in said
    assert "Infinity" not in said
    assert not re.search(r"\d,\d{3},\d{3}", said)
    assert [cell.strip() for cell in page.locator("#factors td[data-kind=noise]").all_inner_texts()] == [
        "1.69x", "8x", "no limit below 1,000x", "no limit below 1,000x",
    ]  # fmt: skip
    assert set(page.locator("#factors td[data-kind=optimal]").all_inner_texts()) == {"no limit below 1,000x"}
    assert "not between positions" in said


def test_feel_refuses_a_click_that_is_far_from_its_streets(page: Any) -> None:
    enter(page, "feel")
    page.check("input[value=optimal]")
    page.wait_for_selector("dl[data-kind=optimal]", timeout=WAIT)
    page.locator("#map canvas").click(position={"x": 20, "y": 20})  # a kilometre outside
    page.wait_for_selector("[role=alert]", timeout=WAIT)
    assert "from the nearest crossing" in text(page, "[role=alert]")
    assert page.locator("dl[data-kind=optimal]").count() == 0
    assert page.locator("#factors").count() == 0


def test_design_says_what_holds_for_positions_that_are_put_on_cells(page: Any) -> None:
    enter(page, "design")
    assert "between crossings, along the streets" in text(page, "#between")
    page.check("input[name=where][value=cells]")
    page.wait_for_function("() => document.querySelector('#between').textContent.includes('middle of their cell')")
    centre, side, cell = (41.1496, -8.611), 8, 0.2
    north = math.degrees(cell / 6371.009)
    axes = [
        [centre[0] + (k - 3.5) * north for k in range(side)],
        [centre[1] + (k - 3.5) * north / math.cos(math.radians(centre[0])) for k in range(side)],
    ]
    cells = mdp.FiniteSpace([(lat, lon) for lat in axes[0] for lon in axes[1]], mdp.Haversine())
    said = text(page, "#between")
    assert float(re.search(r"at most (\d+) m away", said)[1]) >= 1000 * cells.cell_radius
    assert float(re.search(r"may be: ([\d.]+)x", said)[1]) >= math.exp(math.log(2) / 0.2 * 2 * cells.cell_radius)


def test_a_background_of_ones_own_is_drawn_and_a_wrong_one_is_said(page: Any, tmp_path: Path) -> None:
    enter(page, "feel")
    line = {
        "type": "Feature",
        "properties": {},
        "geometry": {"type": "LineString", "coordinates": [[-8.62, 41.1], [-8.6, 41.2]]},
    }
    (tmp_path / "own.geojson").write_text(json.dumps(line))
    (tmp_path / "wrong.geojson").write_text("no map at all")
    tiles(tmp_path / "own.pmtiles")
    for name in ("own.geojson", "own.pmtiles"):
        dropped(page, "#background", tmp_path / name)
        page.wait_for_selector(f"#map[data-background='{name}']", timeout=WAIT)
    page.wait_for_timeout(300)  # the tile is decoded and drawn; an error would fail the page
    assert page.locator("[role=alert]").count() == 0
    dropped(page, "#background", tmp_path / "wrong.geojson")
    page.wait_for_selector("[role=alert]")
    assert "must be GeoJSON or PMTiles" in text(page, "[role=alert]")


def test_protect_from_a_messy_file_to_three_downloads(page: Any, trips: Path, tmp_path: Path) -> None:
    enter(page, "protect")
    dropped(page, "#file", trips)
    page.wait_for_selector("#column-0", timeout=WAIT)
    assert page.input_value("#column-0") == "Latitude"
    assert page.input_value("#column-1") == "Longitude"
    assert "geohash" in text(page, "#warnings")
    page.check("#warnings input[data-column=geohash]")
    page.click("#look")
    page.wait_for_selector("#after", timeout=WAIT)
    assert page.locator("#before tbody tr").count() <= 200
    assert page.locator("#before tbody tr").count() == page.locator("#after tbody tr").count()
    before, after = (page.locator(f"#{side} tbody tr").nth(0).inner_text().split() for side in ("before", "after"))
    assert before != after
    assert "geohash" not in text(page, "#after thead")
    page.click("#run")
    page.wait_for_selector("#get-file", timeout=WAIT)
    found = {}
    for what in ("file", "report", "certificate"):
        with page.expect_download() as download:
            page.click(f"#get-{what}")
        found[what] = tmp_path / download.value.suggested_filename
        download.value.save_as(found[what])
    raw = found["file"].read_bytes()
    assert found["file"].name == "protected-trips.csv"
    assert b"\r\n" in raw
    table = pa.csv.read_csv(found["file"], parse_options=pa.csv.ParseOptions(delimiter=";"))
    assert table.column_names == ["person", "Latitude", "Longitude", "fare"]
    assert table.num_rows == len(trips.read_text().splitlines()) - 1
    assert json.loads(found["certificate"].read_text())["format"] == "metricdp.perturb"
    assert "<html" in found["report"].read_text()


def test_protect_spreads_a_budget_and_tells_every_law(page: Any, trips: Path, tmp_path: Path) -> None:
    enter(page, "protect")
    dropped(page, "#file", trips)
    page.wait_for_selector("#person", timeout=WAIT)
    page.select_option("#person", "person")
    page.select_option("#allocation", "even")
    page.click("#look")
    page.wait_for_selector("#after", timeout=WAIT)
    assert "the budget leaves less for each" in text(page, "main")
    page.click("#run")
    page.wait_for_selector("#get-certificate", timeout=WAIT)
    assert page.locator("#get-report").count() == 0  # a page tells one law, and rows have different ones
    with page.expect_download() as download:
        page.click("#get-certificate")
    download.value.save_as(tmp_path / "certificate.json")
    distribution = json.loads((tmp_path / "certificate.json").read_text())["law"]
    assert len(distribution["shares"]) > 1


def test_protect_says_what_is_wrong_with_columns_that_are_swapped(page: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{41.15 + 0.01 * a:.5f},{-98.6 + 0.01 * b:.5f}" for a, b in rng.normal(size=(60, 2))]
    (tmp_path / "swapped.csv").write_text("\n".join(["longitude,latitude", *rows]) + "\n")
    enter(page, "protect")
    dropped(page, "#file", tmp_path / "swapped.csv")
    page.wait_for_selector("#column-0", timeout=WAIT)
    page.click("#look")
    page.wait_for_selector("[role=alert]", timeout=WAIT)
    assert page.locator("#after").count() == 0
    assert "98." not in text(page, "[role=alert]")  # columns and rows, never values


def test_protect_takes_a_table_whose_text_is_latin_1_and_says_once_what_was_coarsened(
    page: Any, tmp_path: Path
) -> None:
    cells = [f"Café {k};41,{1500 + k};-8,{6100 + k};2026-01-01T10:{k % 60:02d}:00" for k in range(90)]
    raw = "\r\n".join(["note;lat;lon;t", *cells, ""]).encode("latin-1")
    (tmp_path / "latin.csv").write_bytes(raw)
    enter(page, "protect")
    dropped(page, "#file", tmp_path / "latin.csv")
    page.wait_for_selector("#column-0", timeout=WAIT)
    page.check("#warnings input[data-column=t]")
    page.click("#look")
    page.wait_for_selector("#after", timeout=WAIT)
    assert "Café 0" in text(page, "#before")
    page.click("#run")
    page.wait_for_selector("#get-file", timeout=WAIT)
    lines = page.locator("section[aria-labelledby=done] li").all_inner_texts()
    assert "Coarsened, as requested: t to 1h." in lines
    assert "Unchanged and not protected: note." in lines
    with page.expect_download() as download:
        page.click("#get-file")
    download.value.save_as(tmp_path / "out.csv")
    assert "Café 89".encode("latin-1") in (tmp_path / "out.csv").read_bytes()


def test_protect_shows_what_a_file_says_with_its_control_characters_written_out(page: Any, tmp_path: Path) -> None:
    nasty = "a\x1b[2J\u202eb\u2066c\u200bd\x9b\ufeff<b>e</b>"
    rows = [f"41.{1500 + k},-8.{6100 + k},{nasty}{k}" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join([f"lat,lon,{nasty}", *rows, ""]), encoding="utf-8")
    enter(page, "protect")
    dropped(page, "#file", tmp_path / "t.csv")
    page.wait_for_selector("#column-0", timeout=WAIT)
    page.click("#look")
    page.wait_for_selector("#after", timeout=WAIT)
    before = text(page, "#before")
    page.click("#run")
    page.wait_for_selector("#get-file", timeout=WAIT)
    for said in (before, str(page.evaluate("() => document.body.textContent"))):
        assert not {unicodedata.category(letter) for letter in said if letter not in "\t\n"} & {"Cc", "Cf", "Cs"}
        assert r"a\x1b[2J\u202eb\u2066c\u200bd\x9b\ufeff<b>e</b>" in said
    with page.expect_download() as download:
        page.click("#get-file")
    download.value.save_as(tmp_path / "out.csv")
    assert nasty in (tmp_path / "out.csv").read_text(encoding="utf-8")  # names go back as they came


def test_protect_goes_on_with_its_file_after_a_reload(page: Any, trips: Path) -> None:
    enter(page, "protect")
    dropped(page, "#file", trips)
    page.wait_for_selector("#look", timeout=WAIT)
    page.reload()
    page.wait_for_selector("#look", timeout=WAIT)
    assert page.input_value("#column-0") == "Latitude"
    page.click("#look")
    page.wait_for_selector("#run", timeout=WAIT)
    page.click("#run")
    page.wait_for_selector("#get-file", timeout=WAIT)
    page.reload()
    page.wait_for_selector("#get-file", timeout=WAIT)
    page.click("a[href='#feel']")  # whoever leaves the room leaves the file
    page.wait_for_selector("body[data-ready=feel]", timeout=WAIT)
    enter(page, "protect")
    assert page.locator("#look").count() == 0


def test_protect_refuses_what_is_no_table(page: Any, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    enter(page, "protect")
    dropped(page, "#file", tmp_path / "empty.csv")
    page.wait_for_selector("[role=alert]", timeout=WAIT)
    assert len(text(page, "[role=alert]")) > 20


def test_design_closes_its_bounds_and_the_file_draws_in_the_page(page: Any, tmp_path: Path) -> None:
    enter(page, "design")
    page.fill("#crossings", "40")
    page.locator("#crossings").press("Tab")
    page.wait_for_function("() => document.body.innerText.includes('40 places')", timeout=WAIT)
    page.click("#begin")
    page.wait_for_selector("#promise", timeout=WAIT)
    page.wait_for_selector("#bounds svg", timeout=WAIT)
    assert "factor of two" in text(page, "#promise") or "factor of 2" in text(page, "#promise")
    page.click("#try")
    page.wait_for_selector("#drawn", timeout=WAIT)
    assert "400 reports drawn here" in text(page, "#drawn")
    with page.expect_download() as download:
        page.click("#phone")
    path = tmp_path / "phone.mdp"
    download.value.save_as(path)
    loaded = mdp.load(path)
    assert mdp.audit(loaded).verdict == "holds"
    assert loaded.guarantee.epsilon == pytest.approx(np.log(2) / 0.2)


def test_design_signs_gives_the_public_key_and_says_whose_crossings_they_are(page: Any, tmp_path: Path) -> None:
    enter(page, "design")
    page.fill("#crossings", "20")
    page.locator("#crossings").press("Tab")
    page.wait_for_function("() => document.body.innerText.includes('20 places')", timeout=WAIT)
    page.select_option("#builder", "exponential")
    page.click("#begin")
    page.wait_for_selector("#promise", timeout=WAIT)
    for button, name in (("sign", "design.mdp"), ("key", "studio.pub"), ("phone", "phone.mdp")):
        with page.expect_download() as download:
            page.click(f"#{button}")
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
    mdp.load(tmp_path / "design.mdp", trusted=tmp_path / "studio.pub")  # raises unless the signature is good
    for name in ("design.mdp", "phone.mdp"):
        licence = inspect(tmp_path / name).licence
        assert "OpenStreetMap contributors" in licence
        assert "ODbL" in licence


def test_design_compares_mechanisms_on_cells(page: Any) -> None:
    enter(page, "design")
    page.check("input[name=where][value=cells]")
    page.fill("#side", "4")
    page.locator("#side").press("Tab")
    page.wait_for_function("() => document.body.innerText.includes('16 places')", timeout=WAIT)
    page.click("#compare")
    page.wait_for_function("() => document.querySelectorAll('#curves path').length > 3", timeout=WAIT)
    page.fill("#side", "99")
    page.locator("#side").press("Tab")
    page.wait_for_selector("[role=alert]")
    assert "from 2 to 30" in text(page, "[role=alert]")


def test_audit_judges_a_matrix_and_shows_the_worst_pair(page: Any, tmp_path: Path) -> None:
    places = np.array([[41.15, -8.61], [41.151, -8.61], [41.152, -8.612]])
    matrix = np.array([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.01, 0.01, 0.98]])
    np.savetxt(tmp_path / "points.csv", places, delimiter=",", header="lat,lon", comments="")
    np.savetxt(tmp_path / "matrix.csv", matrix, delimiter=",")
    (tmp_path / "words.csv").write_text("a,b\nc,d\n")
    enter(page, "audit")
    page.check("input[value=matrix]")
    dropped(page, "#matrix", tmp_path / "words.csv")
    page.wait_for_selector("[role=alert]")
    assert "no table of numbers" in text(page, "[role=alert]")
    dropped(page, "#matrix", tmp_path / "matrix.csv")
    dropped(page, "#points", tmp_path / "points.csv")
    page.wait_for_function("() => document.querySelector('#metric').value === 'haversine'")
    page.fill("#epsilon", "3")
    page.click("#judge")
    page.wait_for_selector("#verdict", timeout=WAIT)
    assert text(page, "#verdict") == "The promise is broken"
    page.wait_for_selector("#map canvas", timeout=WAIT)


def test_audit_judges_a_mechanism_file_from_its_numbers(page: Any, tmp_path: Path) -> None:
    space = mdp.FiniteSpace(np.array([[41.15, -8.61], [41.152, -8.61], [41.15, -8.612]]), mdp.Haversine())
    mdp.save(mdp.exponential(space, 5.0), tmp_path / "cells.mdp")
    enter(page, "audit")
    dropped(page, "#file", tmp_path / "cells.mdp")
    page.wait_for_selector("#verdict", timeout=WAIT)
    assert text(page, "#verdict") == "The promise holds"
    data = bytearray((tmp_path / "cells.mdp").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "broken.mdp").write_bytes(data)
    dropped(page, "#file", tmp_path / "broken.mdp")
    page.wait_for_selector("[role=alert]", timeout=WAIT)
    mdp.save(mdp.gaussian(mdp.Haversine(), 5.0), tmp_path / "normal.mdp")  # concentrated: in rho, and never called pure
    dropped(page, "#file", tmp_path / "normal.mdp")
    page.wait_for_selector("#verdict", timeout=WAIT)
    said = text(page, "section[aria-labelledby=verdict]")
    assert "found rho" in said
    assert "approximate and not pure" in said
    assert not re.search(r"epsilon|(?<!not )\bpure\b", said)


def test_audit_of_samples_names_no_report_that_has_no_number(page: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    secret = rng.integers(2, size=4000)
    report = np.where(rng.random(4000) < 0.98, secret, 1 - secret)
    rows = np.stack([secret, report], axis=1)
    np.savetxt(tmp_path / "samples.csv", rows, fmt="%d", delimiter=",", header="x,u", comments="")
    enter(page, "audit")
    page.check("input[value=samples]")
    dropped(page, "#samples", tmp_path / "samples.csv")
    page.wait_for_selector("#judge:enabled", timeout=WAIT)
    page.click("#judge")
    page.wait_for_selector("#verdict", timeout=WAIT)
    said = text(page, "section[aria-labelledby=verdict]")
    assert text(page, "#verdict") == "The promise is broken"
    assert "-1" not in said
    assert "leaks at least epsilon (99 %)" in said  # a lower bound is not called what was found


def test_budget_charges_until_it_refuses_and_the_books_add_up(page: Any) -> None:
    enter(page, "budget")
    page.wait_for_selector("#verified", timeout=WAIT)
    assert "adds up" in text(page, "#verified")
    page.fill("#person", "somebody")
    for _ in range(11):  # 40 a day at 3.4657 each
        with page.expect_response("**/studio/budget/person"):
            page.click("#release")
    page.wait_for_selector("#released", timeout=WAIT)
    page.click("#release")
    page.wait_for_selector("#refused", timeout=WAIT)
    assert "nothing was charged" in text(page, "#refused")
    assert "somebody" not in text(page, "#accounts")
    page.wait_for_function("() => document.querySelector('#refusals').textContent.includes(': 1.')")
    page.click("#plan")
    page.wait_for_selector("#planned", timeout=WAIT)
    assert "releases a day" in text(page, "#planned")
