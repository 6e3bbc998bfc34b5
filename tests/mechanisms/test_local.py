"""Mechanisms of whole cities: sparse rows plus one background law."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from instances import some_local
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Certificate, Guarantee, LocalMechanism
from metricdp.mechanisms.local_rows import LocalSampler
from metricdp.metrics import Lp
from metricdp.spaces import FiniteSpace


def local(starts, columns, values, background):
    space = FiniteSpace(np.arange(3.0), Lp(1))
    promise, found = Guarantee(1.0, space.metric), Certificate(loss=1.0, lower_bound=0.0, method="by hand", epsilon=1.0)
    return LocalMechanism(space, space, starts, columns, values, background, promise, found)


def test_the_dense_table_has_the_background_where_nothing_is_stored():
    mechanism = local([0, 2, 2, 3], [0, 2, 1], [3.0, 1.0, 6.0], [1.0, 1.0, 2.0])
    weights = np.array([[3.0, 1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 6.0, 2.0]])
    assert np.allclose(mechanism.totals, weights.sum(axis=1))
    assert np.allclose(mechanism.matrix, weights / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("starts", "columns", "values", "background"),
    [
        ([0, 2, 2], [0, 2], [1, 1], [1, 1, 1]),
        ([0, 2, 2, 2], [2, 0], [1, 1], [1, 1, 1]),
        ([0, 1, 1, 2], [0, 3], [1, 1], [1, 1, 1]),
        ([0, 1, 1, 2], [0, 2], [1, np.inf], [1, 1, 1]),
        ([0, 1, 1, 2], [0, 2], [1, -1], [1, 1, 1]),
        ([0, 1, 1, 2], [0, 2], [1, 1], [0, 0, 0]),
        ([0, 1, 1, 2], [0, 2], [1, 1], [1, 1]),
    ],
)
def test_rows_that_are_no_rows_are_refused(starts, columns, values, background):
    with pytest.raises(InvalidInput):
        local(starts, columns, values, background)


class Told:
    """A source that hands out the words it was told, and says how many it gave."""

    def __init__(self, words):
        self.left, self.given = [int(w) for w in words], 0

    def words(self, count):
        self.given += count
        out, self.left = self.left[:count], self.left[count:]
        return np.array(out, dtype=np.uint64)


def by_weights(mechanism):
    """Every weight as a rational, looked up one by one."""
    table = []
    for i in range(len(mechanism.inputs)):
        own = {}
        for at in range(mechanism.starts[i], mechanism.starts[i + 1]):
            own[int(mechanism.columns[at])] = Fraction(float(mechanism.values[at]))
        table.append([own.get(k, Fraction(float(b))) for k, b in enumerate(mechanism.background)])
    return table


def drawn_by_hand(mechanism, row, told):
    """The report that words stand for, in rationals: the row's own reports in order, then the background, repeated."""
    words = iter(told)
    part = slice(mechanism.starts[row], mechanism.starts[row + 1])
    own = [int(k) for k in mechanism.columns[part]]
    background = [Fraction(float(b)) for b in mechanism.background]
    rest = sum(b for k, b in enumerate(background) if k not in own)
    near = [Fraction(float(v)) for v in mechanism.values[part]]

    def cell(weights):
        low, width = Fraction(0), Fraction(1)
        while True:
            width /= 2**64
            low += next(words) * width
            running = Fraction(0)
            for at, weight in enumerate(weights):
                running += weight
                edge = running / sum(weights)
                if low < edge:
                    if low + width <= edge:
                        return at
                    break

    found = cell([*near, rest])
    if found < len(own):
        return own[found]
    for _ in range(8):
        report = cell(background)
        if report not in own:
            return report
    return None  # a row that leaves so little of the background draws that little by itself


HARD = {
    "plain": ([0, 2, 2, 3], [0, 2, 1], [3.0, 1.0, 6.0], [1.0, 1.0, 2.0]),
    "tiny": ([0, 3, 4, 6], [0, 1, 2, 0, 1, 2], [1e-45, 1.0, 0.0, 1e-38, 1e-20, 1e-9], [1e-30, 0.5, 1e-12]),
    "no background": ([0, 3, 6, 9], [0, 1, 2] * 3, [0.1, 0.2, 0.3, 1, 0, 1, 0, 0, 5], [0.0, 0.0, 0.0]),
    "all background": ([0, 0, 0, 0], [], [], [0.25, 0.0, 3e38]),
    "cancelled": ([0, 1, 1, 2], [0, 0], [1e-30, 0.0], [1.0, 1e-30, 1e-45]),
}


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("row", range(3))
def test_words_at_and_around_every_threshold_are_decided_exactly(case, row):
    mechanism = local(*HARD[case])
    weights = by_weights(mechanism)[row]
    part = slice(mechanism.starts[row], mechanism.starts[row + 1])
    edges, running = [], Fraction(0)
    for value in mechanism.values[part]:
        running += Fraction(float(value))
        edges.append(int(running / sum(weights) * 2**64))
    shifts = (-(2**34), -(2**32), -9000, -1, 0, 1, 9000, 2**32, 2**34)
    spread = np.random.default_rng(row).integers(0, 2**64, 30, dtype=np.uint64)
    words = {edge + shift for edge in edges for shift in shifts} | {0, 2**64 - 1} | {int(w) for w in spread}
    for word in sorted(w for w in words if 0 <= w < 2**64):
        for low in (0, 2**63, 2**64 - 1):
            further = np.random.default_rng(word % 1000).integers(0, 2**64, 60, dtype=np.uint64)
            told = [word, low, *(int(w) for w in further)]
            drawn = LocalSampler(mechanism.starts, mechanism.columns, mechanism.values, mechanism.background).draw(
                np.array([row]), Told(told)
            )[0]
            assert weights[drawn] > 0
            by_hand = drawn_by_hand(mechanism, row, told)
            assert drawn == by_hand if by_hand is not None else drawn not in mechanism.columns[part]


