"""Who is recognised in protected images and series, and what of them stays useful: both against epsilon.

    python benchmarks/recognition.py --record --picture docs/images/recognition.png

Images: the 1,797 handwritten digits that scikit-learn ships (8 x 8 pixels, scaled to [0, 1]). Everybody copied the same
sheet of figures, so the sheets are found again in the order of the labels: 14 sheets, by 13 writers as the source
says. The useful task is the digit; the attacker names the sheet, or finds the image among all images of the test half.
Half of every sheet is public: it trains the task, the attackers and the principal components.

Maps: pictures of where a San Francisco cab was in a shift (Cabspotting), 8 x 8 pixels over the city, the root of the
share of its fixes in each. No faces come with anything offline; these are pictures that identify all the same. The task
is to tell the day shift (6 to 18 o'clock) from the night shift; the attacker names the cab, or finds the picture.

Series: days of the same cabs, 24 numbers each, the share of an hour's fixes with a passenger. The
task is the part of the week (Monday to Friday, or not); the attacker names the cab, or finds the day among all of the
test half. Read from METRICDP_DATA or the shared data folder; left out where it is not there.

All releases of one kind of data are at one promise, epsilon times the l_2 distance of pixels or of hours, except those
under Frechet, which are private in a smaller distance and so promise more. Task and attackers are the better of three:
exact Bayes over the public half by the law of the noise, linear discriminants, and a support vector machine with radial
kernels, the last two trained on protected reports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from record import RESULTS, arguments, recorder
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import metricdp as mdp
from metricdp.places import data_folder

GROUP, DRAWS = "recognition", 2  # protected reports of every public row that classifiers learn from
Make = Callable[[float], Any]


@dataclass(frozen=True)
class Data:
    """Rows of numbers with two labels: a useful one and the one that identifies."""

    name: str
    rows: np.ndarray
    task: np.ndarray
    person: np.ndarray
    public: np.ndarray
    epsilons: tuple[float, ...]


@dataclass(frozen=True)
class Release:
    """A way to release rows: public numbers made of them, and noise on those under l_p."""

    name: str
    features: Callable[[np.ndarray], np.ndarray]
    noise: Make | None
    p: float = 2.0


def digits() -> Data:
    """Return the digits: sheets begin with 0 to 9 three times and end with 90898, but for figures that are missing."""
    found = load_digits()
    text = "".join(map(str, found.target))
    begins = {match.start() for match in re.finditer("0123456789" * 3, text)}
    begins |= {match.end() for match in re.finditer("90898", text)}
    sheet = np.searchsorted(sorted(begins), np.arange(len(text)), side="right") - 1
    return Data("digits", found.data / 16.0, found.target, sheet, half(sheet), (1, 3, 10, 30, 100, 300))


def fixes(*columns: str) -> list[np.ndarray] | None:
    """Return columns of the fixes of cabs, where the data is there."""
    import pyarrow.parquet as pq

    place = data_folder() / "traj_cabspotting" / "points.parquet"
    if not place.is_file():
        return None
    table = pq.read_table(place, columns=list(columns))
    return [table[name].to_numpy() for name in columns]


def cabs() -> Data | None:
    """Return days of cabs with fixes in at least twelve hours, in local time of May and June (UTC - 7)."""
    found = fixes("cab", "t", "occupied")
    if found is None:
        return None
    cab, t, occupied = (column.astype(np.int64) for column in found)
    local = t - 7 * 3600
    day, hour = local // 86400, local // 3600 % 24
    keys, inverse = np.unique(cab * 10**6 + day, return_inverse=True)
    seen, busy = np.zeros((len(keys), 24)), np.zeros((len(keys), 24))
    np.add.at(seen, (inverse, hour), 1.0)
    np.add.at(busy, (inverse, hour), occupied)
    whole = (seen > 0).sum(axis=1) >= 12
    rows = busy[whole] / np.maximum(seen[whole], 1.0)
    person, date = keys[whole] // 10**6, keys[whole] % 10**6
    weekend = ((date + 3) % 7 >= 5).astype(int)  # the first of January 1970 was a Thursday
    return Data("cab days", rows, weekend, person, half(person), (1, 3, 10, 30, 100))


def shifts() -> Data | None:
    """Return maps of shifts with at least 150 fixes in the city: 8 x 8 pixels between two corners."""
    found = fixes("cab", "t", "lat", "lon")
    if found is None:
        return None
    cab, t = (column.astype(np.int64) for column in found[:2])
    local = t - 7 * 3600
    night = ((local // 3600 % 24 < 6) | (local // 3600 % 24 >= 18)).astype(np.int64)
    keys, inverse = np.unique(cab * 10**6 + 2 * (local // 86400) + night, return_inverse=True)
    south, west, north, east = 37.70, -122.52, 37.81, -122.38
    row = np.floor(8 * (found[2] - south) / (north - south)).astype(np.int64)
    column = np.floor(8 * (found[3] - west) / (east - west)).astype(np.int64)
    inside = (row >= 0) & (row < 8) & (column >= 0) & (column < 8)
    seen = np.zeros((len(keys), 64))
    np.add.at(seen, (inverse[inside], 8 * row[inside] + column[inside]), 1.0)
    whole = seen.sum(axis=1) >= 150
    maps = np.sqrt(seen[whole] / seen[whole].sum(axis=1, keepdims=True))
    person = keys[whole] // 10**6
    return Data("cab maps", maps, (keys[whole] % 2).astype(int), person, half(person), (1, 3, 10, 30, 100, 300))


def half(person: np.ndarray) -> np.ndarray:
    """Return which rows are public: every other one of each person, in an order drawn once."""
    rng = np.random.default_rng(0)
    public = np.zeros(len(person), dtype=bool)
    for one in np.unique(person):
        members = rng.permutation(np.flatnonzero(person == one))
        public[members[::2]] = True
    return public


def singular(rows: np.ndarray) -> np.ndarray:
    """Return the singular values of every image: they move by no more than its pixels do (Mirsky 1960)."""
    side = round(rows.shape[1] ** 0.5)
    return np.linalg.svd(rows.reshape(-1, side, side), compute_uv=False)


def outlined(epsilon: float) -> Any:
    """Return noise on the outline of a day: its first and last hour, its least and its largest number."""
    return mdp.laplace(mdp.Frechet(mdp.Lp(1), 1), epsilon, dimension=24)


def releases(data: Data) -> list[Release]:
    """Return what is compared."""
    n = data.rows.shape[1]

    def plain(size: int) -> Make:
        return lambda epsilon: mdp.laplace(mdp.Lp(2), epsilon, dimension=size)

    found = [Release("all numbers", lambda rows: rows, plain(n))]
    middle = data.rows[data.public].mean(axis=0)
    axes = np.linalg.svd(data.rows[data.public] - middle, full_matrices=False)[2]
    for size in (16, 8) if n == 64 else (8, 3):
        matrix = axes[:size]
        found.append(Release(f"{size} principal components", lambda rows, a=matrix: rows @ a.T,
                             lambda epsilon, a=matrix: mdp.laplace(mdp.Lp(2), epsilon, projection=a)))  # fmt: skip
    if n == 64:
        found.append(Release("8 singular values", singular, plain(8)))
    else:
        found.append(Release("outline, under Frechet", outlined(1.0).outline, outlined, np.inf))
        found.append(Release("one of all days, under Frechet", lambda rows: rows, None))
    return found


def drawn(release: Release, rows: np.ndarray, epsilon: float, seed: int) -> np.ndarray:
    """Return protected reports; a projection is part of its mechanism."""
    mechanism = release.noise(epsilon)
    given = rows if mechanism.inputs.dimension == rows.shape[1] else release.features(rows)
    return mechanism.sample(given, rng=np.random.default_rng(seed))


def accuracies(learn: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray], bayes: np.ndarray | None,
               public: np.ndarray) -> dict[str, float]:  # fmt: skip
    """Return the share of right answers of every classifier."""
    x, y = learn
    found = {}
    if bayes is not None:  # ln of the density of every test report around every public row
        classes = np.unique(public)
        scores = np.stack([logsumexp(bayes[:, public == one], axis=1) for one in classes], axis=1)
        found["Bayes"] = float(np.mean(classes[scores.argmax(axis=1)] == test[1]))
    linear = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    radial = make_pipeline(StandardScaler(), SVC(C=10.0))
    for name, model in (("linear", linear), ("radial", radial)):
        rows = len(x) if name == "linear" else len(public)  # one report of every row is enough for the slow one
        found[name] = float(model.fit(x[:rows], y[:rows]).score(*test))
    return found


def study(data: Data, keep: Any) -> None:
    """Measure every release at every epsilon, and without noise."""
    public, secret = data.rows[data.public], data.rows[~data.public]
    labels = {"task": data.task, "person": data.person}
    space = mdp.FiniteSpace(data.rows, mdp.Frechet(mdp.Lp(1), 1)) if data.name == "cab days" else None
    for release in releases(data):
        gallery, known = release.features(secret), release.features(public)
        for epsilon in (*data.epsilons, None):
            power = {"metric": "chebyshev"} if np.isinf(release.p) else {"metric": "euclidean"}
            if epsilon is None:
                learn, tests, repeat = known, gallery, 1
            elif release.noise is None:  # over the days themselves: the secret is which of them it was
                matrix = mdp.exponential(space, epsilon).matrix
                table = mdp.from_matrix(space, matrix, epsilon=epsilon)
                codes = table.sample(np.flatnonzero(~data.public), rng=np.random.default_rng(99))
                before = [table.sample(np.flatnonzero(data.public), rng=np.random.default_rng(k)) for k in range(DRAWS)]
                learn, tests, repeat = data.rows[np.concatenate(before)], data.rows[codes], DRAWS
                logs = np.log(matrix / matrix.sum(axis=1, keepdims=True))[:, codes]
            else:
                learn = np.concatenate([drawn(release, public, epsilon, seed) for seed in range(DRAWS)])
                tests, repeat = drawn(release, secret, epsilon, 99), DRAWS
            if epsilon is None:
                bayes, likely = None, -cdist(tests, gallery, **power)
            elif release.noise is None:
                bayes, likely = logs[data.public].T, logs[~data.public].T
            else:
                bayes, likely = -epsilon * cdist(tests, known, **power), -cdist(tests, gallery, **power)
            values: dict[str, Any] = {"data": data.name, "release": release.name, "epsilon": epsilon}
            for name, label in labels.items():
                shares = accuracies((learn, np.tile(label[data.public], repeat)), (tests, label[~data.public]), bayes,
                                    label[data.public])  # fmt: skip
                best = max(shares, key=lambda one: shares[one])
                values |= {name: shares[best], f"{name}_by": best}
            values["found"] = float(np.mean(likely.argmax(axis=1) == np.arange(len(gallery))))  # the likeliest of all
            counts = {name: np.bincount(label[~data.public]).max() / len(secret) for name, label in labels.items()}
            values |= {"task_by_chance": float(counts["task"]), "person_by_chance": float(counts["person"]),
                       "rows": len(secret)}  # fmt: skip
            level = "no noise" if epsilon is None else f"epsilon {epsilon:g}"
            keep(GROUP, f"{data.name}, {release.name}, {level}",
                 measured=f"task {values['task']:.1%}, person {values['person']:.1%}, found {values['found']:.1%}",
                 **values)  # fmt: skip
            print({k: (round(v, 3) if isinstance(v, float) else v) for k, v in values.items()}, flush=True)


def picture(lines: list[dict[str, Any]], data: Data, path: str) -> None:
    """Draw both shares against epsilon, and some digits as their reports show them."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(15.5, 3.6), gridspec_kw={"width_ratios": [1, 1, 1, 1.1]})
    for at, name in enumerate(("digits", "cab maps", "cab days")):
        own = [line for line in lines if line["data"] == name and line["epsilon"] is not None]
        for k, release in enumerate(dict.fromkeys(line["release"] for line in own)):
            some = [line for line in own if line["release"] == release]
            x = [line["epsilon"] for line in some]
            axes[at].plot(x, [line["task"] for line in some], color=f"C{k}", label=release)
            axes[at].plot(x, [line["person"] for line in some], color=f"C{k}", linestyle="--")
        if own:
            for share, style in ((own[0]["task_by_chance"], "-"), (own[0]["person_by_chance"], "--")):
                axes[at].axhline(share, color="0.6", linewidth=0.8, linestyle=style)
        axes[at].set(xscale="log", ylim=(0, 1), title=name, xlabel="epsilon per unit of l_2",
                     ylabel="right (task: line, person: dashes)")  # fmt: skip
        axes[at].legend(fontsize=7, loc="center right", bbox_to_anchor=(1.0, (0.68, 0.36, 0.42)[at]))
    secret, public = data.rows[~data.public][:5], data.rows[data.public]
    middle = public.mean(axis=0)
    matrix = np.linalg.svd(public - middle, full_matrices=False)[2][:8]
    tiles = [secret] + [
        middle + (mdp.laplace(mdp.Lp(2), epsilon, projection=matrix).sample(secret, rng=np.random.default_rng(1))
                  - middle @ matrix.T) @ matrix
        for epsilon in (100.0, 30.0, 10.0, 3.0)
    ]  # fmt: skip
    rows = [np.concatenate([np.pad(tile.reshape(8, 8), 1) for tile in line], axis=1) for line in tiles]
    axes[3].imshow(np.clip(np.concatenate(rows), 0, 1), cmap="gray_r")
    axes[3].set(xticks=[], yticks=[4.5 + 10 * k for k in range(5)], title="reports of 8 principal components")
    axes[3].set_yticklabels(["original", "100", "30", "10", "3"])
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--picture", help="where to draw what is on record")
    parser.add_argument("--only", choices=["digits", "cab maps", "cab days", "nothing"])
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    images = digits()
    for data in (images, shifts(), cabs()):
        if data is not None and chosen.only in (None, data.name):
            print(f"{data.name}: {len(data.rows)} rows of {len(np.unique(data.person))} sheets or cabs")
            study(data, keep)
    if chosen.picture:
        text = (RESULTS / f"{GROUP}.jsonl").read_text(encoding="utf-8")
        newest = {one["what"]: one["values"] for one in map(json.loads, text.splitlines())}
        picture(list(newest.values()), images, chosen.picture)


if __name__ == "__main__":
    main()
