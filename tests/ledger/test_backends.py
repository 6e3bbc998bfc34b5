"""One ledger on every backend: a file, a server, and one from outside the package, which is named as a plugin."""

import ast
import random
import shlex
import shutil
import threading
from itertools import count
from pathlib import Path

import pytest

from books import DAY, Clock, ask, postgres, server
from crowds import POLICY as CROWDS
from crowds import compared
from metricdp import cli, plugins
from metricdp.errors import BudgetExceeded, InvalidInput
from metricdp.ledger import BACKENDS, Ledger, Steady, backends
from metricdp.mobility import Distribution, Stream
from metricdp.tables import Charging

PLUGIN = Path(__file__).parents[2] / "examples" / "extend" / "backend.py"
POLICY = "40/km per day, 30/km per week for ads, 40/km per day for maps"
NAMES = (f"ledger{number}" for number in count())


@pytest.fixture(scope="module")
def running():
    if postgres() is None:
        pytest.skip("no PostgreSQL programs (initdb, postgres) on this machine")
    with server() as its:
        yield its


@pytest.fixture
def memory(tmp_path):
    """The backend in memory; what the plugin declares ends with the test (`conftest.py`)."""
    plugin = shutil.copy(PLUGIN, tmp_path)
    plugins.load(str(plugin))
    return f"memory://{next(NAMES)}"


@pytest.fixture(params=["file", "server", "memory"])
def place(request, tmp_path):
    if request.param == "server":
        return request.getfixturevalue("running").fresh(next(NAMES))
    return request.getfixturevalue("memory") if request.param == "memory" else str(tmp_path / "budget.db")


