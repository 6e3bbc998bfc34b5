"""Write tests/data/kernels.json: words and reports of kernels, for anybody who draws from them in another language.

Every metric whose true distance is a formula, with and without weights and a cap. Every kernel has ordinary draws, the
words at both ends, and words on the border between two reports, by the first word or by two. Words are sixteen
hexadecimal digits. `inner` is a in exp(log_weights[k] - a min(d, cap)); the secret's own report comes first.
"""

import json
from pathlib import Path

import flint
import numpy as np

import metricdp as mdp
from metricdp.mechanisms.kernel_distribution import KernelDistribution
from metricdp.mechanisms.kernel_rows import decide

TARGET = Path(__file__).parents[1] / "tests" / "data" / "kernels.json"
SIZE, DRAWS, NUMBERS = 16, 12, 4
RNG = np.random.default_rng(18)
WORDS = [
    "a",
    "an",
    "and",
    "hand",
    "handle",
    "bundle",
    "été",
    "etc",
    "漢字",
    "漢",
    "😀",
    "😀😀",
    "over",
    "lover",
    "love",
    "live",
]
INSIDE = RNG.normal(size=(SIZE, 3))
INSIDE *= (1.0 - 10.0 ** -RNG.uniform(0.2, 8.0, SIZE))[:, None] / np.linalg.norm(INSIDE, axis=1)[:, None]
KERNELS = [
    {"name": "l2", "metric": "l2", "points": RNG.normal(size=(SIZE, 4)), "inner": 1.5},
    {"name": "l1, weighted", "metric": "l1", "points": RNG.normal(size=(SIZE, 4)), "inner": 0.75, "weighted": True},
    {"name": "largest gap, capped", "metric": "linf", "points": RNG.normal(size=(SIZE, 3)), "inner": 2.0, "cap": 1.25},
    {"name": "l3", "metric": "l3", "points": RNG.normal(size=(SIZE, 4)), "inner": 1.5},
    {"name": "angles", "metric": "angular", "unit": "rad", "points": RNG.normal(size=(SIZE, 4)), "inner": 2.5},
    {"name": "degrees", "metric": "angular", "unit": "deg", "points": RNG.normal(size=(SIZE, 3)), "inner": 0.04},
    {
        "name": "Mahalanobis",
        "metric": "mahalanobis",
        "covariance": [[2.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 0.25]],
        "points": RNG.normal(size=(SIZE, 3)),
        "inner": 0.5,
    },
    {"name": "hyperbolic", "metric": "hyperbolic", "points": INSIDE, "inner": 0.4},
    {"name": "Earth", "metric": "haversine", "unit": "km", "points": RNG.uniform(-80, 80, (SIZE, 2)), "inner": 0.0005},
    {"name": "edits", "metric": "levenshtein", "points": np.array(WORDS)[:, None], "inner": 0.75, "weighted": True},
    {"name": "columns", "metric": "hamming", "points": np.argwhere(np.ones((2, 2, 4))).astype(float), "inner": 1.0},
]


def metric_of(entry: dict) -> mdp.Metric:
    """Return the metric that an entry describes."""
    name = entry["metric"]
    if name == "mahalanobis":
        return mdp.Mahalanobis(entry["covariance"])
    if name in ("angular", "haversine"):
        return {"angular": mdp.Angular, "haversine": mdp.Haversine}[name](entry["unit"])
    curved = {"hyperbolic": mdp.Hyperbolic, "levenshtein": mdp.Levenshtein, "hamming": mdp.Hamming}
    return curved[name]() if name in curved else mdp.Lp(float(name[1:]))


def law_of(entry: dict) -> KernelDistribution:
    """Return the law that an entry describes."""
    space = mdp.FiniteSpace(np.array(entry["points"]), metric_of(entry))
    logs = None if entry["log_weights"] is None else np.array(entry["log_weights"])
    return KernelDistribution(space, entry["inner"], logs, np.inf if entry["cap"] is None else entry["cap"])


def report_of(law: KernelDistribution, secret: int, words: list[str]) -> int:
    """Return what is reported of a secret with these words, in arbitrary precision."""
    return decide(law, secret, lambda attempt, uniform, count: int("".join(words[:count]), 16))


def border(law: KernelDistribution, secret: int, place: int) -> list[str]:
    """Return the first two words of the number at which one report ends and the next begins."""
    order = [secret, *(k for k in range(len(law)) if k != secret)]
    with flint.ctx.workprec(400):
        terms = law.balls(secret, bits=400)
        share = sum((terms[k] for k in order[:place]), flint.arb(0)) / sum(terms, flint.arb(0))
        digits = int((share * flint.arb(2) ** 128).mid().floor().unique_fmpz())
    return [f"{min(digits, 2**128 - 1):032x}"[at : at + 16] for at in (0, 16)]


def made(entry: dict) -> dict:
    """Return the entry with its draws."""
    logs = (np.log(np.linspace(1.0, 4.0, SIZE))).tolist() if entry.pop("weighted", False) else None
    entry = {**entry, "points": entry["points"].tolist(), "cap": entry.get("cap"), "log_weights": logs}
    law, draws = law_of(entry), []
    for number in range(DRAWS):
        words = [f"{word:016x}" for word in RNG.integers(0, 2**64, NUMBERS, dtype=np.uint64)]
        secret = int(RNG.integers(SIZE))
        if number in (1, 2):
            words[0] = "0" * 16 if number == 1 else "f" * 16
        if number >= DRAWS - 6:
            near = border(law, secret, int(RNG.integers(1, SIZE)))
            words[: 1 + number % 2] = near[: 1 + number % 2]
        draws.append({"secret": secret, "words": words, "report": report_of(law, secret, words)})
    return {**entry, "draws": draws}


if __name__ == "__main__":
    entries = [made(entry) for entry in KERNELS]
    about = "Kernels by their ideal law: equal words give equal reports. docs/format.md says how."
    text = json.dumps({"about": about, "kernels": entries}, ensure_ascii=False, separators=(",", ":")) + "\n"
    TARGET.write_text(text, encoding="utf-8")
    print(TARGET, sum(len(entry["draws"]) for entry in entries), "draws", TARGET.stat().st_size, "bytes")
