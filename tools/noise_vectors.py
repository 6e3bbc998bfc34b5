"""Write tests/data/noise.json: words and reports of exact noise, for anybody who draws it in another language.

Every law has ordinary draws, uniforms at the ends of what words can say, and secrets on the border between two cells as
closely as doubles can be. Words are sixteen hexadecimal digits: by attempt, uniform and number of the word.
"""

import json
import sys
from pathlib import Path

import numpy as np

import metricdp as mdp
from metricdp.mechanisms import BagLaplace, HyperbolicLaplace
from metricdp.randomness import RowWords

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from published import noise_of, report_of  # noqa: E402 - what the tests compare with

TARGET = TESTS / "data" / "noise.json"
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
    {"name": "normal line", "metric": "l1", "dimension": 1, "sigma": 0.7},
    {"name": "normal plane", "metric": "l2", "dimension": 2, "sigma": 0.5},
    {"name": "normal thirds", "metric": "l2", "dimension": 2, "sigma": 20.0, "pitch": 0.3},
    {"name": "normal space", "metric": "l2", "dimension": 5, "sigma": 3.0},
    {
        "name": "normal ellipse",
        "metric": "mahalanobis",
        "covariance": [[2.0, 0.6], [0.6, 1.0]],
        "dimension": 2,
        "sigma": 0.5,
    },
    {"name": "normal earth", "metric": "haversine", "unit": "km", "dimension": 2, "sigma": 0.3},
    {"name": "normal miles", "metric": "haversine", "unit": "mi", "dimension": 2, "sigma": 1500.0},
    {"name": "normal everywhere", "metric": "haversine", "unit": "km", "dimension": 2, "sigma": 50000.0},
    {
        "name": "regularised",
        "metric": "mahalanobis",
        "covariance": [[1.4, 0.3, 0.1, 0.0], [0.3, 0.9, -0.2, 0.05], [0.1, -0.2, 1.1, 0.4], [0.0, 0.05, 0.4, 0.6]],
        "dimension": 4,
        "epsilon": 3.0,
    },
    {"name": "ball", "metric": "hyperbolic", "dimension": 2, "epsilon": 3.0},
    {"name": "line of the ball", "metric": "hyperbolic", "dimension": 1, "epsilon": 0.4},
    {"name": "far in the ball", "metric": "hyperbolic", "dimension": 3, "epsilon": 2.0625},
    {"name": "ball of ten", "metric": "hyperbolic", "dimension": 10, "epsilon": 12.0},
    {"name": "bag", "rows": "bags", "metric": "l2", "of": 2, "dimension": 6, "epsilon": 2.0},
    {
        "name": "bag of ellipses",
        "rows": "bags",
        "metric": "mahalanobis",
        "covariance": [[2.0, 0.6], [0.6, 1.0]],
        "of": 2,
        "dimension": 4,
        "epsilon": 2.0,
    },
    {
        "name": "bag of places",
        "rows": "bags",
        "metric": "haversine",
        "unit": "km",
        "of": 2,
        "dimension": 4,
        "epsilon": 0.01,
    },
    {"name": "bag in the ball", "rows": "bags", "metric": "hyperbolic", "of": 2, "dimension": 6, "epsilon": 3.0},
    {"name": "outline", "rows": "frechet", "metric": "l2", "of": 2, "dimension": 8, "epsilon": 2.0},
    {"name": "series", "rows": "frechet", "metric": "l1", "of": 1, "dimension": 5, "epsilon": 0.5},
]
DRAWS = 12


