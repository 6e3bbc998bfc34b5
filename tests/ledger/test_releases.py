"""Releases are charged exactly once, within every limit, and repeated requests are answered from the ledger."""

import os
import threading
from decimal import Decimal

import numpy as np
import pytest

from books import DAY, NOON, Clock, ask, fork
from metricdp.errors import BudgetExceeded, InvalidInput
from metricdp.ledger import Ledger, Release, Steady

POLICY = "40/km per day, 200/km ever"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger(tmp_path, clock):
    with Ledger.open(tmp_path / "budget.db", policy=POLICY, clock=clock) as books:
        yield books


def test_a_release_is_charged_and_says_what_is_left(ledger):
    receipt = ask(ledger, "anna", "1", draw=lambda: b"here")
    assert (receipt.report, receipt.charged, receipt.left, receipt.repeated) == (b"here", 10_000_000, 30_000_000, False)


def test_a_repeated_request_gets_the_stored_report_whatever_it_carries_and_costs_nothing(ledger):
    first = ask(ledger, "anna", "1", draw=lambda: b"here")
    again = ask(ledger, "anna", "1", 25.0, draw=lambda: pytest.fail("a second draw"))
    assert (again.report, again.charged, again.left, again.repeated) == (b"here", first.charged, first.left, True)


def test_request_ids_are_those_of_a_key_and_a_person(ledger):
    reports = [
        ask(ledger, person, "1", 1.0, key=key, draw=lambda name=person + key: name.encode()).report
        for person in ("anna", "ben")
        for key in ("app", "shop")
    ]
    assert reports == [b"annaapp", b"annashop", b"benapp", b"benshop"]


def test_what_does_not_fit_is_refused_before_anything_is_drawn(ledger):
    for number in range(4):
        ask(ledger, "anna", str(number))
    with pytest.raises(
        BudgetExceeded, match=r"40/km per day is spent: 0/km of it is left .* 2026-11-17 00:00 UTC"
    ) as told:
        ask(ledger, "anna", "5", 0.000001, draw=lambda: pytest.fail("drawn"))
    assert (told.value.asked, told.value.left) == (1, 0)
    assert ask(ledger, "ben", "1").left == 30_000_000


def test_a_draw_that_fails_costs_nothing(ledger):
    def broken():
        raise ValueError("outside")

    with pytest.raises(ValueError, match="outside"):
        ask(ledger, "anna", "1", draw=broken)
    assert ask(ledger, "anna", "1").left == 30_000_000


def test_a_day_refreshes_at_midnight_and_ever_does_not(ledger, clock):
    for day in range(5):
        for number in range(4):
            ask(ledger, "anna", f"{day} {number}")
        with pytest.raises(BudgetExceeded):
            ask(ledger, "anna", f"{day} more", 1.0)
        clock.now += DAY
    with pytest.raises(BudgetExceeded, match=r"200/km ever is spent: .* nothing brings it back"):
        ask(ledger, "anna", "one more", 1.0)


def test_a_clock_set_back_refreshes_nothing(ledger, clock):
    ask(ledger, "anna", "today", 40.0)
    clock.now += DAY
    ask(ledger, "anna", "tomorrow", 40.0)
    for back in (DAY, 40 * DAY):
        clock.now -= back
        with pytest.raises(BudgetExceeded, match="refreshes at 2026-11-18"):
            ask(ledger, "anna", f"back {back}", 1.0)
    clock.now = NOON + 2 * DAY
    assert ask(ledger, "anna", "later").left == 30_000_000


def test_charges_are_rounded_up_and_limits_down(tmp_path):
    with Ledger.open(tmp_path / "b.db", policy="1.0000019/km ever") as books:
        assert ask(books, "anna", "1", 0.1).charged == 100_001  # the double 0.1 lies above a tenth
        assert ask(books, "anna", "2", 0.5).charged == 500_000
        with pytest.raises(BudgetExceeded):
            ask(books, "anna", "3", 0.4)
        assert ask(books, "anna", "4", 0.3999).left == 100


def test_one_metric_has_one_account_whatever_its_unit(ledger):
    assert ask(ledger, "anna", "1", 0.01, metric="haversine/m").charged == 10_000_001  # 0.01 is above a hundredth
    assert ask(ledger, "anna", "2", 10.0).left == 40_000_000 - 20_000_001
    with pytest.raises(InvalidInput, match="allows nothing without a unit"):
        ask(ledger, "anna", "3", metric="l2")