def test_what_is_promised_holds_on_every_backend(place, tmp_path):
    clock, options = Clock(), {"key_file": tmp_path / "ledger.key"}
    with pytest.raises(InvalidInput, match="there is no ledger"):
        Ledger.open(place, **options)
    with Ledger.open(place, policy=POLICY, clock=clock, **options) as ledger:
        first = ask(ledger, "anna", "1", draw=lambda: b"one", purpose="ads")
        again = ask(ledger, "anna", "1", draw=lambda: pytest.fail("drawn"), purpose="ads")
        assert (again.report, again.repeated, again.left) == (b"one", True, first.left)
        with pytest.raises(BudgetExceeded, match="30/km per week for ads"):
            ask(ledger, "anna", "2", 21.0, purpose="ads")
        with pytest.raises(ZeroDivisionError):
            ask(ledger, "anna", "3", purpose="maps", draw=lambda: bytes(1 // 0))
        part = ledger.release_batch(
            {"anna": 5, "ben": 3, 7: 1}, "b", key="app", metric="haversine/km", epsilon=10.0, purpose="maps",
            partial=True, draw=lambda granted: b"all",
        )  # fmt: skip
        assert part.granted == {"anna": 3, "ben": 3, 7: 1}
        assert part.left == {"anna": 0, "ben": 10_000_000, 7: 30_000_000}
    with Ledger.open(place, clock=clock, **options) as ledger:
        clock.now += DAY
        assert [ask(ledger, "ben", Steady("day"), 1.0, purpose="maps").left for _ in range(3)] == [39_000_000] * 3
        ledger.change_policy("50/km per day")
        assert ask(ledger, "ben", "more", 49.0).left == 0
        assert ledger.erase("anna")
        assert not ledger.erase("anna")
        with pytest.raises(BudgetExceeded, match="closed"):
            ask(ledger, "anna", "4")
        assert ledger.rotate(reports_before=clock.now + 1)[1] == 2
        assert [one.rows for one in ledger.history("ben")] == [3, 1, 1]
        assert ledger.restore() is None
        found = ledger.verify()
        assert (found.faults, found.closed, found.accounts) == ((), 1, 2)
    with (
        pytest.raises(InvalidInput, match="was opened for reading only"),
        Ledger.open(place, read_only=True, **options) as ledger,
    ):
        ask(ledger, "ben", "5")


def test_batches_are_what_one_by_one_would_be_on_every_backend(place, tmp_path):
    clock = Clock()
    with Ledger.open(place, policy=CROWDS, key_file=tmp_path / "ledger.key", clock=clock) as ledger:
        compared(ledger, clock, random.Random(5), 7)


def test_two_ledgers_at_once_charge_nobody_too_much_on_any_backend(place, tmp_path):
    options = {"key_file": tmp_path / "ledger.key"}
    Ledger.open(place, policy="30/km ever", **options).close()
    answers, refused = [], []

    def visit(ledger, visitor):
        for number in range(10):
            try:
                answers.append(ask(ledger, "anna", f"{visitor} {number}", 1.0).charged)
            except BudgetExceeded as error:
                refused.append(error)

    with Ledger.open(place, **options) as one, Ledger.open(place, **options) as other:
        visitors = [threading.Thread(target=visit, args=((one, other)[number % 2], number)) for number in range(6)]
        for visitor in visitors:
            visitor.start()
        for visitor in visitors:
            visitor.join()
        assert (len(answers), len(refused), sum(answers)) == (30, 30, 30_000_000)
        assert one.verify().holds


def test_a_stream_has_one_ledger_on_every_backend(place, tmp_path):
    options = {"key_file": tmp_path / "ledger.key"}
    budget = Distribution(window=4, total=20.0)
    with Ledger.open(place, policy="1000/km ever", **options) as ledger:
        stream = Stream(Charging(ledger), budget)
        first = stream.step("anna", 0.0, (41.15, -8.61))
        with Ledger.open(place, **options) as other:
            with pytest.raises(InvalidInput, match="stream 'stream'"):
                Stream(Charging(other), budget).step("anna", 60.0, (41.15, -8.61))
            ledger.close()
            again = Stream(Charging(other), budget).step("anna", 0.0, (41.16, -8.60))
            assert (again.latitude, again.longitude, again.known) == (first.latitude, first.longitude, True)


def test_a_ledger_on_a_backend_from_outside_is_kept_by_the_command(memory, tmp_path, monkeypatch, capsys):
    def run(line):
        return cli.main(shlex.split(line))

    monkeypatch.chdir(tmp_path)
    (tmp_path / "points.csv").write_text("person,lat,lon\n" + "anna,41.15,-8.61\n" * 3)
    (tmp_path / "again.csv").write_text("person,lat,lon\n" + "anna,41.15,-8.61\n" * 2)
    key = "--key-file k.key --plugin ./backend.py"
    asked = f"--id person --epsilon 10/km --ledger {memory} {key}"
    assert run(f"budget begin {memory} --policy '40/km ever' {key}") == 0
    assert run(f"perturb points.csv -o out.csv {asked}") == 0
    assert run(f"perturb again.csv -o more.csv {asked}") == 2
    assert "10/km" in capsys.readouterr().err
    assert not (tmp_path / "more.csv").exists()
    assert run(f"budget verify {memory} {key}") == 0
    assert run(f"budget backup {memory} -o copy.db {key}") == 2
    assert "cannot be copied" in capsys.readouterr().err


def test_a_place_that_no_backend_knows_is_refused(memory, tmp_path):
    with pytest.raises(InvalidInput, match="needs its key named"):
        Ledger.open(memory, policy="40/km ever")
    with pytest.raises(InvalidInput, match="one word"):
        Ledger.open("memory://", policy="40/km ever", key_file=tmp_path / "ledger.key")
    with pytest.raises(InvalidInput, match="address of 'mysql'"):
        Ledger.open("mysql://host/database", policy="40/km ever", key_file=tmp_path / "ledger.key")
    with pytest.raises(InvalidInput, match="there is a ledger backend 'memory' already"):
        BACKENDS.declare(BACKENDS.named("memory"))


def test_nothing_but_a_backend_knows_which_database_it_is() -> None:
    folder = Path(backends.__file__).parent
    for path in set(folder.parent.rglob("*.py")) - set(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [one.name for one in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            words = {*named, getattr(node, "module", None) or ""}
            assert not {word for word in words if "dialects" in word or word in ("sqlite3", "psycopg")}, path
            assert getattr(node, "attr", "") not in ("dialect", "with_variant"), f"{path}:{node.lineno}"
