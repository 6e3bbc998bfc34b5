"""Make what the page docs/try.md draws from: python tools/try_page.py.

Two mechanism files on 100 crossings of central Porto, and the streets between them for the picture.
"""

from __future__ import annotations

import json
from pathlib import Path

import metricdp as mdp

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "assets" / "try"
LICENCE = "Streets © OpenStreetMap contributors, ODbL 1.0"
RADII = {"100": 0.1, "300": 0.3}  # metres at which two crossings are at most a factor of two apart, in kilometres


def main() -> None:
    """Write the mechanisms and the map."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    roads = mdp.road_network("porto", nodes=100)
    for name, radius in RADII.items():
        mechanism = mdp.optimal(mdp.Problem(roads, mdp.epsilon_for(2, radius)), gap=0.02)
        mdp.save(mdp.quantised(mechanism, bits=20), FOLDER / f"porto_{name}.mdp", licence=LICENCE)
    assert isinstance(roads.metric, mdp.ShortestPath)
    streets = {"places": roads.coordinates.round(6).tolist(), "streets": roads.metric.edges.tolist()}
    (FOLDER / "porto.json").write_text(json.dumps(streets, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
