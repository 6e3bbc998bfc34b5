"""The studies of the papers run at a tiny setting."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from metricdp.errors import InvalidInput
from metricdp.experiments.benders import pictures as benders_pictures
from metricdp.experiments.benders import study as benders
from metricdp.experiments.benders.runs import Run

pytest.importorskip("matplotlib")
from matplotlib import colors, image


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


BENDERS = benders.Plan(
    size=20,
    blocks=3,
    instances=2,
    others=1,
    partitions=("balanced", "records"),
    larger=40,
    seconds=20.0,
    small_seconds=10.0,
    kernels_seconds=5.0,
    simplex_seconds=20.0,
    drawn_size=40,
    drawn_reports=4,
    drawn_seconds=10.0,
)


def test_the_decomposition_study_writes_its_tables_and_pictures(tmp_path, monkeypatch):
    empty = tmp_path / "data"
    empty.mkdir()
    monkeypatch.setenv("METRICDP_DATA", str(empty))
    said = []
    written = benders.main(tmp_path / "out", plan=BENDERS, report=said.append)
    assert any("Skipped: the data of 'road'" in line for line in said)
    assert {path.name for path in written} >= {"sizes.csv", "rounds.csv", "convergence.png", "times.csv", "times.md"}
    sizes = read(tmp_path / "out" / "sizes.csv")
    assert {row["data"] for row in sizes} == {"grid", "synthetic"}
    assert len(sizes) == 2 * 2 * len(benders.PARTITIONS)
    times = read(tmp_path / "out" / "times.csv")
    # the same program, so the same optimum: what others lose is within what they prove
    for data in ("grid", "synthetic"):
        for epsilon in ("10.0", "2.0"):
            rows = [r for r in times if (r["data"], r["epsilon"], r["seed"]) == (data, epsilon, "0")]
            rows = [r for r in rows if int(r["size"]) == min(int(r["size"]) for r in rows)]
            best = next(float(r["loss"]) for r in rows if r["method"] == "dual simplex")
            for row in rows:
                assert float(row["lower_bound"]) <= best + 1e-6
                assert float(row["loss"]) >= best - 1e-6
                if row["method"].startswith(("optimal", "decomposed (balanced, engine")):
                    assert float(row["loss"]) - float(row["lower_bound"]) <= 0.0101 * best + 1e-6
    assert "± " in (tmp_path / "out" / "times.md").read_text(encoding="utf-8")
    with pytest.raises(InvalidInput, match="unknown part"):
        benders.main(tmp_path / "out", "--parts", "everything")


def test_convergence_is_drawn_for_every_data_set_and_variant(tmp_path):
    closing = tuple((1.0 - 0.5**step, 1.0 + 0.5**step, 0.1 * step) for step in range(1, 30))
    cold = tuple((lower, np.inf if step < 5 else upper, at) for step, (lower, upper, at) in enumerate(closing))
    first = Run("grid", 40, 2.0, 0, "decomposed (balanced, plain)", 1.0, 1.0, 0.0, 29, 3.0, 3.0, "", cold)
    runs = [
        replace(first, data=data, method=f"decomposed (balanced, {kind})", history=closing[shift:] if shift else cold)
        for data in ("grid", "text")
        for kind, shift in (("plain", 0), ("kernels", 3), ("engine", 6))
    ]
    pixels = image.imread(benders.convergence(runs, tmp_path / "convergence.png"))
    assert pixels.shape[1] > 800
    half = pixels.shape[1] // 2
    for panel in (pixels[:, :half], pixels[:, half:]):
        for colour in benders_pictures.COLOURS.values():
            near = np.abs(panel[..., :3] - colors.to_rgb(colour)).max(axis=-1) < 0.02
            assert near.sum() > 200, colour
    with pytest.raises(InvalidInput, match="no run with rounds"):
        benders.convergence([replace(first, history=())], tmp_path / "none.png")
