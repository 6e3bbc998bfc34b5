"""A password, a key file and a folder of this machine are in nothing that a command prints or writes."""

import io
import json
import sys

import numpy as np
import pytest

from books import postgres, server
from metricdp.errors import MetricdpError
from metricdp.rendering import address, command_line, file_name, is_broken_address, place, printable
from scripts import main

SECRET = "hunter7canary"
POLICY = "400/km ever"
ROWS = "person,t,lat,lon\n" + "".join(f"p{n % 3},2024-01-01T00:0{n}:00Z,41.1{n},-8.6{n}\n" for n in range(6))


@pytest.fixture(scope="module")
def running():
    if postgres() is None:
        pytest.skip("no PostgreSQL programs (initdb, postgres) on this machine")
    with server() as its:
        import psycopg

        with psycopg.connect(its.url, autocommit=True) as connection:
            connection.execute("CREATE ROLE other LOGIN PASSWORD 'right'")
        rules = its.folder / "data" / "pg_hba.conf"
        rules.write_text(f"host all other 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        its.run("pg_ctl", "-D", str(its.folder / "data"), "reload")
        yield its


def commands(ledger, folder):
    """Every command that takes the address of a ledger; those that write anew come first."""
    key, table = ("--key-file", str(folder / "folder-of-anna" / "books.key")), str(folder / "t.csv")
    told = ("--report", str(folder / "page.html"), "--json", str(folder / "record.json"))
    charged = ("--ledger", ledger, *key)
    yield ("budget", "begin", ledger, "--policy", POLICY, *key)
    yield ("perturb", table, "--epsilon", "1/km", "--id", "person", *charged, "-o", str(folder / "o.csv"), *told)
    yield (
        "perturb",
        table,
        "--epsilon",
        "1/km",
        "--id",
        "person",
        f"--ledger={ledger}",
        *key,
        "-o",
        str(folder / "d.db"),
    )
    stream = ("stream", table, "--window", "2", "--total", "1/km", *charged)
    yield (*stream, "-o", str(folder / "s.csv"))
    yield (*stream, "-o", str(folder / "s.parquet"), "--policy", POLICY)
    yield ("trajectories", table, "--predict", "--columns", "person,t,lat,lon", "--epsilon", "1/km", "--id", "person",
           *charged, "-o", str(folder / "j.csv"))  # fmt: skip
    for words in (
        ("show", ledger), ("show", ledger, "--person", "p1"), ("show", ledger, "--json"), ("verify", ledger),
        ("plan", ledger, "--epsilon", "1/km"), ("policy", ledger, "300/km ever"),
        ("rotate", ledger), ("restore", ledger),
        ("backup", ledger, "-o", str(folder / "b.db")), ("export", ledger, "-o", str(folder / "e.jsonl")),
        ("erase", ledger, "--person", "p2"),
    ):  # fmt: skip
        yield ("budget", *words, *key)
    yield (
        "serve",
        "--epsilon",
        "1/km",
        "--ledger",
        ledger,
        "--ledger-key",
        key[1],
        "--keys",
        str(folder / "none.keys"),
    )


def check(capfd, monkeypatch, folder, ledger):
    """Run every command and look for the secret in all that comes out; return what was printed."""
    (folder / "folder-of-anna").mkdir(exist_ok=True)
    (folder / "t.csv").write_text(ROWS)
    printed = ""
    for words in commands(ledger, folder):
        monkeypatch.setattr(sys, "argv", ["metricdp", *words])
        main(words)
        said = capfd.readouterr()
        assert SECRET not in said.out + said.err, words
        printed += said.out + said.err
    for file in folder.rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file
    for left in ("page.html", "record.json"):  # these travel: no folder, no key file, no user
        text = (folder / left).read_text() if (folder / left).exists() else ""
        assert str(folder) not in text
        assert "folder-of-anna" not in text
        assert "tester" not in text
        assert not text or "t.csv" in text
    return printed


def test_no_command_shows_the_password_of_a_server(running, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.setenv("METRICDP_PASSWORD", SECRET)
    monkeypatch.setenv("METRICDP_DATA", "")
    plain = running.fresh("secrets")
    ledger = plain.replace("tester@", f"tester:{SECRET}@") + f"?sslpassword={SECRET}&sslkey=/keys/{SECRET}"
    printed = check(capfd, monkeypatch, tmp_path, ledger)
    assert "The ledger postgresql://127.0.0.1/secrets allows" in printed
    page = (tmp_path / "page.html").read_text()
    assert "--ledger postgresql://127.0.0.1/secrets --key-file books.key" in page
    assert json.loads((tmp_path / "record.json").read_text())["target"] == "o.csv"


@pytest.mark.parametrize("wrong", ["password", "database", "port", "host", "option", "scheme", "slash", "words"])
def test_no_failure_shows_the_password_of_a_server(running, tmp_path, monkeypatch, capfd, wrong):
    there = f"127.0.0.1:{running.port}"
    ledger = {
        "password": f"postgresql://other:{SECRET}@{there}/postgres",
        "database": f"postgresql://tester:{SECRET}@{there}/none",
        "port": f"postgresql://tester:{SECRET}@127.0.0.1:1/postgres",
        "host": f"postgresql://tester:a@{SECRET}/b@{there}/postgres",
        "option": f"postgresql://tester:{SECRET}@{there}/postgres?{SECRET}=1&sslmode={SECRET}",
        "scheme": f"tester:{SECRET}@{there}/postgres",
        "slash": f"postgresql:/tester:{SECRET}@{there}/postgres",
        "words": f"host=127.0.0.1 user=tester password={SECRET}",
    }[wrong]
    printed = check(capfd, monkeypatch, tmp_path, ledger)
    assert "error: " in printed
    assert "Traceback" not in printed
    if wrong in ("password", "database"):
        assert {"password": "does not accept this user", "database": "no database of this name"}[wrong] in printed


@pytest.mark.parametrize("given", [f"postgresql://u:{SECRET}@h/db", f"postgresql://u:{SECRET}@h/db?password={SECRET}"])
def test_an_address_in_the_wrong_place_is_shown_without_its_password(tmp_path, monkeypatch, capfd, given):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(ROWS)
    usual = ["perturb", "t.csv", "--epsilon", "1/km", "-o", "o.csv", "--report", "p.html", "--overwrite"]
    options = ("mechanism", "key", "metric", "snap", "columns", "id", "budget", "drop", "keep", "crs", "json", "from",
               "to", "separator", "scale", "engine", "plugin", "key-file", "purpose", "seed",
               "on-error", "at-most", "spread", "nonsense", given)  # fmt: skip
    for words in (
        ["perturb", given, *usual[2:]], [*usual[:3], given, *usual[4:]], [*usual[:5], given], [*usual[:7], given],
        ["budget", "show", "b.db", "--person", given], ["budget", "plan", given, "--epsilon", given], [given],
        ["inspect", given], ["audit", given], ["text", given, "--column", given, "-o", given],
        ["design", "--roads", given], ["estimate", given, "--mechanism", given], ["compare", "--points", given],
        ["serve", "--ledger", "b.db", "--keys", given], ["studio", "--key", given],
        *([*usual, f"--{option}", given] for option in options),
    ):  # fmt: skip
        monkeypatch.setattr(sys, "argv", ["metricdp", *words])
        main(words)
        said = capfd.readouterr()
        assert SECRET not in said.out + said.err, words
    assert not any(SECRET.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_a_header_of_a_sampler_is_shown_to_nobody(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("API_TOKEN", SECRET)
    (tmp_path / "p.csv").write_text("x,y\n0,0\n1,0\n")
    for url in (
        f"http://127.0.0.1:1/r?token={SECRET}&x={{x}}",
        f"ftp://u:{SECRET}@h/",
        f"http://u:{SECRET}@h/",
        f"h?t={SECRET}",
    ):
        words = ["audit", "--url", url, "--secrets", str(tmp_path / "p.csv"), "--metric", "l2", "--epsilon", "1"]
        assert main([*words, "--synthetic", "--header", "Authorization=API_TOKEN", "--draws", "100"]) == 2
        said = capfd.readouterr()
        assert SECRET not in said.out + said.err


def test_an_address_is_shown_with_host_and_database_at_most():
    for text, shown in {
        "postgresql://u:p@h:5432/db": "postgresql://h/db",
        "postgresql+psycopg://u:p@[::1]:5432/db?sslkey=/k": "postgresql+psycopg://[::1]/db",
        "postgresql://u:p@q/r@h/db": "postgresql://h/db",
        "postgresql://u:p?q@h/db": "postgresql://...",
        "postgresql://h/db?password=a@b/c": "postgresql://...",
        "postgresql://user:word/db": "postgresql://...",
        "postgresql:///db?host=/tmp&password=p": "postgresql:///db",
    }.items():
        assert address(text) == place(text) == shown
    assert not any(is_broken_address(text) for text in ("budget.db", "/a b/c.db", "C:\\a:b@c\\d.db", "trips.db::fixes"))
    assert is_broken_address("u:p/q@h/db")


def test_a_path_that_leaves_is_a_file_name():
    assert [file_name(path) for path in ("/home/a/t.csv", "t.csv", "d/", "C:\\u\\t.csv", "/a/t.db::x", "/")] == [
        "t.csv", "t.csv", "d", "t.csv", "t.db::x", "...",
    ]  # fmt: skip
    words = ["perturb", "/home/a/t.csv", "--epsilon", "10/km", "-o/tmp/o.csv", "--columns", "a/b,c", "--budget=40/km"]
    assert command_line(
        [*words, "--mechanism", "m=/x/y.mdp", "--plugin=/p/q.py", "--policy", "40/km per day, 2/km ever"]
    ) == (
        "metricdp perturb t.csv --epsilon 10/km -oo.csv --columns a/b,c --budget=40/km --mechanism m=y.mdp "
        "--plugin=q.py --policy '40/km per day, 2/km ever'"
    )


def test_a_page_for_standard_input_names_no_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ROWS.encode())))
    words = ["perturb", "-", "--epsilon", "1/km", "-o", str(tmp_path / "o.csv"), "--report", str(tmp_path / "p.html")]
    monkeypatch.setattr(sys, "argv", ["metricdp", *words])
    assert main(words) == 0
    assert str(tmp_path) not in (tmp_path / "p.html").read_text()
    capsys.readouterr()


@pytest.mark.parametrize(
    "given",
    [
        "host=h user=u password='{} and more'", "dbname=app PASSWORD={}", "password = {} host=h", "host=h passwd={}",
        "PGPASSWORD={}", "postgresql:u:{}@h/app", "u:{}@h/app", "//u:{}@h/app", "postgresql%3A//u:{}@h/app",
        "postgres//u:{}@h/app", "postgresql://u:{}", "postgresql://h:5432:{}/app", "postgresql://{}@h/app",
        "postgres://u:{}@/app?host=/run/{}", "postgresql://h/app?passfile=/home/{}/p", "https://h/a?token={}",
        "postgresql://u:two {}@h/app", "postgresql://u:it's{}@h/app", 'postgresql://u:a"{}@h/app',
        "postgresql://u:a\t{}@h/app", "user=u pwd={}", "https://h/a?api_key={}&x=1",
    ],
)  # fmt: skip
def test_no_sentence_shows_the_password_of_an_address_however_it_is_typed(given):
    text = given.replace("{}", SECRET)
    for sentence in (text, f"no file {text!r}: check it", f"no file {repr(text)!r}.", f"(see {text}), it failed"):
        assert SECRET not in printable(sentence)
        assert SECRET not in str(MetricdpError(sentence))


def test_sentences_without_a_password_stay_as_they_are():
    for sentence in (
        "The books postgresql://127.0.0.1/secrets allow (postgresql://h/db).",
        "no column 'a@b': write to me@x.org, see https://x.org/a?b=1",
        "--header Authorization=API_TOKEN, epsilon = 10/km",
    ):
        assert printable(sentence) == sentence


def test_pages_and_records_of_another_format_name_no_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "t.csv").write_text(ROWS)
    (tmp_path / "r.csv").write_text("n,text\n1,a good day\n")
    np.savez(tmp_path / "v.npz", words=np.array(["a", "good", "day"]), vectors=np.eye(3))
    for number, words in enumerate(
        (
            ["perturb", str(tmp_path / "t.csv"), "--epsilon", "1/km"],
            ["text", str(tmp_path / "r.csv"), "--column", "text", "--vectors", str(tmp_path / "v.npz"),
             "--epsilon", "1.5", "--unknown", "drop"],
        )
    ):  # fmt: skip
        told = [tmp_path / f"{number}.html", tmp_path / f"{number}.json"]
        words += ["-o", str(tmp_path / f"{number}.parquet"), "--report", str(told[0]), "--json", str(told[1])]
        monkeypatch.setattr(sys, "argv", ["metricdp", *words])
        assert main(words) == 0
        for file in told:
            assert f"stay text in {number}.parquet" in file.read_text()
            assert str(tmp_path) not in file.read_text()
    capsys.readouterr()
