"""The command, as people type it."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp import cli
from metricdp.artifacts import load, save
from metricdp.cli import COMMANDS

GRID = np.array([(i, j) for i in range(4) for j in range(4)], dtype=float)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the files of the examples."""
    monkeypatch.chdir(tmp_path)
    write("points.csv", ["user", "lat", "lon", "time"], [["a", 41.15, -8.61, "9:00"], ["b", 41.2, -8.6, "9:05"]])
    write("cells.csv", ["x", "y"], GRID.tolist())
    matrix = mdp.exponential(mdp.FiniteSpace(GRID, mdp.Lp(2)), 1.0).matrix
    write("matrix.csv", [f"r{k}" for k in range(16)], [[repr(float(v)) for v in row] for row in matrix])
    return tmp_path


def write(path: str, header: list[str], rows: list[list[object]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        if header:
            writer.writerow(header)
        writer.writerows(rows)


def read(path: str) -> list[list[str]]:
    with open(path, newline="") as file:
        return list(csv.reader(file))


def run(line: str) -> int:
    return cli.main(line.split())


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a line that must fail: one clean line on the error stream, exit code 2, no new file."""
    before = {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    capsys.readouterr()
    assert run(line) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert output.err.count("\n") == 1
    assert "Traceback" not in output.err
    assert {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before
    return output.err


def test_perturb_a_csv_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("perturb points.csv --epsilon 10/km -o out.csv --id user --verbose") == 0
    text = capsys.readouterr().out
    rows = read("out.csv")
    assert rows[0] == ["user", "lat", "lon", "time"]
    assert [[row[0], row[3]] for row in rows[1:]] == [["a", "9:00"], ["b", "9:05"]]
    assert abs(float(rows[1][1]) - 41.15) < 0.1
    for words in ("epsilon 10 per km", "2 persons", "not protected: user, time", "2 x 10 = 20", "200 m from the truth"):
        assert words in text


def test_perturb_asks_for_protection_in_words(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("perturb points.csv --protect 2x@200m -o out.csv --verbose") == 0
    text = capsys.readouterr().out
    assert "epsilon 3.46574 per km" in text  # ln(2) / 0.2, all of it; rounded up to be shown
    assert (
        "Requested: places 200 m apart differ by at most a factor of 2. Guaranteed: at most a factor of 2 there" in text
    )


def test_a_released_table_is_told_in_three_short_lines(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("perturb points.csv --protect 2x@200m -o out.csv") == 0
    written, guaranteed, watch = capsys.readouterr().out.splitlines()
    assert written == "Written: out.csv, 2 rows; lat, lon moved by 577 m on average, 95 % within 1.37 km."
    assert (
        guaranteed == "Guaranteed: one row: places 200 m apart differ by at most a factor of 2 (epsilon 3.466 per km)."
    )
    assert watch.startswith("To watch: ")


def test_one_row_of_a_shared_budget_has_its_share_everywhere(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("trips.csv", ["who", "lat", "lon"], [[f"p{i // 5}", 41.9 + i / 1000, 12.5] for i in range(40)])
    line = "perturb trips.csv --epsilon 10/km --id who --budget 40/km --allocation even -o out.csv --overwrite"
    assert run(f"{line} --report page.html") == 0
    assert "One row alone: epsilon 8 per km (Haversine)." in capsys.readouterr().out
    assert "Epsilon is 8 per km" in Path("page.html").read_text(encoding="utf-8")
    assert run(f"{line} --verbose") == 0
    text = capsys.readouterr().out
    assert "Guarantee per row: epsilon 8 per km (Haversine), by theorem." in text
    assert "100 m apart: factor     2.23" in text  # exp(0.8), rounded up


def test_a_time_that_names_the_persons_is_still_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[f"2026-01-0{1 + i % 5}T0{i % 8}:1{i % 7}:2{i % 9}", 41.9 + i / 1000, 12.5] for i in range(40)]
    write("trips.csv", ["t", "lat", "lon"], rows)
    for who in ("", " --id t"):
        assert run(f"perturb trips.csv --epsilon 10/km -o out.csv --overwrite{who}") == 0
        assert "Check t: it holds times to the second" in capsys.readouterr().out


def test_a_seed_is_for_simulation(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        assert run(f"perturb points.csv --epsilon 10/km -o {name}.csv --seed 5") == 0
    assert "SIMULATION ONLY" in capsys.readouterr().out
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_perturb_with_a_mechanism_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = GRID * 0.01 + np.array([41.8, 12.4])
    save(mdp.exponential(mdp.FiniteSpace(places, mdp.Haversine()), 2.0), "rome.mdp")
    table = pa.table({"lat": places[:, 0] + 0.0005, "lon": places[:, 1], "user": ["x"] * 16})
    pq.write_table(table, "points.parquet")
    assert "snap" in refused("perturb points.parquet --mechanism rome.mdp -o out.parquet", capsys)
    line = "perturb points.parquet --mechanism rome.mdp -o out.parquet --snap 200m --columns lat,lon --id user"
    assert run(line + " --on-error drop --verbose") == 0
    text = capsys.readouterr().out
    assert "2 x 2 x 0.2 = 0.8 to the slack" in text
    assert "16 x 2 = 32 per km" in text
    assert pq.read_table("out.parquet").schema.equals(table.schema)


def test_design_audit_inspect(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("design --points cells.csv --metric l2 --epsilon 1.0 --builder optimal -o cells.mdp") == 0
    assert "no mechanism with this guarantee that gives these reports can go below" in capsys.readouterr().out
    made = load("cells.mdp")
    assert made.guarantee.epsilon == 1.0
    assert made.inputs.columns == ("x", "y")
    assert run("audit cells.mdp") == 0
    assert capsys.readouterr().out.startswith("holds: ")
    assert run("audit cells.mdp --epsilon 0.5") == 1
    assert run("inspect cells.mdp") == 0
    assert "checksum correct" in capsys.readouterr().out
    write("mine.csv", ["y", "n", "x"], [[1, "k", 2], [3, "l", 0]])
    assert run("perturb mine.csv --mechanism cells.mdp -o out.csv") == 0
    assert [row[1] for row in read("out.csv")] == ["n", "k", "l"]


def test_the_worst_pair_of_an_audit_is_named_by_its_places(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("design --points cells.csv --metric l2 --epsilon 1.0 --builder exponential -o cells.mdp") == 0
    np.save("matrix.npy", load("cells.mdp").matrix)
    for line in ("audit cells.mdp", "audit matrix.npy --points cells.csv --metric l2 --epsilon 1.0"):
        capsys.readouterr()
        assert run(line) == 0
        short = capsys.readouterr().out
        assert re.search(r"worst at secrets \(\d, \d\) and \(\d, \d\), report ", short)
        assert run(f"{line} --verbose") == 0
        assert re.search(r", 120 pairs; worst at secrets \(\d, \d\) and", capsys.readouterr().out)


def test_a_design_is_told_with_digits_that_show_its_gap(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("design --points cells.csv --metric l2 --epsilon 1.0 --builder optimal -o cells.mdp") == 0
    text = capsys.readouterr().out
    loss, bound = re.search(r"expected loss (\S+), no .* can go below (\S+) \(gap ", text).groups()
    certificate = load("cells.mdp").certificate
    assert float(bound) <= certificate.lower_bound
    assert float(loss) > float(bound) > 0
    assert "16 points, straight-line distance (l2)" in text
    assert "epsilon 1 per unit of distance (l2)" in text
    assert "audited epsilon" not in text
    assert run("export cells.mdp -o phone.mdp --bits 12") == 0
    capsys.readouterr()
    assert run("inspect phone.mdp") == 0
    text = capsys.readouterr().out
    assert "before rounding. " in text
    assert "unaltered" not in text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("perturb points.csv --epsilon 10/km", "say where the protected table goes: --output out.csv."),
        ("perturb -o out.csv --epsilon 10/km", "say which file to read"),
        ("budget begin budget.db", "--policy '40/km per day'"),
        ("perturb points.csv --epsilon 10/km -o cells.csv", "or replace it with --overwrite."),
        ("budget show points.csv", "'points.csv' is not a ledger; `metricdp budget begin` makes one."),
    ],
)
def test_errors_of_a_command_name_its_options(
    line: str, words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(line, capsys)
    assert words in error
    assert "parameter" not in error
    assert "=True" not in error


def test_files_for_devices(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("design --points cells.csv --metric l2 --epsilon 1.0 --builder exponential -o cells.mdp") == 0
    assert run("keys me") == 0
    assert run("keys you") == 0
    capsys.readouterr()
    assert run("export cells.mdp -o phone.mdp --bits 12 --key me.key --licence ODbL-1.0 --verbose") == 0
    text = capsys.readouterr().out
    for words in ("whole multiples of 1/2^12", "audited epsilon 0.99", "Signature: good"):
        assert words in text
    assert run("inspect phone.mdp --key me.pub --verbose") == 0
    text = capsys.readouterr().out
    for words in (
        "one row of probabilities",
        "The slack alone allows a factor of ",
        "Licence of the data: ODbL-1.0",
        "key in me.pub",
        "12 bits",
    ):
        assert words in text
    assert text.count("Note:") == 1
    assert run("inspect phone.mdp --json") == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["storage"], values["bits"], values["licence"]) == ("quantised", 12, "ODbL-1.0")
    assert values["promise"]["epsilon"] == 1.0
    assert values["certificate"]["at_most"] is False
    mdp.save(mdp.madlib(mdp.FiniteSpace([[0.0], [1.0], [3.0]], mdp.Lp(2)), 2.0), "words.mdp")
    assert run("inspect words.mdp --json") == 0
    assert json.loads(capsys.readouterr().out)["certificate"]["at_most"] is True
    assert "not a trusted key" in refused("inspect phone.mdp --key you.pub", capsys)
    assert "it has no signature" in refused("inspect cells.mdp --key me.pub", capsys)
    write("two.csv", ["x", "y"], [[1, 2], [3, 0]])
    assert run("perturb two.csv --mechanism phone.mdp --key me.pub -o kept.csv") == 0
    assert run("audit phone.mdp --key me.pub") == 0
    assert "not a trusted key" in refused("perturb two.csv --mechanism phone.mdp --key you.pub -o no.csv", capsys)
    assert "it has no signature" in refused("audit cells.mdp --key me.pub", capsys)
    assert "name it with --mechanism" in refused(
        "perturb two.csv --metric l2 --epsilon 1 --key me.pub -o no.csv", capsys
    )
    assert not Path("no.csv").exists()
    assert "never overwritten" in refused("keys me", capsys)
    assert "does not exist" in refused("export cells.mdp -o x.mdp --key none.key", capsys)
    assert "belongs to" in refused("export cells.mdp -o x.mdp --storage sparse --bits 8", capsys)
    assert "is the file that is read" in refused("export cells.mdp -o cells.mdp", capsys)
    assert run("export phone.mdp -o plain.mdp --storage dense") == 0
    assert "the new one is not" in capsys.readouterr().out
    save(mdp.laplace(mdp.Haversine(), 10.0), "noise.mdp")
    assert run("export noise.mdp -o signed.mdp --key me.key") == 0  # no table: nothing to round
    assert "no table, noise is drawn" in capsys.readouterr().out
    assert run("inspect plain.mdp --verbose") == 0
    text = capsys.readouterr().out
    assert "ODbL-1.0" in text
    assert "Signature: none" in text


@pytest.mark.parametrize("builder", ["exponential", "truncated_exponential", "tight-constraints", "madlib"])
def test_every_closed_form_has_a_name(here: Path, builder: str) -> None:
    assert run(f"design --points cells.csv --metric l2 --epsilon 1.0 --builder {builder} -o cells.mdp") == 0
    assert run("audit cells.mdp") == 0


def test_design_on_the_earth(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("cells.csv", ["name", "lat", "lon"], [["a", 41.1, -8.6], ["b", 41.2, -8.6], ["c", 41.1, -8.5]])
    assert run("design --points cells.csv --epsilon 0.1/km --builder exponential -o cells.mdp") == 0
    assert load("cells.mdp").guarantee.unit == "km"
    assert "no unit" in refused("design --points cells.csv --epsilon 0.1 --builder exponential -o x.mdp", capsys)
    assert "degrees" in refused("design --points cells.csv --epsilon 1 --metric l2 -o x.mdp", capsys)


def test_audit_judges_anyones_matrix(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = "--points cells.csv --metric l2 --epsilon 1.0"
    assert run(f"audit matrix.csv {asked}") == 0
    rows = read("matrix.csv")
    write("bare.csv", [], rows[1:])
    write("numbered.csv", [str(k) for k in range(16)], rows[1:])
    assert run(f"audit bare.csv {asked}") == 0
    assert run(f"audit numbered.csv {asked}") == 0
    rows[4][5] = "0.0"
    rows[4][0] = repr(float(rows[4][0]) + float(read("matrix.csv")[4][5]))
    write("planted.csv", [], rows)
    capsys.readouterr()
    assert run(f"audit planted.csv {asked} --json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "violated"
    assert report["epsilon"] == "infinity"
    assert report["witness"]["report"] == 5
    assert 3 in (report["witness"]["secret"], report["witness"]["other"])
    assert run("audit matrix.csv --points cells.csv --metric l2") == 2  # no promise to judge
    assert "smallest epsilon is 0.99" in capsys.readouterr().out


def test_audit_says_when_it_cannot_judge(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--points" in refused("audit matrix.csv", capsys)
    write("few.csv", ["x", "y"], GRID[:5].tolist())
    assert "16 rows" in refused("audit matrix.csv --points few.csv --metric l2 --epsilon 1.0", capsys)
    Path("broken.mdp").write_bytes(b"nonsense" * 9)
    assert "refused" in refused("audit broken.mdp", capsys)
    write("sums.csv", ["a", "b"], [[0.5, 0.6], [0.5, 0.5]])
    write("two.csv", ["x"], [[0], [1]])
    assert "sum to 1" in refused("audit sums.csv --points two.csv --metric l2 --epsilon 1.0", capsys)


def test_audit_of_noise_rests_on_its_theorem(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(mdp.laplace(mdp.Haversine(), 10.0), "noise.mdp")
    assert run("audit noise.mdp --json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["basis"]) == ("holds", "theorem")
    assert "exp(-10 d)" in report["method"]


def test_a_long_audit_is_remembered_until_it_is_asked_for_again(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    monkeypatch.setattr("metricdp.artifacts.audit_cache.LEAST_SECONDS", 0.0)
    save(mdp.exponential(mdp.FiniteSpace(GRID, mdp.Lp(2)), 1.0), "cells.mdp")
    assert run("audit cells.mdp --again") == 0
    assert "remembered" not in capsys.readouterr().out
    assert run("audit cells.mdp") == 0
    assert "remembered from 20" in capsys.readouterr().out
    assert run("audit cells.mdp --epsilon 0.1") == 1
    assert "remembered" not in capsys.readouterr().out


def test_compare_draws_and_writes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    line = "compare --points cells.csv --metric l2 --epsilon 0.5,1,2 --builders exponential,optimal -o compare.png"
    assert run(line) == 0
    assert Path("compare.png").read_bytes().startswith(b"\x89PNG")
    header, *rows = read("compare.csv")
    assert len(rows) == 6
    for row in (dict(zip(header, values, strict=True)) for values in rows):
        assert float(row["lower_bound"]) <= float(row["loss"])
        assert float(row["certified_epsilon"]) <= float(row["epsilon"])
    assert "optimal" in capsys.readouterr().out
    before = Path("cells.csv").read_bytes()  # the numbers would go there: only the picture is written
    assert run(line.replace("compare.png", "cells.png")) == 0
    assert Path("cells.csv").read_bytes() == before
    assert Path("cells.png").exists()
    assert "file that is read" in refused(line.replace("compare.png", "cells.csv"), capsys)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("perturb points.csv --epsilon 10 -o out.csv", "10/km"),
        ("perturb points.csv -o out.csv", "--protect 2x@200m"),
        ("perturb points.csv --epsilon 1/km --protect 2x@1km -o out.csv", "either"),
        ("perturb points.csv --epsilon -1/km -o out.csv", "positive"),
        ("perturb points.csv --epsilon nan/km -o out.csv", "such as"),
        ("perturb points.csv --epsilon 1/km", "--output"),
        ("perturb points.csv --epsilon 1/km -o points.csv", "file that is read"),
        ("perturb points.csv --epsilon 1/km -o none/out.csv", "does not exist"),
        ("perturb points.csv --epsilon 1/km -o out.csv --columns lat,long", "no column 'long'"),
        ("perturb points.csv --epsilon 1/km -o out.csv --on-error ignore", "ignore"),
        ("perturb points.csv --epsilon 1/km -o out.csv --id who", "no column 'who'"),
        ("perturb none.csv --epsilon 1/km -o out.csv", "does not exist"),
        ("perturb points.csv --mechanism none.mdp -o out.csv", "does not exist"),
        ("perturb points.csv --mechanism matrix.csv -o out.csv", "refused"),
        ("perturb points.csv --epsilon 1/km --snap 200 -o out.csv", "snap"),
        ("perturb points.csv --protect 2x@200 -o out.csv", "error: 2x@200 has no unit"),
        ("design --grid 41,12,42,13 --cell 500 --epsilon 1/km -o x.mdp", "write 500m or 0.5km."),
        ("design --grid 41,12,42,13 --cell 1km --protect 2x@200 -o x.mdp", "write 2x@200m or 2x@0.2km."),
        ("design --grid 41,12,42,13 --cell 1km --epsilon 1/hop --policy within:300 -o x.mdp", "write within:300m or"),
        ("choose --secrets points --places points.csv --epsilon 2x@200", "write 2x@200m or 2x@0.2km."),
        ("design --points cells.csv --epsilon 1 --metric l9 -o x.mdp", "unknown metric"),
        ("design --points cells.csv --epsilon 1 --builder magic -o x.mdp", "unknown builder"),
        ("design --points cells.csv --epsilon 1/km -o x.mdp", "no unit"),
        ("design --points cells.csv --epsilon 1 -o none/x.mdp", "does not exist"),
        ("design --points cells.csv --epsilon 0 -o x.mdp", "positive"),
        ("compare --points cells.csv --epsilon 1 -o compare.txt", ".png"),
        ("reproduce nothing", "unknown study"),
        ("inspect points.csv", "refused"),
        ("frobnicate", "frobnicate"),
    ],
)
def test_bad_lines_get_one_clean_answer(
    here: Path, capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    assert message in refused(line, capsys)


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("nan", [["nan", "1"], ["2", "3"]], "finite"),
        ("words", [["north", "1"]], "must hold numbers"),
        ("twice", [["1", "1"], ["1", "1"]], "at least two places"),
        ("empty", [], "no rows"),
    ],
)
def test_bad_points(
    here: Path, capsys: pytest.CaptureFixture[str], name: str, rows: list[list[object]], message: str
) -> None:
    write("bad.csv", ["x", "y"], rows)
    assert message in refused("design --points bad.csv --metric l2 --epsilon 1 --builder exponential -o x.mdp", capsys)


def test_bad_priors_and_rows(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "design --points cells.csv --metric l2 --epsilon 1 --builder exponential -o x.mdp --prior prior.csv"
    write("prior.csv", ["p"], [[0.1]] * 15)
    assert "has 15 rows, and there are 16 places" in refused(line, capsys)
    write("prior.csv", ["p"], [[0.1]] * 15 + [[-0.1]])
    assert "row 15" in refused(line, capsys)
    write("prior.csv", ["p"], [[1 / 16]] * 16)
    assert run(line) == 0
    write("points.csv", ["lat", "lon"], [[41.0, 8.0]] * 17 + [["", 8.0]])
    assert "row 17 " in refused("perturb points.csv --epsilon 1/km -o out.csv", capsys)
    write("points.csv", ["lat", "lon"], [])
    assert "no rows" in refused("perturb points.csv --epsilon 1/km -o out.csv", capsys)


@pytest.mark.parametrize(
    "name", ["perturb", "design", "audit", "compare", "inspect", "export", "keys", "demo", "reproduce"]
)
def test_help_shows_an_example(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(f"{name} --help") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"metricdp {name}" in text.partition("example")[2]


def test_interruption_is_quiet(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("metricdp.perturb", interrupted)
    assert run("perturb points.csv --epsilon 10/km -o out.csv") == 130
    assert "Traceback" not in capsys.readouterr().err


COMMAND = [sys.executable, "-c", "import sys; from metricdp.cli import main; sys.exit(main())"]


def test_a_real_run_and_a_real_failure(here: Path) -> None:
    started = time.perf_counter()
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True)
    assert "perturb" in done.stdout
    assert time.perf_counter() - started < 10  # well below a second on an idle machine
    line = ["perturb", "points.csv", "--epsilon", "10", "-o", "out.csv"]
    done = subprocess.run([*COMMAND, *line], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: epsilon 10 has no unit")
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_early_is_no_error(here: Path) -> None:
    line = " ".join(["perturb", "points.csv", "--epsilon", "10/km", "-o", "out.csv"])
    script = f"{COMMAND[0]} -c '{COMMAND[2]}' {line} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert done.returncode == 0


def test_compare_leaves_out_what_does_not_exist_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells.csv").write_text("x,y\n" + "".join(f"{i},{j}\n" for i in range(4) for j in range(4)))
    words = "compare --points cells.csv --metric l2 --epsilon 0.2,2 --builders exponential,tight_constraints -o c.png"
    assert run(words) == 0
    said = capsys.readouterr()
    assert "Left out: tight_constraints at epsilon 0.2" in said.err
    rows = (tmp_path / "c.csv").read_text().splitlines()
    assert len(rows) == 4  # the header, the exponential twice, tight constraints once
    assert (tmp_path / "c.png").stat().st_size > 1000


def test_a_loss_of_ones_own_is_not_called_a_distance(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = mdp.FiniteSpace(GRID, mdp.Lp(2))
    apart = np.linalg.norm(GRID[:, None] - GRID[None], axis=2)
    save(mdp.optimal(mdp.Problem(space, 1.0, loss=100.0 * apart**2)), "own.mdp")
    assert run("inspect own.mdp --verbose") == 0
    text = capsys.readouterr().out
    assert "by the loss and the prior that the mechanism was designed for" in text
    matrix = load("own.mdp").matrix
    average = (matrix / matrix.sum(axis=1, keepdims=True) * apart).sum(axis=1).mean()
    found = re.search(r"equally likely, a report lies ([\d.]+) from the truth on average", text)
    assert float(found[1]) == pytest.approx(average, rel=1e-3)
    save(mdp.optimal(mdp.Problem(space, 1.0)), "apart.mdp")
    assert run("inspect apart.mdp --verbose") == 0
    assert "On average a report lies" in capsys.readouterr().out


def test_snapping_counts_in_how_far_reports_lie(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(mdp.exponential(mdp.FiniteSpace(GRID, mdp.Lp(2)), 1.0), "cells.mdp")
    write("near.csv", ["x", "y"], [[1.01, 2], [3, 0.02]])
    assert run("perturb near.csv --mechanism cells.mdp --snap 0.05 -o out.csv --verbose") == 0
    assert "From the value in the table it lies up to 0.05 farther" in capsys.readouterr().out


def test_distances_have_the_unit_that_was_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("perturb points.csv --epsilon 16.09344/mi --metric haversine:mi -o out.csv") == 0
    assert "epsilon 16.0935 per mi (Haversine)" in capsys.readouterr().out  # rounded up
    assert run("design --points cells.csv --epsilon 1/km --metric l2:m --builder exponential -o cells.mdp") == 0
    assert load("cells.mdp").guarantee.epsilon == pytest.approx(0.001)
    assert "per m " in capsys.readouterr().out
    assert "furlong" in refused("perturb points.csv --epsilon 1/mi --metric haversine:furlong -o o.csv", capsys)
    assert "names no unit" in refused("perturb points.csv --epsilon 1/mi --metric haversine: -o o.csv", capsys)


def test_a_mile_is_a_mile(here: Path) -> None:
    """The same places and promise in two units of length are the same mechanism."""
    write("places.csv", ["lat", "lon"], [[41.15 + 0.001 * k, -8.61 - 0.002 * k] for k in range(5)])
    for metric, epsilon, out in (("haversine", "1.609344/mi", "a.mdp"), ("haversine:mi", "1/km", "b.mdp")):
        line = f"design --points places.csv --metric {metric} --epsilon {epsilon} --builder exponential -o {out}"
        assert run(line) == 0
    first, second = load("a.mdp"), load("b.mdp")
    assert first.guarantee.epsilon == pytest.approx(1.0)
    assert second.guarantee.epsilon == pytest.approx(1.609344)
    assert first.matrix == pytest.approx(second.matrix, rel=1e-5)


@pytest.mark.parametrize(("words", "most"), [("--version", 40), ("perturb --help", 150)])
def test_a_command_loads_what_it_needs_and_no_other_command(words, most):
    """376 modules of ours were loaded to say the version."""
    program = f"""if True:
        import sys
        from metricdp.__main__ import main
        sys.argv = ["metricdp", *{words.split()!r}]
        main()
        print(sum(name.partition(".")[0] == "metricdp" for name in sys.modules), file=sys.stderr)
    """
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(found.stderr.split()[-1]) <= most


def test_the_help_of_the_program_says_what_every_command_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    shown = capsys.readouterr().out
    assert len(COMMANDS) == 18
    assert len({command.group for command in COMMANDS}) == 4
    assert all(re.search(rf"^  {command.name} +[A-Z]", shown, re.MULTILINE) for command in COMMANDS)


@pytest.mark.parametrize("command", ["", *(command.name for command in COMMANDS)])
def test_help_fits_a_screen(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{command} --help") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= (50 if command else 30)
    assert max(map(len, lines)) <= 80
    assert " ..." not in "".join(lines).replace(", ...", "")  # no sentence is cut
    shown = "\n".join(lines).replace("--no-browser", "")
    assert "--no-" not in shown
    assert "--empty-" not in shown
    for option in next((one.first for one in COMMANDS if one.name == command), ()):
        assert any(re.match(rf"  (-., )?--{option}\b", line) for line in lines), option


def test_help_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("perturb --help-all") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("--head-file", "an older dump is refused", "SIMULATION ONLY"):
        assert words in shown


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("perturb points.csv --epsilon 10/km -o out.csv --id user --budget 20/km --spread even", "--allocation"),
        ("perturb points.csv --epsilon 10/km -o out.csv --id user --at-most=1", "--max-rows"),
        ("perturb points.csv --epsilon 10/km -o out.csv --yes-really", "--force"),
        ("perturb points.csv --epsilon 10/km -o out.csv --law", "--distribution"),
        ("builders", "metricdp list builders"),
        ("metrics", "metricdp list metrics"),
        ("engines", "metricdp list engines"),
        ("formats", "metricdp list formats"),
        ("tree --points cells.csv --metric l2 --levels 1 --epsilon 1 --builder exponential -o out", "metricdp design"),
        ("prune exponential.mdp --around 1,1 --radius 0.5 -o pruned.mdp", "metricdp export --prune"),
        ("shuffle exponential.mdp --people 10000 --distance 1", "metricdp audit --people"),
    ],
)
def test_old_names_work_for_one_version(here: Path, old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    save(mdp.exponential(mdp.FiniteSpace(GRID, mdp.Lp(2)), 1.0), "exponential.mdp")
    assert run(old) == 0
    error = capsys.readouterr().err
    assert error.startswith("note: ")
    assert error.count("\n") == 1
    assert new in error
    assert Path("out.csv.law.json").exists() == ("--law" in old)


def test_simple_commands_print_three_lines(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (
        "perturb points.csv --epsilon 10/km -o out.csv",
        "design --points cells.csv --metric l2 --epsilon 1.0 --builder exponential -o cells.mdp",
        "inspect cells.mdp",
        "export cells.mdp -o phone.mdp",
        "perturb cells.csv --mechanism cells.mdp --columns x,y -o drawn.csv",
        "estimate drawn.csv --mechanism cells.mdp -o density.csv",
    ):
        assert run(line) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [word for word in ("Guaranteed: ", "To watch: ") if not any(one.startswith(word) for one in lines)] == []
        assert len(lines) <= 4  # design says how to go on
    assert run("audit cells.mdp") == 0
    assert len(capsys.readouterr().out.splitlines()) <= 3
