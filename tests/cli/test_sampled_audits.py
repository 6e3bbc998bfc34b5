"""`metricdp audit` on recorded samples, commands, addresses and modules, as people type it."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.artifacts import save
from scripts import main

POINTS = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.5]]
MODULE = Path(__file__).parents[2] / "js" / "dist" / "metricdp.js"
SAMPLER = """
import math, random, sys
rate, extra = float(sys.argv[1]), " ".join(sys.argv[2:])
if extra: print(extra)
for line in sys.stdin:
    x, y = map(float, line.split(","))
    turn, far = random.uniform(0, 2 * math.pi), random.gammavariate(2, 1 / rate)
    print(*(round(64 * value) / 64 for value in (x + far * math.cos(turn), y + far * math.sin(turn))), sep=",")
"""


def write(path: str, header: list[str], rows: list[list[object]]) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([*([header] if header else []), *rows])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Secrets, recorded planar Laplace noise at 1 and at 3 (on a lattice: low bits of doubles leak), a command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("metricdp.samplers.process.GRACE", 0.2)
    Path("sampler.py").write_text(SAMPLER)
    write("points.csv", ["x", "y"], POINTS)
    write("places.csv", ["lat", "lon"], [[41.0, -8.0], [41.001, -8.0]])
    rng = np.random.default_rng(3)
    for name, rate in (("good", 1.0), ("bad", 3.0)):
        rows = np.array(POINTS)[rng.integers(0, 3, 6000)]
        far, turn = rng.gamma(2.0, 1.0 / rate, 6000), rng.uniform(0.0, 2 * np.pi, 6000)
        noisy = np.round(64 * (rows + np.stack([far * np.cos(turn), far * np.sin(turn)], axis=1))) / 64
        write(f"{name}.csv", ["x", "y", "u", "v"], np.hstack([rows, noisy]).tolist())
    return tmp_path


def run(line: str, *whole: str) -> int:
    """Run a line, whose last words may hold blanks."""
    return main([*line.split(), *whole])


def refused(capsys: pytest.CaptureFixture[str], line: str, *whole: str) -> str:
    capsys.readouterr()
    assert run(line, *whole) == 2
    output = capsys.readouterr()
    assert output.out == ""
    last = output.err.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert "Traceback" not in output.err
    return last


def command(words: str) -> str:
    return f"{sys.executable} -S sampler.py {words}"


CLAIM = "--metric l2 --epsilon 1.0"
COLUMNS = "--secret x,y --report u,v"


def test_recorded_samples_refute_or_do_not(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"audit bad.csv {COLUMNS} {CLAIM} --json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "violated"
    assert 1.0 < report["epsilon"] < 3.0
    assert (report["basis"], report["confidence"]) == ("samples", 0.99)
    assert tuple(report["witness"]["secret_at"]) in {tuple(point) for point in POINTS}
    assert run(f"audit good.csv {COLUMNS} {CLAIM}") == 2
    assert "not refuted" in capsys.readouterr().out
    assert run(f"audit bad.csv {COLUMNS} --metric l2 --epsilon 3.0") == 2
    assert run(f"audit bad.csv {COLUMNS} {CLAIM} --slack 5 --confidence 0.9") == 2


def test_parquet_is_read_as_csv_is(here: Path) -> None:
    with open("bad.csv", newline="") as file:
        header, *rows = list(csv.reader(file))
    values = np.array(rows, dtype=float)
    pq.write_table(pa.table({name: values[:, k] for k, name in enumerate(header)}), "bad.parquet")
    assert run(f"audit bad.parquet {COLUMNS} {CLAIM}") == 1


def test_words_are_secrets_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[word, word if k % 4 else "cat"] for k in range(500) for word in ("bat", "cat", "cart")]
    write("words.csv", ["word", "said"], rows)
    assert run("audit words.csv --secret word --report said --epsilon 1.0") == 1  # three in four are the truth
    write("list.csv", ["word"], [["bat"], ["cat"], ["cart"]])
    np.save("far.npy", 20.0 * (1.0 - np.eye(3)))
    assert run("audit words.csv --secret word --report said --epsilon 1.0 --distances far.npy --points list.csv") == 2
    Path("echo.py").write_text("import sys\nfor line in sys.stdin: print(line.strip())\n")
    echo = ("--command", f"{sys.executable} -S echo.py")
    assert run("audit --secrets list.csv --epsilon 1.0 --draws 2000", *echo) == 1
    np.save("vectors.npy", np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    assert run("audit --secrets list.csv --epsilon 1.0 --draws 2000 --vectors vectors.npy", *echo) == 1


def test_a_command_is_asked_until_it_is_refuted(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = (f"audit --secrets points.csv {CLAIM} --draws 5000 --command",)
    assert run(*asked, command("3.0"), "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "violated"
    assert report["draws"] < 5000
    assert run(*asked, command("1.0")) == 2
    assert "not refuted" in capsys.readouterr().out


def test_what_goes_wrong_in_a_command_is_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = (f"audit --secrets points.csv {CLAIM} --draws 500 --command",)
    assert "printed 'ready'" in refused(capsys, *asked, command("1.0 ready"))
    assert "no program" in refused(capsys, *asked, "nosuchprogram -x")
    assert "exit code 2" in refused(capsys, *asked, f"{sys.executable} -S missing.py")
    Path("prompt.py").write_text("while True: print(input('point? '))")
    assert "as a prompt does" in refused(capsys, *asked, f"{sys.executable} -S prompt.py")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("audit", "say what to judge"),
        (
            f"audit good.csv --secret x,y --report u,w {CLAIM}",
            "no column 'w' (--report). The columns are 'x', 'y', 'u', 'v'",
        ),
        (f"audit good.csv --secret lat --report u {CLAIM}", "no column 'lat'"),
        (f"audit good.csv --secret x,y {CLAIM}", "--report must too"),
        (f"audit good.csv --report u,v {CLAIM}", "--secret must too"),
        (f"audit good.csv {CLAIM}", "--secret x,y --report u,v"),
        (f"audit good.csv {COLUMNS} --metric l2", "name it, such as --epsilon 1.0"),
        (f"audit good.csv {COLUMNS} {CLAIM} --draws 10", "all rows are used"),
        (f"audit good.csv --secrets points.csv {CLAIM}", "by --points, the columns of recorded samples by --secret"),
        (f"audit --command cat --points points.csv {CLAIM}", "named by --secrets"),
        (f"audit --command cat --secret x,y {CLAIM}", "needs --secrets FILE"),
        (f"audit points.csv --command cat {CLAIM}", "--secrets points.csv"),
        (f"audit --command cat {CLAIM}", "such as --secrets points.csv"),
        (f"audit --command cat --url http://x --secrets points.csv {CLAIM}", "two samplers"),
        ("audit --command cat --secrets places.csv --epsilon 1.0", "no unit"),
        ("audit --command cat --secrets places.csv --metric l2 --epsilon 1.0", "degrees"),
        ("audit --command cat --secrets points.csv --epsilon 1.0 --confidence 1.5", "between 0 and 1"),
        (f"audit --url http://127.0.0.1:9/?x={{0}} --secrets points.csv {CLAIM}", "--synthetic"),
        ("audit cells.mdp --slack 0.5", "--slack is for samples"),
        ("audit cells.mdp --secret x", "tables of samples"),
    ],
)
def test_mistakes_of_new_users_are_answered_kindly(
    here: Path, capsys: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    assert words in refused(capsys, line)


def test_longitude_first_is_noticed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("trips.csv", ["lon", "lat", "u", "v"], [[-8.0, 41.0, -8.0, 41.0], [-8.1, 41.0, -8.0, 41.0]])
    said = refused(capsys, "audit trips.csv --secret lon,lat --report u,v --epsilon 1/km")
    assert "latitude comes first" in said


def test_exchanged_columns_are_remarked_on(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(f"audit good.csv --secret u,v --report x,y {CLAIM}")
    assert "--secret and --report exchanged?" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_modules_are_asked_in_node(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("own.mjs").write_text("export const sample = ([x, y]) => [x + Math.random(), y];")
    assert run(f"audit --module own.mjs --secrets points.csv {CLAIM} --draws 3000") == 1
    save(mdp.exponential(mdp.FiniteSpace(np.array(POINTS), mdp.Lp(2)), 1.0), "cells.mdp")
    assert run(f"audit cells.mdp --module {MODULE} --draws 3000") == 2
    assert "not refuted" in capsys.readouterr().out
    assert run(f"audit cells.mdp --module {MODULE} --draws 3000 --epsilon 0.05") == 1
    assert "remove --metric" in refused(capsys, f"audit cells.mdp --module {MODULE} --metric l2")


@pytest.fixture
def address() -> Iterator[str]:
    """The address of a server that answers with the truth."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers.get("Authorization") == "wrong":
                self.send_error(401)
                return
            text = json.dumps({"result": {"at": [asked["at"]] * asked.get("n", 1)}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *unused: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_an_address_is_asked_after_the_number_of_calls_was_said(
    here: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f"audit --secrets points.csv --synthetic --rate 500 --url {address} {CLAIM}"
    assert run(f"{asked} --found result.at.0 --draws 300 --body", '{"at": ["{x}", "{y}"]}') == 1
    output = capsys.readouterr()
    assert "at most 556 times, at most 500 times a second (1 s). It gets 3 secrets" in output.err
    assert "violated" in output.out
    assert run(f"{asked} --independent --found result.at --body", '{"at": "{secret}", "n": "{count}"}') == 1
    assert "at most 111 times" in capsys.readouterr().err


def test_a_header_comes_from_the_surroundings(
    here: Path, address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "wrong")
    asked = f"audit --secrets points.csv --synthetic --rate 500 --url {address} {CLAIM} --found result.at.0 --draws 300"
    body = ("--body", '{"at": "{secret}"}')
    said = refused(capsys, f"{asked} --header Authorization=TOKEN", *body)
    assert "answered 401" in said
    assert "wrong" not in said
    assert "'NOTHING' is not set" in refused(capsys, f"{asked} --header Authorization=NOTHING", *body)


def test_a_line_shows_what_is_known_so_far(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    assert run(f"audit --secrets points.csv {CLAIM} --draws 3000 --command", command("3.0")) == 1
    assert "epsilon at least" in screen.getvalue()
    assert "claimed 1" in screen.getvalue()


def test_matrices_come_in_many_forms(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = mdp.FiniteSpace(np.array(POINTS), mdp.Lp(2))
    matrix = mdp.exponential(space, 1.0).matrix
    leaky = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])
    for name, values, code in (("fair", matrix, 0), ("leaky", leaky, 1)):
        np.save(f"{name}.npy", values)
        cells = {str(k): values[:, k] for k in range(3)}
        pq.write_table(pa.table(cells), f"{name}.parquet")
        pq.write_table(pa.table({**cells, "__index_level_0__": ["a", "b", "c"]}), f"{name}_indexed.parquet")
        rows = [[repr(float(value)) for value in row] for row in values]
        numbered = [[k, *row] for k, row in enumerate(rows)]
        lettered = [["abc"[k], *row] for k, row in enumerate(rows)]
        write(f"{name}_pandas.csv", ["", "0", "1", "2"], numbered)
        write(f"{name}_names.csv", ["secret", "a", "b", "c"], lettered)
        write(f"{name}_any.csv", ["who", "a", "b", "c"], lettered)
        write(f"{name}_bare.csv", [], lettered)
        write(f"{name}_numbers.csv", [], numbered)
        forms = ["_pandas.csv", "_names.csv", "_any.csv", "_bare.csv", "_numbers.csv", ".npy", ".parquet"]
        for form in [*forms, "_indexed.parquet"]:
            assert run(f"audit {name}{form} --points points.csv {CLAIM}") == code, form


def test_an_excess_that_is_rounding_stands_in_the_record_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("tight.npy", np.array([[np.e, 1.0], [1.0, np.e]]) / (1.0 + np.e))
    write("two.csv", ["x"], [[0.0], [1.0]])
    line = "audit tight.npy --points two.csv --metric l1 --json --epsilon"
    assert run(f"{line} 2.0") == 0
    found = json.loads(capsys.readouterr().out)["epsilon"]
    assert run(f"{line} {found * (1.0 - 2e-16)!r}") == 1
    assert "what rounding of the probabilities does" in json.loads(capsys.readouterr().out)["rounding"]
    assert run(f"{line} 0.9") == 1
    assert json.loads(capsys.readouterr().out)["rounding"] == ""


def test_distances_stand_in_for_points(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apart = np.linalg.norm(np.array(POINTS)[:, None] - np.array(POINTS)[None], axis=2)
    np.save("matrix.npy", mdp.exponential(mdp.FiniteSpace(np.array(POINTS), mdp.Lp(2)), 1.0).matrix)
    np.save("far.npy", apart)
    rows = [[repr(float(value)) for value in row] for row in apart]
    write("far.csv", [], rows)
    write("far_headed.csv", ["a", "b", "c"], rows)
    write("far_numbered.csv", ["0", "1", "2"], rows)
    write("far_indexed.csv", ["", "a", "b", "c"], [["abc"[k], *row] for k, row in enumerate(rows)])
    pq.write_table(pa.table({"index": [0, 1, 2], **{name: apart[:, k] for k, name in enumerate("abc")}}), "far.parquet")
    for form in ("far.npy", "far.csv", "far_headed.csv", "far_numbered.csv", "far_indexed.csv", "far.parquet"):
        assert run(f"audit matrix.npy --distances {form} --epsilon 1.0") == 0, form
        assert run(f"audit matrix.npy --distances {form} --epsilon 0.1") == 1, form
    assert (
        run("audit --secrets points.csv --distances far.npy --epsilon 1.0 --draws 3000 --command", command("9.0")) == 1
    )
    assert "remove --metric" in refused(capsys, f"audit matrix.npy --distances far.npy {CLAIM}")
    np.save("wide.npy", apart[:2])
    assert "as many columns as rows" in refused(capsys, "audit matrix.npy --distances wide.npy --epsilon 1.0")
    np.save("cube.npy", np.zeros((2, 2, 2)))
    assert "matrix of numbers" in refused(capsys, f"audit cube.npy --points points.csv {CLAIM}")
    Path("fake.npy").write_bytes(b"no array")
    assert "no whole array of numbers" in refused(capsys, f"audit fake.npy --points points.csv {CLAIM}")


def test_the_help_has_an_example_of_every_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--help"]) == 0
    said = capsys.readouterr().out
    for words in ("--command", "--url", "--module", "--secret ", "--report", "--synthetic", "--distances", "--draws"):
        assert words in said
