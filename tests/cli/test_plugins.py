"""Things from outside the package, through the command: named, declared, used; never imported unasked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metricdp import plugins
from metricdp.artifacts import load
from metricdp.errors import InvalidInput

EXAMPLES = Path(__file__).parents[2] / "examples" / "extend"
COMMAND = [sys.executable, "-c", "import sys; from metricdp.cli import main; sys.exit(main())"]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for example in EXAMPLES.glob("*.py"):
        shutil.copy(example, tmp_path)
    (tmp_path / "cells.csv").write_text("x,y\n" + "".join(f"{i},{j}\n" for i in range(3) for j in range(3)))
    return tmp_path


def run(folder: Path, line: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    places = [*map(str, paths), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in places if place)}
    return subprocess.run(
        [*COMMAND, *line.split()], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def python(folder: Path, script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_builder_from_outside_is_designed_saved_listed_and_compared(here: Path) -> None:
    line = "design --plugin ./builder.py --points cells.csv --metric l2 --epsilon 1.0 --builder mixed"
    done = run(here, f"{line} --set strength=0.9 -o cells.mdp")
    assert done.returncode == 0, done.stderr
    assert "mixed, strength 0.9" in done.stdout
    made = load(here / "cells.mdp")
    # what it is, written out here
    points = np.array([(i, j) for i in range(3) for j in range(3)], dtype=float)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert made.matrix.min() >= 0.1 / 9 * (1 - 1e-9)
    logs = np.log(made.matrix)
    assert all(np.abs(logs[i] - logs[j]).max() <= apart[i, j] for i in range(9) for j in range(9))
    assert "strength" in run(here, f"{line} --set weight=1 -o x.mdp").stderr
    assert run(here, f"{line} --set strength=much -o x.mdp").returncode == 2
    assert "--gap is not an option of mixed" in run(here, f"{line} --gap 0.1 -o x.mdp").stderr
    assert "mixed" in run(here, "builders --plugin ./builder.py").stdout
    pytest.importorskip("matplotlib")
    done = run(
        here, "compare --plugin=./builder.py --points cells.csv --epsilon 1 --builders exponential,mixed -o c.png"
    )
    assert done.returncode == 0, done.stderr
    assert "mixed" in (here / "c.csv").read_text()


def test_an_engine_from_outside_runs_a_job_over_files(here: Path) -> None:
    (here / "days").mkdir()
    for day in "ab":
        (here / f"days/{day}.csv").write_text(
            "lat,lon,n\n" + "".join(f"{41.15 + n / 1e4},{-8.61 + n / 1e4},{n}\n" for n in range(500))
        )
    line = "perturb days/*.csv --plugin ./engine.py --epsilon 10/km -o protected --engine threads"
    done = run(here, line)
    assert done.returncode == 0, done.stderr
    assert "1,000 rows written" in done.stdout
    lines = (here / "protected/b.csv").read_text().splitlines()
    assert [row.split(",")[2] for row in lines] == ["n", *map(str, range(500))]
    assert len(set(lines)) == 501
    assert "threads of one process" in run(here, "engines --plugin ./engine.py").stdout
    assert (
        "no engine 'threads' runs jobs over files: use one of local"
        in run(here, line.replace("--plugin ./engine.py", "")).stderr
    )


def test_a_study_from_outside_runs(here: Path) -> None:
    assert "what privacy costs on grids that grow" in run(here, "reproduce --plugin ./study.py").stdout
    done = run(here, "reproduce grids --folder out --plugin ./study.py")
    assert done.returncode == 0, done.stderr
    rows = (here / "out" / "table_1.csv").read_text().splitlines()
    assert rows[0] == "# command: metricdp reproduce grids --table 1"
    assert len([row for row in rows if row.startswith(("2,", "3,"))]) == 4
    assert "Loss on growing grids" in (here / "out" / "index.html").read_text()


def test_nothing_is_known_that_was_not_named(here: Path) -> None:
    assert (
        "unknown builder 'mixed'" in run(here, "design --points cells.csv --epsilon 1 --builder mixed -o x.mdp").stderr
    )
    assert "unknown study" in run(here, "reproduce grids").stderr


def test_an_entry_point_is_used_by_its_name_and_only_then(here: Path) -> None:
    site = here / "site"
    (site / "outside-1.0.dist-info").mkdir(parents=True)
    (site / "outside-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (site / "outside-1.0.dist-info" / "entry_points.txt").write_text("[metricdp]\nmixing = outside_mixing\n")
    shutil.copy(here / "builder.py", site / "outside_mixing.py")
    with (site / "outside_mixing.py").open("a") as file:
        file.write("\nprint('outside was imported')\n")
    quiet = run(here, "builders", site)
    assert "mixed" not in quiet.stdout
    assert "outside" not in quiet.stdout
    assert "mixed" in run(here, "builders --plugin mixing", site).stdout
    assert "mixed" in run(here, "builders --plugin outside_mixing", site).stdout  # as a module, too


@pytest.mark.parametrize("name", ["missing_module", "./missing.py", "", "a:b"])
def test_a_plugin_that_is_not_there_is_one_clean_line(here: Path, name: str) -> None:
    done = run(here, f"builders --plugin={name}")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_a_plugin_that_lacks_something_says_what(here: Path) -> None:
    (here / "broken.py").write_text("import a_package_nobody_has\n")
    done = run(here, "builders --plugin ./broken.py")
    assert done.returncode == 2
    assert "a_package_nobody_has" in done.stderr


def test_workers_inherit_what_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "harmless.py").write_text("SEEN = True\n")
    monkeypatch.setenv(plugins.VARIABLE, "")
    module = plugins.load(str(tmp_path / "harmless.py"))
    assert module.SEEN
    assert plugins.load(str(tmp_path / "harmless.py")) is module
    assert plugins.inherited() == [str(tmp_path / "harmless.py")]
    with pytest.raises(InvalidInput):
        plugins.load("a_module_nobody_has")
    assert len(plugins.inherited()) == 1


WORKER = """
import sys, types
import pyarrow as pa
from metricdp.metrics import METRICS
from metricdp.tables.engines import ray, spark
from metricdp.tables.draws import KEY_BYTES

