"""Draws follow the stored numbers exactly."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.mechanisms.rows import RowSampler
from metricdp.randomness import KeyedSource, RowWords, open_uniform, source_of


class Told:
    """A source that hands out the words it was told, and says how many it gave."""

    def __init__(self, words):
        self.left, self.given = [int(w) for w in words], 0

    def words(self, count):
        self.given += count
        out, self.left = self.left[:count], self.left[count:]
        return np.array(out, dtype=np.uint64)


def edges_of(row):
    """The exact cumulative law of a row, in units of 2**-64."""
    weights = [Fraction(float(v)) for v in row]
    total, running, edges = sum(weights), Fraction(0), []
    for weight in weights:
        running += weight
        edges.append(running / total * 2**64)
    return edges


def exact_column(row, value):
    """The report that owns `value` (in units of 2**-64)."""
    return next(c for c, edge in enumerate(edges_of(row)) if value < edge)


ROWS = np.array([
    [0.1, 0.2, 0.3, 0.4, 0.0],
    [0.0, 0.5, 0.0, 0.5, 0.0],
    [1e-300, 1.0, 1e-20, 0.0, 1e-9],
    [1 / 3, 1 / 3, 1 / 3, 0.0, 0.0],
    [0.0, 0.0, 0.0, 0.0, 1.0],
])  # fmt: skip


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_words_at_and_around_every_threshold_are_decided_exactly(row):
    sampler = RowSampler(ROWS)
    rng = np.random.default_rng(row)
    whole = {int(edge) + shift for edge in edges_of(ROWS[row]) for shift in (-9000, -2, -1, 0, 1, 2, 9000)}
    spread = {int(w) for w in rng.integers(0, 2**64, 50, dtype=np.uint64)}
    words = sorted(w for w in whole | spread | {0, 2**64 - 1} if 0 <= w < 2**64)
    for word in words:
        for low in (0, 1, 2**63, 2**64 - 1):
            told = [word, low, 12345, 678]
            source = Told(told)
            drawn = sampler.draw(np.array([row]), source)[0]
            # The words read so far stand for an interval; its lower end must lie with the report it drew.
            value = sum(Fraction(w, 2 ** (64 * at)) for at, w in enumerate(told[: source.given]))
            assert drawn == exact_column(ROWS[row], value)
            assert ROWS[row, drawn] > 0


def test_a_word_that_holds_an_edge_asks_for_more_bits():
    sampler = RowSampler(np.array([[1.0, 2.0]]))
    edge = Fraction(2**64, 3)
    word, rest = int(edge), int((edge - int(edge)) * 2**64)
    for low, column in ((rest - 1, 0), (rest + 1, 1)):
        source = Told([word, low])
        assert sampler.draw(np.array([0]), source)[0] == column
        assert source.given == 2
    source = Told([word, rest, 0])  # the second word holds the edge as well
    assert sampler.draw(np.array([0]), source)[0] == 0
    assert source.given == 3
    source = Told([2**63])
    assert sampler.draw(np.array([0]), source)[0] == 1
    assert source.given == 1


@pytest.mark.parametrize("rng", [np.random.default_rng(4), None], ids=["seeded", "system"])
def test_chi_square(rng):
    distribution = np.random.default_rng(0).dirichlet(np.ones(40), size=6)
    distribution[:, 7] = 0.0
    distribution[2, :20] = 0.0
    sampler = RowSampler(distribution)
    rows = np.repeat(np.arange(6), 50_000)
    drawn = sampler.draw(rows, source_of(rng))
    for i in range(6):
        counts = np.bincount(drawn[rows == i], minlength=40)
        used = distribution[i] > 0
        assert counts[~used].sum() == 0
        expected = distribution[i, used] / distribution[i, used].sum() * 50_000
        small = expected < 8
        small[expected.argmin()] = True  # rare reports are counted together
        observed = np.append(counts[used][~small], counts[used][small].sum())
        assert stats.chisquare(observed, np.append(expected[~small], expected[small].sum())).pvalue > 1e-6


def test_zero_columns_are_never_drawn_whatever_the_word():
    distribution = np.array([[0.0, 0.0, 0.25, 0.0, 0.75, 0.0, 0.0]])
    words = [0, 1, 2**62 - 1, 2**62, 2**62 + 1, 2**64 - 1, 2**64 - 2049]
    for word in words:
        assert RowSampler(distribution).draw(np.array([0]), Told([word, 5, 5]))[0] in (2, 4)


def test_rows_that_do_not_sum_to_one_are_their_own_law():
    distribution = np.array([[0.25, 0.25, 0.25]])  # each a third
    drawn = RowSampler(distribution).draw(np.zeros(60_000, dtype=np.int64), source_of(np.random.default_rng(0)))
    assert stats.chisquare(np.bincount(drawn)).pvalue > 1e-6


def test_many_draws_in_threads_equal_the_same_words_one_by_one():
    distribution = np.random.default_rng(0).dirichlet(np.ones(300), size=3)
    rows = np.random.default_rng(1).integers(0, 3, 200_000)
    words = np.random.default_rng(2).integers(0, 2**64, 200_000, dtype=np.uint64)
    drawn = RowSampler(distribution).draw(rows, Told(np.append(words, [7, 7, 7])))
    for at in range(0, 200_000, 4001):
        assert drawn[at] == exact_column(distribution[rows[at]], int(words[at]))


def test_seeded_generator_repeats_and_system_does_not():
    space = mdp.FiniteSpace(np.arange(30.0)[:, None], mdp.Lp(1))
    mechanism = mdp.exponential(space, 0.1)
    secrets = np.zeros(400, dtype=int)
    one = mechanism.sample(secrets, rng=np.random.default_rng(9))
    assert np.array_equal(one, mechanism.sample(secrets, rng=np.random.default_rng(9)))
    assert not np.array_equal(one, mechanism.sample(secrets, rng=np.random.default_rng(10)))
    assert not np.array_equal(mechanism.sample(secrets), mechanism.sample(secrets))
    assert mechanism.sample(np.zeros((2, 3), dtype=int)).shape == (2, 3)
    noise = mdp.laplace(mdp.Lp(2), 1.0)
    places = np.zeros((70_000, 2))
    assert np.array_equal(
        noise.sample(places, rng=np.random.default_rng(1)), noise.sample(places, rng=np.random.default_rng(1))
    )


def test_keyed_source_repeats_by_label_and_is_otherwise_independent():
    key = bytes(range(32))
    one, again = KeyedSource(key, "job 1").words(1000), KeyedSource(key, "job 1").words(1000)
    other, stranger = KeyedSource(key, "job 2").words(1000), KeyedSource(bytes(32), "job 1").words(1000)
    assert np.array_equal(one, again)
    for different in (other, stranger):
        assert not np.any(one == different)
        bits = np.unpackbits((one ^ different).view(np.uint8))
        assert abs(bits.mean() - 0.5) < 0.02
    parts = KeyedSource(key, "job 1")
    assert np.array_equal(np.concatenate([parts.words(10), parts.words(990)]), one)
    with pytest.raises(InvalidInput, match="32 secret bytes, got 5"):
        KeyedSource(b"short", "x")


def test_what_is_no_source_is_refused():
    with pytest.raises(InvalidInput, match="numpy Generator"):
        source_of(42)


def test_uniform_stays_inside_and_reaches_deep():
    low = open_uniform(2, Told([0, 2**64 - 1, 0]))
    assert 0 < low[0] < 2.0**-120
    assert low[1] < 1
    assert stats.kstest(open_uniform(100_000, source_of(np.random.default_rng(0))), "uniform").pvalue > 1e-6


def test_words_of_rows_do_not_depend_on_batches_or_order():
    words = RowWords(bytes(range(32)), 3)
    whole = words.first(0, 0, 50)
    assert np.array_equal(np.concatenate([words.first(0, 0, 7), words.first(0, 7, 50)]), whole)
    assert words.digits(20)(0, 2, 1) == int(whole[20, 2])
    long = words.digits(20)(0, 2, 3)  # the same uniform with more of its bits
    assert long >> 128 == int(whole[20, 2])
    everything = [words.first(attempt, 0, 50) for attempt in range(3)]
    assert len(np.unique(everything)) == 450
