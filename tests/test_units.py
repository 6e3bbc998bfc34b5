"""Wishes become numbers that keep them: slack off, rounded to the safe side."""

import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.units import (
    ProtectionTarget,
    epsilon_for,
    parse_distance,
    parse_epsilon,
    parse_protection_target,
)
from scripts import main

METRES = {"m": Fraction(1), "km": Fraction(1000), "mi": Fraction("1609.344"), "ft": Fraction("0.3048")}


def allowed(epsilon, apart, slack):
    """exp(epsilon * distance + slack) with 80 digits, from the doubles as they are."""
    with localcontext() as context:
        context.prec = 80
        exponent = Fraction(epsilon) * Fraction(apart) + Fraction(slack)
        return (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()


def test_units():
    assert parse_epsilon("10/km") == 10.0
    assert parse_epsilon("0.01/m") == pytest.approx(10.0)
    assert parse_epsilon(" 1e1 / km ") == 10.0
    assert parse_epsilon("1.0", "") == 1.0
    assert parse_distance("200m", option="snap") == pytest.approx(0.2)
    assert parse_distance("1.5km", option="snap") == 1.5
    assert parse_distance("0.5", "", option="snap") == 0.5
    assert parse_protection_target("2x@200m").epsilon() == pytest.approx(np.log(2) / 0.2)
    assert epsilon_for(2, 0.2) == pytest.approx(np.log(2) / 0.2)


@pytest.mark.parametrize(
    "text",
    ["10", "ten/km", "10/parsec", "-1/km", "0/km", "nan/km", "1/km/km", "", "1e999/km", "1e-999/km", "1e99999999/m"],
)
def test_bad_epsilons(text):
    with pytest.raises(InvalidInput):
        parse_epsilon(text)


@pytest.mark.parametrize(("text", "unit", "ways"), [
    ("800", "km", "800m or 0.8km"), ("12.5", "km", "12.5m or 0.0125km"), ("1", "km", "1km or 1000m"),
    (".5", "km", ".5km or 500m"), ("800", "m", "800m or 0.8km"), ("5", "m", "5m"), ("800", "mi", "800m or 0.8km"),
    ("2", "mi", "2mi"), ("2", "hop", "2hop"), (" 300 ", "min", "300min"),
])  # fmt: skip
def test_a_distance_says_its_unit_where_the_metric_has_one(text, unit, ways):
    said = f"{text.strip()} has no unit, and distances here are in {unit}: write {ways}."
    with pytest.raises(InvalidInput, match=f"^--snap {re.escape(said)}$"):
        parse_distance(text, unit, option="snap")
    with pytest.raises(InvalidInput, match=f"^2x@{re.escape(text.strip())} has no unit, .*: write 2x@"):
        parse_protection_target(f"2x@{text}", unit)
    assert [parse_distance(way, unit, option="snap") for way in ways.split(" or ")]  # what it says is taken
    assert parse_distance(text, "", option="snap") == parse_distance(text, "rad", option="snap") == float(text)
    assert parse_distance("0", unit, option="snap") == 0.0


@pytest.mark.parametrize("number", ["0.1", "0.3", "10", "0.125", "1e-3", "7.7", "2.675"])
def test_an_epsilon_in_its_own_unit_is_the_double_of_programs_and_never_charged_below(number):
    from metricdp.ledger import account_for

    epsilon = parse_epsilon(f"{number}/km")
    assert epsilon == float(number)
    charged = account_for("haversine/km").charge(epsilon)
    assert Fraction(charged - 1, 10**6) < Fraction(epsilon) <= Fraction(charged, 10**6)
    assert Fraction(parse_epsilon(f"{number}/km", "m")) <= Fraction(number) / 1000


@pytest.mark.parametrize(
    "text",
    ["2@200m", "1x@200m", "0.5x@1km", "2x@0m", "2x@", "2x@200lightyears", "2x@1e-999m", "1e999x@1m", "2x@1e999m"],
)
def test_bad_protections(text):
    with pytest.raises(InvalidInput):
        parse_protection_target(text)


@settings(max_examples=400, deadline=None)
@given(
    level=st.floats(1.0001, 1e6),
    radius=st.floats(1e-6, 1e6),
    share=st.floats(0, 0.99),
)
def test_no_epsilon_allows_more_than_was_asked(level, radius, share):
    slack = share * math.log(level)
    epsilon = epsilon_for(level, radius, slack=slack)
    assert allowed(epsilon, radius, slack) <= Decimal(level)
    assert math.exp(epsilon * radius + slack) <= level
    # and hardly less than could be had
    assert epsilon >= (math.log(level) - slack) / radius * (1 - 1e-9) - 1e-12 * math.log(level) / radius


@settings(max_examples=200, deadline=None)
@given(
    level=st.decimals(min_value="1.01", max_value="50", places=2),
    number=st.decimals(min_value="0.01", max_value="900", places=2),
    written=st.sampled_from(sorted(METRES)),
    unit=st.sampled_from(sorted(METRES)),
)
def test_what_was_written_is_kept_whatever_its_unit(level, number, written, unit):
    epsilon = parse_protection_target(f"{level}x@{number}{written}", unit).epsilon()
    apart = Fraction(number) * METRES[written] / METRES[unit]  # exactly what was written
    assert allowed(epsilon, apart, 0) <= level
    per = parse_epsilon(f"{number}/{written}", unit)
    if written != unit:
        assert Fraction(per) <= Fraction(number) * METRES[unit] / METRES[written]


@pytest.mark.parametrize("level", [1.05, 2, 10])
@pytest.mark.parametrize("radius", [0.003, 0.2, 0.7, 40.0])
@pytest.mark.parametrize("make", [
    lambda epsilon: mdp.laplace(mdp.Haversine(), epsilon),
    lambda epsilon: mdp.laplace(mdp.Lp(1), epsilon, dimension=3),
    lambda epsilon: mdp.laplace(mdp.Lp(2), epsilon),
    lambda epsilon: mdp.laplace(mdp.Lp(math.inf), epsilon, dimension=1, pitch=0.0005),
    lambda epsilon: mdp.product(mdp.laplace(mdp.Lp(2), epsilon), mdp.laplace(mdp.Lp(2), 3.0)),
])  # fmt: skip
def test_noise_on_a_lattice_takes_nothing_off_a_wish(level, radius, make):
    epsilon = epsilon_for(level, radius, slack=lambda value: make(value).guarantee.slack)
    assert make(epsilon).guarantee.slack == 0.0
    assert allowed(epsilon, radius, 0.0) <= Decimal(level)
    assert epsilon == epsilon_for(level, radius) == pytest.approx(math.log(level) / radius, rel=1e-12)


@pytest.mark.parametrize("snap", [0.001, 0.015, 0.2, 3.0])
def test_the_slack_of_snapping_comes_off(snap):
    epsilon = epsilon_for(2, 0.1, slack=lambda value: 2 * value * snap)
    assert allowed(epsilon, 0.1, 2 * epsilon * snap) <= 2
    assert epsilon == pytest.approx(math.log(2) / (0.1 + 2 * snap), rel=1e-12)


def test_a_constant_slack_may_be_a_function_too():
    assert epsilon_for(2, 0.1, slack=lambda value: 0.3) == pytest.approx((math.log(2) - 0.3) / 0.1, rel=1e-9)


def test_a_slack_above_the_wish_is_refused_with_a_sentence():
    with pytest.raises(InvalidInput, match=r"a slack of 0\.8 alone allows a factor of 2\.226, and at most 2 was asked"):
        epsilon_for(2, 0.1, slack=0.8)
    with pytest.raises(InvalidInput, match="alone"):
        epsilon_for(1.001, 0.1, slack=lambda epsilon: 0.01)


def test_a_wish_knows_whether_it_is_kept():
    assert not ProtectionTarget(2, 0.2).kept(math.log(2) / 0.2, 0.0141)
    assert ProtectionTarget(2, 0.2).kept(3.0)
    assert parse_protection_target("2x@200m") == ProtectionTarget(2.0, 0.2)


@pytest.mark.parametrize("line", [
    "perturb points.csv --protect 2x@200m", "perturb points.csv --protect 1.02x@7m",
    "perturb points.csv --protect 1.5x@1mi", "perturb points.csv --protect 12x@30ft",
    "perturb points.csv --protect 3x@0.7 --metric l2", "perturb points.csv --protect 1.1x@0.3 --metric l1",
    "design --points cells.csv --protect 2x@200m --builder exponential",
    "design --points cells.csv --protect 1.7x@1.1km --builder optimal",
    "design --points flat.csv --protect 1.3x@0.3 --builder tight_constraints",
])  # fmt: skip
def test_the_printed_promise_is_at_most_what_was_asked_there(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("points.csv").write_text("lat,lon\n41.15,-8.61\n41.2,-8.6\n")
    Path("cells.csv").write_text("lat,lon\n" + "".join(f"{41 + i / 100},{-8 + i / 50}\n" for i in range(5)))
    Path("flat.csv").write_text("x\n" + "".join(f"{i}\n" for i in range(5)))
    columns = " --columns lat,lon" if line.startswith("perturb") and "--metric" in line else ""
    out = "out.csv" if line.startswith("perturb") else "out.mdp"
    assert main(f"{line}{columns} -o {out}".split()) == 0
    text = capsys.readouterr().out
    asked, apart = re.search(r"--protect (\S+)x@(\S+)", line).groups()
    found = re.search(
        r"Requested: \w+ (\S+ ?\S*) apart differ by at most a factor of (\S+)\. Guaranteed: .*factor of (\S+) there",
        text,
    )
    assert found is not None, text
    assert Fraction(found[2]) == Fraction(asked)
    assert Fraction(found[3]) <= Fraction(asked)
    if not apart.endswith(("mi", "ft", "km")):
        assert found[1].replace(" ", "") == apart
    # the promise itself, in numbers: epsilon and slack are printed rounded up, so allow their rounding
    epsilon = float(re.search(r"epsilon (\S+) per", text)[1])
    slack = float((re.search(r"slack of ([\d.e-]+?),", text) or [0, 0])[1])
    number = float(re.match(r"[\d.]+", apart)[0])
    unit = apart[len(re.match(r"[\d.]+", apart)[0]) :]
    kilometres = number * float(METRES[unit] / 1000) if unit else number
    assert math.exp(epsilon * kilometres + slack) <= float(asked) * (1 + 1e-3)
