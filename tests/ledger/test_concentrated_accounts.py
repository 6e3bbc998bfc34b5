"""Books in rho: concentrated promises add up in an account of their own, beside those of epsilon."""

import pytest

import metricdp as mdp
from metricdp.errors import BudgetExceeded, InvalidInput
from metricdp.ledger import Ledger, Policy, account_for

NOISE = mdp.gaussian(mdp.Haversine(), 0.25)


def test_rho_is_kept_per_squared_kilometre_whatever_the_unit():
    assert account_for(mdp.Haversine("m"), concentrated=True).charge(2.0**-22) == 238_419
    assert account_for(mdp.Haversine(), concentrated=True).name == "rho-haversine/km2"
    assert account_for("rho-haversine/km2").name == "rho-haversine/km2"
    assert account_for(mdp.Lp(2), concentrated=True).name == account_for("rho-l2/unit2").name == "rho-l2/unit2"
    policy = Policy.parse("rho 0.5/km2 per day, rho 0.000003/m2 ever, 40/km ever, rho 2 ever")
    assert str(policy) == "rho 0.5/km2 per day, rho 3/km2 ever, 40/km ever, rho 2/unit2 ever"
    assert str(Policy.parse(str(policy))) == str(policy)
    with pytest.raises(InvalidInput, match="squared distance"):
        Policy.parse("rho 2/km ever")
    with pytest.raises(InvalidInput, match="no epsilon is counted"):
        account_for("l2/km2")


def test_the_two_accounts_of_a_person_never_mix(tmp_path):
    with Ledger.open(tmp_path / "b.db", policy="1/km ever, rho 0.625/km2 ever") as ledger:

        def release(number, **cost):
            return ledger.release("anna", str(number), key="app", metric=mdp.Haversine(), draw=lambda: b"x", **cost)

        assert release(1, rho=0.25).left == 375_000
        assert release(2, epsilon=0.875).left == 125_000
        assert release(3, rho=0.25).unit == "km2"
        assert release(3, rho=0.25).repeated
        with pytest.raises(BudgetExceeded, match=r"rho 0\.625/km2 ever does not hold this"):
            release(4, rho=0.25)
        with pytest.raises(BudgetExceeded, match="1/km ever does not hold this"):
            release(5, epsilon=0.25)
        for cost in ({}, {"epsilon": 1.0, "rho": 1.0}):
            with pytest.raises(InvalidInput, match="one of the two"):
                release(6, **cost)
        with pytest.raises(InvalidInput, match="no epsilon is added"):
            ledger.release("anna", "7", key="app", metric="rho-haversine/km2", epsilon=0.1, draw=lambda: b"x")
        accounts = {one.metric: one.spent for one in ledger.budget("anna").accounts}
        assert accounts == {"haversine/km": 875_000, "rho-haversine/km2": 500_000}
        assert ledger.verify().holds


def test_a_table_is_charged_in_rho_for_everybodys_rows(tmp_path):
    import pyarrow as pa

    table = pa.table({"who": ["a", "a", "b"], "lat": [41.9, 41.91, 41.92], "lon": [12.5, 12.5, 12.5]})
    place = tmp_path / "b.db"
    out = mdp.perturb(table, NOISE, id="who", budget="rho 0.5/km2", ledger=place)
    assert out.num_rows == 3
    with Ledger.open(place) as ledger:
        assert str(ledger.policy()) == "rho 0.5/km2 ever"
        assert ledger.budget("a").accounts[0].spent == 500_000
    with pytest.raises(BudgetExceeded, match="Nobody was charged"):
        mdp.perturb(table, NOISE, id="who", ledger=place)
    with pytest.raises(InvalidInput, match="allows nothing per km"):
        mdp.perturb(table, mdp.laplace(mdp.Haversine(), 1.0), id="who", ledger=place)


def test_a_budget_of_rho_is_spread_evenly_and_the_summary_never_says_epsilon(tmp_path):
    source = tmp_path / "t.csv"
    source.write_text("who,lat,lon\n" + "a,41.9,12.5\n" * 4 + "b,41.9,12.5\n")
    summary = mdp.perturb(source, NOISE, to=tmp_path / "o.csv", id="who", budget="0.5/km2", allocation="even")
    assert {level.rows: level.amount for level in summary.spending.levels} == {4: 0.125, 1: 0.25}
    lines = summary.lines()
    assert any("not pure" in line for line in lines)
    assert not [line for line in lines if "epsilon" in line]
    with pytest.raises(InvalidInput, match="pure"):
        _ = summary.composed_epsilon
    radius = mdp.accuracy_radius(NOISE, 0.95)
    assert radius == pytest.approx(NOISE.sigma * 2.4477, rel=2e-2)


def test_the_page_of_a_table_is_refused_before_anything_is_written(tmp_path, capsys):
    from metricdp.cli import main

    (tmp_path / "t.csv").write_text("lat,lon\n41.9,12.5\n")
    mdp.save(NOISE, tmp_path / "g.mdp")
    asked = ["perturb", "t.csv", "--mechanism", "g.mdp", "-o", "o.csv", "--report", "o.html"]
    assert main([str(tmp_path / one) if "." in one else one for one in asked]) != 0
    assert "pure guarantee" in capsys.readouterr().err
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(("unit", "promise"), [("scaled km", None), ("", "rho"), ("km", "rho"), ("hop", None)], ids=str)
def test_books_begin_in_the_unit_of_the_promise(tmp_path, unit, promise):
    from metricdp.tables import first_policy

    metric = mdp.Lp(2, unit)
    guarantee = mdp.mechanisms.ConcentratedGuarantee(0.5, metric) if promise else mdp.Guarantee(0.5, metric)
    with Ledger.open(tmp_path / "b.db", policy=first_policy(2e-5, guarantee)) as ledger:
        cost = {"rho": 1.9e-5} if promise else {"epsilon": 1.9e-5}
        assert ledger.release("anna", "1", key="app", metric=metric, draw=lambda: b"x", **cost).left <= 1


def test_a_budget_without_its_unit_begins_no_books(tmp_path, capsys):
    from metricdp.cli import main

    mdp.save(NOISE, tmp_path / "noise.mdp")
    (tmp_path / "t.csv").write_text("person,lat,lon\na,41.9,12.5\n")
    where = {name: str(tmp_path / name) for name in ("noise.mdp", "t.csv", "b.db", "out.csv")}
    command = [
        "perturb",
        where["t.csv"],
        "--mechanism",
        where["noise.mdp"],
        "--id",
        "person",
        "--ledger",
        where["b.db"],
    ]
    assert main([*command, "--budget", "8", "-o", where["out.csv"]]) == 2
    assert "has no unit" in capsys.readouterr().err
    assert not (tmp_path / "b.db").exists()
