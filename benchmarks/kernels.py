"""Whole vocabularies as kernels: certifying them, drawing from them, and that none leaks more than it promises.

    python benchmarks/kernels.py                        # short: 2,000 words, 20 random vocabularies
    python benchmarks/kernels.py --full --record        # all figures, half an hour on a quiet machine
    python benchmarks/kernels.py --only certify-50000   # single ones, by the beginning of their names

`draw` needs the GloVe vectors and the sentences of SST-2 under METRICDP_DATA. Time runs from the vocabulary to the
audited mechanism; compiling (once on a machine) happens before, on a small vocabulary. Words a second are those of
one call for all words of all sentences; with warm-up it is the first call of the mechanism.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from record import Recorder, arguments, recorder

import metricdp as mdp


def certify(size: int, dimension: int, epsilon: float, asked: str = "") -> Callable[[Recorder], None]:
    """Certify a vocabulary of `size` words: GloVe where it has as many dimensions and words, else of its shape."""

    def run(keep: Recorder) -> None:
        space, origin = _vocabulary(size, dimension)
        started = time.perf_counter()
        made: Any = mdp.exponential(space, epsilon, form="kernel")
        seconds, memory = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        what = f"certify {size:,} words x {dimension} dimensions ({origin}), epsilon {epsilon:g}"
        measured = f"{seconds:.0f} s, {memory:.1f} GB, inner budget {made.inner / epsilon:.3f} epsilon"
        print(what, measured, flush=True)
        keep("kernels", what, asked=asked, measured=measured, seconds=seconds, gigabytes=memory,
             inner=made.inner / epsilon, audited=made.certificate.epsilon, loss=made.certificate.loss)  # fmt: skip

    return run


def draw(epsilon: float, asked: str = "") -> Callable[[Recorder], None]:
    """Protect every word of SST-2 that GloVe has, several times."""

    def run(keep: Recorder) -> None:
        space = _glove()
        tokens = _sentences(space)
        made: Any = mdp.exponential(space, epsilon)
        pace = []
        for _ in range(5):
            started = time.perf_counter()
            drawn = made.sample(tokens)
            pace.append(len(tokens) / (time.perf_counter() - started))
        what = f"draw the {len(tokens):,} known words of SST-2 from {len(space):,}, epsilon {epsilon:g}"
        same = float((drawn == tokens).mean())
        measured = (
            f"{np.median(pace[1:]):,.0f} words/s, {pace[0]:,.0f} with warm-up; {100 * same:.1f} % stay as they are"
        )
        print(what, measured, flush=True)
        keep("kernels", what, asked=asked, measured=measured, pace=pace, unchanged=same)

    return run


def honest(count: int, asked: str = "") -> Callable[[Recorder], None]:
    """Judge random vocabularies of all metrics by their whole table, in brute force."""

    def run(keep: Recorder) -> None:
        rng = np.random.default_rng(18)
        worst = differs = -np.inf
        for number in range(count):
            name, space = _random_space(rng, number)
            epsilon = float(10.0 ** rng.uniform(-1.0, 1.0))
            made, weights = _random_kernel(rng, space, epsilon / 1_000.0 if name == "haversine" else epsilon)
            epsilon = made.guarantee.epsilon
            leak = _brute(made, space, weights)
            found = mdp.audit(made)
            if not (found.holds and leak <= epsilon * (1.0 + 1e-12)):
                raise SystemExit(f"{name}, vocabulary {number}: leaks {leak!r} of {epsilon!r}; {found}")
            worst, differs = max(worst, leak / epsilon), max(differs, abs(found.epsilon - leak) / leak)
        what = f"{count:,} random vocabularies of 9 metrics, leak by brute force over the promise"
        measured = f"at most {worst:.9f}; audited within {differs:.1g} of brute force"
        print(what, measured, flush=True)
        keep("kernels", what, asked=asked, measured=measured, worst=worst, differs=differs)

    return run


def exact(size: int, asked: str = "") -> Callable[[Recorder], None]:
    """Audit one vocabulary of every metric, of so many words, beside the brute force of its table."""

    def run(keep: Recorder) -> None:
        rng, differs = np.random.default_rng(300), {}
        for number in range(1, 9):
            name, space = _random_space(rng, number, size)
            made, weights = _random_kernel(rng, space, 0.002 if name == "haversine" else 1.0)
            leak = _brute(made, space, weights)
            differs[name] = max(differs.get(name, 0.0), abs(mdp.audit(made).epsilon - leak) / leak)
        what = f"audit of {size:,} words under {', '.join(differs)}, beside brute force"
        measured = f"equal to {max(differs.values()):.1g}"
        print(what, measured, flush=True)
        keep("kernels", what, asked=asked, measured=measured, **differs)

    return run


def _random_space(rng: np.random.Generator, number: int, words: int = 0) -> tuple[str, mdp.FiniteSpace]:
    size, width = words or int(rng.integers(2, 60)), int(rng.integers(1, 9))
    scale = 10.0 ** rng.uniform(-2.0, 2.0)
    centres = rng.normal(size=(max(1, size // 4), width))
    points: Any = centres[rng.integers(0, len(centres), size)] + rng.uniform(0.01, 1.0) * rng.normal(size=(size, width))
    match number % 9:
        case 0 | 1:
            return "l2", mdp.FiniteSpace(scale * points, mdp.Lp(2))
        case 2:
            return "l1", mdp.FiniteSpace(scale * points, mdp.Lp(1))
        case 3:
            return "linf", mdp.FiniteSpace(scale * points, mdp.Lp(np.inf))
        case 4:
            return "angular", mdp.FiniteSpace(np.column_stack([points, rng.normal(size=size)]), mdp.Angular())
        case 5:
            root = rng.normal(size=(width, width))
            return "mahalanobis", mdp.FiniteSpace(points, mdp.Mahalanobis(root @ root.T + 0.1 * np.eye(width)))
        case 6:
            spelt = {"".join(rng.choice(list("abcd"), rng.integers(1, 7))) for _ in range(size)}
            return "levenshtein", mdp.FiniteSpace(np.array(sorted(spelt | {"a", "bb"})), mdp.Levenshtein())
        case 7:
            inside = points / (1.01 * (1.0 + np.linalg.norm(points, axis=1, keepdims=True)))
            return "hyperbolic", mdp.FiniteSpace(inside, mdp.Hyperbolic())
        case _:
            degrees = np.column_stack([rng.uniform(-80, 80, size), rng.uniform(-170, 170, size)])
            return "haversine", mdp.FiniteSpace(degrees, mdp.Haversine())


def _random_kernel(rng: np.random.Generator, space: mdp.FiniteSpace, epsilon: float) -> tuple[Any, Any]:
    kind = rng.integers(0, 3)
    if kind == 0:
        weights = rng.uniform(0.1, 10.0, len(space))
        return mdp.weighted_exponential(space, epsilon, weights=weights, form="kernel"), weights
    if kind == 1:
        return mdp.truncated_exponential(space, epsilon, form="kernel"), np.ones(len(space))
    return mdp.exponential(space, epsilon, form="kernel"), np.ones(len(space))


def _brute(made: Any, space: mdp.FiniteSpace, weights: Any) -> float:
    """Return max |ln z_ik - ln z_jk| / d_ij over the promise's own epsilon, from the table term by term."""
    apart = np.array([[float(space.metric(a, b)) for b in space.points] for a in space.points])
    np.fill_diagonal(apart, 0.0)
    table = weights * np.exp(-made.inner * np.minimum(apart, made.cap))
    logs = np.log(table / table.sum(axis=1, keepdims=True))
    shown = np.abs(logs[:, None] - logs[None]).max(axis=2)
    return float((shown[apart > 0] / apart[apart > 0]).max())


