"""A file with streets that come with the package says whose they are, whichever way it was written."""

from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp.artifacts import dumps, inspect
from metricdp.places import bundled_roads
from scripts import main


def licence_in(path: Path) -> str:
    return inspect(path).licence


def is_stated(licence: str) -> bool:
    return "© OpenStreetMap contributors" in licence and "ODbL" in licence


@pytest.mark.parametrize("builder", ["exponential", "truncated_exponential"])
def test_design_export_and_prune_state_the_licence_of_bundled_crossings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], builder: str
) -> None:
    made = tmp_path / "m.mdp"
    words = ["--roads", "porto", "--nodes", "30", "--epsilon", "10/km", "--builder", builder]
    assert main(["design", *words, "-o", str(made)]) == 0
    assert is_stated(licence_in(made))
    bare = tmp_path / "bare.mdp"
    mdp.save(mdp.load(made), bare, licence="")  # as 0.1.0 wrote it
    assert licence_in(bare) == ""
    assert main(["export", str(bare), "-o", str(tmp_path / "e.mdp")]) == 0
    assert main(["prune", str(bare), "--areas", "0", "-o", str(tmp_path / "p.mdp")]) == 0
    assert main(["export", str(made), "-o", str(tmp_path / "o.mdp"), "--licence", "mine"]) == 0
    assert is_stated(licence_in(tmp_path / "e.mdp"))
    assert is_stated(licence_in(tmp_path / "p.mdp"))
    assert licence_in(tmp_path / "o.mdp") == "mine"
    capsys.readouterr()
    assert main(["inspect", str(made)]) == 0
    assert "OpenStreetMap contributors" in capsys.readouterr().out


def test_only_bundled_crossings_have_that_licence(tmp_path: Path) -> None:
    crossings = np.asarray(bundled_roads(nodes=12).coordinates)
    moved = mdp.FiniteSpace(crossings + 1e-7, mdp.Haversine())
    one = mdp.FiniteSpace(np.concatenate([moved.coordinates, crossings[:1]]), mdp.Haversine())
    for space, stated in ((moved, False), (one, True), (mdp.grid((3, 3), spacing=1.0, metric=mdp.Lp(2)), False)):
        mdp.save(mdp.exponential(space, 1.0), tmp_path / "m.mdp")
        assert is_stated(licence_in(tmp_path / "m.mdp")) is stated
    mdp.save(mdp.laplace(mdp.Haversine(), 1.0), tmp_path / "n.mdp")
    assert licence_in(tmp_path / "n.mdp") == ""
    assert b"OpenStreetMap" in dumps(mdp.product(mdp.exponential(moved, 1.0), mdp.exponential(one, 1.0)))
