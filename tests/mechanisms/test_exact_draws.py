"""Every sampler of rows draws every report with exactly its probability, however small, in Python and in JavaScript.

A draw is a number U from 0 to 1 of as many bits as anybody asks for. The reports share that interval, each a part as
long as its probability, so the numbers at both ends of every part say everything. The parts are computed here, with
fractions and with balls of 4,000 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest

import browsers
import metricdp as mdp
from forging import rewritten
from metricdp.artifacts import save
from metricdp.design import prune_reports
from metricdp.mechanisms import (
    Certificate,
    Guarantee,
    InterpolatedMechanism,
    KernelMechanism,
    LocalMechanism,
    MatrixMechanism,
    StreetMechanism,
    kernel_rows,
)
from metricdp.spaces import Streets

WORDS = 20
BITS = 64 * WORDS
LAST = 2**BITS - 1
KEPT = Certificate(loss=0.0, lower_bound=0.0, method="by hand", epsilon=1.0)
PAPER = Certificate(loss=0.0, lower_bound=0.0, method="by hand", epsilon=math.inf)  # nothing is promised
LINE = mdp.Lp(1)


@pytest.fixture(scope="module")
def node() -> Iterator[browsers.Engine]:
    if browsers.node() is None:
        pytest.skip("Node 20 or newer is not installed (Debian: apt install nodejs)")
    with browsers.running("node") as running:
        yield running


@dataclass
class Given:
    """The words of one draw, chosen by the test: those of a row, or one after the other."""

    given: list[int]
    at: int = field(default=0)

    def words(self, count: int, /) -> Any:
        self.at += count
        assert self.at <= len(self.given)
        return np.array(self.given[self.at - count : self.at], dtype=np.uint64)

    def first(self, attempt: int, start: int, stop: int) -> Any:
        return np.array([self.given[:1]], dtype=np.uint64)

    def digits(self, row: int) -> Any:
        return lambda attempt, uniform, count: int("".join(f"{word:016x}" for word in self.given[:count]), 16)


def digits_of(number: int) -> list[int]:
    return [(number >> 64 * (WORDS - 1 - place)) & (2**64 - 1) for place in range(WORDS)]


def parts_of(terms: Sequence[Fraction]) -> list[tuple[int, list[int]]]:
    """Return every report that has a part, and numbers at its beginning, in its middle and at its end."""
    ends = [Fraction(0), *accumulate(terms)]
    low = [-((-end * 2**BITS / ends[-1]).__floor__()) for end in ends]
    high = [(end * 2**BITS / ends[-1]).__floor__() - 1 for end in ends]
    return [
        (k, [low[k], (low[k] + high[k + 1]) // 2, high[k + 1]]) for k, term in enumerate(terms) if term > 0
    ]  # fmt: skip


def asked_of(terms: Sequence[Fraction]) -> tuple[list[list[int]], list[int]]:
    parts = parts_of(terms)
    return [digits_of(one) for _, numbers in parts for one in numbers], [k for k, numbers in parts for _ in numbers]


def fractions(weights: Any) -> list[Fraction]:
    return [Fraction(float(weight)) for weight in weights]


def drawn(mechanism: Any, secret: Any, words: Sequence[list[int]]) -> list[int]:
    return [int(np.ravel(mechanism.sample([secret], rng=Given(one)))[0]) for one in words]


def unjudged(made: Any, path: Path) -> Path:
    """Save a mechanism that keeps no promise, and let its file say that it does: JavaScript draws from no other."""
    save(made, path)
    rewritten(path, lambda manifest, tensors: manifest["guarantee"].update(basis="certificate"))
    return path


def in_javascript(node: browsers.Engine, path: Path, secret: Any, words: Sequence[list[int]]) -> Any:
    draws = [{"secret": secret, "words": [[word >> 32, word & (2**32 - 1)] for word in one]} for one in words]
    return node.ask("replay", file=node.offer(path), draws=draws)


# --- kernels -------------------------------------------------------------------------------------------------------


def kernel(kind: str, step: int) -> tuple[Any, int]:
    """26 reports of which doubles add up 12: the others vanish beside the sum of those before them.

    About every second step the sum of all terms is rounded down, so that no number times it reaches the sum of others.
    """
    places = np.concatenate([[0.0], np.linspace(3.0 + step / 16, 12.0, 11), np.linspace(75.0, 390.0, 14)])
    secret = 0
    if kind == "the secret is the last":
        places, secret = np.roll(places, -1), 25
    logs = np.log(np.linspace(1.0, 9.0, 26)) if kind == "weighted" else np.zeros(26)
    exponents = logs - 0.75 * np.abs(places[:, None] - places)
    normalisers = np.log([math.fsum(row) for row in np.exp(exponents).tolist()])
    made = KernelMechanism(
        mdp.FiniteSpace(places[:, None], mdp.Lp(2)), 0.75, logs if kind == "weighted" else None, math.inf, normalisers,
        Guarantee(1.0, mdp.Lp(2), basis="none"), PAPER,
    )  # fmt: skip
    return made, secret


def kernel_parts(made: Any, secret: int) -> tuple[list[list[int]], list[int]]:
    """The secret's own part first, then those of all others in their order; places on a line are exact."""
    places = made.space.points[:, 0].tolist()
    order = [secret, *(k for k in range(len(places)) if k != secret)]
    logs = np.zeros(len(places)) if made.log_weights is None else made.log_weights
    with flint.ctx.workprec(4000):
        terms = []
        for k in order:
            gap = abs(Fraction(places[secret]) - Fraction(places[k]))
            exponent = Fraction(float(logs[k])) - Fraction(float(made.inner)) * gap
            term = (flint.arb(exponent.numerator) / flint.arb(exponent.denominator)).exp()
            whole = int((term * flint.arb(2) ** 3000).floor().unique_fmpz())
            terms.append(Fraction(whole, 2**3000))
        words, reports = asked_of(terms)
    return words, [order[k] for k in reports]


