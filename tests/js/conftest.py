"""Files for the tests of the JavaScript reader."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import metricdp as mdp
from instances import KINDS, OTHERS, SPACES, interpolated, place_and_hour, some_kernel, some_local, streets, with_zeros
from metricdp.artifacts import save
from metricdp.mechanisms import MECHANISMS


@pytest.fixture(scope="session")
def every_kind(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A file of every kind, of every metric and of every storage."""
    folder = tmp_path_factory.mktemp("kinds")
    there = find_spec("rapidfuzz") is not None  # measures edits
    made: dict[str, Any] = {
        name: mdp.exponential(space(), 0.7) for name, space in SPACES.items() if there or name != "levenshtein"
    }
    made |= {name: build() for name, build in OTHERS.items()}
    made |= {"interpolated": interpolated(), "streets": streets(), "product": place_and_hour(), "local": some_local()}
    made |= {"kernel": some_kernel(), "directions": mdp.laplace(mdp.Angular(), 3.0, dimension=4)}
    made |= {"projected": mdp.laplace(mdp.Lp(2), 3.0, projection=[[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])}
    made |= {
        "ball": mdp.laplace(mdp.Hyperbolic(), 3.0, dimension=2),
        "words in the ball": mdp.madlib(mdp.FiniteSpace([[0.0, 0.0], [0.5, 0.1], [-0.3, 0.7]], mdp.Hyperbolic()), 3.0),
        "bags": mdp.laplace(mdp.metrics.Bags(mdp.Lp(2), 2), 3.0, dimension=6),
        "outlines": mdp.laplace(mdp.Frechet(mdp.Lp(2), 2), 3.0, dimension=6),
        "normal": mdp.gaussian(mdp.Lp(2), 2.0, dimension=3),
        "normal on Earth": mdp.gaussian(mdp.Haversine(), 5.0),
    }
    covered = {MECHANISMS.of(one).name for one in made.values()}
    made |= {name: build() for name, (build, _) in KINDS.items() if name not in covered}
    for name, mechanism in made.items():
        save(mechanism, folder / f"{name.replace(' ', '-')}.mdp")
    save(with_zeros(), folder / "zeros.mdp", storage="sparse")
    save(mdp.quantised(made["l1"], bits=16), folder / "counts.mdp", storage="quantised")
    return sorted(folder.iterdir())
