"""The command that decodes: a table of reports in, densities with intervals out."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from scripts import main

pytest.importorskip("matplotlib")
SPACE = mdp.FiniteSpace(
    np.array([[float(i), float(j)] for i in range(3) for j in range(3)]), mdp.Lp(2), columns=("x", "y")
)
SECRETS = np.random.default_rng(1).choice(9, 3000, p=[0.5, 0.2, 0.1, 0.1, 0.1, 0, 0, 0, 0])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    noise = mdp.exponential(SPACE, 2.0)
    mdp.save(noise, "cells.mdp")
    drawn = noise.sample(SECRETS, rng=np.random.default_rng(2))
    rows = [f"{x:g},{y:g}" for x, y in SPACE.points[drawn]]
    Path("reports.csv").write_text("\n".join(["x,y", *rows, ","]) + "\n")
    return np.linalg.solve(noise.matrix.T, np.bincount(drawn, minlength=9) / 3000)


def read(name):
    with Path(name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_of_reports_becomes_densities_a_picture_and_a_page(here, capsys):
    words = ["--picture", "d.png", "--report", "d.html", "--around", "0,0", "--radius", "1"]
    assert main(["estimate", "reports.csv", "--mechanism", "cells.mdp", "-o", "density.csv", *words]) == 0
    told = capsys.readouterr().out
    rows = read("density.csv")
    np.testing.assert_allclose([float(row["mass"]) for row in rows], here, atol=1e-8)
    assert [(float(row["x"]), float(row["y"])) for row in rows] == [tuple(point) for point in SPACE.points.tolist()]
    assert all(float(row["count_lower"]) < float(row["count"]) < float(row["count_upper"]) for row in rows)
    assert "3,000 reports, 9 cells, method linear." in told
    assert "Without a report, and not counted: 1 row." in told
    assert "The region of 3 cells" in told
    assert "spends no budget" in told
    assert Path("d.png").stat().st_size > 5000
    page = Path("d.html").read_text()
    assert "No secret was needed" in page
    assert "<rect" in page


def test_json_and_other_formats(here, capsys):
    words = ["--method", "em", "--together", "--json", "--around", "2,2", "--radius", "0.5"]
    assert main(["estimate", "reports.csv", "--mechanism", "cells.mdp", "-o", "density.parquet", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["method"] == "em"
    assert found["simultaneous"] is True
    assert sum(found["masses"]) == pytest.approx(1.0)
    assert found["region"]["cells"] == 1
    assert found["rows_without_report"] == 1


def test_noise_on_the_earth_is_decoded_on_a_grid_that_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    places = np.array([41.9, 12.5]) + rng.normal(size=(4000, 2)) * 0.004
    reports = mdp.laplace(mdp.Haversine(), 2.0).sample(places, rng=rng)
    Path("out.csv").write_text("lat,lon\n" + "".join(f"{a},{b}\n" for a, b in reports.tolist()))
    grid = ["--grid", "41.88,12.48,41.92,12.52", "--cell", "1km"]
    assert main(["estimate", "out.csv", "--epsilon", "2/km", *grid, "-o", "density.csv"]) == 0
    rows = read("density.csv")
    middle = max(rows, key=lambda row: float(row["mass"]))
    assert abs(float(middle["lat"]) - 41.9) < 0.01
    # Nobody is outside here, but near the border the noise cannot tell: the likeliest masses put a few elsewhere.
    assert 0.9 < sum(float(row["mass"]) for row in rows) <= 1.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "with either --mechanism"),
        (["--mechanism", "cells.mdp", "--epsilon", "1"], "with either --mechanism"),
        (["--epsilon", "5/km"], "say on which cells"),
        (["--mechanism", "cells.mdp", "--around", "1,1"], "--around and --radius belong together"),
        (["--mechanism", "cells.mdp", "--around", "a", "--radius", "1"], "--around must be numbers"),
        (["--mechanism", "cells.mdp", "--confidence", "95"], "--confidence must be"),
        (["--mechanism", "cells.mdp", "--grid", "0,0,1,1"], "--grid and --cell belong together"),
        (["--mechanism", "cells.mdp", "--picture", "d.txt"], "must be named .png"),
        (["--mechanism", "cells.mdp", "--report", "d.pdf"], "must be named .html"),
        (["--mechanism", "cells.mdp", "--report", "density.html", "--picture", "reports.csv"], "must be named .png"),
        (["--epsilon", "5/km", "--grid", "41,12,42,13", "--cell", "50km", "--key", "me.pub"], "--key is for"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(here, capsys, words, said):
    assert main(["estimate", "reports.csv", "-o", "density.csv", *words]) == 2
    assert said in capsys.readouterr().err
    assert not Path("density.csv").exists()


def test_a_row_that_is_no_report_is_named_without_its_value(here, capsys):
    Path("other.csv").write_text("x,y\n0,0\n0.123,0\n")
    assert main(["estimate", "other.csv", "--mechanism", "cells.mdp", "-o", "density.csv"]) == 2
    told = capsys.readouterr().err
    assert "row 1 (the first is row 0) holds no report" in told
    assert "0.123" not in told
    Path("empty.csv").write_text("x,y\n,\n")
    assert main(["estimate", "empty.csv", "--mechanism", "cells.mdp", "-o", "density.csv"]) == 2
    assert "holds no report" in capsys.readouterr().err


def test_reports_from_a_seed_are_called_a_simulation(here, capsys):
    Path("secrets.csv").write_text("x,y\n" + "".join(f"{x:g},{y:g}\n" for x, y in SPACE.points[SECRETS[:300]]))
    assert main(["perturb", "secrets.csv", "--mechanism", "cells.mdp", "--seed", "1", "-o", "seeded.csv"]) == 0
    assert main(["estimate", "seeded.csv", "--mechanism", "cells.mdp", "-o", "density.csv"]) == 0
    assert "drawn from a seed" in capsys.readouterr().err


def test_two_mechanisms_are_used_together_from_two_files_or_from_one_with_a_column(here, capsys):
    sharp = mdp.exponential(SPACE, 4.0)
    mdp.save(sharp, "sharp.mdp")
    drawn = sharp.sample(SECRETS, rng=np.random.default_rng(5))
    rows = [f"{x:g},{y:g}" for x, y in SPACE.points[drawn]]
    Path("more.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    first = Path("reports.csv").read_text().splitlines()[1:-1]
    both = [f"{row},cells" for row in first] + [f"{row},sharp.mdp" for row in rows]
    Path("both.csv").write_text("\n".join(["x,y,law", *both]) + "\n")
    words = ["--mechanism", "cells.mdp", "--mechanism", "sharp.mdp", "-o"]
    assert main(["estimate", "reports.csv", "more.csv", *words, "one.csv"]) == 0
    assert "6,000 reports" in capsys.readouterr().out
    assert main(["estimate", "both.csv", "--which", "law", *words, "two.csv"]) == 0
    assert read("one.csv") == read("two.csv")
    shares = np.bincount(SECRETS, minlength=9) / 3000
    assert all(
        float(row["lower"]) - 0.01 <= share <= float(row["upper"]) + 0.01
        for row, share in zip(read("one.csv"), shares, strict=True)
    )
    assert main(["estimate", "both.csv", *words, "three.csv"]) == 2
    assert "2 mechanisms and 1 tables" in capsys.readouterr().err
    Path("both.csv").write_text("x,y,law\n0,0,other\n")
    assert main(["estimate", "both.csv", "--which", "law", *words, "three.csv"]) == 2
    assert "names 'other', which is none of the mechanisms: cells.mdp, sharp.mdp" in capsys.readouterr().err


def test_every_hour_is_estimated_by_itself(here, capsys):
    lines = Path("reports.csv").read_text().splitlines()[1:-1]
    timed = [f"{row},2026-11-16T{(9 if i % 3 else 17):02d}:05:00" for i, row in enumerate(lines)]
    Path("timed.csv").write_text("\n".join(["x,y,time", *timed]) + "\n")
    words = ["--mechanism", "cells.mdp", "--by", "time:hour", "-o", "hours.csv", "--json"]
    assert main(["estimate", "timed.csv", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: one["reports"] for name, one in found["groups"].items()} == {"9": 2000, "17": 1000}
    rows = read("hours.csv")
    assert [row["time_hour"] for row in rows] == ["9"] * 9 + ["17"] * 9
    assert sum(float(row["count"]) for row in rows) == pytest.approx(3000)
    assert main(["estimate", "timed.csv", "--mechanism", "cells.mdp", "--by", "time:moon", "-o", "a.csv"]) == 2
    assert "time:hour, time:date, time:weekday" in capsys.readouterr().err
    assert main(["estimate", "timed.csv", "--mechanism", "cells.mdp", "--by", "day", "-o", "a.csv"]) == 2
    assert "there is no column 'day'" in capsys.readouterr().err


def test_reports_that_this_mechanism_cannot_have_made_are_refused(here, capsys):
    Path("plain.csv").write_text("x,y\n" + "1,1\n" * 3000)  # told plainly: sharper than this law ever is
    words = ["estimate", "plain.csv", "--mechanism", "cells.mdp", "-o", "density.csv"]
    assert main(words) == 2
    assert "the reports are not of this mechanism" in capsys.readouterr().err
    assert not Path("density.csv").exists()
    assert main([*words, "--force"]) == 0
