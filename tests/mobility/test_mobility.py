"""Walks, models, blankets, prediction, accounts and smoothing."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pandas
import polars
import pytest

import metricdp as mdp
from metricdp.auditing import bounded_range, trace_leakage
from metricdp.errors import CorruptFile, InvalidInput, OutOfDomain
from metricdp.mobility import (
    HiddenWalk,
    Walks,
    account,
    adjust_p_values,
    allocate,
    augmented_steps,
    blanket_classes,
    clean,
    conditional_independence,
    discover,
    discover_groups,
    estimate,
    evaluate,
    examples_of,
    histories_of,
    load_predictor,
    load_traces,
    path_features,
    reachable_steps,
    resample,
    smooth,
    snap,
    snap_distances,
    split_trips,
    train_predictor,
    trajectory_adversary,
    trajectory_epsilon,
)

RING = np.abs((np.arange(5)[:, None] - np.arange(5) + 2) % 5 - 2) <= 1  # five places in a ring, steps to neighbours


def chain(lag, steps, rng, places=5):
    """A walk in which the next place is that of `lag` steps ago, moved on by 0, 1 or 2."""
    walk = list(rng.integers(0, places, lag))
    for move in rng.choice(3, p=[0.6, 0.2, 0.2], size=steps):
        walk.append((walk[-lag] + move) % places)
    return np.array(walk)


def windows_of(walk, length):
    return np.stack([walk[length - 1 - lag : len(walk) - lag] for lag in range(length)], axis=1)


def walks_of(*walks):
    trip = np.concatenate([np.full(len(walk), number) for number, walk in enumerate(walks)])
    seconds = np.concatenate([60.0 * np.arange(len(walk)) for walk in walks])
    return Walks(trip, seconds, np.concatenate(walks).astype(np.int64), trip)


# --- traces -----------------------------------------------------------------------------------------------------------


def table():
    rows = [(1, 0, 41.0, -8.0), (1, 60, 41.001, -8.0), (1, 120, 43.0, -8.0), (1, 180, 41.002, -8.0)]
    rows += [(0, 0, 41.0, -8.0), (0, 1000, 41.0, -8.001), (-1, 5, 0.0, 0.0)]
    return {name: [row[i] for row in rows] for i, name in enumerate(("trip", "t", "lat", "lon"))}


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame])
def test_load_sorts_by_trip_and_time_and_leaves_unnumbered_rows_out(make):
    traces = load_traces(make(table()))
    assert traces.trip.tolist() == [0, 0, 1, 1, 1, 1]
    assert traces.seconds.tolist() == [0, 1000, 0, 60, 120, 180]
    with pytest.raises(InvalidInput, match="columns"):
        load_traces(make({"a": [1]}))


def test_clean_drops_the_impossible_fix_only():
    kept = clean(load_traces(pandas.DataFrame(table())), most_kmh=150)
    assert kept.coordinates[:, 0].tolist() == [41.0, 41.0, 41.0, 41.001, 41.002]


def test_resample_interpolates_and_splits_at_gaps():
    traces = resample(clean(load_traces(pandas.DataFrame(table()))), step_seconds=30, most_gap_seconds=300)
    assert set(traces.owner.tolist()) == {1}  # the other trip has a gap of 1000 s
    assert np.allclose(traces.coordinates[:, 0], np.interp(traces.seconds, [0, 60, 180], [41.0, 41.001, 41.002]))


def test_snap_takes_the_nearest_place_and_cuts_where_it_must():
    space = mdp.FiniteSpace([[41.0, -8.0], [41.01, -8.0], [41.02, -8.0]], mdp.Haversine())
    rows = {"trip": [0] * 5, "t": [0, 60, 120, 180, 240], "lat": [41.0, 41.0101, 41.02, 42.0, 41.0], "lon": [-8.0] * 5}
    walks = snap(load_traces(pandas.DataFrame(rows)), space, most_km=0.5)
    assert walks.codes.tolist() == [0, 1, 2, 0]
    assert len(np.unique(walks.trip)) == 2
    barred = snap(load_traces(pandas.DataFrame(rows)), space, most_km=0.5, allowed=np.eye(3) > 0)
    assert len(np.unique(barred.trip)) == 4


def test_windows_and_histories_by_hand():
    walks = walks_of([0, 1, 2, 3], [4, 4])
    windows, ends = walks.windows(3)
    assert windows.tolist() == [[2, 1, 0], [3, 2, 1]]
    assert ends.tolist() == [2, 3]
    assert walks.histories(2).tolist() == [[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 2, 1], [4, 4, 4], [4, 4, 4]]


def test_training_and_test_trips_are_disjoint():
    walks = walks_of(*[np.zeros(4, int)] * 20)
    train, test = split_trips(walks, share=0.6)
    assert not set(train.owner) & set(test.owner)
    assert len(set(train.owner)) == 12
    assert len(train) + len(test) == len(walks)


def test_times_may_be_dates_and_rows_in_any_order():
    rows = pandas.DataFrame(table())
    dated = rows.assign(t=pandas.to_datetime(rows["t"], unit="s"))
    wanted = load_traces(rows)
    for frame in (dated.iloc[::-1], polars.from_pandas(dated), dated.assign(t=dated["t"].dt.tz_localize("UTC"))):
        found = load_traces(frame)
        assert np.array_equal(found.seconds, wanted.seconds)
        assert np.array_equal(found.coordinates, wanted.coordinates)


def test_how_far_fixes_are_moved():
    space = mdp.FiniteSpace([[41.0, -8.0], [41.01, -8.0]], mdp.Haversine())
    traces = load_traces(
        pandas.DataFrame({"trip": [0, 0, 0], "t": [0, 1, 2], "lat": [41.001, 41.0, 45.0], "lon": -8.0})
    )
    assert np.allclose(snap_distances(traces, space, most_km=1.0), [0.0, 0.1112], atol=1e-4)


def test_what_newcomers_do_wrong_is_answered_in_a_sentence(tmp_path):
    rows = pandas.DataFrame(table())
    with pytest.raises(InvalidInput, match=r"columns \['t'\].*it has.*'time'.*time=\.\.\."):
        load_traces(rows.rename(columns={"t": "time"}))
    with pytest.raises(InvalidInput, match="does not exist"):
        load_traces(tmp_path / "nothing.parquet")
    with pytest.raises(InvalidInput, match="unix seconds or dates"):
        load_traces(rows.assign(t=rows["t"].astype(str)))
    with pytest.raises(InvalidInput, match="every row, row 2 has none"):
        load_traces(rows.assign(t=pandas.to_datetime(rows["t"], unit="s").where(rows.index != 2)))
    with pytest.raises(InvalidInput, match="no row"):
        load_traces(rows[rows["trip"] < 0])
    with pytest.raises(InvalidInput, match=r"usually 60000 apart\. Times must be in seconds"):
        resample(load_traces(rows.assign(t=1000 * rows["t"])), step_seconds=30)
    traces = load_traces(rows)
    far = mdp.FiniteSpace([[45.0, -8.0], [45.1, -8.0]], mdp.Haversine())
    with pytest.raises(InvalidInput, match=r"no fix lies within 0\.5 km of a place: are the places"):
        snap(traces, far, most_km=0.5)
    near = mdp.FiniteSpace([[41.0, -8.0], [41.01, -8.0]], mdp.Haversine())
    with pytest.raises(InvalidInput, match=r"must be 2 x 2 like the places, got \(3, 3\)"):
        snap(traces, near, most_km=5.0, allowed=np.ones((3, 3)))
    with pytest.raises(InvalidInput, match="place 4, but `allowed` has only 3"):
        estimate(walks_of([0, 4]), np.ones((3, 3)))
    with pytest.raises(InvalidInput, match="no trip has 4 steps in a row"):
        estimate(walks_of([0, 1, 2]), RING, order=3)


def test_a_mechanism_with_context_is_saved_and_applied_to_a_table_of_histories(tmp_path):
    places = mdp.FiniteSpace([[41.0, -8.0], [41.01, -8.0], [41.02, -8.0]], mdp.Haversine())
    augmented = mdp.spaces.Augmented(places, histories_of(np.ones((3, 3)), 1), [0.5])
    loss = places.distances[augmented.histories[:, 0]]
    built = mdp.contextual(mdp.Problem(augmented.space, 1.0, outputs=places, loss=loss), gap=1e-2)
    mdp.save(built, tmp_path / "trips.mdp")
    loaded = mdp.load(tmp_path / "trips.mdp")
    assert np.array_equal(loaded.matrix, built.matrix)
    rows = [[41.02, -8.0, 41.01, -8.0], [41.0, -8.0, 41.0, -8.0]]
    frame = pandas.DataFrame(rows, columns=["lat", "lon", "lat_1", "lon_1"]).assign(person=["a", "b"])
    steps = ["lat", "lon", "lat_1", "lon_1"]
    reports = mdp.perturb(frame, loaded, columns=steps)
    assert set(reports.columns) == {"lat", "lon", "person"}  # the history is gone
    assert set(map(tuple, reports[["lat", "lon"]].to_numpy())) <= set(map(tuple, places.coordinates))
    with pytest.raises(OutOfDomain):
        mdp.perturb(frame.assign(lat_1=44.0), loaded, columns=steps)
    with pytest.raises(InvalidInput, match=r"2 codes, the current place first, got 3\. At the start"):
        augmented.encode([[0, 1, 2]])


# --- models -----------------------------------------------------------------------------------------------------------


def test_transitions_back_off_as_the_formula_says():
    walk = np.array([0, 1, 2, 1, 2, 3, 4, 0, 1, 2])
    model = estimate(walks_of(walk), RING, order=2, smoothing=2.0)
    counts: dict[tuple[int, ...], np.ndarray] = {}
    for newest, middle, oldest in windows_of(walk, 3):
        for key in ((), (middle,), (middle, oldest)):
            counts.setdefault(key, np.zeros(5))[newest] += 1
    for middle, oldest in itertools.product(range(5), repeat=2):
        distribution = RING[middle] / RING[middle].sum()
        for key in ((), (middle,), (middle, oldest)):
            seen = np.where(RING[middle], counts.get(key, np.zeros(5)), 0.0)
            distribution = (seen + 2.0 * distribution) / (seen.sum() + 2.0)
        assert np.allclose(model.next([[middle, oldest]])[0], distribution)


def test_history_prior_is_a_law_and_follows_the_chain_rule():
    model = estimate(walks_of(chain(1, 300, np.random.default_rng(0))), RING, order=2)
    rows = histories_of(RING, 2)
    assert len(rows) == 5 * 3 * 3
    assert all(RING[a, b] and RING[b, c] for a, b, c in rows)
    prior = model.history_prior(rows)
    assert prior.sum() == pytest.approx(1.0)
    by_hand = [model.prior[c] * model.next([[c]])[0, b] * model.next([[b, c]])[0, a] for a, b, c in rows]
    assert np.allclose(prior, np.array(by_hand) / np.sum(by_hand))


def test_private_counts_cost_their_budget_and_one_trip_changes_little():
    rng = np.random.default_rng(0)
    walks = walks_of(*[chain(1, 50, rng) for _ in range(200)])
    exact = estimate(walks, np.ones((5, 5)), order=1)
    private = estimate(walks, np.ones((5, 5)), order=1, private_epsilon=1.0, most_per_trip=10, rng=rng)
    assert exact.spent is None
    assert private.spent is not None
    assert private.spent.epsilon == 1.0
    assert np.abs(exact.transitions - private.transitions).max() < 0.15
    # At most ten windows a trip are counted: far above the noise, the total shows it.
    assert private.counts.sum() == pytest.approx(200 * 10, abs=250)


def test_reachable_and_sizes_are_checked():
    assert reachable_steps([[0, 1], [1, 0]], step_seconds=60, most_kmh=59).tolist() == [[True, False], [False, True]]
    with pytest.raises(InvalidInput, match="fewer places"):
        estimate(walks_of([0, 1]), np.ones((300, 300)), order=3)


# --- independence and blankets ----------------------------------------------------------------------------------------


def test_type_one_error_is_within_two_points_on_a_thousand_null_draws():
    rng = np.random.default_rng(2026)
    rejected = 0
    for draw in range(1000):
        z = rng.integers(0, 6, 200)
        x, y = ((z + rng.integers(0, 3, 200)) % 6 for _ in range(2))  # both depend on z, not on each other
        rejected += conditional_independence(x, y, z, permutations=59, seed=draw).p_value <= 0.05
    assert abs(rejected / 1000 - 0.05) <= 0.02


def test_type_one_error_on_overlapping_windows_of_a_chain():
    rng = np.random.default_rng(7)
    rejected = 0
    for draw in range(300):
        rows = windows_of(chain(1, 250, rng), 3)
        rejected += (
            conditional_independence(rows[:, 0], rows[:, 2], rows[:, 1], permutations=59, seed=draw).p_value <= 0.05
        )
    assert rejected / 300 <= 0.09


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_the_right_blanket_is_found(lag):
    found = [
        discover(windows_of(chain(lag, 600, np.random.default_rng(seed)), 5), permutations=99, seed=seed).size
        for seed in range(10)
    ]
    assert found.count(lag) >= 8  # power is complete here; the rest is the level of 5 % at the next size
    assert min(found) >= lag


def test_independent_steps_have_an_empty_blanket():
    rows = windows_of(np.random.default_rng(3).integers(0, 5, 600), 4)
    assert discover(rows, permutations=99).size == 0


def test_corrections_by_hand():
    raw = [0.01, 0.04, 0.03, 0.5]
    assert np.allclose(adjust_p_values(raw, correction="holm"), [0.04, 0.09, 0.09, 0.5])
    assert np.allclose(adjust_p_values(raw, correction="benjamini-hochberg"), [0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert np.allclose(adjust_p_values(raw, correction="none"), raw)


def test_groups_find_their_own_blankets_and_a_predictor_learns_them(tmp_path):
    rng = np.random.default_rng(5)

    def sample(seed):
        parts, names = [], []
        for speed, region in itertools.product(range(4), range(4)):
            lag = 1 if speed < 2 else 2
            rows = windows_of(chain(lag, 500, np.random.default_rng([seed, speed, region])), 4)
            parts.append(rows)
            names.append(np.tile([0, speed, region], (len(rows), 1)))
        return np.concatenate(parts), np.concatenate(names)

    train = discover_groups(*sample(1), permutations=99, most_lag=3)
    test = discover_groups(*sample(2), permutations=99, most_lag=3)
    truth = np.where(train.groups[:, 1] < 2, 1, 2)
    assert (train.sizes == truth).mean() >= 0.9
    shape = {"hour_width": 24.0, "speed_width": 5.0, "regions": (2, 2)}
    predictor = train_predictor(*examples_of(train, **shape), most_lag=3)
    scores = evaluate(predictor, *examples_of(test, **shape))
    assert scores.accuracy >= 0.9 > scores.majority

    predictor.save(tmp_path / "blanket.safetensors")
    loaded = load_predictor(tmp_path / "blanket.safetensors")
    inputs = np.column_stack([rng.uniform(0, 24, 50), rng.uniform(0, 20, 50), rng.integers(0, 2, (50, 2)), np.ones(50)])
    assert np.array_equal(predictor.probability(inputs), loaded.probability(inputs))
    started = time.perf_counter()
    for _ in range(100):
        loaded.probability(inputs[:1])
    assert (time.perf_counter() - started) / 100 < 0.002
    (tmp_path / "broken.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(CorruptFile):
        load_predictor(tmp_path / "broken.safetensors")


def test_features_and_classes_by_hand():
    paths = [[[41.0, -8.0], [41.0, -8.0]], [[41.9, -8.1], [41.8, -8.1]]]
    box = (np.array([41.0, -8.2]), np.array([42.0, -8.0]))
    features = path_features(paths, [0.0, 3600.0 * 25], box=box, step_seconds=3600.0, regions=(2, 2), offset_hours=1.0)
    assert features.hour.tolist() == [1.0, 2.0]
    assert features.speed_mph[0] == 0.0
    assert features.speed_mph[1] == pytest.approx(11.119 / 1.609344, rel=1e-3)
    assert features.region.tolist() == [[0, 1], [1, 1]]
    classes = blanket_classes([[0, 1, 2], [0, 1, 3], [0, 1, 2]], [1, 1, 2])
    assert np.array_equal(classes[0], classes[1])
    assert not np.array_equal(classes[0], classes[2])


# --- over time --------------------------------------------------------------------------------------------------------


def test_a_hundred_releases_three_rules_side_by_side():
    spent = account(np.full(100, 0.1), radius=1.0, delta=1e-5, ranges=np.full(100, 0.1))
    rho = 100 * 0.01 / 2
    assert spent.basic == pytest.approx(10.0)
    assert spent.concentrated == pytest.approx(rho + 2 * np.sqrt(rho * np.log(1e5)))
    assert spent.concentrated == pytest.approx(5.3, abs=0.05)
    assert spent.bounded_range == pytest.approx(2.5, abs=0.05)
    assert spent.product == pytest.approx(1.0)
    assert spent.best == spent.bounded_range
    assert account(np.full(100, 0.1), radius=1.0, time_norm=np.inf).product == pytest.approx(10.0)


def test_allocation_is_the_best_of_many():
    weights = np.array([1.0, 1.0, 1.0, 4.0, 9.0])
    even = float((weights / 0.1).sum())
    chosen = allocate(0.5, weights)
    assert chosen.sum() == pytest.approx(0.5)
    assert even == pytest.approx(160.0)
    assert float((weights / chosen).sum()) == pytest.approx(128.0)
    rng = np.random.default_rng(0)
    for rule, dual in (("basic", 1), ("concentrated", 2), ("product", 2)):
        best = float((weights / allocate(0.5, weights, rule=rule)).sum())
        for _ in range(200):
            other = rng.dirichlet(np.ones(5))
            other *= 0.5 / np.linalg.norm(other, ord=dual)
            assert best <= float((weights / other).sum()) * (1 + 1e-12)


def test_what_a_trajectory_costs_with_context():
    assert trajectory_epsilon(0.5, [1.0, 0.5]) == pytest.approx(0.5 * 2.5)
    assert trajectory_epsilon(0.5, [1.0, 0.5], padded=True) == pytest.approx(0.5 * (1 + 2 * 1.0 + 3 * 0.5))
    # by adding up the weights with which each place of a trace enters its releases
    weights = np.array([1.0, 1.0, 0.5])
    entered = np.zeros(6)
    for t in range(6):
        for lag in range(3):
            entered[max(t - lag, 0)] += weights[lag]
    assert 0.5 * entered[0] == pytest.approx(trajectory_epsilon(0.5, weights[1:], padded=True))
    assert 0.5 * entered[1:].max() == pytest.approx(trajectory_epsilon(0.5, weights[1:]))


@pytest.fixture(scope="module")
def hidden():
    line = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Lp(1))
    steps = np.array([[0.7, 0.3, 0, 0], [0.2, 0.6, 0.2, 0], [0, 0.2, 0.6, 0.2], [0, 0, 0.3, 0.7]])
    return HiddenWalk(np.full(4, 0.25), steps, mdp.exponential(line, 1.0, budget="half"))


def test_forward_backward_by_enumerating_all_walks(hidden):
    reports = [0, 3, 2, 2]
    distribution = hidden.mechanism.matrix
    by_hand = np.zeros((4, 4))
    past = np.zeros((4, 4))
    for walk in itertools.product(range(4), repeat=4):
        chance = hidden.start[walk[0]] * distribution[walk[0], reports[0]]
        past[0, walk[0]] = chance
        for t in range(1, 4):
            chance *= hidden.transitions[walk[t - 1], walk[t]] * distribution[walk[t], reports[t]]
        for t in range(4):
            by_hand[t, walk[t]] += chance
    assert np.allclose(hidden.smoothed(reports), by_hand / by_hand.sum(axis=1, keepdims=True))
    filtered = hidden.filtered(reports)
    assert np.allclose(filtered[0], past[0] / past[0].sum())
    assert np.allclose(filtered[-1], hidden.smoothed(reports)[-1])


def test_more_knowledge_never_helps_less(hidden):
    risk = trajectory_adversary(hidden, walks=200, steps=20, rng=np.random.default_rng(0))
    assert risk.smoothed < risk.filtered < risk.each_report <= risk.prior * 1.05


def test_smoothing_is_better_than_the_reports(hidden):
    walk, reports = hidden.simulate(2000, rng=np.random.default_rng(1))
    raw = np.abs(walk - reports).mean()
    assert (
        np.abs(walk - smooth(hidden, reports)).mean() < np.abs(walk - smooth(hidden, reports, use="past")).mean() < raw
    )


def test_trace_leakage_is_the_sum_of_the_worst_ratios(hidden):
    distribution = hidden.mechanism.matrix
    worst = max(
        np.log(
            np.prod(
                [distribution[a, y] / distribution[b, y] for a, b, y in zip((0, 1, 3), (1, 1, 0), reports, strict=True)]
            )
        )
        for reports in itertools.product(range(4), repeat=3)
    )
    assert trace_leakage(hidden.mechanism, [0, 1, 3], [1, 1, 0]) == pytest.approx(worst)


def test_bounded_range_of_the_exponential_mechanism_is_its_budget(hidden):
    assert bounded_range(hidden.mechanism) == pytest.approx(1.0, rel=1e-9)
    best = mdp.optimal(mdp.Problem(hidden.mechanism.inputs, 1.0))
    assert 1.0 < bounded_range(best) <= 2.0


def test_augmented_steps_shift_the_history():
    rows = histories_of(RING, 1)
    base = mdp.FiniteSpace(np.arange(5.0)[:, None], mdp.Lp(1))
    augmented = mdp.spaces.Augmented(base, rows, [0.5])
    model = estimate(walks_of(chain(1, 300, np.random.default_rng(0))), RING, order=2)
    steps = augmented_steps(augmented, model.next(rows))
    assert np.allclose(steps.sum(axis=1), 1.0)
    for before, after in np.argwhere(steps > 0):
        assert rows[after, 1] == rows[before, 0]


def test_a_draw_with_context_takes_less_than_a_millisecond():
    rows = histories_of(RING, 2)
    base = mdp.FiniteSpace(np.arange(5.0)[:, None], mdp.Lp(1))
    augmented = mdp.spaces.Augmented(base, rows, [0.5, 0.25])
    mechanism = mdp.contextual(
        mdp.Problem(augmented.space, 1.0, outputs=base, loss=np.abs(rows[:, :1] - np.arange(5.0))), classes=rows[:, :2]
    )
    mechanism.sample(augmented.encode([[1, 0, 0]]))
    started = time.perf_counter()
    for _ in range(200):
        mechanism.sample(augmented.encode([[1, 0, 0]]))
    assert (time.perf_counter() - started) / 200 < 0.001
