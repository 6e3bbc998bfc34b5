"""The wider families on a device: policies, elastic and scaled distances, zones and trees, in a page as in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import browsers
import metricdp as mdp
from brute import fits
from metricdp import cli, messages, mobility
from metricdp.artifacts import save

RNG = np.random.default_rng(19)
PLACES = np.column_stack([41.1 + 0.05 * RNG.random(14), -8.65 + 0.07 * RNG.random(14)])
CHAIN = [(k, k + 1) for k in range(13)]


def space() -> mdp.FiniteSpace:
    return mdp.FiniteSpace(PLACES, mdp.Haversine())


def levels(level: Any) -> Any:
    return 0.08 * level


FAMILIES: dict[str, Any] = {
    "a policy in hops": lambda: mdp.exponential(mdp.policy(space(), CHAIN), 0.7),
    "a policy of two parts": lambda: mdp.exponential(
        mdp.policy(space(), [edge for edge in CHAIN if edge != (6, 7)], parts="disclose"), 0.7
    ),
    "elastic": lambda: mdp.exponential(mdp.elastic(space(), mass=np.full(14, 1 / 14), requirement=levels), 1.0),
    "scaled": lambda: mdp.exponential(mdp.places.scaled(space(), RNG.uniform(0.5, 2.0, 14)), 1.0),
    "zones": lambda: mdp.exponential(mobility.zones(space(), [3], radius=1.5).space, 1.0),
    "areas that are told": lambda: mdp.exponential(mdp.places.location_tree(space(), 2).disclosing(1), 1.0),
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[browsers.Engine]:
    if browsers.chromium() is None:
        pytest.skip("chromium is not installed (Debian: apt install chromium)")
    with browsers.running("chromium") as running:
        yield running


@pytest.mark.parametrize("name", FAMILIES)
def test_a_page_draws_from_every_family_and_says_what_python_says(
    name: str, chromium: browsers.Engine, tmp_path: Path
) -> None:
    made = FAMILIES[name]()
    file = chromium.offer(save(made, tmp_path / "made.mdp"))
    said = chromium.ask("open", file=file)["explain"]
    assert said["short"] == messages.short_sentence(made.guarantee)
    assert said["lines"][1:-3] == messages.meaning_lines(made.guarantee)
    assert said["lines"][-3] == f"{made.guarantee}."
    codes = list(range(14))
    assert np.allclose(chromium.ask("laws", file=file, secrets=codes), made.matrix, rtol=1e-12, atol=1e-300)
    for counts, code in zip(chromium.ask("counts", file=file, secrets=[0, 13], count=3000), (0, 13), strict=True):
        fits(counts, made.matrix[code])
    assert chromium.ask("audit", file=file)["holds"]


def test_a_tree_of_the_command_is_pruned_in_the_page(chromium: browsers.Engine, tmp_path: Path) -> None:
    """From a table of places to a report in a browser that avoids a district, drawn by the law that Python prunes."""
    areas = np.where(PLACES[:, 0] > 41.12, "north", "south")
    blocks = [f"{area} {'east' if lon > -8.62 else 'west'}" for area, lon in zip(areas, PLACES[:, 1], strict=True)]
    table = zip(PLACES.tolist(), blocks, areas, strict=True)
    rows = [f"{lat!r},{lon!r},{block},{area}" for (lat, lon), block, area in table]
    (tmp_path / "places.csv").write_text("\n".join(["lat,lon,block,area", *rows]) + "\n")
    command = ["tree", "--points", str(tmp_path / "places.csv"), "--levels", "block,area", "--epsilon", "1.5/km"]
    assert cli.main([*command, "-o", str(tmp_path / "tree")]) == 0
    for path in (tmp_path / "tree").iterdir():
        chromium.files[f"/tree/{path.name}"] = path
    avoided = [code for code, block in enumerate(blocks) if block == "north west"]
    asked = {"file": "/tree/tree.json", "secrets": PLACES.tolist(), "count": 4000}
    found = chromium.ask("tree", **asked, level="places", avoid={"block": ["north west"]})
    whole = mdp.load(tmp_path / "tree" / "places.mdp")
    pruned = mdp.places.location_tree(whole.inputs, 1).prune(whole, avoided)
    assert np.allclose(found["laws"], pruned.matrix, rtol=1e-9, atol=1e-15)
    fits(found["counts"], pruned.matrix[0])
    assert found["lines"][0] == messages.short_sentence(whole.guarantee)
    coarse = chromium.ask("tree", **asked, level="block", avoid={"area": ["south"]})
    assert np.array_equal(
        np.sum(coarse["laws"], axis=0) > 0, [name.startswith("north") for name in sorted(set(blocks))]
    )
