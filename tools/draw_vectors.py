"""Write tests/data/draws.json: words and reports of tables, for anybody who draws from them in another language.

The files lie beside it. A draw has the secret, the 64-bit words of the random source in the order in which they are
asked for (sixteen hexadecimal digits each) and the report's code. Some words lie on the border between two reports, so
that the first one does not decide and further ones are asked for.
"""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np

import metricdp as mdp
from metricdp.randomness import source_of

DATA = Path(__file__).parents[1] / "tests" / "data"
FILES = ("v1-matrix", "v2-sparse", "v2-quantised", "v2-local", "v2-interpolated", "v2-streets")
DRAWS, WORDS = 40, 12


class Listed:
    """Words from a list, and how many of them were taken."""

    def __init__(self, words: list[int]) -> None:
        self._words, self.taken = words, 0

    def words(self, count: int, /) -> np.ndarray:
        self.taken += count
        return np.array(self._words[self.taken - count : self.taken], dtype=np.uint64)


def secrets_of(mechanism: mdp.Mechanism, rng: np.random.Generator) -> list:
    """Return one secret, as a list of its own: a code, a point of the box, or a place along a street."""
    inputs = mechanism.inputs
    if isinstance(inputs, mdp.FiniteSpace):
        return [int(rng.integers(len(inputs)))]
    if isinstance(inputs, mdp.Box):
        return [[float(x) for x in rng.uniform(inputs.lower, inputs.upper)]]
    street = int(rng.integers(len(inputs.network.lengths)))
    return [[float(street), float(rng.uniform(0, inputs.network.lengths[street]))]]


def border(mechanism: mdp.Mechanism, row: int, rng: np.random.Generator) -> int:
    """Return a word whose interval holds the end of a report: further words decide."""
    weights = [Fraction(float(value)) for value in mechanism.matrix[row]]
    place = int(rng.integers(1, len(weights)))
    share = sum(weights[:place], Fraction(0)) / sum(weights, Fraction(0))
    return min(int(share * 2**64), 2**64 - 1)


def draws_of(mechanism: mdp.Mechanism, rng: np.random.Generator) -> list[dict]:
    """Return draws with their words and reports."""
    finite = isinstance(mechanism, mdp.mechanisms.MatrixMechanism)
    result = []
    for number in range(DRAWS):
        words = source_of(rng).words(WORDS).tolist()
        secrets = secrets_of(mechanism, rng)
        if finite and number % 3 == 0:
            words[0] = border(mechanism, secrets[0], rng)
        if number in (1, 2):
            words[0] = 0 if number == 1 else 2**64 - 1
        source = Listed(words)
        report = int(np.ravel(mechanism.sample(secrets, rng=source))[0])
        result.append(
            {"secret": secrets[0], "words": [f"{word:016x}" for word in words[: source.taken]], "report": report}
        )
    return result


if __name__ == "__main__":
    generator = np.random.default_rng(16)
    files = {f"{name}.mdp": draws_of(mdp.load(DATA / f"{name}.mdp"), generator) for name in FILES}
    about = "Tables of probabilities: equal words give equal reports. docs/format.md says how to use it."
    target = DATA / "draws.json"
    target.write_text(json.dumps({"about": about, "files": files}, separators=(",", ":")) + "\n", encoding="utf-8")
    longest = max(len(draw["words"]) for draws in files.values() for draw in draws)
    print(target, sum(map(len, files.values())), "draws, at most", longest, "words,", target.stat().st_size, "bytes")