@pytest.mark.parametrize("rng", [np.random.default_rng(4), None], ids=["seeded", "system"])
def test_draws_follow_the_dense_table(rng):
    mechanism = some_local()
    secrets = np.repeat([0, 7, 29], 100_000)
    drawn = mechanism.sample(secrets, rng=rng)
    for i in (0, 7, 29):
        weights = by_weights(mechanism)[i]
        expected = np.array([float(w / sum(weights)) for w in weights]) * 100_000
        counts = np.bincount(drawn[secrets == i], minlength=30)
        assert expected.min() > 8
        assert stats.chisquare(counts, expected).pvalue > 1e-6


def test_rows_that_leave_almost_none_of_the_background_are_drawn_all_the_same():
    background = np.full(3, 1.0, dtype=np.float32)
    background[0] = 1e9
    mechanism = local([0, 1, 2, 3], [0, 0, 0], [1.0, 1.0, 0.0], background)
    drawn = mechanism.sample(np.zeros(60_000, dtype=int), rng=np.random.default_rng(0))
    assert stats.chisquare(np.bincount(drawn, minlength=3)).pvalue > 1e-6
    assert set(mechanism.sample(np.full(1000, 2), rng=np.random.default_rng(0)).tolist()) == {1, 2}


def test_many_draws_in_threads_equal_the_same_words_one_by_one():
    mechanism = some_local()
    rng = np.random.default_rng(2)
    secrets, words = rng.integers(0, 30, 150_000), rng.integers(0, 2**64, 150_000, dtype=np.uint64)
    drawn = mechanism.sample(secrets, rng=Told(np.append(words, rng.integers(0, 2**64, 900_000, dtype=np.uint64))))
    for at in range(0, 150_000, 3001):
        row = int(secrets[at])
        own = {int(k) for k in mechanism.columns[mechanism.starts[row] : mechanism.starts[row + 1]]}
        by_hand = drawn_by_hand(mechanism, row, [int(words[at]), *range(10**18, 10**19, 10**17)])
        assert drawn[at] == by_hand if by_hand in own else drawn[at] not in own


def test_densities_are_the_logs_of_the_exact_law():
    mechanism = some_local()
    exact = [[float(w / sum(row)) for w in row] for row in by_weights(mechanism)]
    found = mechanism.log_density(np.arange(30)[:, None], np.arange(30)[None, :])
    assert np.allclose(found, np.log(exact), rtol=0, atol=1e-14)
    assert mechanism.log_density(3, 4).shape == ()
    assert local([0, 1, 1, 1], [0], [0.0], [1, 1, 1]).log_density([0, 1], [0, 0])[0] == -np.inf
    with pytest.raises(InvalidInput, match="reports"):
        mechanism.log_density([0], [30])


def test_a_witness_has_the_ratio_of_the_laws_and_the_places():
    mechanism = some_local()
    laws = [[w / sum(row) for w in row] for row in by_weights(mechanism)]
    found = mechanism.witness(3, 23, 3)
    assert np.isclose(found.ratio, float(laws[3][3] / laws[23][3]), rtol=1e-12)
    assert found.secret_at == tuple(mechanism.inputs.coordinates[3].tolist())
    bare = local([0, 1, 1, 1], [0], [0.0], [1, 1, 1])
    assert bare.witness(1, 0, 0).ratio == np.inf
    with pytest.raises(InvalidInput, match="never comes from"):
        bare.witness(0, 1, 0)


def test_it_says_what_it_is_in_a_notebook_and_refuses_to_become_a_city_squared():
    mechanism = some_local()
    assert "LocalMechanism" in mechanism._repr_html_()
    many = FiniteSpace(np.arange(5000.0), Lp(1))
    wide = LocalMechanism(
        many, many, np.zeros(5001, dtype=int), [], [], np.ones(5000), mechanism.guarantee, mechanism.certificate
    )
    with pytest.raises(InvalidInput, match="not written out"):
        _ = wide.matrix
    assert set(wide.sample([0, 4999]).tolist()) <= set(range(5000))
