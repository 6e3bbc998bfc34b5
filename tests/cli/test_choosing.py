"""`metricdp choose`: every answer it can give is run, on small real data, over all combinations of what it asks."""

from __future__ import annotations

import builtins
import io
import itertools
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp.cli import advice
from metricdp.places import bundled_roads, bundled_trips
from scripts import main

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "choose.md"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A few crossings of Porto, people who were there, a prior, a matrix and some words."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    places = np.asarray(bundled_roads(nodes=4).coordinates)
    write("cells.csv", "lat,lon", places)
    write("wide.csv", "lat,lon", np.asarray(bundled_roads(nodes=8).coordinates))
    write("visits.csv", "lat,lon,n", [(*place, n) for n, place in enumerate(places, 1)])
    cost = np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)
    write("loss.csv", ",".join("abcd"), cost)
    write("table.csv", "who,lat,lon", [(f"p{i % 3}", *places[i % 4]) for i in range(6)])
    write("words.csv", "word", [[word] for word in ("house", "mouse", "horse", "nurse")])
    write("spoken.csv", "who,word", [("a", "house"), ("b", "nurse")])
    Path("glove.txt").write_text("good 0 1\nfine 0.5 1\nbad 4 1\npoor 4.5 1\n")
    write("reviews.csv", "stars,text", [(5, "good and fine"), (1, "bad")])
    trips = bundled_trips(trips=3, seed=1)
    write("trips.csv", "trip,t,lat,lon", zip(*(trips[name].to_pylist() for name in trips.column_names), strict=True))
    return tmp_path


def write(name: str, header: str, rows: object) -> None:
    lines = [",".join(str(value) for value in row) for row in rows]  # type: ignore[attr-defined]
    Path(name).write_text("\n".join([header, *lines]) + "\n")


SECRETS = {
    "anywhere": "--table table.csv",
    "points": "--places cells.csv --table table.csv",
    "roads": "--places porto --nodes 4 --speed 30 --table table.csv",
    "grid": "--places 41.14,-8.63,41.16,-8.59 --cell 1.2km --table table.csv",
    "words": "--places words.csv --table spoken.csv",
    "texts": "--places glove.txt --table reviews.csv",
    "trips": "--places wide.csv --table trips.csv",
}


def combinations() -> list[str]:
    """All answers that the command can be given, those that do not fit together left out.

    How rows are drawn changes what follows the design and not the design: both are varied, one at a time.
    """
    found = []
    for secrets, prior, loss, wait, rows, device in itertools.product(
        SECRETS, ("none", "visits.csv"), ("distance", "squared", "time", "loss.csv"), ("now", "seconds", "minutes"),
        ("one", "several"), ("table", "phone"),
    ):  # fmt: skip
        on_places = secrets in ("points", "roads", "grid")
        if not on_places and (prior, loss, wait) != ("none", "distance", "minutes"):
            continue
        if (loss == "time" and secrets != "roads") or (loss == "loss.csv" and secrets != "points"):
            continue
        if secrets in ("trips", "texts") and (rows, device) != ("one", "table"):
            continue
        if (prior, loss, wait) != ("none", "distance", "minutes") and (rows, device) != ("one", "table"):
            continue
        epsilon = "1" if secrets in ("words", "texts") else "4/km"
        found.append(
            f"--secrets {secrets} {SECRETS[secrets]} --epsilon {epsilon} --prior {prior} --loss {loss} --wait {wait} "
            f"--rows {rows} --person who --device {device}"
        )
    return found


def answered(line: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["choose", *shlex.split(line)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Take ")
    return [row.strip() for row in said.partition("Run:\n")[2].splitlines()]


def test_every_answer_it_can_give_works(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Different combinations may give the same lines, which are run once."""
    done = set()
    for line in combinations():
        lines = tuple(answered(line, capsys))
        if lines in done:
            continue
        done.add(lines)
        for name in ("chosen.mdp", "phone.mdp", "protected.csv"):
            Path(name).unlink(missing_ok=True)
        for command in lines:
            words = shlex.split(command)
            assert words[0] == "metricdp"
            assert main(words[1:]) == 0, (line, command, capsys.readouterr().err)
        written = [name for name in ("phone.mdp", "chosen.mdp") if Path(name).exists()]
        assert all(mdp.audit(mdp.load(name)).holds for name in written)
        assert written or Path("protected.csv").exists()
    assert len(done) > 30


def test_it_asks_at_a_terminal_and_takes_return_for_the_usual_answer(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter(["pionts", "points", "cells.csv", "2x@300m", "", "", "", "several", ""])
    asked = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return next(typed)

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(builtins, "input", answer)
    assert main(["choose"]) == 0
    said = capsys.readouterr().out
    assert "Did you mean points?" in said
    assert [prompt.split()[0].rstrip(":") for prompt in asked] == [
        *("secrets", "secrets", "places", "epsilon", "prior", "loss", "wait", "rows", "device")
    ]
    assert "Take optimal on 4 points" in said
    assert "--protect 2x@300m --builder optimal" in said


class Terminal:
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "no terminal to ask at: give --secrets anywhere|points"),
        ("--secrets points", "give --places cells.csv, --epsilon 10/km"),
        ("--secrets pionts", "Did you mean points?"),
        ("--secrets points --places cells.csv --epsilon 4", "has no unit"),
        ("--secrets anywhere --epsilon 4", "has no unit"),
        ("--secrets grid --places 41.1,-8.7,41.2,-8.6 --epsilon 4/km", "needs --cell"),
        ("--secrets points --places none.csv --epsilon 4/km", "none.csv"),
        ("--secrets points --places cells.csv --epsilon 4/km --prior none.csv", "none.csv"),
        ("--secrets points --places cells.csv --epsilon 4/km --loss time", "belongs to --roads"),
        ("--secrets points --places cells.csv --epsilon 4/km --nodes 5", "--nodes belongs to --secrets roads"),
        ("--secrets points --places cells.csv --epsilon 4/km --wait long", "--wait must be one of now, seconds"),
    ],
)
def test_mistakes_get_one_sentence(here: Path, line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choose", *line.split()]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""
    assert said.err.count("\n") == 1


def test_the_page_and_the_command_say_the_same() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert advice.table() in page
    assert advice.paragraphs() in page


def test_cities_are_left_to_windows() -> None:
    for wait in ("now", "seconds", "minutes"):
        assert advice.advice_for(advice.Answers("roads", wait=wait, size=5_000)).name == "city"
