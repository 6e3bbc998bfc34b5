"""The page, the record, the law and the column of accuracies: true, public, and whole."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import metricdp as mdp
from browsers import CHROMIUM_OPTIONS, chromium
from metricdp.places import bundled_roads, bundled_trips
from metricdp.tables import Disclosure, spec_of, task_for
from metricdp.tables.jobs.plan import job_from, plan
from metricdp.tables.reporting import citation
from scripts import main

PROJECT = Path(__file__).parents[2]
PARTS = json.loads((PROJECT / "src/metricdp/metricdp.schema.json").read_text())["$defs"]
SCHEMA = {"$ref": "#/$defs/summary", "$defs": PARTS}
LAW = {"$ref": "#/$defs/distribution", "$defs": PARTS}
WORDS = ["alpha", "beta", "<b>gamma</b>", "delta", "epsilon", "zeta", "eta"]


@pytest.fixture(scope="module")
def mechanisms(tmp_path_factory) -> Path:
    """A folder with one mechanism of every kind that the page can tell, and a table for each."""
    folder = tmp_path_factory.mktemp("told")
    generator = np.random.default_rng(0)
    roads = bundled_roads(nodes=40)
    mdp.save(mdp.exponential(roads, 8.0), folder / "roads.mdp")
    streets = mdp.interpolated(roads, roads, 8.0, anchors=1, bound=False, gap=0.2)
    mdp.save(streets, folder / "streets.mdp")
    vocabulary = mdp.vocabulary(WORDS, generator.normal(size=(len(WORDS), 3)))
    mdp.save(mdp.exponential(vocabulary, 2.0), folder / "words.mdp")
    noise = mdp.product(mdp.laplace(mdp.Haversine(), 10.0), mdp.laplace(mdp.Lp(2), 0.5, dimension=1))
    mdp.save(noise, folder / "both.mdp")
    trips = bundled_trips(trips=12, seed=7, space=roads).to_pylist()
    (folder / "trips.csv").write_text(
        "trip,t,lat,lon\n" + "".join(f"{row['trip']},{row['t']},{row['lat']!r},{row['lon']!r}\n" for row in trips)
    )
    lengths = streets.inputs.network.lengths
    numbers = generator.integers(len(lengths), size=60)
    (folder / "places.csv").write_text(
        "street,offset\n" + "".join(f"{n},{0.5 * lengths[n]:.6f}\n" for n in numbers.tolist())
    )
    (folder / "words.csv").write_text("word\n" + "".join(f"{WORDS[i % 7]}\n" for i in range(50)))
    (folder / "vectors.csv").write_text(
        "x,y,z\n" + "".join(f"{x:.3f},{y:.3f},{z:.3f}\n" for x, y, z in generator.normal(size=(80, 3)))
    )
    return folder


CASES = {
    "earth": "trips.csv --epsilon 10/km --id trip",
    "roads": "trips.csv --mechanism roads.mdp --snap 30m",
    "streets": "places.csv --mechanism streets.mdp",
    "words": "words.csv --mechanism words.mdp",
    "plane": "vectors.csv --epsilon 0.7 --metric l2 --columns x,y",
    "line": "vectors.csv --epsilon 0.7 --metric l1 --columns z",
    "vectors": "vectors.csv --epsilon 0.7 --metric linf --columns x,y,z",
    "product": "trips.csv --mechanism both.mdp --columns lat,lon,t",
}


class Reader(HTMLParser):
    """Checks that tags close, and collects links and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [
            value or "" for name, value in attrs if name in ("src", "href", "style") and "url(" in str(value)
        ]
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        return None

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> tuple[str, Reader]:
    reader = Reader()
    reader.feed(page)
    return " ".join(" ".join(reader.text).split()), reader


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_table_has_a_page_a_record_a_law_and_a_column(mechanisms, tmp_path, monkeypatch, capsys, case):
    monkeypatch.chdir(mechanisms)
    column = "place,time" if case == "product" else "accuracy"
    target = tmp_path / "out.csv"
    words = f"perturb {CASES[case]} -o {target} --report {tmp_path / 'p.html'} --json {tmp_path / 's.json'}"
    assert main([*words.split(), "--accuracy-column", column]) == 0
    said = capsys.readouterr().out
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    text, reader = read(page)
    assert reader.open == []
    assert reader.links == []
    assert "http" not in page
    record = json.loads((tmp_path / "s.json").read_text())
    jsonschema.validate(record, SCHEMA)
    distribution = json.loads((tmp_path / "out.csv.distribution.json").read_text())
    jsonschema.validate(distribution, LAW)
    assert record["law"] == distribution
    assert record["sentences"] == said.replace(str(target), "out.csv").splitlines()[: len(record["sentences"])]
    assert record["promise"]["words"] in text or "probabilities of the report differ" in text
    rows = rows_of(target)
    assert record["rows"]["written"] == len(rows)
    for stated in record["columns"]["accuracy"]:
        assert {float(row[stated["column"]]) for row in rows} == {stated["radius"]}
        assert f"Column {stated['column']}: with probability at least 95 %" in said
    parts = distribution.get("parts", [distribution])
    for part, stated in zip(parts, record["columns"]["accuracy"], strict=True):
        exact = next(one for one in part["radii"] if one["level"] == 0.95)
        size = exact["radius"] if exact["metres"] is None else exact["metres"]
        assert size * (1 - 1e-12) <= stated["radius"] <= 1.01 * size  # rounded up
    assert "not measured on this table" in text or "not measured on this table" in page.replace("\n", " ")
    assert "How to cite" in text


