"""Totals are of what was released; what the person with the most rows has in total comes first, in metres."""

import collections
import csv
import dataclasses
import json
import math
import re

import pytest

import metricdp as mdp
from metricdp.rendering import plural
from metricdp.tables import perturb
from scripts import main

RATE = 10.0


def table(folder, rows):
    """A table with so many rows of every person; the last column is coarsened in some tests."""
    place = folder / "t.csv"
    with place.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "lat", "lon", "t"])
        for person, count in rows.items():
            writer.writerows(
                [person, 41.15 + n / 1e4, -8.61 - n / 1e4, f"2024-01-01T{n % 24:02d}:10:00"] for n in range(count)
            )
    return place


def protected(folder, source, *words):
    told = ("--json", str(folder / "r.json"), "--report", str(folder / "p.html"), "-o", str(folder / "o.csv"))
    assert main(["perturb", str(source), "--epsilon", f"{RATE:g}/km", "--id", "who", "--overwrite", *told, *words]) == 0
    with (folder / "o.csv").open() as file:
        released = collections.Counter(row["who"] for row in csv.DictReader(file))
    return released, json.loads((folder / "r.json").read_text())


@pytest.mark.parametrize(
    ("rows", "limit", "more"),
    [
        ({"anna": 192, "ben": 3}, 50, ()),  # anna has five rows in the output, not 192
        ({"anna": 7, "ben": 4, "eva": 1}, 30, ()),
        ({"anna": 7, "ben": 7, "eva": 1}, 10, ()),  # one row of everybody
        ({"anna": 40, "ben": 3}, 20, ("--budget", "100/km", "--allocation", "even")),
        ({"anna": 40, "ben": 9}, 50, ("--max-rows", "8")),
    ],
)
def test_what_is_said_of_persons_is_counted_in_the_output(tmp_path, capsys, rows, limit, more):
    ledger = tmp_path / "b.db"
    assert main(["budget", "begin", str(ledger), "--policy", f"{limit}/km ever"]) == 0
    source = table(tmp_path, rows)
    capsys.readouterr()
    released, record = protected(tmp_path, source, "--ledger", str(ledger), "--refused", "report", *more)
    printed = capsys.readouterr().out
    people, most = record["people"], max(released.values(), default=0)
    each = {who: min(RATE, 100.0 / rows[who]) if "--allocation" in more else RATE for who in rows}
    total = max((count * each[who] for who, count in released.items()), default=0.0)
    assert record["rows"]["written"] == sum(released.values())
    assert (people["count"], people["most_rows"]) == (len(released), most)
    assert people["epsilon"] == pytest.approx(total, rel=1e-6)
    assert math.copysign(1.0, people["slack"]) == 1.0
    shares = {(one["rows"], round(one["epsilon"], 6)): one["persons"] for one in people["shares"]}
    assert shares == collections.Counter((count, round(each[who], 6)) for who, count in released.items())
    assert total <= limit
    assert f"none with more than {plural(most, 'row')} in the output" in printed
    if rows["anna"] == 192:
        assert "192" not in printed
    assert re.search(rf"{len(released):,} persons by who", printed)


@pytest.mark.parametrize(("count", "shown"), [(845, "8.2 cm"), (10, "6.93 m"), (2, "34.6 m")])
def test_the_person_with_the_most_rows_comes_first_and_in_metres(tmp_path, capsys, count, shown):
    source = table(tmp_path, {"anna": count, "ben": 1})
    protected(tmp_path, source)
    lines = capsys.readouterr().out.splitlines()
    assert math.log(2) / (count * RATE) * 1000 == pytest.approx(
        float(shown.split()[0]) / (100 if "cm" in shown else 1), rel=0.02
    )
    assert lines[1].startswith(f"All {count:,} rows of the person with the most together: ")
    assert f"up to {shown} apart in every row" in lines[1]
    assert lines[2].startswith("Guarantee per row")
    page = (tmp_path / "p.html").read_text()
    lead, first = page.index('class="lead"'), page.index('class="fact"')
    assert page[lead:].startswith(f'class="lead">{lines[1]}')
    assert page[first:].startswith(f'class="fact"><b>{shown}</b>')


def test_a_page_says_first_that_nobody_counted_the_rows_of_a_person(tmp_path, capsys):
    page = tmp_path / "p.html"
    source = table(tmp_path, {"anna": 3})
    assert (
        main(["perturb", str(source), "--epsilon", "1/km", "-o", str(tmp_path / "o.csv"), "--report", str(page)]) == 0
    )
    assert 'class="lead">The rows of one person add up.' in page.read_text()
    capsys.readouterr()


def test_a_column_is_coarsened_or_kept_and_not_both(tmp_path, capsys):
    source = table(tmp_path, {"anna": 3})
    _, record = protected(tmp_path, source, "--coarsen", "t=1d")
    printed = capsys.readouterr().out
    assert record["columns"]["kept"] == ["who"]
    assert "Unchanged and not protected: who." in printed
    assert "Coarsened, as requested: t to 1d." in printed


@pytest.mark.parametrize("people", [{}, {"budget": 3.0, "allocation": "even"}])
def test_the_first_promise_of_approximate_noise_is_that_of_all_rows_together(tmp_path, people):
    """The distance at which all rows keep a factor of two is that of a guarantee with the rho of all rows."""
    source, target = tmp_path / "t.csv", tmp_path / "o.csv"
    source.write_text(
        "who,lat,lon\n" + "".join(f"{'a' if n else 'b'},41.{n},-8.{n}\n" for n in range(1, 8)) + "b,41,-8\n"
    )
    noise = mdp.gaussian(mdp.Haversine(), 2.0)
    summary = perturb(source, noise, to=target, columns=["lat", "lon"], id="who", **people)
    first = summary.lines()[1]
    promise = summary.guarantee
    total = people.get("budget", 7 * promise.rho)
    reach = float(re.search(r"up to ([\d.]+) (m|km) apart", first)[1]) / (1000 if " m apart" in first else 1)
    whole = dataclasses.replace(promise, rho=total)
    assert whole.epsilon_at(reach, 1e-6) <= math.log(2.0) < whole.epsilon_at(1.01 * reach, 1e-6)
    assert "approximate, not pure" in first
