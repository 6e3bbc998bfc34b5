"""Noise in JavaScript beside Python: equal words must give equal reports, by doubles and by whole numbers alone.

    python benchmarks/noise_devices.py [--draws 2000] [--exact 100] [--record]

Every law of tests/data/noise.json is drawn with random words in both languages: as it comes, and with the doubles of
JavaScript switched off, so that whole numbers decide every draw. Reports are compared to the last bit. One draw with
the system's randomness is timed, by the processor it takes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from record import arguments, recorder

import metricdp as mdp
from metricdp.randomness import RowWords

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import browsers
from published import NOISE, noise_of

AT_ONCE = 250  # draws of one run of Node
SCRIPT = """
  const folder = given.folder;
  const { open: opened } = await import(`${folder}/open.js`);
  if (given.exactly) {
    const laws = [["vectors", "VectorDistribution"], ["sphere", "SphereDistribution"],
      ["sphere", "SphereGaussianDistribution"], ["directions", "DirectionDistribution"],
      ["hyperbolic", "HyperbolicDistribution"]];
    for (const [file, name] of laws) (await import(`${folder}/${file}.js`))[name].prototype.inDoubles = () => undefined;
  }
  class Words {
    constructor(words) { this.words = words; }
    limb(attempt, uniform, number) {
      const word = this.words[attempt][uniform][number];
      return [parseInt(word.slice(0, 8), 16), parseInt(word.slice(8), 16)];
    }
    row(vector) { return typeof this.words[0][0][0] === "string" ? null : new Words(this.words[vector]); }
  }
  const m = await opened(given.path);
  const reports = given.draws.map(({ secret, words }) => m.sample(secret, { words: new Words(words) }).point);
  const secrets = given.draws.map(({ secret }) => secret);
  let [drawn, used] = [0, 0]; // microseconds of processor, after some that warm it up
  for (const most of given.timed ? [2e5, 4e5] : []) {
    const start = process.cpuUsage();
    for (drawn = used = 0; used < most; drawn += 100) {
      for (let k = 0; k < 100; k++) m.sample(secrets[k % secrets.length]);
      const { user, system } = process.cpuUsage(start);
      used = user + system;
    }
  }
  answer = { reports, microseconds: used / Math.max(1, drawn) };
"""


class Key:
    """A source that gives a known key, so that the words of every row are known."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.key = rng.bytes(32)

    def words(self, count: int) -> Any:
        return np.frombuffer(self.key, dtype=np.uint64)[:count]


def secrets_of(law: dict[str, Any], count: int, rng: np.random.Generator) -> np.ndarray:
    """Return secrets of a law: places, vectors, or points of the ball up to its border."""
    rows = rng.uniform(-90, 90, (count, law["dimension"]))
    if law["metric"] != "hyperbolic":
        return rows
    vectors = rows.reshape(count, -1, law.get("of", law["dimension"]))
    away = 1.0 - 2.0 ** -rng.uniform(0.5, 20.0, (count, vectors.shape[1], 1))
    return (vectors / np.linalg.norm(vectors, axis=2, keepdims=True) * away).reshape(count, -1)


def compared(
    law: dict[str, Any], count: int, rng: np.random.Generator, *, exactly: bool, timed: bool
) -> tuple[int, float]:
    """Return how many of so many reports differ, and the microseconds of a draw."""
    made, source = noise_of(law), Key(rng)
    bag = law.get("rows") == "bags"
    vectors = made.count if bag else 1
    stream = RowWords(source.key, (made.part if "rows" in law else made).distribution.width)
    attempts = (
        3 if law["metric"] in ("angular", "fisher") else 40 if law["metric"] in ("haversine", "l1.5", "l20") else 1
    )
    limbs = 24 if law["metric"] == "hyperbolic" else 3
    rows = secrets_of(law, count, rng)

    def uniform(value: int) -> list[str]:
        digits = f"{value:0{16 * limbs}x}"
        return [digits[start : start + 16] for start in range(0, len(digits), 16)]

    def words(at: int) -> list[Any]:
        digits = stream.digits(at)
        return [[uniform(digits(attempt, k, limbs)) for k in range(stream.width)] for attempt in range(attempts)]

    draws = [
        {"secret": row.tolist(), "words": [words(at * vectors + k) for k in range(vectors)] if bag else words(at)}
        for at, row in enumerate(rows)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = mdp.save(made, Path(folder) / "noise.mdp")
        found = browsers.in_node(
            SCRIPT,
            folder=(browsers.PROJECT / "js" / "src").as_uri(),
            path=str(path),
            draws=draws,
            exactly=exactly,
            timed=timed,
        )
    ours = made.sample(rows, rng=source).tolist()
    return sum(a != b for a, b in zip(ours, found["reports"], strict=True)), found["microseconds"]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--exact", type=int, default=100)
    chosen = parser.parse_args()
    rng, started = np.random.default_rng(20), time.perf_counter()
    different, total, speeds = {True: 0, False: 0}, {True: 0, False: 0}, {}
    for law in NOISE:
        for exactly, count in ((False, chosen.draws), (True, chosen.exact)):
            for start in range(0, count, AT_ONCE):
                timed = not exactly and start == 0
                wrong, micro = compared(law, min(AT_ONCE, count - start), rng, exactly=exactly, timed=timed)
                different[exactly] += wrong
                total[exactly] += min(AT_ONCE, count - start)
                if timed:
                    speeds[law["name"]] = micro
        print(
            f"{law['name']}: {speeds[law['name']]:.1f} microseconds, {time.perf_counter() - started:.0f} s", flush=True
        )
    keep = recorder(chosen.record)
    keep(
        "devices",
        f"reports of noise in JavaScript that differ from Python's, {len(NOISE)} laws, random words",
        asked="none",
        measured=f"{different[False]} of {total[False]:,} as they come, {different[True]} of {total[True]:,} decided "
        "by whole numbers alone",
        different=list(different.values()),
        draws=list(total.values()),
    )
    slow, fast = max(speeds, key=speeds.get), min(speeds, key=speeds.get)
    keep(
        "devices",
        "one draw of noise in Node, processor time",
        asked="stated",
        measured=f"{speeds[fast]:.1f} ({fast}) to {speeds[slow]:.1f} microseconds ({slow}), "
        f"{np.median(list(speeds.values())):.1f} in the middle",
        microseconds=speeds,
    )


if __name__ == "__main__":
    main()
