"""Things from outside the package, through the command: named, declared, used; never imported unasked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp import plugins
from metricdp.artifacts import dumps, load, loads
from metricdp.design import BUILDERS
from metricdp.errors import InvalidInput, OutOfDomain
from scripts import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "extend"


@dataclass(frozen=True)
class Done:
    """What a command said."""

    code: int
    out: str
    err: str


Run = Callable[[str], Done]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples; what they declare ends with the test (`conftest.py`)."""
    monkeypatch.chdir(tmp_path)
    for example in EXAMPLES.glob("*.py"):
        shutil.copy(example, tmp_path)
    (tmp_path / "cells.csv").write_text("x,y\n" + "".join(f"{i},{j}\n" for i in range(3) for j in range(3)))
    return tmp_path


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process, which knows what earlier lines of the test named."""

    def ran(line: str) -> Done:
        capsys.readouterr()
        code = main(line.split())
        return Done(code, *capsys.readouterr())

    return ran


def python(folder: Path, script: str, *arguments: str) -> Done:
    """Run a script in a process of its own, which knows nothing."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder, env={**os.environ, plugins.VARIABLE: ""}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def stranger(folder: Path, line: str) -> Done:
    """Run the command as a program of its own."""
    return python(folder, "import sys; from metricdp.cli import main; sys.exit(main())", *line.split())


def test_a_builder_from_outside_is_designed_saved_listed_and_compared(here: Path, run: Run) -> None:
    line = "design --plugin ./builder.py --points cells.csv --metric l2 --epsilon 1.0 --builder mixed"
    done = run(f"{line} --set strength=0.9 -o cells.mdp")
    assert done.code == 0, done.err
    assert "mixed, strength 0.9" in done.out
    made = load(here / "cells.mdp")
    # what it is, written out here
    points = np.array([(i, j) for i in range(3) for j in range(3)], dtype=float)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert made.matrix.min() >= 0.1 / 9 * (1 - 1e-9)
    logs = np.log(made.matrix)
    assert all(np.abs(logs[i] - logs[j]).max() <= apart[i, j] for i in range(9) for j in range(9))
    assert "strength" in run(f"{line} --set weight=1 -o x.mdp").err
    assert run(f"{line} --set strength=much -o x.mdp").code == 2
    assert "--gap is not an option of mixed" in run(f"{line} --gap 0.1 -o x.mdp").err
    assert "mixed" in run("builders --plugin ./builder.py").out
    pytest.importorskip("matplotlib")
    done = run("compare --plugin=./builder.py --points cells.csv --epsilon 1 --builders exponential,mixed -o c.png")
    assert done.code == 0, done.err
    assert "mixed" in (here / "c.csv").read_text()


def test_an_engine_from_outside_runs_a_job_over_files(here: Path, run: Run) -> None:
    (here / "days").mkdir()
    for day in "ab":
        (here / f"days/{day}.csv").write_text(
            "lat,lon,n\n" + "".join(f"{41.15 + n / 1e4},{-8.61 + n / 1e4},{n}\n" for n in range(500))
        )
    line = "perturb days/*.csv --plugin ./engine.py --epsilon 10/km -o protected --engine threads"
    unknown = run(line.replace("--plugin ./engine.py", ""))
    assert "no engine 'threads' runs jobs over files: use one of local" in unknown.err
    done = run(f"{line} --report page.html")
    assert done.code == 0, done.err
    assert "All 1,000 reports." in (here / "page.html").read_text()  # read from the files that were written
    assert "1,000 rows written" in done.out
    lines = (here / "protected/b.csv").read_text().splitlines()
    assert [row.split(",")[2] for row in lines] == ["n", *map(str, range(500))]
    assert len(set(lines)) == 501
    assert "threads of one process" in run("engines --plugin ./engine.py").out


def test_nothing_is_known_that_was_not_named(run: Run) -> None:
    assert "unknown builder 'mixed'" in run("design --points cells.csv --epsilon 1 --builder mixed -o x.mdp").err


