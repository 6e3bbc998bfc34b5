"""`metricdp design` on everything it takes: cells, roads, losses, priors, repeated points, every builder."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp.design import BUILDERS
from scripts import main

SIX = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows("cells.csv", "x,y", SIX)
    return tmp_path


def rows(name: str, header: str, values: object) -> None:
    lines = [",".join(str(value) for value in np.atleast_1d(row)) for row in values]  # type: ignore[attr-defined]
    Path(name).write_text("\n".join([header, *lines]) + "\n")


def run(line: str) -> int:
    return main([*shlex.split(line), *(["--overwrite"] if " -o out.mdp" in line else [])])


def made(line: str) -> mdp.mechanisms.MatrixMechanism:
    assert run(f"design {line} -o out.mdp") == 0
    found = mdp.load("out.mdp")
    assert mdp.audit(found).verdict == "holds"
    return found


def certified(line: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    capsys.readouterr()
    assert run(f"design {line} -o out.mdp --json") == 0
    return json.loads(capsys.readouterr().out)["certificate"]


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(f"design {line} -o never.mdp") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("error: ") == 1
    assert "Traceback" not in said.err
    assert not Path("never.mdp").exists()
    return said.err


def mean_loss(matrix: np.ndarray, prior: np.ndarray, cost: np.ndarray) -> float:
    total = 0.0
    for secret in range(len(matrix)):
        distribution = matrix[secret] / matrix[secret].sum()
        total += prior[secret] * sum(distribution[k] * cost[secret, k] for k in range(len(distribution)))
    return total


def apart(points: list[tuple[int, int]]) -> np.ndarray:
    return np.array([[math.dist(a, b) for b in points] for a in points])


def test_counts_become_a_prior_and_zeros_are_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows("visits.csv", "n", [5, 0, 3, 2, 1, 1])
    found = made("--points cells.csv --epsilon 1 --prior visits.csv --builder dictionary")
    said = capsys.readouterr().err
    assert "sums to 12" in said
    assert "prior of 0: 1 of 6" in said
    prior = np.array([5, 0, 3, 2, 1, 1]) / 12
    assert found.certificate.loss == pytest.approx(mean_loss(found.matrix, prior, apart(SIX)), rel=1e-12)
    rows("shares.csv", "share", prior)
    shares = certified("--points cells.csv --epsilon 1 --prior shares.csv --builder dictionary", capsys)
    assert shares["loss"] == pytest.approx(found.certificate.loss, rel=1e-9)


def test_a_prior_is_matched_by_where_its_rows_are(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    visits = [(2, 1, 1, "a"), (0.1, 0.9, 2, "b"), (0, 0, 4, "c"), (0, 1, 1, "d"), (30, 40, 9, "e")]
    Path("visits.csv").write_text("x,y,n,who\n" + "".join(f"{x},{y},{n},{who}\n" for x, y, n, who in visits))
    line = "--points cells.csv --epsilon 1 --builder dictionary --prior visits.csv"
    assert "say with --prior-column" in refused(line, capsys)
    assert "Did you mean 'who'" in refused(f"{line} --prior-column whos", capsys)
    found = made(f"{line} --prior-column n")
    assert "left out, since they lie not within 1 of any: 1." in capsys.readouterr().err
    prior = np.array([4, 3, 0, 0, 0, 1]) / 8
    assert found.certificate.loss == pytest.approx(mean_loss(found.matrix, prior, apart(SIX)), rel=1e-12)
    # without a column of numbers every row counts one
    rows("rows.csv", "y,x", [(0, 0), (0, 0), (1, 2)])
    found = made(line.replace("visits", "rows"))
    prior = np.array([2, 0, 0, 0, 0, 1]) / 3
    assert found.certificate.loss == pytest.approx(mean_loss(found.matrix, prior, apart(SIX)), rel=1e-12)


def test_repeated_points_are_one_place(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows("twice.csv", "x,y", [SIX[0], SIX[3], SIX[0], SIX[1], SIX[3]])
    rows("n.csv", "n", [1, 2, 3, 4, 5])
    found = made("--points twice.csv --epsilon 1 --prior n.csv --builder dictionary")
    assert "repeat a point: 2 of 5" in capsys.readouterr().err
    kept = [SIX[0], SIX[3], SIX[1]]
    assert found.inputs.points.tolist() == [list(map(float, point)) for point in kept]
    prior = np.array([4, 7, 4]) / 15
    assert found.certificate.loss == pytest.approx(mean_loss(found.matrix, prior, apart(kept)), rel=1e-12)
    five = [kept[0], kept[1], kept[0], kept[2], kept[1]]
    rows("loss.csv", "a,b,c,d,e", apart(five) ** 3)
    cubed = certified("--points twice.csv --epsilon 1 --loss loss.csv --builder dictionary", capsys)
    matrix = mdp.load("out.mdp").matrix
    assert cubed["loss"] == pytest.approx(mean_loss(matrix, np.full(3, 1 / 3), apart(kept) ** 3), rel=1e-12)
    rows("odd.csv", "a,b,c,d,e", np.arange(25).reshape(5, 5))
    assert "one place" in refused("--points twice.csv --epsilon 1 --loss odd.csv", capsys)


def test_losses_by_name_and_by_matrix(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uniform = np.full(6, 1 / 6)
    line = "--points cells.csv --epsilon 1 --builder"
    squared = certified(f"{line} exponential --loss squared", capsys)
    matrix = mdp.load("out.mdp").matrix
    assert squared["loss"] == pytest.approx(mean_loss(matrix, uniform, apart(SIX) ** 2), rel=1e-12)
    rows("loss.csv", "a,b,c,d,e,f", apart(SIX) ** 2)
    given = certified(f"{line} exponential --loss loss.csv", capsys)
    assert given["loss"] == pytest.approx(squared["loss"], rel=1e-12)
    assert run(f"design {line} optimal --loss squared -o out.mdp") == 0
    said = capsys.readouterr().out
    assert "The loss is the squared distance" in said
    assert "On average a report costs" in said
    rows("small.csv", "a,b", np.ones((2, 2)))
    assert "every pair of the 6 places" in refused(f"{line} optimal --loss small.csv", capsys)
    assert "Did you mean squared" in refused(f"{line} optimal --loss square", capsys)
    assert "belongs to --roads" in refused(f"{line} optimal --loss time", capsys)
    assert "does not exist" in refused(f"{line} optimal --loss none.csv", capsys)


def test_travel_time_on_roads(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A triangle: the short street is slow, so the way around takes less time."""
    Path("town").mkdir()
    rows("town/nodes.csv", "lat,lon", [(45.0, 9.0), (45.0, 9.01), (45.005, 9.005)])
    rows("town/edges.csv", "u,v,length_m,speed_kmh", [(0, 1, 600, 3), (1, 2, 500, 30), (0, 2, 500, 60)])
    metres = np.array([[0, 600, 500], [600, 0, 500], [500, 500, 0]])
    minutes = np.array([[0, 1.5, 0.5], [1.5, 0, 1.0], [0.5, 1.0, 0]])
    line = "--roads town --epsilon 2/km --builder exponential --loss time"
    timed = certified(line, capsys)
    matrix = mdp.load("out.mdp").matrix
    assert timed["loss"] == pytest.approx(mean_loss(matrix, np.full(3, 1 / 3), minutes), rel=1e-9)
    assert np.allclose(mdp.load("out.mdp").inputs.distances, metres / 1000)
    rows("town/edges.csv", "u,v,length_m", [(0, 1, 600), (1, 2, 500), (0, 2, 500)])
    assert "--speed 30" in refused(line, capsys)
    even = certified(f"{line} --speed 30", capsys)
    matrix = mdp.load("out.mdp").matrix
    assert even["loss"] == pytest.approx(mean_loss(matrix, np.full(3, 1 / 3), metres / 500), rel=1e-9)
    assert "belongs to --loss time" in refused(line.replace("time", "squared --speed 30"), capsys)


