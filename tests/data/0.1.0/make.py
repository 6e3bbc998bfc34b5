"""Write what version 0.1.0 wrote: run once with that version, from its own checkout, and never again.

    PYTHONPATH=tests python tests/data/0.1.0/make.py FOLDER

Every later version must open what is in this folder (`tests/test_files_of_0_1_0.py`). The keys in it are of these
fixtures alone. `@FOLDER@` stands for the folder in which the files were made.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import books
import instances
import metricdp as mdp
from metricdp.cli import main
from metricdp.ledger import Ledger

EVERY = importlib.import_module(
    "contract.test_every_mechanism"
)  # one mechanism of every kind, as that version knew them
WORK = Path("/tmp/metricdp-0.1.0")
POLICY = "40/km per day, 200/km ever, 100 ever"
WIDE = "100000/km ever"


def command(*words: str, code: int = 0) -> str:
    """Run a command of metricdp in the folder of work and return what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        found = main(list(words))
    assert found == code, (words, found)
    return out.getvalue()


def mechanisms(folder: Path) -> dict[str, dict[str, object]]:
    """Every kind of mechanism, and one mechanism on every metric: what they draw with a seed, and their audit."""
    folder.mkdir()
    facts: dict[str, dict[str, object]] = {}
    made = {f"kind-{name}": (build(), row) for name, (build, row) in EVERY.KINDS.items()}
    for name, space in instances.SPACES.items():
        points = space()
        if name == "policy in parts":
            made["metric-policy"] = (mdp.exponential(points, 1.0), None)
        else:
            made[f"metric-{name.replace(' ', '-')}"] = (mdp.exponential(points, 1.0), None)
    made["optimal"] = (mdp.optimal(mdp.Problem(mdp.grid((3, 3)), 1.0), gap=0.01), [1.0, 2.0])
    made["zeros-and-radius"] = (instances.with_zeros(), None)
    for name, (mechanism, row) in made.items():
        if name == "zeros-and-radius":
            from metricdp.artifacts import dumps

            (folder / f"{name}.mdp").write_bytes(dumps(mechanism))
        else:
            mdp.save(mechanism, folder / f"{name}.mdp")
        fact: dict[str, object] = {"guarantee": str(mechanism.guarantee), "verdict": EVERY.judge(mechanism).verdict}
        if row is not None:
            secrets = mechanism.inputs.encode([row] * 20)
        elif isinstance(mechanism.inputs, mdp.FiniteSpace):
            secrets = np.arange(20) % len(mechanism.inputs)
        else:
            secrets = None
        if secrets is not None:
            drawn = np.ascontiguousarray(mechanism.sample(secrets, rng=np.random.default_rng(3)))
            fact |= {"row": row, "drawn": hashlib.sha256(drawn.tobytes()).hexdigest()}
        facts[name] = fact
    command("keys", str(folder / "signer"))
    command(
        "export", str(folder / "optimal.mdp"), "-o", str(folder / "signed.mdp"), "--key", str(folder / "signer.key")
    )
    (folder / "signer.key").unlink()
    return facts


def table(path: Path, rows: int, *, bad: int | None = None) -> Path:
    """A table of five people on the streets of Porto, 41.15, -8.61; `bad` names a row that is no place."""
    rng = np.random.default_rng(rows)
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["person", "t", "lat", "lon"])
        for number in range(rows):
            lat = 410.0 if number == bad else round(41.15 + rng.normal() / 100, 6)
            writer.writerow(
                [f"person{number % 5}", 1_700_000_000 + 60 * number, lat, round(-8.61 + rng.normal() / 100, 6)]
            )
    return path


def use(address: str, *options: str) -> dict[str, object]:
    """Release by hand, by table and by stream into one ledger, and return what everybody spent, in millionths."""
    open_options = {"key_file": options[1]} if options else {}
    with Ledger.open(address, **open_options) as ledger:
        for number in range(3):
            books.ask(ledger, "anna", f"r{number}")
        books.ask(ledger, "ben", "r0", metric="l2", epsilon=2.0)
        books.ask(ledger, "José", "r0")
        ledger.release_batch(
            {"anna": 1, "cleo": 2}, "batch", key="app", epsilon=5.0, metric="haversine/km", draw=lambda rows: b"reports"
        )
    source = table(WORK / "few.csv", 10)
    command(
        "perturb", str(source), "--epsilon", "10/km", "--id", "person", "--ledger", address, *options,
        "-o", str(WORK / "few-out.csv"), "--drop", "t", "--overwrite",
    )  # fmt: skip
    with Ledger.open(address, **open_options) as ledger:
        people = ["anna", "ben", "José", "cleo", *(f"person{n}" for n in range(5))]
        spent = {who: {one.metric: one.spent for one in ledger.budget(who).accounts} for who in people}
        assert ledger.verify().holds
    return spent


