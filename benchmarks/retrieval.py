"""Measure retrieval with protected queries: recall@10 against clean ones, on words and on sentences, several laws.

    python benchmarks/retrieval.py --record                     # all three sets, under a minute
    python benchmarks/retrieval.py --only "SST-2 sentences"    # one of them
    python benchmarks/retrieval.py --picture                    # docs/images/retrieval.png from what is recorded

The sets: the 20,000 most frequent words of GloVe, and the sentences of SST-2 and of MR as means of the GloVe vectors of
their words; all of them on the unit sphere. A query is protected, and its ten nearest by cosine among all vectors that
are no queries are compared with those of the clean query. All laws keep one promise in one metric: a factor of at most
exp(epsilon |x - x'|) between two unit vectors at l_2 distance |x - x'|. The angular density keeps epsilon per radian;
since angle <= (pi / 2) |x - x'| it keeps that promise for all pairs at 2 epsilon / pi, and is shown at epsilon too.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from record import RESULTS, Recorder, arguments, recorder

import metricdp as mdp
from metricdp.text import read_vectors

GROUP, NEAREST = "retrieval", 10
EPSILONS = (20.0, 50.0, 100.0, 200.0, 400.0, 800.0)
DATA = Path(os.environ.get("METRICDP_DATA", Path(__file__).parents[2] / "shared" / "data"))
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "retrieval.png"
SETS = {"GloVe words": "", "SST-2 sentences": "text_sst2", "MR sentences": "text_mr"}
PROJECTIONS = (32, 64)
PER_RADIAN = "angle, epsilon per radian"
Rows = NDArray[np.float64]
Singles = NDArray[np.float32]


def vectors_of(name: str) -> Rows:
    """Return the vectors of a set on the unit sphere, each once."""
    words = read_vectors(DATA / "glove_6b_100d" / "vectors.npz")
    found = words.array.astype(np.float64)
    if SETS[name]:
        found = sentences(DATA / SETS[name] / "sentences.parquet", words)
    found = found[np.linalg.norm(found, axis=1) > 0.0]
    units = found / np.linalg.norm(found, axis=1, keepdims=True)
    return np.unique(units, axis=0)


def sentences(path: Path, words: mdp.text.Vectors) -> Rows:
    """Return the mean vector of every sentence, of those of its words that have one."""
    import pyarrow.parquet

    more = read_vectors(DATA / "glove_6b_100d" / "review_extra.npz")
    rows = np.concatenate([words.array, more.array]).astype(np.float64)
    place = {word: row for row, word in enumerate([*words.words, *more.words])}
    texts = pyarrow.parquet.read_table(path, columns=["text"])["text"].to_pylist()
    known = [[place[word] for word in text.lower().split() if word in place] for text in texts]
    return np.stack([rows[codes].mean(axis=0) for codes in known if codes])


def nearest(queries: Singles, others: Singles) -> NDArray[np.int64]:
    """Return the ten of the largest cosine."""
    lengths = np.linalg.norm(others, axis=1)
    return np.argpartition(-(queries @ others.T) / lengths, NEAREST, axis=1)[:, :NEAREST]


def recalls(found: NDArray[np.int64], wanted: NDArray[np.int64]) -> Rows:
    """Return the share of the wanted neighbours that each query found."""
    return np.array([len(set(a) & set(b)) / NEAREST for a, b in zip(found.tolist(), wanted.tolist(), strict=True)])


def laws_of(epsilon: float, matrices: dict[int, Rows], n: int) -> dict[str, mdp.Mechanism]:
    """Return the laws at one promise, and the angular one at epsilon per radian."""
    projected = {
        f"l2 after a projection to {size}": mdp.laplace(mdp.Lp(2), epsilon, projection=matrix)
        for size, matrix in matrices.items()
    }
    return {
        "l2": mdp.laplace(mdp.Lp(2), epsilon, dimension=n),
        **projected,
        "von Mises-Fisher": mdp.von_mises_fisher(mdp.Lp(2), epsilon, dimension=n),
        "angle, same l2 promise": mdp.laplace(mdp.Angular(), 2.0 * epsilon / np.pi, dimension=n),
        PER_RADIAN: mdp.laplace(mdp.Angular(), epsilon, dimension=n),
    }


def measure(name: str, count: int, keep: Recorder) -> None:
    """Measure all laws at all epsilons on one set."""
    units, rng = vectors_of(name), np.random.default_rng(0)
    picked = rng.permutation(len(units))
    queries, others = units[picked[:count]], units[picked[count:]]
    wanted = nearest(queries.astype(np.float32), others.astype(np.float32))
    # the projection comes from vectors that are no queries: it is public
    principal = np.linalg.svd(others, full_matrices=False)[2]
    matrices = {size: principal[:size] for size in PROJECTIONS}
    for epsilon in EPSILONS:
        for law, mechanism in laws_of(epsilon, matrices, units.shape[1]).items():
            matrix = getattr(mechanism, "matrix", None)
            seen, clean = (others, queries) if matrix is None else (others @ matrix.T, queries @ matrix.T)
            reports = mechanism.sample(queries, rng=rng)
            shares = recalls(nearest(reports.astype(np.float32), seen.astype(np.float32)), wanted)
            lengths = np.linalg.norm(reports, axis=1) * np.linalg.norm(clean, axis=1)
            cosine = float(np.mean(np.einsum("ij,ij->i", reports, clean) / lengths))
            still = float(recalls(nearest(clean.astype(np.float32), seen.astype(np.float32)), wanted).mean())
            recall, error = float(shares.mean()), float(shares.std() / np.sqrt(count))
            measured = f"recall@10 {recall:.3f} +- {error:.3f}, mean cosine {cosine:.3f}"
            what = f"{name}, epsilon {epsilon:g}, {law}"
            print(f"{what}: {measured}", flush=True)
            keep(GROUP, what, measured=measured, set=name, epsilon=epsilon, law=law, recall=recall, error=error,
                 cosine=cosine, clean=still, vectors=len(units), queries=count, dimension=units.shape[1])  # fmt: skip


def draw(target: Path) -> None:
    """Draw what is recorded: one panel for every set, recall over epsilon, one line for every law."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from metricdp.plots.palette import MARKERS, SERIES, STYLE, write_picture

    lines = [json.loads(line) for line in (RESULTS / f"{GROUP}.jsonl").read_text(encoding="utf-8").splitlines()]
    newest = {line["what"]: line["values"] for line in lines}.values()
    laws = [law for law in dict.fromkeys(one["law"] for one in newest) if law != PER_RADIAN]
    with pyplot.rc_context(STYLE):
        figure, panels = pyplot.subplots(1, len(SETS), figsize=(9.6, 3.5), sharey=True, layout="constrained")
        for panel, name in zip(panels, SETS, strict=True):
            for number, law in enumerate(laws):
                kept = [one for one in newest if (one["set"], one["law"]) == (name, law)]
                rows = sorted((one["epsilon"], one["recall"], one["error"]) for one in kept)
                if not rows:
                    continue
                x, y, error = np.array(rows).T
                panel.errorbar(x, y, 2.0 * error, label=law, color=SERIES[number], marker=MARKERS[number], markersize=4)
            panel.set_xscale("log")
            panel.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            panel.minorticks_off()
            panel.set_ylim(0.0, 1.0)
            panel.set_title(name)
            panel.set_xlabel("epsilon per l2 distance of unit vectors")
        panels[0].set_ylabel("recall@10 of protected queries")
        names = panels[0].get_legend_handles_labels()
        figure.legend(*names, loc="outside lower center", ncols=3, frameon=False)
        write_picture(figure, target)
        pyplot.close(figure)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(SETS), default=list(SETS), help="sets")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--picture", action="store_true", help="draw what is recorded, and measure nothing")
    chosen = parser.parse_args()
    if chosen.picture:
        draw(PICTURE)
        return
    for name in chosen.only:
        measure(name, chosen.queries, recorder(chosen.record))


if __name__ == "__main__":
    sys.exit(main())