def test_the_cells_of_a_map_cover_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = made("--grid 41.89,12.47,41.91,12.50 --cell 500m --epsilon 4/km --builder exponential")
    said = capsys.readouterr().out
    assert "exponential on 25 cells." in said
    places = np.asarray(found.inputs.coordinates)
    assert found.inputs.columns == ("lat", "lon")
    kilometres = np.array([111.195, 111.195 * math.cos(math.radians(41.9))])
    generator = np.random.default_rng(4)
    inside = generator.uniform([41.89, 12.47], [41.91, 12.50], (200, 2))
    away = np.abs((places[None] - inside[:, None]) * kilometres)
    assert away.max(axis=2).min(axis=1).max() < 0.2505  # every point of the map is in a cell
    half = math.hypot(0.25, 0.25)
    assert np.hypot(away[..., 0], away[..., 1]).min(axis=1).max() <= half * 1.001
    # the line that is suggested protects a table of points from anywhere on the map
    rows("table.csv", "lat,lon", inside)
    line = next(line for line in said.splitlines() if "metricdp perturb" in line).strip().partition("   ")[0]
    assert "--snap 354m" in line
    assert run(line.removeprefix("metricdp ")) == 0
    flat = made("--grid -1,0,2,2 --cell 1 --metric l2 --epsilon 1 --builder exponential")
    assert sorted(map(tuple, flat.inputs.points.tolist())) == [(x, y) for x in (-0.5, 0.5, 1.5) for y in (0.5, 1.5)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--grid 41.8,12.4,42.0,12.6 --epsilon 4/km", "--grid and --cell belong together"),
        ("--cell 200m --points cells.csv --epsilon 4", "--grid and --cell belong together"),
        ("--grid 41.8,12.4,42.0 --cell 1km --epsilon 4/km", "four numbers"),
        ("--grid 41.8,12.4,42.0,12.6 --cell 200 --epsilon 4/km", "write 200m or 0.2km."),
        ("--grid 42.0,12.4,41.8,12.6 --cell 1km --epsilon 4/km", "lat does not grow"),
        ("--grid 41.8,12.4,42.0,12.6 --cell 1m --epsilon 4/km", "take larger ones"),
        ("--grid 41.8,12.4,41.9,12.5 --cell 100km --epsilon 4/km", "take smaller ones"),
        ("--grid 41.8,12.4,142.0,12.6 --cell 10km --epsilon 4/km", "latitude"),
        ("--grid 41.8,12.4,42.0,12.6 --cell 1km --roads rome --epsilon 4/km", "--roads and --grid"),
        ("--points cells.csv --epsilon 1 --seconds 5 --builder exponential", "without a search"),
        ("--points cells.csv --epsilon 1 --seconds 0", "above 0"),
        ("--points cells.csv --epsilon 1 --gap -1", "above 0"),
        ("--points cells.csv --epsilon 1 --stretch 0.5 --builder spanner", "at least 1"),
        ("--points cells.csv --epsilon 1 --nearest 0 --builder constopt", "at least 1"),
        ("--points cells.csv --epsilon 1 --blocks 0 --builder decomposed", "at least 1"),
        ("--points cells.csv --epsilon 1 --prior-column n", "--prior, which is not given"),
        ("--points cells.csv --epsilon 1 --matrix m.csv", "use --builder from_matrix"),
        ("--points cells.csv --epsilon 1 --builder from_matrix", "needs --matrix"),
        ("--builder product", "needs --parts"),
        ("--builder product --parts a.mdp,b.mdp --points cells.csv", "remove --points"),
        ("--builder laplace --epsilon 1/km --points cells.csv", "remove --points"),
        ("--builder contextual", "metricdp trajectories --mechanism"),
        ("--builder quantised", "metricdp export --storage quantised"),
        ("--points cells.csv --epsilon 1 --builder remapped --base laplace", "builder of tables"),
        ("--points cells.csv --epsilon 1 --builder interpolated --anchors 2,2,2", "2 whole numbers"),
        ("--points cells.csv --epsilon 1 --builder interpolated --box 0,0,1", "4 numbers"),
        ("--points cells.csv --epsilon 1 --builder interpolated --anchors 2 --split some", "one number per axis"),
        ("--points cells.csv --epsilon 1 --builder interpolated --rule none --anchors 2", "rule"),
        ("--grid 41.8,12.4,42.0,12.6 --cell 10km --epsilon 4/km --builder interpolated", "Project latitude"),
    ],
)
def test_mistakes_get_one_sentence(here: Path, options: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refused(options, capsys)


def test_every_declared_builder_is_reached_by_a_command(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that `design` does not make name the command that does."""
    kernel = np.exp(-0.5 * apart(SIX))
    rows("matrix.csv", "a,b,c,d,e,f", kernel / kernel.sum(axis=1, keepdims=True))
    rows("weights.csv", "w", [1, 2, 1, 1, 1, 1])
    assert run("design --builder laplace --metric l2 --epsilon 2 -o noise.mdp") == 0
    on_cells = "--points cells.csv --epsilon 1 --builder"
    lines = {
        "laplace": "--builder laplace --epsilon 10/km",
        "von_mises_fisher": "--builder von_mises_fisher --metric l2 --dimension 4 --epsilon 2",
        "gaussian": "--builder gaussian --metric l2 --set rho=2",
        "weighted_exponential": f"{on_cells} weighted_exponential --weights weights.csv",
        "tight_constraints": "--points cells.csv --epsilon 4 --builder tight_constraints",
        "remapped": f"{on_cells} remapped --base dictionary",
        "constopt": f"{on_cells} constopt --nearest 3 --seconds 60",
        "decomposed": f"{on_cells} decomposed --blocks 2 --seconds 60",
        "interpolated": f"{on_cells} interpolated --anchors 2,2 --split even --seconds 60",
        "product": "--builder product --parts noise.mdp,noise.mdp",
        "from_matrix": f"{on_cells} from_matrix --matrix matrix.csv",
    }
    for builder in BUILDERS:
        if builder.at_command:
            assert run(f"design {lines.get(builder.name, f'{on_cells} {builder.name}')} -o out.mdp") == 0, builder.name
            found = mdp.load("out.mdp")
            if builder.name == "gaussian":  # concentrated, which the audit of pure promises refuses to judge
                with pytest.raises(mdp.MetricdpError, match="approximate and not pure"):
                    mdp.audit(found)
            else:
                assert mdp.audit(found).holds, builder.name
        else:
            assert builder.elsewhere.startswith("metricdp ")
    capsys.readouterr()
    assert run("list builders") == 0
    listed = capsys.readouterr().out
    assert all(builder.name in listed for builder in BUILDERS)


def test_a_mechanism_file_is_remapped_for_a_prior(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows("prior.csv", "p", [0.9, 0.02, 0.02, 0.02, 0.02, 0.02])
    before = made("--points cells.csv --epsilon 1 --builder exponential")
    Path("out.mdp").rename("before.mdp")
    after = certified("--builder remapped --base before.mdp --prior prior.csv", capsys)
    prior = np.array([0.9] + [0.02] * 5)
    joint = prior[:, None] * before.matrix
    best = [min(range(6), key=lambda t: sum(joint[x, k] * apart(SIX)[x, t] for x in range(6))) for k in range(6)]
    expected = sum(joint[x, k] * apart(SIX)[x, best[k]] for x in range(6) for k in range(6))
    assert after["loss"] == pytest.approx(expected, rel=1e-9)


def test_streets_and_boxes_are_private_everywhere(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows("prior.csv", "p", [1, 2, 3, 4, 5, 6])
    line = "design --points cells.csv --epsilon 1 --builder interpolated --anchors 2 --split even --prior prior.csv"
    assert run(f"{line} -o box.mdp") == 0
    assert "for all of a box, reporting 6 points." in capsys.readouterr().out
    box = mdp.load("box.mdp")
    assert mdp.audit(box).holds
    assert run("design --roads porto --nodes 5 --epsilon 5/km --builder interpolated --anchors 100m -o road.mdp") == 0
    assert "all places along streets" in capsys.readouterr().out
    assert mdp.audit(mdp.load("road.mdp")).holds


def test_a_missing_package_is_noticed_before_the_work(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from metricdp import errors

    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    monkeypatch.setattr("metricdp.design.builders.Builder.build", lambda *_, **__: pytest.fail("the work began"))
    assert "metricdp[fast]" in refused("--points cells.csv --epsilon 1 --solver first_order", capsys)
    assert "metricdp[gpu]" in refused("--points cells.csv --epsilon 1 --solver gpu", capsys)
    assert "metricdp[decompose]" in refused("--points cells.csv --epsilon 1 --builder decomposed", capsys)
    assert "metricdp[fast]" in refused("--grid 41.8,12.4,42.0,12.7 --cell 300m --epsilon 20/km", capsys)


def test_places_that_look_wrong_are_doubted_as_tables_are(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    towns = [(41.0 + i / 1e3, -8.6 + i / 1e3) for i in range(120)]
    kind = "--points towns.csv --epsilon 1/km --builder exponential"
    for wrong, why in (
        ([*towns, (0, 0)], "lat, lon are 0 and 0 in row 120"),
        ([*towns, (-41.0, -8.6)], "1 of 121 rows lie far from all others, such as row 120"),
        ([(41.0, lon) for _, lon in towns], "lat holds one and the same number in all 120 rows"),
    ):
        rows("towns.csv", "lat,lon", wrong)
        assert why in refused(kind, capsys)
    assert len(made(f"{kind} --force").inputs) == 120
    assert (
        main(["compare", "--points", "towns.csv", "--epsilon", "1/km", "--builders", "exponential", "-o", "c.csv"]) == 2
    )
    np.savetxt("matrix.csv", np.full((120, 120), 1 / 120), delimiter=",")
    audit = "audit matrix.csv --points towns.csv --epsilon 1/km"
    assert [main(f"{audit}{more}".split()) for more in ("", " --force")] == [2, 0]


def test_columns_that_are_exchanged_are_no_places(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows("towns.csv", "lat,lon,visits", [(41.1, -8.6, 3), (41.2, -8.5, 1), (41.3, -8.4, 2)])
    options = "--points towns.csv --columns lon,lat --epsilon 1/km --builder exponential"
    assert "look exchanged by their names: the latitude comes first, --columns lat,lon" in refused(options, capsys)
    assert len(made("--points towns.csv --epsilon 1/km --builder exponential").inputs) == 3  # whatever stands beside


def test_regions_from_a_file_let_less_be_told_there(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows("regions.csv", "name,x,y,radius,scale", [("clinic", 0, 0, 0.5, 0.2)])
    found = made("--points cells.csv --metric l2 --epsilon 1.0 --sensitivity regions.csv")
    distribution = found.matrix / found.matrix.sum(axis=1, keepdims=True)
    told = np.abs(np.log(distribution[0]) - np.log(distribution[1:])).max(axis=1)
    apart = np.hypot(*(np.array(SIX[1:]) - SIX[0]).T)
    assert np.all(told <= 0.2 * apart * (1 + 1e-9))
    assert "1 of 6 places lie in regions" in capsys.readouterr().err
    plain = np.array([[math.dist(a, b) for b in SIX] for a in SIX])
    assert found.certificate.loss == pytest.approx(
        (distribution * plain).sum() / 6, rel=1e-6
    )  # in the distances of before
    rows("regions.csv", "x,y,radius,scale", [("a", 0, 0.5, 0.2)])
    assert "must hold numbers" in refused(
        "--points cells.csv --metric l2 --epsilon 1.0 --sensitivity regions.csv", capsys
    )


def test_an_error_of_every_guess_makes_protection_sets(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = "--points cells.csv --metric l2 --epsilon 1/diameter"
    found = made(f"{where} --error 0.15")
    assert found.guarantee.unit == "diameter"
    assert "protection set" in capsys.readouterr().err
    plain = np.array([[math.dist(a, b) for b in SIX] for a in SIX])
    distribution = found.matrix / found.matrix.sum(axis=1, keepdims=True)
    errors = [
        (distribution[:, y] @ plain).min() / distribution[:, y].sum() for y in range(6) if distribution[:, y].any()
    ]
    assert min(errors) >= 0.15
    assert found.certificate.loss == pytest.approx((distribution * plain).sum() / 6, rel=1e-6)
    rows("errors.csv", "error", [0.05, 0.05, 0.05, 0.2, 0.05, 0.05])
    made(f"{where} --error errors.csv --builder exponential --set budget=half")
    assert "exp(1) times the error 5" in refused(f"{where} --error 5", capsys)
    assert "has no unit" in refused("--points cells.csv --metric l2 --epsilon 1 --error 0.1", capsys)
    assert "absent.csv" in refused(f"{where} --error absent.csv", capsys)
    assert "`budget` must be" in refused(
        "--points cells.csv --metric l2 --epsilon 1 --builder exponential --set budget=all", capsys
    )


def test_a_crowd_is_said_to_be_approximate(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made("--points cells.csv --metric l2 --epsilon 1 --builder exponential")
    capsys.readouterr()
    asked = "--people 5000 --distance 0.5 --delta 1e-6"
    assert run(f"audit out.mdp {asked} --json") == 0
    said = json.loads(capsys.readouterr().out)
    expected = mdp.auditing.shuffled_epsilon(1.0, 5000, distance=0.5, diameter=math.sqrt(5), delta=1e-6)
    assert said["epsilon"] == pytest.approx(expected, rel=1e-9)
    assert said["approximate"] is True
    assert run(f"audit out.mdp {asked}") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("APPROXIMATE, never a pure guarantee")
    assert "exp(0.5), for certain" in shown
    for wrong, why in (
        ("--people 0 --distance 0.5", "`people` must be"),
        ("--people 10 --distance 9", "`diameter` must be the largest distance"),
        ("--people 10 --distance 0.5 --delta 2", "`delta` must lie between 0 and 1"),
    ):
        assert run(f"audit out.mdp {wrong}") == 2
        assert why in capsys.readouterr().err
    assert run("design --metric l2 --builder laplace --epsilon 1 -o noise.mdp") == 0
    capsys.readouterr()
    assert run(f"audit noise.mdp {asked}") == 2
    assert "--diameter" in capsys.readouterr().err
    assert run(f"audit noise.mdp {asked} --diameter 2") == 0
    assert "within 2 of each other" in capsys.readouterr().out


def test_families_by_the_words_of_their_papers_are_answered_with_how_they_are_built(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = "--points cells.csv --metric l2 --epsilon 1"
    for word, how in (("PIVE", "--error"), ("condensed", "--set budget=half"), ("shuffling", "audit --people")):
        assert how in refused(f"{where} --builder {word}", capsys)
    assert "branching must be a whole number, got 'x'" in refused(
        f"{where} --builder hierarchical --set branching=x", capsys
    )