assert METRICS.find("Walking") is None
if sys.argv[1] == "ray":
    rows = pa.table({"x": [0.0], "y": [0.0], "floor": [0.0]})
    rest = (("x", "y", "floor"), 0.0, "fail", "", "applied", sys.argv[2:])
    made, failed = ray._block(rows, 0, open("rooms.mdp", "rb").read(), rest, b"k" * KEY_BYTES)
    assert failed is None and made.num_rows == 1, failed
elif sys.argv[1] == "ray job":
    ray._partition("nowhere", 0, sys.argv[2:])
else:
    spark._Partition("nowhere", sys.argv[2:])(0)
assert METRICS.find("Walking") is not None
"""


@pytest.mark.parametrize("engine", ["ray", "ray job", "spark job"])
def test_workers_of_other_machines_are_told_what_was_named(engine: str, here: Path) -> None:
    (here / "rooms.csv").write_text("x,y,floor\n0,0,0\n6,4,1\n")
    line = "design --plugin ./metric.py --points rooms.csv --metric walking --epsilon 0.1/m --builder exponential"
    done = run(here, f"{line} -o rooms.mdp")
    assert done.returncode == 0, done.stderr
    python(here, WORKER, engine, str(here / "metric.py"))


def test_a_metric_from_outside_is_named_saved_judged_and_used(here: Path) -> None:
    rooms = [(x, y, floor) for floor in range(2) for x in (0.0, 6.0) for y in (0.0, 4.0)]
    (here / "rooms.csv").write_text("x,y,floor\n" + "".join(f"{x},{y},{floor}\n" for x, y, floor in rooms))
    line = "design --plugin ./metric.py --points rooms.csv --metric walking --protect 2x@10m --builder exponential"
    done = run(here, f"{line} -o rooms.mdp")
    assert done.returncode == 0, done.stderr
    assert "per m (Walking)" in done.stdout
    assert "at most a factor of 2 there" in done.stdout
    judged = run(here, "audit --plugin ./metric.py rooms.mdp --json")
    assert judged.returncode == 0, judged.stderr
    # the promise, over every pair, written out here
    script = "import json, metricdp; print(json.dumps(metricdp.load('rooms.mdp').matrix.tolist()))"
    matrix = np.array(json.loads(python(here, f"from metricdp import plugins; plugins.load('./metric.py'); {script}")))
    for i, a in enumerate(rooms):
        for j, b in enumerate(rooms):
            apart = np.hypot(a[0] - b[0], a[1] - b[1]) + 15.0 * abs(a[2] - b[2])
            assert np.abs(np.log(matrix[i] / matrix[j])).max() <= np.log(2) / 10 * apart * (1 + 1e-9)
    stranger = run(here, "audit rooms.mdp")
    assert stranger.returncode == 2
    assert "Walking" in stranger.stderr
    assert "unknown metric 'walking'" in run(here, line.replace("--plugin ./metric.py ", "") + " -o x.mdp").stderr
    assert "walking" in run(here, "metrics --plugin ./metric.py").stdout
    (here / "people.csv").write_text("x,y,floor,who\n0,0,0,a\n6,4,1,b\n")
    done = run(here, "perturb people.csv --plugin ./metric.py --mechanism rooms.mdp -o out.csv")
    assert done.returncode == 0, done.stderr
