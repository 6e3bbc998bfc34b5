"""Write tests/data/noise.json: words and reports of exact noise, for anybody who draws it in another language.

Every law has ordinary draws, uniforms at the ends of what words can say, and secrets on the border between two cells as
closely as doubles can be. Words are sixteen hexadecimal digits: by attempt, uniform and number of the word.
"""

import json
from pathlib import Path

import numpy as np

import metricdp as mdp
from metricdp.mechanisms.noise.laws import drawn
from metricdp.randomness import RowWords

TARGET = Path(__file__).parents[1] / "tests" / "data" / "noise.json"
ATTEMPTS, NUMBERS = 24, 4  # what is written: more than any draw below asks for
LAWS = [
    {"name": "line", "metric": "l1", "dimension": 1, "epsilon": 0.7},
    {"name": "diamond", "metric": "l1", "dimension": 3, "epsilon": 2.0},
    {"name": "plane", "metric": "l2", "dimension": 2, "epsilon": 2.0},
    {"name": "thirds", "metric": "l2", "dimension": 2, "epsilon": 2.0, "pitch": 0.3},
    {"name": "space", "metric": "l2", "dimension": 5, "epsilon": 2.0},
    {"name": "cube", "metric": "linf", "dimension": 3, "epsilon": 2.0},
    {"name": "power", "metric": "l1.5", "dimension": 3, "epsilon": 2.0},
    {"name": "steep", "metric": "l20", "dimension": 2, "epsilon": 2.0},
    {
        "name": "ellipse",
        "metric": "mahalanobis",
        "covariance": [[2.0, 0.6], [0.6, 1.0]],
        "dimension": 2,
        "epsilon": 2.0,
    },
    {"name": "earth", "metric": "haversine", "unit": "km", "dimension": 2, "epsilon": 10.0},
    {"name": "miles", "metric": "haversine", "unit": "mi", "dimension": 2, "epsilon": 0.003},
    {"name": "far", "metric": "haversine", "unit": "km", "dimension": 2, "epsilon": 0.0004},
    {"name": "wide", "metric": "haversine", "unit": "km", "dimension": 2, "epsilon": 0.00001},
    {"name": "turn", "metric": "angular", "unit": "rad", "dimension": 2, "epsilon": 3.0},
    {"name": "directions", "metric": "angular", "unit": "rad", "dimension": 3, "epsilon": 8.0},
    {"name": "degrees", "metric": "angular", "unit": "deg", "dimension": 6, "epsilon": 0.4},
    {"name": "everywhere", "metric": "angular", "unit": "rad", "dimension": 4, "epsilon": 0.001},
    {"name": "Fisher", "metric": "fisher", "dimension": 3, "epsilon": 6.0},
    {"name": "heights", "metric": "fisher", "dimension": 7, "epsilon": 40.0},
    {
        "name": "shadow",
        "metric": "l2",
        "projection": [[0.6, 0.8, 0.0], [0.0, 0.1, 0.9]],
        "dimension": 3,
        "epsilon": 2.0,
    },
    {
        "name": "projected",
        "metric": "l2",
        "projection": [[0.5, -0.25, 0.3, 1.0], [0.1, 0.7, -0.2, 0.0], [0.9, 0.0, 0.4, -0.3]],
        "dimension": 4,
        "epsilon": 3.0,
    },
]
DRAWS = 12


class Listed:
    """The words of one row, from the file."""

    def __init__(self, words: list[list[list[str]]]) -> None:
        self._words, self.width = words, len(words[0])

    def first(self, attempt: int, start: int, stop: int) -> np.ndarray:
        return np.array([[int(uniform[0], 16) for uniform in self._words[attempt]]], dtype=np.uint64)

    def digits(self, row: int):
        return lambda attempt, uniform, count: int("".join(self._words[attempt][uniform][:count]), 16)


