"""Exact noise in JavaScript: equal words give the reports of Python, to the last bit, whichever path decides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import browsers
import metricdp as mdp
from metricdp.artifacts import save

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "noise.json").read_text(encoding="utf-8"))
RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def node() -> Iterator[browsers.Engine]:
    if browsers.node() is None:
        pytest.skip("node is not installed (Debian: apt install nodejs)")
    with browsers.running("node") as running:
        yield running


def mechanism_of(law: dict[str, Any]) -> Any:
    if law["metric"] == "haversine":
        metric: Any = mdp.Haversine(law["unit"])
    else:
        metric = mdp.Mahalanobis(law["covariance"]) if "covariance" in law else mdp.Lp(float(law["metric"][1:]))
    return mdp.laplace(metric, law["epsilon"], dimension=law["dimension"], pitch=law["pitch"])


@pytest.mark.parametrize("law", VECTORS["laws"], ids=lambda law: law["name"])
def test_shared_vectors_give_their_reports(law: dict[str, Any], node: browsers.Engine, tmp_path: Path) -> None:
    path = save(mechanism_of(law), tmp_path / "noise.mdp")
    drawn = node.ask("uniforms", file=node.offer(path), draws=law["draws"])
    assert drawn == [draw["report"] for draw in law["draws"]]


@pytest.mark.parametrize("law", VECTORS["laws"], ids=lambda law: law["name"])
def test_random_words_give_the_reports_of_python(law: dict[str, Any], node: browsers.Engine, tmp_path: Path) -> None:
    from metricdp.mechanisms.noise.laws import drawn
    from metricdp.randomness import RowWords

    made = mechanism_of(law)
    stream, count = RowWords(RNG.bytes(32), made.law.width), 40
    rows = RNG.uniform(-90, 90, (count, law["dimension"]))
    draws = [
        {
            "secret": row.tolist(),
            "words": [
                [[f"{stream.digits(at)(attempt, k, 1):016x}"] for k in range(stream.width)] for attempt in range(24)
            ],
        }
        for at, row in enumerate(rows)
    ]
    theirs = node.ask("uniforms", file=node.offer(save(made, tmp_path / "noise.mdp")), draws=draws)
    assert theirs == made.lattice.values(drawn(rows, made.law, stream)).tolist()
