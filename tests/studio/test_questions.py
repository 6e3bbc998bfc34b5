"""What is asked of the rooms and is no question: every answer is a sentence, and none is a mistake of Studio."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from metricdp.studio import AuditPanel, DesignPanel, FeelPanel, ProtectPanel, panel_application

TABLE = b"lat,lon,t\n41.1,-8.6,2026-01-01T00:00:00\n41.2,-8.7,2026-01-02T00:00:00\n"
DEEP = b"[" * 100_000
NONE = [
    b"", b"null", b"[]", DEEP, DEEP + b"]" * 100_000, b'{"a":' * 50_000, b'{"place":' + b"9" * 6_000 + b"}", b"\xff",
    b'{"place": [NaN, 1], "columns": [NaN]}', b'{"columns": ["\\ud800", "b"], "place": "\\udc00"}',
]  # fmt: skip
WRONG = [
    True, -1, 10**400, "x", "\0", [], [[]], {}, [None], ["a"], [{}], [[1, 2], [3]], {"edges": 1, "lengths": 2},
    [[1, 2], [10**400, 1]],
]  # fmt: skip
COMPARED = {"points": [[1, 2], [3, 4]], "metric": "l2", "epsilon": 1, "prior": [0.5, 0.5], "builders": ["exponential"]}


class Rooms:
    """The rooms without a door."""

    def __init__(self, folder: Path) -> None:
        for name in ("files", "audits", "keys"):
            (folder / name).mkdir()
        self.protect = ProtectPanel(folder / "files")
        design = DesignPanel(lambda: pytest.fail("no question reaches the service"), "owner", folder / "keys")
        panels = (FeelPanel(), self.protect, design, AuditPanel(folder / "audits"))
        self._app = panel_application([route for panel in panels for route in panel.routes()])

    def ask(self, path: str, body: bytes | None = None, query: str = "") -> tuple[int, Any]:
        sent: list[Any] = []
        scope = {
            "type": "http", "method": "GET" if body is None else "POST", "path": path, "raw_path": b"",
            "query_string": query.encode(), "root_path": "", "headers": [], "http_version": "1.1", "scheme": "http",
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body or b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        with ThreadPoolExecutor(1) as pool:  # a browser of other tests may have a loop of its own in this thread
            pool.submit(lambda: asyncio.run(self._app(scope, receive, send))).result()
        return int(sent[0]["status"]), json.loads(b"".join(one.get("body", b"") for one in sent))


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[Rooms]:
    found = Rooms(tmp_path)
    yield found
    found.protect.close()


def file_of(rooms: Rooms, name: str = "raw.csv", page: str = "one") -> str:
    status, found = rooms.ask("/studio/files", TABLE, f"name={quote(name)}&page={page}")
    assert status == 200, found
    return str(found["id"])


def test_bodies_that_are_no_question_get_a_sentence(rooms: Rooms) -> None:
    job = file_of(rooms)
    for path in ("/studio/feel", f"/studio/protect/{job}/preview", f"/studio/protect/{job}/run", "/studio/compare"):
        for body in NONE:
            status, found = rooms.ask(path, body)
            assert status == 422, (path, body[:20])
            assert len(found["message"]) > 10


@pytest.mark.parametrize("name", ["points", "prior", "builders", "epsilon", "metric", "streets", "loss", "builder"])
def test_a_comparison_with_a_wrong_part_gets_a_sentence(rooms: Rooms, name: str) -> None:
    for wrong in WRONG:
        status, found = rooms.ask("/studio/compare", json.dumps({**COMPARED, name: wrong}).encode())
        assert status in (200, 422), (name, str(wrong)[:20])
        assert status == 200 or len(found["message"]) > 10


@pytest.mark.parametrize("count", ["", "x", "%00", "%C2%B2", "1", "9" * 5_000, "-3"])
def test_numbers_of_crossings_that_are_none_get_a_sentence(rooms: Rooms, count: str) -> None:
    assert rooms.ask("/studio/places", None, f"count={count}")[0] == 422


def test_nothing_is_found_where_there_is_nothing(rooms: Rooms) -> None:
    for path in ("/studio/\0", "/studio/nothing", "/", "/studio/protect/\0"):
        assert rooms.ask(path)[0] == 404


@pytest.mark.parametrize(
    "name", ["\u6587" * 300 + ".csv", "\0.csv", "a/../b.csv", "." * 9 + "x.csv", "x" * 500 + ".csv"]
)
def test_names_of_files_fit_on_this_machine(rooms: Rooms, name: str, tmp_path: Path) -> None:
    file_of(rooms, name)
    [kept] = (tmp_path / "files").rglob("*.csv")
    assert kept.parent.parent == tmp_path / "files"
    assert len(f"protected-{kept.name}".encode()) < 200


def test_errors_do_not_name_the_folder_of_the_session(rooms: Rooms, tmp_path: Path) -> None:
    for name in ("x.parquet", "x.csv", "x.npz", "x.unknown", "\u00e4.csv"):
        status, found = rooms.ask("/studio/files", b"\xe4;lat\n1;2\n", f"name={quote(name)}")
        assert status == 422
        assert str(tmp_path) not in found["message"]


def test_the_file_of_a_closed_page_goes_and_that_of_a_reloaded_one_stays(rooms: Rooms, tmp_path: Path) -> None:
    gone, kept = file_of(rooms, page="one"), file_of(rooms, page="two")
    status, found = rooms.ask(f"/studio/protect/{kept}/page", json.dumps({"page": "three"}).encode())
    assert (status, found["id"], found["begun"]) == (200, kept, False)
    for page in ("one", "two"):
        rooms.protect.forget_page(page)
    rooms.protect.settle()
    assert [path.name for path in (tmp_path / "files").iterdir()] == [kept]
    assert rooms.ask(f"/studio/protect/{gone}/page", b"{}")[0] == 422