def numbers_in(text: str) -> set[str]:
    return set(re.findall(r"-?\d+\.\d{4,}", text))


@pytest.mark.parametrize("case", ["earth", "plane", "roads", "words"])
def test_no_true_value_is_on_the_page_or_in_the_record_unless_asked_for(mechanisms, tmp_path, monkeypatch, case):
    """The secrets are values that stand nowhere else: none of them is anywhere in what is told."""
    monkeypatch.chdir(mechanisms)
    source, *rest = CASES[case].split()
    lines = (mechanisms / source).read_text().splitlines()
    if case in ("earth", "roads"):  # places of the secrets, moved a little so that they are not places of the design
        lines = [lines[0], *(re.sub(r"(\d\.\d{5})\d*", r"\g<1>7731", line) for line in lines[1:])]
    secret = tmp_path / "secret.csv"
    secret.write_text("\n".join(lines) + "\n")
    target = tmp_path / "out.csv"
    told = ["--report", str(tmp_path / "p.html"), "--json", str(tmp_path / "s.json"), "--distribution"]
    if "--snap" in rest:
        rest[rest.index("--snap") + 1] = "60m"
    assert main(["perturb", str(secret), *rest, "-o", str(target), *told]) == 0
    released = {value for row in rows_of(target) for value in row.values()}
    for name in ("p.html", "s.json", "out.csv.distribution.json"):
        text = (tmp_path / name).read_text()
        assert "7731" not in text
        true = {number for line in lines[1:] for number in numbers_in(line)} - released
        assert not true & numbers_in(text)
    # With other secrets and the same reports the page would be the same: only reports and the design are looked at.
    assert 'class="true"' not in (tmp_path / "p.html").read_text().partition("Before and after")[0]