def mechanism_of(law: dict) -> mdp.Mechanism:
    """Return the mechanism that an entry describes."""
    size, epsilon, pitch = law["dimension"], law["epsilon"], law.get("pitch")
    if law["metric"] == "angular":
        return mdp.laplace(mdp.Angular(law["unit"]), epsilon, dimension=size, pitch=pitch, normalise=True)
    if law["metric"] == "fisher":
        return mdp.von_mises_fisher(mdp.Lp(2), epsilon, dimension=size, pitch=pitch, normalise=True)
    if "projection" in law:
        return mdp.laplace(mdp.Lp(2), epsilon, projection=law["projection"], pitch=pitch)
    if law["metric"] == "haversine":
        metric = mdp.Haversine(law["unit"])
    else:
        metric = mdp.Mahalanobis(law["covariance"]) if "covariance" in law else mdp.Lp(float(law["metric"][1:]))
    return mdp.laplace(metric, epsilon, dimension=size, pitch=pitch)


def report_of(mechanism: mdp.Mechanism, secret: list[float], words: list[list[list[str]]]) -> list[float]:
    """Return what is reported of a secret with these words."""
    return mechanism.lattice.values(drawn(np.array([secret]), mechanism.law, Listed(words)))[0].tolist()


def made(law: dict, rng: np.random.Generator) -> dict:
    """Return the entry with its draws."""
    mechanism = mechanism_of(law)
    width, earth = mechanism.law.width, law["metric"] == "haversine"
    draws = []
    for number in range(DRAWS):
        stream = RowWords(rng.bytes(32), width)
        words = [
            [[f"{word:016x}" for word in _numbers(stream, attempt, k)] for k in range(width)]
            for attempt in range(ATTEMPTS)
        ]
        if number in (1, 2):  # the first uniform nearly 0 or 1
            words[0][0][0] = "0" * 16 if number == 1 else "f" * 16
        secret = (
            [float(x) for x in rng.uniform(-80, 80, 2)] if earth else (100 * rng.normal(size=law["dimension"])).tolist()
        )
        if earth and number in (3, 4, 5):
            secret = [[90.0, 12.5], [-90.0, -179.0], [89.9999999, 180.0]][number - 3]
        if number >= DRAWS - 4:
            secret[0] = _border(mechanism, secret, words)[number % 2]
        draws.append({"secret": secret, "words": words, "report": report_of(mechanism, secret, words)})
    last = max(_used(mechanism, draw) for draw in draws)
    for draw in draws:
        draw["words"] = draw["words"][:last]
    return {**law, "pitch": mechanism.lattice.pitch, "draws": draws}


def _numbers(stream: RowWords, attempt: int, uniform: int) -> list[int]:
    value = stream.digits(0)(attempt, uniform, NUMBERS)
    return [(value >> (64 * (NUMBERS - 1 - number))) & (2**64 - 1) for number in range(NUMBERS)]


def _border(mechanism: mdp.Mechanism, secret: list[float], words: list[list[list[str]]]) -> tuple[float, float]:
    """Return two neighbouring doubles between which the first coordinate changes its cell."""
    here = report_of(mechanism, secret, words)[0]
    low, step = secret[0], 1.5 * mechanism.lattice.pitch
    while report_of(mechanism, [low + step, *secret[1:]], words)[0] == here:
        step *= 2.0
    high = low + step
    while np.nextafter(low, np.inf) < high:
        middle = (low + high) / 2
        same = report_of(mechanism, [middle, *secret[1:]], words)[0] == here
        low, high = (middle, high) if same else (low, middle)
    return low, high


def _used(mechanism: mdp.Mechanism, draw: dict) -> int:
    """Return how many attempts a draw needs."""
    for attempts in range(1, ATTEMPTS + 1):
        try:
            if report_of(mechanism, draw["secret"], draw["words"][:attempts]) == draw["report"]:
                return attempts
        except IndexError:
            continue
    raise ValueError("more attempts are needed than are written")


if __name__ == "__main__":
    generator = np.random.default_rng(15)
    entries = [made(law, generator) for law in LAWS]
    about = "Noise on a lattice: equal words give equal reports. docs/format.md says how."
    TARGET.write_text(json.dumps({"about": about, "laws": entries}, indent=None, separators=(",", ":")) + "\n")
    print(TARGET, sum(len(entry["draws"]) for entry in entries), "draws", TARGET.stat().st_size, "bytes")