def made(distribution: dict, rng: np.random.Generator) -> dict:
    """Return the entry with its draws."""
    mechanism = noise_of(distribution)
    earth, rows = distribution["metric"] == "haversine", distribution.get("rows")
    count = mechanism.count if rows == "bags" else 1  # vectors, each with words of its own
    width = mechanism.part.distribution.width if rows else mechanism.distribution.width
    draws = []
    for number in range(DRAWS):
        stream = RowWords(rng.bytes(32), width)
        words = [
            [
                [[f"{word:016x}" for word in _numbers(stream, vector, attempt, k)] for k in range(width)]
                for attempt in range(ATTEMPTS)
            ]
            for vector in range(count)
        ]
        if number in (1, 2):  # the first uniform nearly 0 or 1
            words[0][0][0][0] = "0" * 16 if number == 1 else "f" * 16
        if rows != "bags":
            words = words[0]
        secret = _secret(distribution, number, rng)
        if earth and not rows and number in (3, 4, 5):
            secret = [[90.0, 12.5], [-90.0, -179.0], [89.9999999, 180.0]][number - 3]
        if number >= DRAWS - 4:
            secret[0] = _border(mechanism, secret, words)[number % 2]
        draws.append({"secret": secret, "words": words, "report": report_of(mechanism, secret, words)})
    last = max(_used(mechanism, draw) for draw in draws)
    for draw in draws:
        draw["words"] = _first(mechanism, draw["words"], last)
    return {**distribution, "pitch": mechanism.lattice.pitch, "draws": draws}


def _secret(distribution: dict, number: int, rng: np.random.Generator) -> list[float]:
    """Return a secret: anywhere on the Earth, in the ball (once as near its border as is taken), in space."""
    size = distribution["dimension"]
    if distribution["metric"] == "haversine":
        return [float(x) for x in rng.uniform(-80, 80, size)]
    if distribution["metric"] == "hyperbolic":
        rows = rng.normal(size=(size // distribution.get("of", size), distribution.get("of", size)))
        long = 1.0 - 2.0**-20.9 if number == 3 else rng.uniform(0.0, 0.8)
        return (long * rows / np.linalg.norm(rows, axis=1, keepdims=True)).ravel().tolist()
    return (100 * rng.normal(size=size)).tolist()


def _first(mechanism: mdp.Mechanism, words: list, attempts: int) -> list:
    """Return the words of the first attempts."""
    if isinstance(mechanism, BagLaplace):
        return [vector[:attempts] for vector in words]
    return words[:attempts]


def _numbers(stream: RowWords, vector: int, attempt: int, uniform: int) -> list[int]:
    value = stream.digits(vector)(attempt, uniform, NUMBERS)
    return [(value >> (64 * (NUMBERS - 1 - number))) & (2**64 - 1) for number in range(NUMBERS)]


def _border(mechanism: mdp.Mechanism, secret: list[float], words: list[list[list[str]]]) -> tuple[float, float]:
    """Return two neighbouring doubles between which the first coordinate changes its cell."""
    whole = isinstance(mechanism, BagLaplace | HyperbolicLaplace)  # whose coordinates hang together

    def told(first: float) -> object:
        report = report_of(mechanism, [first, *secret[1:]], words)
        return report if whole else report[0]

    here = told(secret[0])
    low, step = secret[0], 1.5 * mechanism.lattice.pitch
    while told(low + step) == here:
        step *= 2.0
    high = low + step
    while np.nextafter(low, np.inf) < high:
        middle = (low + high) / 2
        low, high = (middle, high) if told(middle) == here else (low, middle)
    return low, high


def _used(mechanism: mdp.Mechanism, draw: dict) -> int:
    """Return how many attempts a draw needs."""
    for attempts in range(1, ATTEMPTS + 1):
        try:
            if report_of(mechanism, draw["secret"], _first(mechanism, draw["words"], attempts)) == draw["report"]:
                return attempts
        except IndexError:
            continue
    raise ValueError("more attempts are needed than are written")


if __name__ == "__main__":
    generator = np.random.default_rng(15)
    entries = [made(distribution, generator) for distribution in LAWS]
    about = "Noise on a lattice: equal words give equal reports. docs/format.md says how."
    TARGET.write_text(json.dumps({"about": about, "laws": entries}, indent=None, separators=(",", ":")) + "\n")
    print(TARGET, sum(len(entry["draws"]) for entry in entries), "draws", TARGET.stat().st_size, "bytes")