def test_true_positions_are_shown_only_on_request_and_the_page_says_so(mechanisms, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(mechanisms)
    line = f"perturb trips.csv --epsilon 10/km -o {tmp_path / 'o.csv'} --report {tmp_path / 'p.html'} --show-secrets"
    assert main(line.split()) == 0
    assert "as secret as the table" in capsys.readouterr().out
    page = (tmp_path / "p.html").read_text()
    assert "This page shows secrets" in page
    assert 'class="true"' in page.partition("Before and after")[0]
    assert main(f"perturb trips.csv --epsilon 10/km -o {tmp_path / 'q.csv'} --show-secrets".split()) == 2
    assert "--show-secrets belongs to a page" in capsys.readouterr().err
    assert not (tmp_path / "q.csv").exists()


def test_names_that_clash_are_refused_before_anything_is_written(mechanisms, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(mechanisms)
    target = tmp_path / "o.csv"
    start = f"perturb trips.csv --epsilon 10/km -o {target}"
    for more, why in (
        ("--accuracy-column t", "has a column 't' already"),
        ("--accuracy-column a,b", "must name 1 new column"),
        (f"--report {tmp_path / 'page.txt'}", "must be named .html"),
        (f"--json {target}", "names of their own"),
        (f"--report {tmp_path / 'no' / 'p.html'}", "does not exist"),
    ):
        assert main([*start.split(), *more.split()]) == 2
        assert why in capsys.readouterr().err
        assert not target.exists()


def test_rows_without_a_report_have_no_accuracy(mechanisms, tmp_path):
    (tmp_path / "in.csv").write_text("lat,lon\n41.1,-8.6\n,\n41.2,-8.7\n")
    noise = mdp.laplace(mdp.Haversine(), 10.0)
    mdp.perturb(tmp_path / "in.csv", noise, to=tmp_path / "null.csv", on_error="null", accuracy_column="m")
    assert [bool(row["m"]) for row in rows_of(tmp_path / "null.csv")] == [True, False, True]
    mdp.perturb(tmp_path / "in.csv", noise, to=tmp_path / "drop.csv", on_error="drop", accuracy_column="m")
    assert [row["m"] for row in rows_of(tmp_path / "drop.csv")] == ["474.8", "474.8"]


def test_the_column_travels_with_a_job_over_many_files(tmp_path):
    noise = mdp.laplace(mdp.Haversine(), 10.0)
    plain, asked = (
        task_for(["lat", "lon"], noise, disclosure=Disclosure(accuracy_column=names)) for names in (None, "m")
    )
    spec = spec_of(asked)
    assert spec.task(["lat", "lon"]).accuracy == asked.accuracy
    assert asked.accuracy[0].radius == 474.8
    assert spec.applied != spec_of(plain).applied  # a job is not continued with other columns
    planned = plan([table(tmp_path)], tmp_path / "out", spec, simulated=False, order_key="")
    assert job_from(json.loads(json.dumps(planned.entry())), tmp_path).spec.accuracy == ("m",)


def table(folder: Path) -> Path:
    (folder / "day.csv").write_text("lat,lon\n41.1,-8.6\n")
    return folder / "day.csv"


def test_rows_that_share_a_budget_have_each_their_own_accuracy(tmp_path, monkeypatch, capsys):
    """Person a has four rows at 2.5 each, person b one at 10: the noise of a row is that of its own epsilon."""
    monkeypatch.chdir(tmp_path)
    rows = ["a,41.15,-8.61", "a,41.16,-8.62", "b,41.17,-8.6", "a,41.14,-8.63", "a,41.13,-8.605"]
    Path("in.csv").write_text("\n".join(["who,lat,lon", *rows]) + "\n")
    line = "perturb in.csv --epsilon 10/km --id who --budget 10/km --allocation even -o o.csv --accuracy-column m"
    assert main([*line.split(), "--json", "s.json", "--report", "p.html"]) == 0
    said = capsys.readouterr().out
    assert "474.8 m to 1.9" in said
    page, _ = read(Path("p.html").read_text(encoding="utf-8"))
    assert "Guarantee per row: at most epsilon 10 per km" in page
    assert "epsilon = 2.5 per km" in page  # the law with the most noise, which bounds all distances
    assert re.search(r"4 1 2\.5 per km 1\.\d+ km 1 1 10 per km 474\.8 m", page)
    assert "10 per km is the epsilon of all rows of any person together" in page
    radii = {row["who"]: float(row["m"]) for row in rows_of(tmp_path / "o.csv")}
    for who, epsilon in (("a", 2.5), ("b", 10.0)):
        exact = 1000 * mdp.accuracy_radius(mdp.laplace(mdp.Haversine(), epsilon))
        assert exact <= radii[who] <= 1.01 * exact
    record = json.loads(Path("s.json").read_text())
    jsonschema.validate(record, SCHEMA)
    assert record["columns"]["accuracy"][0]["radius"] == radii["a"]  # holds for every row
    distribution = json.loads(Path("o.csv.distribution.json").read_text())
    jsonschema.validate(distribution, LAW)
    assert [(one["rows"], one["law"]["epsilon"]) for one in distribution["shares"]] == [(4, 2.5), (1, 10.0)]


def test_the_seed_of_a_simulation_is_not_on_the_page(mechanisms, tmp_path, monkeypatch):
    from metricdp.rendering import command_line

    words = ["perturb", "a b.csv", "--seed", "77", "-o", "o.csv"]
    assert command_line(words) == "metricdp perturb 'a b.csv' -o o.csv"
    assert command_line(["perturb", "--seed=77"]) == "metricdp perturb"
    monkeypatch.chdir(mechanisms)
    line = f"perturb trips.csv --epsilon 10/km --seed 3 -o {tmp_path / 'o.csv'} --report {tmp_path / 'p.html'}"
    assert main(line.split()) == 0
    assert "SIMULATION ONLY" in (tmp_path / "p.html").read_text()


def test_it_is_cited_as_the_citation_file_says():
    said = (PROJECT / "CITATION.cff").read_text()
    text, entry = citation()
    for name in ("title", "version"):
        value = re.search(rf'^{name}: "?(.*?)"?$', said, re.MULTILINE)
        assert value is not None
        assert value[1] in text
        assert value[1] in entry
    author = re.search(r"- name: (.*)", said)
    assert author is not None
    assert author[1] in text
    assert author[1] in entry


@pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")
def test_the_page_fits_a_phone_and_a_screen_in_chromium(mechanisms, tmp_path, monkeypatch):
    monkeypatch.chdir(mechanisms)
    pages = []
    for case in ("earth", "words"):
        line = f"perturb {CASES[case]} -o {tmp_path / case}.csv --report {tmp_path / case}.html"
        assert main(line.split()) == 0
        pages += [(f"{case}.html", width) for width in (360, 1200)]
    frames = "".join(f'<iframe src="{name}" style="width:{width}px;height:600px"></iframe>' for name, width in pages)
    script = """<script>onload = () => { document.title = [...document.querySelectorAll("iframe")].map((frame) => {
      const page = frame.contentDocument;
      return [page.documentElement.scrollWidth <= frame.clientWidth, page.querySelectorAll("svg,.bars").length > 1,
        getComputedStyle(page.body).fontSize];
    }).join(";"); };</script>"""
    (tmp_path / "frames.html").write_text(f"<!doctype html><body>{frames}{script}")
    folder = tmp_path / "profile"
    options = [*CHROMIUM_OPTIONS, "--allow-file-access-from-files", f"--user-data-dir={folder}", "--dump-dom"]
    done = subprocess.run(
        [str(chromium()), *options, f"file://{tmp_path}/frames.html"], capture_output=True, text=True, timeout=60
    )
    shutil.rmtree(folder, ignore_errors=True)
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title is not None
    assert title[1].split(";") == ["true,true,17px"] * 4, done.stderr