def test_an_entry_point_is_used_by_its_name_and_only_then(
    here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = here / "site"
    (site / "outside-1.0.dist-info").mkdir(parents=True)
    (site / "outside-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (site / "outside-1.0.dist-info" / "entry_points.txt").write_text("[metricdp]\nmixing = outside_mixing\n")
    shutil.copy(here / "builder.py", site / "outside_mixing.py")
    with (site / "outside_mixing.py").open("a") as file:
        file.write("\nprint('outside was imported')\n")
    monkeypatch.syspath_prepend(site)
    quiet = run("builders")
    assert "mixed" not in quiet.out
    assert "outside" not in quiet.out
    for name in ("mixing", "outside_mixing"):  # as a module, too
        said = run(f"builders --plugin {name}").out
        assert "outside was imported" in said
        assert "mixed" in said
        BUILDERS._entries.pop("mixed")  # as if it had never been named
        del sys.modules["outside_mixing"]


@pytest.mark.parametrize("name", ["missing_module", "./missing.py", "", "a:b"])
def test_a_plugin_that_is_not_there_is_one_clean_line(run: Run, name: str) -> None:
    done = run(f"builders --plugin={name}")
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


def test_a_plugin_that_lacks_something_says_what(here: Path, run: Run) -> None:
    (here / "broken.py").write_text("import a_package_nobody_has\n")
    done = run("builders --plugin ./broken.py")
    assert done.code == 2
    assert "a_package_nobody_has" in done.err


def test_workers_inherit_what_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "harmless.py").write_text("SEEN = True\n")
    monkeypatch.setenv(plugins.VARIABLE, "")
    module = plugins.load(str(tmp_path / "harmless.py"))
    assert module.SEEN
    assert plugins.load(str(tmp_path / "harmless.py")) is module
    assert plugins.inherited_plugins() == [str(tmp_path / "harmless.py")]
    with pytest.raises(InvalidInput):
        plugins.load("a_module_nobody_has")
    assert len(plugins.inherited_plugins()) == 1


WORKER = """
import sys
import pyarrow as pa
from metricdp.metrics import METRICS
from metricdp.tables.engines import ray, spark
from metricdp.tables.batch import KEY_BYTES
from metricdp.tables import TaskSpec

def block(names):
    rows = pa.table({"x": [0.0], "y": [0.0], "floor": [0.0]})
    spec = TaskSpec(b"", ("x", "y", "floor"), 0.0, "fail")
    rest = (spec, "applied", names)
    made, failed = ray._protect_block(rows, 0, open("rooms.mdp", "rb").read(), rest, b"k" * KEY_BYTES)
    assert failed is None and made.num_rows == 1, failed

before = dict(METRICS._entries), set(sys.modules)
ray_job = lambda names: ray._protect_partition("nowhere", 0, names)
spark_job = lambda names: spark._Partition("nowhere", names)(0)
for work in (block, ray_job, spark_job):
    assert METRICS.find("Walking") is None
    work(sys.argv[1:])
    assert METRICS.find("Walking") is not None
    METRICS._entries.clear()
    METRICS._entries.update(before[0])  # the next worker has been told nothing yet
    for name in {name for name in sys.modules if name.startswith("metricdp_plugin")} - before[1]:
        del sys.modules[name]
print("told")
"""


def test_workers_of_other_machines_are_told_what_was_named(here: Path, run: Run) -> None:
    """A block and a partition on Ray, a partition on Spark."""
    (here / "rooms.csv").write_text("x,y,floor\n0,0,0\n6,4,1\n")
    line = "design --plugin ./metric.py --points rooms.csv --metric walking --epsilon 0.1/m --builder exponential"
    done = run(f"{line} -o rooms.mdp")
    assert done.code == 0, done.err
    worked = python(here, WORKER, str(here / "metric.py"))
    assert (worked.code, worked.out) == (0, "told\n"), worked.err


def test_a_metric_from_outside_is_named_saved_judged_and_used(here: Path, run: Run) -> None:
    rooms = [(x, y, floor) for floor in range(2) for x in (0.0, 6.0) for y in (0.0, 4.0)]
    (here / "rooms.csv").write_text("x,y,floor\n" + "".join(f"{x},{y},{floor}\n" for x, y, floor in rooms))
    line = "design --plugin ./metric.py --points rooms.csv --metric walking --protect 2x@10m --builder exponential"
    assert "unknown metric 'walking'" in run(line.replace("--plugin ./metric.py ", "") + " -o x.mdp").err
    done = run(f"{line} -o rooms.mdp")
    assert done.code == 0, done.err
    assert "per m (Walking)" in done.out
    assert "at most a factor of 2 there" in done.out
    judged = run("audit --plugin ./metric.py rooms.mdp --json")
    assert judged.code == 0, judged.err
    # the promise, over every pair, written out here
    matrix = load(here / "rooms.mdp").matrix
    for i, a in enumerate(rooms):
        for j, b in enumerate(rooms):
            apart = np.hypot(a[0] - b[0], a[1] - b[1]) + 15.0 * abs(a[2] - b[2])
            assert np.abs(np.log(matrix[i] / matrix[j])).max() <= np.log(2) / 10 * apart * (1 + 1e-9)
    unasked = stranger(here, "audit rooms.mdp")
    assert unasked.code == 2
    assert "Walking" in unasked.err
    assert stranger(here, "audit rooms.mdp --plugin ./metric.py").code == 0
    assert "walking" in run("metrics --plugin ./metric.py").out
    (here / "people.csv").write_text("x,y,floor,who\n0,0,0,a\n6,4,1,b\n")
    done = run("perturb people.csv --plugin ./metric.py --mechanism rooms.mdp -o out.csv")
    assert done.code == 0, done.err


def test_a_mechanism_from_outside_has_every_facet_through_the_command(here: Path, run: Run) -> None:
    plugin, days = "--plugin ./staircase.py", here / "days"
    days.mkdir()
    for number in range(3):
        rows = "".join(f"p{row % 5},{20 + row}\n" for row in range(20 + number))
        (days / f"day{number}.csv").write_text(f"person,age\n{rows}")
    line = f"design {plugin} --builder staircase --metric l1 --dimension 1 --epsilon 0.5 --set step=1 -o ages.mdp"
    done = stranger(here, line)
    assert done.code == 0, done.err
    done = stranger(here, f"audit {plugin} ages.mdp")
    assert done.code == 0, done.err
    assert "holds: epsilon 0.5" in done.out
    assert stranger(here, "audit ages.mdp").code != 0  # nobody named the plugin
    given = f"{plugin} --mechanism ages.mdp --columns age"
    people = "--id person --budget 1 --allocation even --force"  # another mechanism for every number of rows
    done = stranger(here, f"perturb days/day0.csv {given} {people} --distribution -o out.csv --report out.html")
    assert done.code == 0, done.err
    distribution = json.loads((here / "out.csv.distribution.json").read_text())
    assert distribution["kind"] == "staircase"
    assert distribution["lattice"]["pitch"] == 0.01
    assert "|y - x|" in (here / "out.html").read_text()
    reports = np.loadtxt(here / "out.csv", delimiter=",", skiprows=1, usecols=1)
    assert len(reports) == 20
    assert np.allclose(reports * 100, np.rint(reports * 100))
    done = stranger(here, f"perturb days/*.csv {given} -o protected")  # workers
    assert done.code == 0, done.err
    assert len(list((here / "protected").glob("*.csv"))) == 3


def test_reports_of_a_mechanism_from_outside_are_decoded(here: Path) -> None:
    made = plugins.load("./staircase.py").staircase(mdp.Lp(1), 1.0)
    rng = np.random.default_rng(3)
    ages = rng.choice([20.0, 30.0], 3_000, p=[0.25, 0.75])[:, None]
    cells = mdp.FiniteSpace(np.arange(10.0, 41.0)[:, None], mdp.Lp(1))
    found = mdp.estimate_density(made.sample(ages, rng=rng), made, cells=cells, within="point")
    assert found.masses[:15].sum() == pytest.approx(0.25, abs=0.06)


def test_workers_know_what_was_loaded_and_not_what_was_only_imported(here: Path) -> None:
    (here / "days").mkdir()
    for number in range(2):
        (here / "days" / f"day{number}.csv").write_text("age\n" + "".join(f"{20 + row}\n" for row in range(20)))
    script = (
        "import sys, metricdp as mdp; from metricdp import plugins\n"
        "if __name__ == '__main__':\n"
        "    staircase = {load}\n"
        "    noise = staircase.staircase(mdp.Lp(1), 0.5)\n"
        "    print(mdp.perturb('days', noise, to=sys.argv[1], columns=['age'], workers=2).rows)\n"
    )
    done = python(here, script.format(load="plugins.load('./staircase.py')"), "loaded")
    assert done.out.strip() == "40", done.err
    imported = python(here, script.format(load="__import__('staircase')"), "imported")
    assert imported.code != 0
    assert "metricdp.plugins.load" in imported.err


def test_the_staircase_has_the_law_that_it_says(here: Path) -> None:
    made = plugins.load("./staircase.py").staircase(mdp.Lp(1), 0.7, step=2.0)
    away = np.arange(-12_000, 12_001) * made.lattice.pitch
    distribution = np.exp(made.log_density(np.zeros((len(away), 1)), away[:, None]))
    assert distribution.sum() == pytest.approx(1.0, rel=1e-9)
    assert (distribution * np.abs(away)).sum() == pytest.approx(made.certificate.loss, rel=1e-9)
    assert made.certificate.loss < mdp.laplace(mdp.Lp(1), 0.7, dimension=1).certificate.loss
    for steps in (1, 2, 5):  # private at epsilon, and at no less: brute force over all reports
        other = np.exp(made.log_density(np.full((len(away), 1), steps * 2.0), away[:, None]))
        assert np.abs(np.log(distribution / other)).max() == pytest.approx(0.7 * steps * 2.0, rel=1e-9)
    drawn = made.sample(np.zeros((4_000, 1)), rng=np.random.default_rng(7))[:, 0]
    assert np.abs(drawn).mean() == pytest.approx(made.certificate.loss, rel=0.06)
    for level in (0.5, 0.9):
        radius = mdp.accuracy_radius(made, level)
        assert distribution[np.abs(away) <= radius].sum() >= level
        assert (np.abs(drawn) <= radius).mean() >= level - 0.03
    with pytest.raises(OutOfDomain, match="whole multiples of 2"):
        made.sample([[1.0]])
    assert load_bytes(made).step == 2.0


def load_bytes(mechanism):
    return loads(dumps(mechanism))