def ledgers(folder: Path) -> dict[str, object]:
    """A ledger in a file, one of PostgreSQL as its own dump, and the memory of a stream in both."""
    folder.mkdir()
    facts: dict[str, object] = {}
    with Ledger.open(folder / "budget.db", policy=POLICY):
        pass
    facts["budget.db"] = use(str(folder / "budget.db"))
    with Ledger.open(folder / "stream.db", policy=WIDE):
        pass
    rows = "person,t,lat,lon\n" + "".join(f"anna,{60 * n},{41 + 0.05 * (n // 3)},-8\n" for n in range(8))
    (folder / "stream.csv").write_text(rows)
    command(
        "stream", str(folder / "stream.csv"), "--window", "4", "--total", "20/km",
        "--ledger", str(folder / "stream.db"), "-o", str(folder / "stream-reports.csv"),
    )  # fmt: skip
    with books.server() as server:
        address = server.fresh("ledger")
        key = folder / "postgres.key"
        with Ledger.open(address, policy=POLICY, key_file=key):
            pass
        facts["postgres.sql"] = use(address, "--key-file", str(key))
        dump = subprocess.run(
            [f"{books.postgres()}/pg_dump", "--no-owner", "--inserts", address], check=True, capture_output=True
        ).stdout
        (folder / "postgres.sql").write_bytes(dump)
    return facts


def jobs(folder: Path) -> None:
    """A job over three files that stopped at a bad row, and one that is finished."""
    folder.mkdir()
    for name, bad in (("stopped", 3), ("finished", None)):
        days = WORK / name / "days"
        days.mkdir(parents=True)
        for day in range(3):
            table(days / f"{day}.csv", 4 + day, bad=bad if day == 2 else None)
        command(
            "perturb", str(days / "*.csv"), "--epsilon", "10/km", "--drop", "t", "-o", str(WORK / name / "out"),
            code=2 if bad else 0,
        )  # fmt: skip
        shutil.copytree(WORK / name, folder / name)
    for path in folder.rglob("job.json"):
        path.write_text(path.read_text().replace(str(WORK), "@FOLDER@"))
    # git keeps no hidden folders' modes and no empty folders; the test sets modes and makes these again
    empty = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir() and not any(path.iterdir())]
    (folder / "empty-folders.json").write_text(json.dumps(sorted(empty)))


def states(folder: Path) -> None:
    """The state of a long run of `decomposed`."""
    folder.mkdir()
    problem = mdp.Problem(mdp.grid((4, 4)), 1.0)
    mdp.decomposed(problem, blocks=2, gap=0.05, checkpoint=folder / "decomposed.npz")


def records(folder: Path) -> None:
    """What the commands print as JSON."""
    folder.mkdir()
    here = folder.parent
    kinds, books_file = here / "mechanisms", WORK / "record.db"
    shutil.copy(here / "ledgers" / "budget.db", books_file)
    shutil.copy(here / "ledgers" / "budget.db.key", f"{books_file}.key")
    matrix = mdp.load(kinds / "kind-matrix.mdp").matrix
    np.savetxt(WORK / "matrix.csv", matrix, delimiter=",")
    (WORK / "points.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x in range(3) for y in range(3)))
    asked = {
        "audit-file": ["audit", str(kinds / "optimal.mdp"), "--json"],
        "audit-matrix": [
            "audit", str(WORK / "matrix.csv"), "--points", str(WORK / "points.csv"), "--metric", "l2",
            "--epsilon", "1.0", "--json",
        ],
        "inspect": ["inspect", str(kinds / "signed.mdp"), "--json"],
        "budget-show": ["budget", "show", str(books_file), "--person", "anna", "--json"],
    }  # fmt: skip
    command("budget", "export", str(books_file), "-o", str(folder / "budget-export.jsonl"))
    for name, words in asked.items():
        text = command(*words)
        json.loads(text)
        (folder / f"{name}.json").write_text(text.replace(str(WORK), "@FOLDER@").replace(str(here), "@FOLDER@"))


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    os.environ["METRICDP_PLUGINS"] = ""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir()
    facts = {"mechanisms": mechanisms(target / "mechanisms"), "ledgers": ledgers(target / "ledgers")}
    jobs(target / "jobs")
    states(target / "states")
    records(target / "records")
    (target / "facts.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
