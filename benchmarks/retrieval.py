"""Measure retrieval with protected queries: recall@10 against clean ones on GloVe vectors, several laws and epsilons.

    python benchmarks/retrieval.py --vectors vectors.npz --record

Vectors are put on the unit sphere. A query is protected, and its ten nearest words by cosine are compared with those
of the clean query. All laws are set to one promise in one metric: a factor of at most exp(epsilon |x - x'|) between two
unit vectors at l_2 distance |x - x'|. The angular density keeps epsilon per radian; since angle <= (pi / 2) |x - x'| it
is also shown at the epsilon that keeps the l_2 promise for all pairs, 2 epsilon / pi.
"""

from __future__ import annotations

import sys

import numpy as np
from record import arguments, recorder

import metricdp as mdp

GROUP, NEAREST = "retrieval", 10


def recall(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return the mean share of the wanted neighbours that were found."""
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, wanted, strict=True)]))


def nearest(queries: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return the ten words of the largest cosine."""
    return np.argpartition(-(queries @ words.T), NEAREST, axis=1)[:, :NEAREST]


def principal(words: np.ndarray, size: int) -> np.ndarray:
    """Return orthonormal rows: the directions in which public vectors, not the queries, vary most."""
    return np.linalg.svd(words, full_matrices=False)[2][:size]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--vectors", required=True)
    parser.add_argument("--queries", type=int, default=1000)
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    file = np.load(chosen.vectors, allow_pickle=False)
    vectors = next(file[name] for name in file.files if file[name].ndim == 2).astype(np.float64)
    words = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    rng, n = np.random.default_rng(0), words.shape[1]
    picked = rng.permutation(len(words))
    queries, others = words[picked[: chosen.queries]], words[picked[chosen.queries :]]
    single = others.astype(np.float32)
    wanted = nearest(queries.astype(np.float32), single)
    # the projection comes from words that are no queries: it is public
    matrix = principal(others, 32)
    for epsilon in (20.0, 50.0, 100.0, 200.0, 400.0, 800.0):
        laws = {
            "l2": mdp.laplace(mdp.Lp(2), epsilon, dimension=n),
            "l2 after a projection to 32": mdp.laplace(mdp.Lp(2), epsilon, projection=matrix),
            "von Mises-Fisher": mdp.von_mises_fisher(mdp.Lp(2), epsilon, dimension=n),
            "angle, epsilon per radian": mdp.laplace(mdp.Angular(), epsilon, dimension=n),
            "angle, same l2 promise": mdp.laplace(mdp.Angular(), 2.0 * epsilon / np.pi, dimension=n),
        }
        for name, law in laws.items():
            reports = law.sample(queries, rng=rng).astype(np.float32)
            space = (others @ matrix.T).astype(np.float32) if "projection" in name else single
            share = recall(nearest(reports, space), wanted)
            clean = recall(nearest((queries @ matrix.T).astype(np.float32), space), wanted) if "proj" in name else 1.0
            whole = queries @ matrix.T if "projection" in name else queries
            sizes = np.linalg.norm(reports, axis=1) * np.linalg.norm(whole, axis=1)
            cosine = float(np.mean(np.einsum("ij,ij->i", reports, whole) / sizes))
            measured = f"recall@10 {share:.3f}, mean cosine {cosine:.3f}"
            print(f"epsilon {epsilon:g}, {name}: {measured}", flush=True)
            keep(GROUP, f"epsilon {epsilon:g}, {name}", measured=measured, epsilon=epsilon, law=name, recall=share,
                 cosine=cosine, clean=clean, words=len(words), queries=chosen.queries, dimension=n)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
