"""Sentences about a promise: once, and true after rounding."""

import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricdp import messages
from metricdp.metrics import Haversine, Lp, ShortestPath, route_phrase

SOURCE = Path(messages.__file__).parents[1]
UNITS = {"m": 0.001, "km": 1.0}


@dataclass(frozen=True)
class Promise:
    epsilon: float
    unit: str = "km"
    slack: float = 0.0
    radius: float | None = None
    basis: str = "theorem"
    metric: object = Haversine()
    in_parts: bool = False

    @property
    def along(self):
        return route_phrase(self.metric)


def kilometres(text):
    value, unit = text.split()
    return Fraction(value) * Fraction(str(UNITS[unit]))


@settings(max_examples=300, deadline=None)
@given(value=st.floats(1e-5, 1e5), digits=st.integers(2, 9))
def test_what_is_at_most_is_rounded_up_and_what_is_at_least_down(value, digits):
    close = Fraction(value) / 10**11  # doubles have an error of their own
    assert Fraction(messages.number(value, digits, "up")) >= Fraction(value) - close
    assert Fraction(messages.number(value, digits, "down")) <= Fraction(value) + close
    for rounding in ("up", "down", "nearest"):
        shown = Fraction(messages.number(value, digits, rounding))
        assert abs(shown - Fraction(value)) <= Fraction(value) / 10 ** (digits - 1) + close


@settings(max_examples=300, deadline=None)
@given(epsilon=st.floats(1e-2, 1e3), slack=st.one_of(st.just(0.0), st.floats(0, 2)))
def test_the_printed_distance_and_factor_hold_for_the_promise(epsilon, slack):
    promise = Promise(epsilon, slack=slack)
    short_sentence = messages.short_sentence(promise)
    found = re.search(r"up to (\S+ \S+) apart by at most a factor of two", short_sentence)
    if slack >= math.log(2):
        assert found is None
        alone = re.search(r"^The slack alone allows a factor of ([\d.]+) between two places side", short_sentence)[1]
        assert math.exp(slack) <= float(alone) * (1 + 1e-9)
    else:
        assert math.exp(epsilon * float(kilometres(found[1])) + slack) <= 2 * (1 + 1e-9)
    near, times = re.search(
        r"two places (\S+ \S+) apart: .* factor of (two|[\d.]+?)\.(?: |$)", messages.lead_sentence(promise)
    ).groups()
    assert math.exp(epsilon * float(kilometres(near)) + slack) <= float({"two": 2}.get(times, times)) * (1 + 1e-9)
    for line in messages.meaning_lines(promise)[1:]:
        away, factor, words = re.fullmatch(r" *(\S+ \S+) apart: factor +(\S+(?: than a million)?) +(.+)", line).groups()
        true = math.exp(epsilon * float(kilometres(away)) + slack)
        assert true > 1e6 * (1 - 1e-9) if "million" in factor else true <= float(factor) * (1 + 1e-9)
        sure = re.search(r"([\d.]+) % of the time", words)
        if sure:  # at even odds a guess is right with f / (1 + f)
            assert float(sure[1]) >= 100 * true / (1 + true) * (1 - 1e-9)
        else:
            assert true / (1 + true) > 0.98


@pytest.mark.parametrize(("slack", "words"), [(3.197, "24.5"), (2.8, "16.5"), (3200.0, "more than a million")])
def test_the_slack_alone_says_its_factor(slack, words):
    said = f"The slack alone allows a factor of {words} between two places side by side: little protection."
    assert messages.short_sentence(Promise(4.0, slack=slack)) == said
    several = messages.whole_history(Promise(4.0, slack=slack / 3), 0.0, "All 3 rows", slack)
    assert several.startswith(f"All 3 rows: the slack alone allows a factor of {words}, however close")


def test_words_of_distances_and_factors():
    promise = Promise(math.log(2) / 0.1)
    assert messages.reach(promise) == pytest.approx(0.1)
    assert "100 m apart:" in messages.lead_sentence(promise)
    snapped = Promise(promise.epsilon, slack=0.3)
    assert messages.reach(snapped) * promise.epsilon + 0.3 == pytest.approx(math.log(2))
    assert "factor of two" not in messages.lead_sentence(Promise(promise.epsilon, slack=1.0))
    roads = Promise(promise.epsilon, metric=ShortestPath([[0, 1]], [1.0]))
    assert "along the roads" in messages.lead_sentence(roads)
    assert "along the roads" in messages.short_sentence(roads)
    assert messages.distance(0.0456, "km") == "45.6 m"
    assert messages.distance(2.5, "km") == "2.5 km"
    assert messages.distance(2.5, "") == "2.5"
    rows = messages.meanings(promise)
    assert [messages.factor(row.factor) for row in rows if messages.distance(row.distance, "km") == "100 m"] == ["2"]
    rows = messages.meanings(Promise(10.0, slack=0.5))
    assert [row.distance for row in rows] == pytest.approx([0.005, 0.025, 0.05, 0.1, 0.25, 0.5])
    assert rows[3].factor == pytest.approx(math.exp(1.5))


def test_a_radius_is_respected_in_every_sentence():
    promise = Promise(1.0, "km", radius=0.02)
    assert "up to 20 m apart" in messages.short_sentence(promise)
    assert "farther apart than 20 m are not protected" in messages.short_sentence(promise)
    assert "only between secrets within 20 m" in messages.guarantee_text(promise)
    assert all("not protected" in line for line in messages.meaning_lines(promise)[2:])
    assert "not protected" in messages.lead_sentence(promise)


def test_the_worst_loss_is_not_called_an_average_over_secrets():
    assert messages.loss(0.2, "km", "expected") == "On average a report lies 200 m from the truth."
    assert messages.loss(0.2, "km", "worst").startswith("For the secret with the largest loss")
    assert "200 m" in messages.loss(0.2, "km", "worst")
    assert "lies" not in messages.loss(0.2, "", "worst", is_distance=False)


def test_the_promise_in_numbers():
    assert messages.guarantee_text(Promise(10.0)) == "epsilon 10 per km (Haversine), by theorem"
    text = messages.guarantee_text(Promise(1.0, "", 0.25, 3.0, "certificate", Lp(2)))
    assert text == (
        "epsilon 1 per unit of distance (Lp), plus a slack of 0.25, only between secrets within 3, by certificate"
    )
    assert messages.short_sentence(Promise(1.0, basis="none")).startswith("This gives no guarantee")


def test_the_scale_of_meanings_is_whole():
    scale = json.loads((SOURCE / "messages.json").read_text(encoding="utf-8"))["scale"]
    limits = [step["below"] for step in scale]
    assert limits[-1] is None
    assert limits[:-1] == sorted(limits[:-1])


def test_sentences_about_trips_round_to_the_safe_side():
    assert "slack of 1.235 is added" in messages.report_guarantee(0.5, 1.23401, 0.8671, "km")
    assert "868 m away" in messages.report_guarantee(0.5, 1.0, 0.8671, "km")
    loss = messages.trip_loss(1.23451, 1.23459, "km")
    assert "lies 1.235 km" in loss
    assert "below 1.234 km" in loss