KERNELS = ["plain", "the secret is the last", "weighted"]


STEPS = range(12)
SOME = [38, 65, 77]  # the ends of three parts that sums of doubles absorb, the last one among them


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", KERNELS)
def test_a_kernel_draws_reports_that_sums_of_doubles_absorb(
    kind: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiled:
        pytest.importorskip("numba")
    for module in (
        "metricdp.mechanisms.kernel_distribution",
        "metricdp.mechanisms.kernel_rows",
        "metricdp.metrics.bounded_distances",
    ):
        monkeypatch.setattr(f"{module}.worth_compiling", lambda size: compiled)
    for step in STEPS:
        made, secret = kernel(kind, step)
        words, wanted = kernel_parts(made, secret)
        for at in SOME if step else range(2, 78, 3):
            monkeypatch.setattr(kernel_rows, "row_words", lambda source, width, one=words[at]: Given(one))
            assert int(made.sample([secret])[0]) == wanted[at]


@pytest.mark.parametrize("kind", KERNELS)
def test_a_kernel_in_javascript_draws_them_too(kind: str, node: browsers.Engine, tmp_path: Path) -> None:
    for step in STEPS[:6]:
        made, secret = kernel(kind, step)
        words, wanted = kernel_parts(made, secret)
        path = unjudged(made, tmp_path / f"{step}.mdp")
        assert in_javascript(node, path, secret, [words[at] for at in SOME]) == [wanted[at] for at in SOME]


@pytest.mark.parametrize("compiled", [False, True])
def test_the_first_words_of_every_report_of_a_kernel_are_as_many_as_its_probability_says(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bisection of all 2^64 words, between doubles and interval arithmetic: no part is longer or shorter by a word."""
    if compiled:
        pytest.importorskip("numba")
    for module in (
        "metricdp.mechanisms.kernel_distribution",
        "metricdp.mechanisms.kernel_rows",
        "metricdp.metrics.bounded_distances",
    ):
        monkeypatch.setattr(f"{module}.worth_compiling", lambda size: compiled)
    places = np.array([0.0, 1.5, 3.0, 36.0, 40.0, 41.0])
    made: Any = mdp.exponential(mdp.FiniteSpace(places[:, None], mdp.Lp(2)), 2.0, form="kernel")
    secret, order = 1, [1, 0, 2, 3, 4, 5]
    with flint.ctx.workprec(400):
        terms = [(-flint.arb(made.inner) * abs(flint.arb(places[k]) - places[secret])).exp() for k in order]
        ends = [int((sum(terms[: k + 1]) / sum(terms) * flint.arb(2) ** 64).floor().unique_fmpz()) for k in range(5)]

    def place(word: int) -> int:
        monkeypatch.setattr(kernel_rows, "row_words", lambda source, width: Given([word, 0, *([2**63] * 8)]))
        return order.index(int(made.sample([secret])[0]))

    for k in range(5):
        low, high = 0, 2**64  # the last word whose beginning lies in the parts 0 to k
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if place(middle) <= k else (low, middle)
        assert low == ends[k]


# --- rows of stored numbers ----------------------------------------------------------------------------------------

TINY = [0.25, 1e-18, 0.5, 1e-40, 1e-300, 5e-324, 0.0, 0.25, 3e-17, 1e-30]


def on_a_line(count: int) -> mdp.FiniteSpace:
    return mdp.FiniteSpace(np.arange(float(count))[:, None], LINE)


def matrix() -> Any:
    rows = np.array([TINY, TINY[::-1], np.roll(TINY, 3)])
    return MatrixMechanism(on_a_line(3), on_a_line(10), rows, Guarantee(1.0, LINE, basis="none"), PAPER)


@pytest.mark.parametrize("secret", [0, 1, 2])
def test_a_matrix_draws_every_report_however_small(secret: int, node: browsers.Engine, tmp_path: Path) -> None:
    made = matrix()
    words, wanted = asked_of(fractions(made.matrix[secret]))
    assert len(set(wanted)) == 9
    assert drawn(made, secret, words) == wanted
    path = unjudged(made, tmp_path / "matrix.mdp")  # sparse: zeros are not stored
    assert in_javascript(node, path, secret, words) == wanted


def test_a_quantised_matrix_draws_every_report(node: browsers.Engine, tmp_path: Path) -> None:
    steep = mdp.exponential(mdp.FiniteSpace(np.arange(0.0, 7.0)[:, None], LINE), 8.0)
    for bits in (16, 44, 52):
        made = mdp.quantised(steep, bits=bits)
        words, wanted = asked_of(fractions(made.matrix[3]))
        assert drawn(made, 3, words) == wanted
        path = save(made, tmp_path / f"{bits}.mdp")
        assert in_javascript(node, path, 3, words) == wanted


def test_a_pruned_report_goes_to_the_kept_one_and_all_others_stay() -> None:
    made = prune_reports(mdp.exponential(on_a_line(6), 40.0), [2])
    words, wanted = asked_of(fractions(made.matrix[0]))
    assert len(set(wanted)) == 5
    assert drawn(made, 0, words) == wanted


def local() -> LocalMechanism:
    """A row that stores reports of all sizes, over a background of all sizes."""
    values = np.array([1.0, 1e-12, 0.25, 1e-30, 1e-45, 0.5, 3e-10], dtype=np.float32)
    background = np.array([1e-20, 7e-20, 1e-45, 1e-38, 2e-20, 1e-32, 5e-20, 1e-20, 1e-20, 2e-44], dtype=np.float32)
    columns = np.array([0, 1, 3, 4, 6, 7, 9], dtype=np.int32)
    return LocalMechanism(
        on_a_line(1), on_a_line(10), np.array([0, 7]), columns, values, background, Guarantee(1.0, LINE), KEPT
    )


def test_a_local_window_draws_every_report_and_its_background(node: browsers.Engine, tmp_path: Path) -> None:
    made = local()
    hidden = [k for k in range(10) if k not in made.columns.tolist()]
    rest = sum((Fraction(float(made.background[k])) for k in hidden), Fraction(0))
    words, wanted = asked_of([*fractions(made.values), rest])
    near = [(one, int(made.columns[k])) for one, k in zip(words, wanted, strict=True) if k < 7]
    assert {report for _, report in near} == set(made.columns.tolist())
    path = save(made, tmp_path / "local.mdp")
    assert drawn(made, 0, [one for one, _ in near]) == [report for _, report in near]
    assert in_javascript(node, path, 0, [one for one, _ in near]) == [report for _, report in near]
    beyond = [one for one, k in zip(words, wanted, strict=True) if k == 7]
    for one in beyond:  # so near to the end that the draw takes words of its own; the background's follow them
        taken = Given([*one, *digits_of(0)])
        assert int(made.sample([0], rng=taken)[0]) in hidden
        used = one[
            : next(n for n in range(1, WORDS + 1) if int(made.sample([0], rng=Given(one[:n] + [0] * 40))[0]) in hidden)
        ]
        parts = [part for part in parts_of(fractions(made.background)) if part[0] in hidden]
        again = [used + digits_of(number) for _, numbers in parts for number in numbers]
        assert drawn(made, 0, again) == [k for k, numbers in parts for _ in numbers]
        assert in_javascript(node, path, 0, again) == [k for k, numbers in parts for _ in numbers]


def test_a_product_draws_every_report_of_every_part() -> None:
    part = mdp.exponential(mdp.FiniteSpace([[0.0], [1.0], [40.0], [700.0]], LINE), 2.0)
    made = mdp.product(part, part)
    words, wanted = asked_of(fractions(part.matrix[0]))
    assert len(set(wanted)) == 4
    for one, report in list(zip(words, wanted, strict=True))[2::3]:
        taken = Given(one)
        assert int(part.sample([0], rng=taken)[0]) == report
        used = one[: taken.at]
        first, second = made.sample([[0], [0]], rng=Given(used + one))
        assert (int(first[0]), int(second[0])) == (report, report)


# --- between anchors -----------------------------------------------------------------------------------------------


def between(axis: list[float], rule: str, rows: Any, ratio: float = 0.0) -> InterpolatedMechanism:
    box = mdp.Box([axis[0]], [axis[-1]], LINE)
    return InterpolatedMechanism(
        box, on_a_line(len(rows[0])), (np.array(axis),), np.array(rows), (np.full(len(axis) - 1, ratio),),
        rule, Guarantee(1.0, LINE, basis="none"), PAPER,
    )  # fmt: skip


def far_share(position: Fraction, ratio: float) -> Any:
    """(e^(L t) - 1) / (e^a - 1), and t where a = 0."""
    if ratio == 0.0:
        return flint.arb(position.numerator) / flint.arb(position.denominator)
    a = flint.arb(ratio)
    length = 2 * ((1 + a.exp()) / 2).log()
    return ((length * flint.arb(position.numerator) / flint.arb(position.denominator)).exp() - 1) / (a.exp() - 1)


def around(share: Any) -> tuple[int, int]:
    """Return a number just below a share and one just above."""
    scaled = int((share * flint.arb(2) ** BITS).floor().unique_fmpz())
    return scaled - 1, scaled + 1


@pytest.mark.parametrize("ratio", [0.0, 1e-3, 5.0])
@pytest.mark.parametrize("x", [5e-324, 1e-300, 1e-18, 0.3, 1e10 - 2e-6])
def test_a_point_is_rounded_to_the_far_anchor_with_exactly_its_share(
    x: float, ratio: float, node: browsers.Engine, tmp_path: Path
) -> None:
    made = between([0.0, 1e10], "exact", [[1.0, 0.0], [0.0, 1.0]], ratio)
    upper = x > 5e9
    position = (Fraction(10) ** 10 - Fraction(x) if upper else Fraction(x)) / 10**10
    with flint.ctx.workprec(4000):
        far, near = around(far_share(position, ratio))
    wanted = [int(not upper), int(upper)]
    words = [[*digits_of(number), 2**63, 0] for number in (far, near)]
    assert drawn(made, [x], words) == wanted
    path = unjudged(made, tmp_path / "between.mdp")
    assert in_javascript(node, path, [x], words) == wanted


@pytest.mark.parametrize("rule", ["log", "relaxed"])
def test_a_geometric_mean_draws_every_report_however_small(rule: Any, node: browsers.Engine, tmp_path: Path) -> None:
    rows = [TINY[:6] + TINY[7:], [0.125, 1e-20, 0.5, 1e-200, 5e-324, 1e-310, 0.375, 1e-9, 1e-30]]
    made = between([0.0, 4.0], rule, rows)
    with flint.ctx.workprec(4000):
        terms = []
        for one, two in zip(*made.matrix.tolist(), strict=True):
            term = (0.75 * flint.arb(one).log() + 0.25 * flint.arb(two).log()).exp()
            sums = [sum(fractions(row), Fraction(0)) for row in made.matrix]
            for total, share in zip(sums, (0.75, 0.25), strict=True):
                term /= (share * (flint.arb(total.numerator) / flint.arb(total.denominator)).log()).exp()
            terms.append(Fraction(int((term * flint.arb(2) ** 3000).floor().unique_fmpz()), 2**3000))
        words, wanted = asked_of(terms)
    assert len(set(wanted)) == 9
    assert drawn(made, [1.0], words[2::3]) == wanted[2::3]
    path = unjudged(made, tmp_path / "mean.mdp")
    assert in_javascript(node, path, [1.0], words[2::9]) == wanted[2::9]


def near_cuts(length: float, count: int) -> list[float]:
    """Return places within a few units in the last place of every cut."""
    found = []
    for cut in range(1, count):
        place = length * cut / count
        found += [np.nextafter(place, 0.0), place, np.nextafter(place, length), place * (1 + 1e-13)]
    return [float(place) for place in found]


def test_a_place_beside_a_cut_is_rounded_with_exactly_its_share(node: browsers.Engine, tmp_path: Path) -> None:
    length, count, ratio = 3.7, 7, 2.5
    roads = mdp.ShortestPath([[0, 1]], [length], 2)
    street = Streets(roads)
    anchors = [0, *range(2, count + 1), 1]  # along the street: a crossing, the cuts, the other crossing
    made = StreetMechanism(
        street, on_a_line(count + 1), np.array([count]), np.eye(count + 1), np.array([ratio]),
        Guarantee(1.0, street.metric, basis="none"), PAPER,
    )  # fmt: skip
    path, lost = unjudged(made, tmp_path / "street.mdp"), 0
    for place in near_cuts(length, count):
        steps = Fraction(place) * count / Fraction(length)
        step, along = int(steps), steps - int(steps)
        lost += int(place / length * count) != step
        position, ends = (along, (step, step + 1)) if 2 * along <= 1 else (1 - along, (step + 1, step))
        with flint.ctx.workprec(4000):
            numbers = around(far_share(position, ratio)) if position else (0, 0)
        wanted = [anchors[ends[1] if position else ends[0]], anchors[ends[0]]]
        words = [[*digits_of(number), 2**63, 2**63] for number in numbers]
        words = [one if number else [0, *digits_of(number)] for one, number in zip(words, numbers, strict=True)]
        assert drawn(made, [0.0, place], words) == wanted
        assert in_javascript(node, path, [0, place], words) == wanted
    assert lost  # doubles put some of them on the other side


def test_an_order_that_noise_cannot_be_drawn_for_is_refused() -> None:
    """Beyond about 1e12 the noise of nearest words was 0, so that every word was reported as it is."""
    words = mdp.FiniteSpace(np.array([[0.0, 0.3], [0.25, -0.1], [0.1, 0.0]]), mdp.Lp(1e6))
    reports = mdp.madlib(words, 2.0).sample(np.zeros(300, dtype=int), rng=np.random.default_rng(0))
    assert len(np.unique(reports)) == 3
    for order in (1e7, 1e13, 1e308, np.nan, 0.5):
        with pytest.raises(mdp.MetricdpError, match="`p` must be from 1 to"):
            mdp.Lp(order)