def test_slack_needs_a_limit_of_its_own(ledger, tmp_path):
    with pytest.raises(BudgetExceeded, match="allows no slack"):
        ask(ledger, "anna", "1", slack=0.1)
    with Ledger.open(tmp_path / "s.db", policy="40/km ever, slack 0.25 ever") as books:
        assert ask(books, "anna", "1", 1.0, slack=0.125).slack_left == 125_000
        ask(books, "anna", "2", 1.0, slack=0.125)
        with pytest.raises(BudgetExceeded, match=r"slack 0\.25 ever is spent"):
            ask(books, "anna", "3", 1.0, slack=0.125)
        assert ask(books, "anna", "4", 1.0).left == 37_000_000


def test_purposes_lie_under_one_total(tmp_path):
    with Ledger.open(tmp_path / "p.db", policy="30/km ever, 20/km ever for ads, 20/km ever for maps") as books:
        ask(books, "anna", "1", 20.0, purpose="ads")
        with pytest.raises(BudgetExceeded, match="20/km ever for ads"):
            ask(books, "anna", "2", 1.0, purpose="ads")
        with pytest.raises(BudgetExceeded, match="30/km ever does not hold this: 10/km"):
            ask(books, "anna", "3", 11.0, purpose="maps")
        assert ask(books, "anna", "4", 10.0, purpose="maps").left == 0
        for wrong in (None, "other"):
            with pytest.raises(InvalidInput, match="use one of ads, maps"):
                ask(books, "ben", "5", 1.0, purpose=wrong)


def test_a_steady_report_is_repeated_until_the_period_ends(ledger, clock):
    drawn = iter([b"first", b"second"])
    reports = []
    for _ in range(3):
        reports.append(ask(ledger, "anna", Steady("day"), draw=lambda: next(drawn)))
        clock.now += 5 * 3600
    assert [one.report for one in reports] == [b"first", b"first", b"first"]
    assert reports[-1].left == 30_000_000
    clock.now += DAY
    assert ask(ledger, "anna", Steady("day"), draw=lambda: next(drawn)).report == b"second"


def test_many_releases_are_settled_each_on_its_own(ledger):
    def release(request, epsilon, person="anna"):
        return Release(person, request, lambda: request.encode(), "app", "haversine/km", epsilon)

    answers = ledger.release_many([release("1", 30.0), release("2", 20.0), release("1", 1.0), release("3", 10.0)])
    assert [getattr(one, "report", type(one)) for one in answers] == [b"1", BudgetExceeded, b"1", b"3"]
    assert answers[-1].left == 0


