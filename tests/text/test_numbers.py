"""Numbers, amounts, dates and times: read exactly, written as they were, drawn by noise of their own scale."""

import datetime
import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.text import Numeric, Rules, TextMechanism, read_date, read_number, read_time


@settings(max_examples=80, deadline=None)
@given(st.integers(-(10**9), 10**9), st.integers(0, 4), st.booleans(), st.booleans())
def test_a_number_is_written_as_it_was(whole, digits, grouped, comma):
    text = f"{whole / 10**digits:{',' if grouped else ''}.{digits}f}"
    text = text.translate(str.maketrans(",.", ".,")) if comma else text
    found = read_number(text, comma=comma)
    assert found.value == pytest.approx(whole / 10**digits, rel=1e-15)
    assert found.write(found.value) == text


@pytest.mark.parametrize(
    ("text", "report", "expected"),
    [
        ("7", -3.4, "-3"),
        ("-7", 3.6, "4"),
        ("+7", 3.6, "+4"),
        ("\u22127", -2.0, "\u22122"),
        ("1,234.50", 98.765, "98.77"),
        ("1,234.50", -1234567.8, "-1,234,567.80"),
        ("12", 1234.0, "1234"),
        ("007", 12.0, "012"),
        ("0.5", -0.04, "0.0"),
        ("१२", 34.0, "३४"),
    ],
)
def test_a_report_is_written_as_the_number_was(text, report, expected):
    assert read_number(text).write(report) == expected


@pytest.mark.parametrize("text", ["1.2.3", "1,23", "192.168.1.1", "1" * 41, "1१", "12,34,567", "1.234,50"])
def test_what_is_no_number_is_a_word(text):
    assert read_number(text) is None


@settings(max_examples=100, deadline=None)
@given(st.dates(datetime.date(1000, 1, 1)), st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%Y/%m/%d"]))
def test_a_date_is_read_and_written(day, form):
    text = day.strftime(form)
    found = read_date(text)
    assert found.value == day.toordinal()
    assert found.write(found.value) == text
    assert found.write(found.value + 1e9) == datetime.date.max.strftime(form)


def test_dates_and_times_as_people_write_them():
    assert read_date("5/17/2024") is None
    assert read_date("5/17/2024", day_first=False).write(datetime.date(2024, 6, 3).toordinal()) == "6/3/2024"
    assert read_date("2024-02-30") is None
    assert read_time("14:30").write(14 * 60 + 31.4) == "14:31"
    assert read_time("9:05").write(-10.0) == "23:50"
    assert read_time("09:05:30").write(545.75) == "09:05:45"
    assert read_time("25:00") is None


@pytest.fixture(scope="module")
def words():
    return mdp.exponential(mdp.vocabulary(["paid", "on", "at"], [[0.0], [100.0], [200.0]]), 1.0)


def test_each_kind_has_noise_of_its_own_scale(words):
    rules = Rules(
        numbers=Numeric(1.0, 10.0),
        amounts=Numeric(1.0, 1000.0, least=0.0),
        dates=Numeric(1.0, 7.0),
        times=Numeric(1.0, 5.0),
    )
    text = "Paid $5,000.00 on 2024-05-17 at 14:30 (50)"
    found = TextMechanism(words, rules).protect([text] * 4000, rng=np.random.default_rng(1))
    parts = [
        re.fullmatch(r"Paid \$([\d,]+\.\d\d) on (\d{4}-\d\d-\d\d) at (\d\d):(\d\d) \((-?\d+)\)", one) for one in found
    ]
    assert all(parts)
    amounts = np.array([float(part[1].replace(",", "")) for part in parts])
    days = np.array([datetime.date.fromisoformat(part[2]).toordinal() for part in parts])
    minutes = np.array([int(part[3]) * 60 + int(part[4]) for part in parts])
    numbers = np.array([int(part[5]) for part in parts])
    # The mean distance of Laplace noise is scale / epsilon; its standard error here is under 2 %.
    for values, truth, scale in (
        (amounts, 5000.0, 1000.0),
        (days, datetime.date(2024, 5, 17).toordinal(), 7.0),
        (minutes, 870, 5.0),
        (numbers, 50, 10.0),
    ):
        assert np.mean(np.abs(values - truth)) == pytest.approx(scale, rel=0.1)


def test_the_promise_of_numbers_is_kept_where_it_can_be_counted(words):
    """Brute force: two numbers two scales apart, the ratio of the frequencies of every common report."""
    mechanism = TextMechanism(words, Rules(numbers=Numeric(0.5, 1.0, pitch=1.0, least=-3.0, most=6.0)))
    counts = [
        Counter(int(one) for one in mechanism.protect([str(number)] * 40_000, rng=np.random.default_rng(number)))
        for number in (1, 3)
    ]
    one, other = counts
    assert set(one) == set(other) == set(range(-3, 7))
    for value in one:
        error = 4 * math.sqrt(1 / one[value] + 1 / other[value])
        assert abs(math.log(one[value] / other[value])) <= 0.5 * 2 + error


def test_numbers_without_a_rule_or_beyond_the_lattice_are_words_outside_the_vocabulary(words):
    assert TextMechanism(words, Rules("mask")).protect(["12 $5 2024-05-17"]) == ["[MASK] $[MASK] [MASK]"]
    rules = Rules("mask", numbers=Numeric(1.0))
    assert TextMechanism(words, rules).protect(["1234567890123456789 1.2.3"]) == ["[MASK] [MASK]"]
    amounts = Rules("mask", amounts=Numeric(1.0))
    found = TextMechanism(words, amounts).protect(["5", "€", "5 €", "£5 5€", "7 "])
    assert found[0] == "[MASK]"
    assert found[4] == "[MASK] "
    assert re.fullmatch(r"-?\d+ €", found[2])
    assert re.fullmatch(r"£-?\d+ -?\d+€", found[3])


def test_bad_rules():
    with pytest.raises(InvalidInput, match="epsilon"):
        Numeric(0.0)
    with pytest.raises(InvalidInput, match="least"):
        Numeric(1.0, least=2, most=1)
    with pytest.raises(InvalidInput, match="most"):
        Numeric(1.0, most=math.nan)
    with pytest.raises(InvalidInput, match="numbers"):
        Rules(numbers=1.0)