def _vocabulary(size: int, dimension: int) -> tuple[mdp.FiniteSpace, str]:
    if dimension == 100 and size <= 26_828 and _data("glove_6b_100d"):
        space = _glove()
        return (space if size == len(space) else space.part(np.arange(size))), "GloVe"
    rng = np.random.default_rng(0)
    topics = rng.normal(size=(200, dimension)) * 0.15
    vectors = topics[rng.integers(0, 200, size)] + rng.normal(size=(size, dimension)) * rng.uniform(0.2, 0.4, (size, 1))
    return mdp.vocabulary([f"word {number}" for number in range(size)], vectors), "random, in topics"


def _glove() -> mdp.FiniteSpace:
    folder = _data("glove_6b_100d")
    assert folder is not None, "METRICDP_DATA has no folder glove_6b_100d"
    return mdp.text.read_vectors([folder / name for name in ("vectors.npz", "review_extra.npz")]).space()


def _sentences(space: mdp.FiniteSpace) -> Any:
    import pyarrow.parquet as pq

    folder = _data("text_sst2")
    assert folder is not None, "METRICDP_DATA has no folder text_sst2"
    known = {word: code for code, word in enumerate(space.coordinates[:, 0].tolist())}
    texts = pq.read_table(folder / "sentences.parquet").column("text").to_pylist()
    return np.array([known[word] for text in texts for word in text.lower().split() if word in known])


def _data(name: str) -> Path | None:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("METRICDP_DATA", beside)) / name
    return folder if folder.is_dir() else None


SHORT = {"certify-2000": certify(2_000, 20, 3.0), "honest-20": honest(20)}
FULL = {
    "certify-20000": certify(20_000, 100, 3.0, "1 minute"),
    "certify-26828": certify(26_828, 100, 2.0),
    "certify-50000-flat": certify(50_000, 300, 1.0, "10 minutes, under 4 GB"),
    "certify-50000": certify(50_000, 300, 3.0, "10 minutes, under 4 GB"),
    "draw-1": draw(1.0),
    "draw-2": draw(2.0),
    "draw-3": draw(3.0, "100,000 words/s after warm-up, 50,000 with it"),
    "draw-6": draw(6.0),
    "exact-300": exact(300, "equal to 1e-9, all metrics"),
    "honest-1000": honest(1_000, "never above 1, equal to 1e-9"),
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="the figures that were asked for")
    parser.add_argument("--only", nargs="+", default=[], help="single figures, by the beginning of their names")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    every = SHORT | FULL
    names = [name for name in every if any(name.startswith(one) for one in chosen.only)]
    mdp.exponential(_vocabulary(2_001, 5)[0], 1.0, form="kernel").sample(np.arange(2_001))  # compiled from here on
    for name in names or (FULL if chosen.full else SHORT):
        every[name](keep)


if __name__ == "__main__":
    main()