def test_many_threads_spend_exactly_the_budget(ledger):
    granted, refused = [], []

    def spend(worker):
        for number in range(10):
            try:
                granted.append(ask(ledger, "anna", f"{worker} {number}", 1.0).left)
            except BudgetExceeded:
                refused.append(number)

    threads = [threading.Thread(target=spend, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(granted), len(refused)) == (40, 40)
    assert min(granted) == 0


def test_a_batch_charges_all_or_nobody(ledger):
    rows = {"anna": 3, "ben": 5}
    with pytest.raises(BudgetExceeded, match=r"1 of 2 people have less left .* Nobody was charged"):
        ledger.release_batch(rows, "day", key="app", metric="haversine/km", epsilon=10.0, draw=lambda granted: b"")
    assert ledger.budget("anna", metric="haversine/km").left == 40_000_000
    part = ledger.release_batch(
        rows,
        "day",
        key="app",
        metric="haversine/km",
        epsilon=10.0,
        partial=True,
        draw=lambda granted: repr(granted).encode(),
    )
    assert part.granted == {"anna": 3, "ben": 4}
    assert part.left == {"anna": 10_000_000, "ben": 0}
    again = ledger.release_batch(
        rows, "day", key="app", metric="haversine/km", epsilon=1.0, draw=lambda granted: pytest.fail("drawn")
    )
    assert (again.report, again.granted, again.repeated) == (part.report, part.granted, True)
    assert ledger.budget("ben").accounts[0].spent == 40_000_000


def test_the_key_and_the_books_are_for_their_owner_alone(tmp_path):
    Ledger.open(tmp_path / "budget.db", policy=POLICY).close()
    key = tmp_path / "budget.db.key"
    assert [oct(path.stat().st_mode & 0o777) for path in (key, tmp_path / "budget.db")] == ["0o600", "0o600"]
    key.chmod(0o640)
    with pytest.raises(InvalidInput, match="can be read by others"):
        Ledger.open(tmp_path / "budget.db")
    key.chmod(0o600)
    key.write_text("0" * 64)
    with pytest.raises(InvalidInput, match="does not belong to the ledger"):
        Ledger.open(tmp_path / "budget.db")
    os.remove(tmp_path / "budget.db")
    with pytest.raises(InvalidInput, match="key of a ledger that is gone"):
        Ledger.open(tmp_path / "budget.db", policy=POLICY)


def test_books_begin_with_a_policy_and_keep_it(tmp_path):
    with pytest.raises(InvalidInput, match="no ledger"):
        Ledger.open(tmp_path / "budget.db")
    assert not list(tmp_path.iterdir())
    Ledger.open(tmp_path / "budget.db", policy=POLICY).close()
    Ledger.open(tmp_path / "budget.db", policy="40/km a day and 200/km ever").close()
    with pytest.raises(InvalidInput, match="has the policy"):
        Ledger.open(tmp_path / "budget.db", policy="400/km ever")


def test_no_name_no_secret_and_no_request_id_is_in_the_books(tmp_path):
    with Ledger.open(tmp_path / "budget.db", policy=POLICY) as books:
        ask(books, "anna-of-rome", "request-4711", key="key-of-app")
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"report" in data
    assert not any(word in data for word in (b"anna-of-rome", b"request-4711", b"key-of-app"))


def test_somebody_whose_first_release_is_refused_stands_in_nobodys_way(ledger):
    for number in range(3):
        with pytest.raises(BudgetExceeded):
            ask(ledger, f"refused {number}", "1", 1000.0)
        assert ask(ledger, f"served {number}", "1").left
    rows = {"served 0": 1, "somebody": 1}
    options = {"key": "app", "metric": "haversine/km", "epsilon": 1.0}
    first = ledger.release_batch({"served 0": 1}, "batch", draw=lambda granted: b"x", **options)
    again = ledger.release_batch(rows, "batch", draw=lambda granted: b"y", **options)
    assert again.report == first.report
    assert ask(ledger, "a new one", "1").left
    assert not ledger.verify().faults


def test_rows_of_a_batch_may_cost_differently(ledger):
    options = {
        "key": "app",
        "metric": "haversine/km",
        "epsilon": {"anna": 2.5, "ben": 0.5},
        "draw": lambda granted: b"",
    }
    done = ledger.release_batch({"anna": 20, "ben": 20}, "b", partial=True, **options)
    assert done.granted == {"anna": 16, "ben": 20}
    assert done.left == {"anna": 0, "ben": 30_000_000}
    assert done.charged == 2_500_000
    assert ledger.verify().holds


def test_a_draw_that_asks_the_ledger_is_told_not_to(ledger):
    with pytest.raises(InvalidInput, match="must not ask the ledger itself"):
        ask(ledger, "anna", "1", draw=lambda: ask(ledger, "ben", "2").report)
    assert ask(ledger, "anna", "1").left == 30_000_000


@pytest.mark.parametrize(
    "person", [7.0, np.float32(7), Decimal("7.00"), True, np.True_, None, bytearray(b"7"), memoryview(b"7"), object()]
)
def test_a_person_is_text_bytes_or_a_whole_number(ledger, person):
    """7.0 would have another budget than 7, and an object whose text is new every time a new one every time."""
    with pytest.raises(InvalidInput, match="text, bytes or a whole number"):
        ask(ledger, person, "1")
    for seven in (7, np.uint8(7), "7", b"7"):
        assert ask(ledger, seven, "same", 1.0).left == 39_000_000


def test_one_person_is_one_person_however_the_name_is_encoded(ledger):
    ask(ledger, "Jos\u00e9", "1")
    assert ask(ledger, "Jose\u0301", "1").repeated
    assert ask(ledger, "Jos\u00e9".encode(), "1").repeated
    assert ask(ledger, b"\xff\xfe", "1", 1.0).charged


def test_a_forked_process_opens_the_books_for_itself(ledger):
    here, there = os.pipe()
    child = fork()
    if child == 0:
        try:
            ask(ledger, "anna", "1")
        except InvalidInput as error:
            os.write(there, str(error).encode())
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here) as told:
        assert "open it again" in told.read()
    os.waitpid(child, 0)


@pytest.mark.parametrize(
    "options",
    [
        {"person": ""}, {"person": True}, {"request": ""}, {"key": ""}, {"epsilon": 0.0}, {"epsilon": -1.0},
        {"epsilon": float("nan")}, {"epsilon": float("inf")}, {"epsilon": 1e9}, {"slack": -1.0}, {"metric": "a b"},
        {"metric": "haversine/km/h"}, {"purpose": "ads"}, {"draw": lambda: "text"}, {"draw": lambda: b"x" * 2**21},
        {"person": "x" * 1001},
    ],
)  # fmt: skip
def test_what_cannot_be_charged_is_refused_with_a_sentence(ledger, options):
    asked = {"person": "anna", "request": "1", "key": "app", "metric": "haversine/km", "epsilon": 1.0} | options
    with pytest.raises(InvalidInput, match=r"\.$"):
        ledger.release(**({"draw": lambda: b"x"} | asked))
    with pytest.raises(InvalidInput, match="a period must be one of"):
        Steady("fortnight")
    assert ledger.verify().entries == 1
