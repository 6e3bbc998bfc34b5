"""Tables of texts: formats, empty cells, bad bytes, columns that give texts away, files that are whole or absent."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import metricdp as mdp
from metricdp.errors import InvalidInput, NotPrivate, OutOfDomain, OutputProblem
from metricdp.tables import locate_table, open_reader, perturb, run_partition
from metricdp.text import Rules, TextMechanism

WORDS = ["good", "fine", "bad", "poor", "room", "house", "was", "is", "the", "a", "monday", "friday"]
TEXT = "The room was GOOD, was it?"
SHAPE = ["w", "w", "w", "w", ",", "w", "m", "?"]


@pytest.fixture(scope="module")
def words() -> Any:
    rng = np.random.default_rng(3)
    vectors = np.repeat(3.0 * rng.normal(size=(6, 4)), 2, axis=0) + 0.3 * rng.normal(size=(12, 4))
    return mdp.exponential(mdp.vocabulary(WORDS, vectors), 2.0)


@pytest.fixture(scope="module")
def masked(words: Any) -> TextMechanism:
    return TextMechanism(words, Rules(unknown="mask"))


def shape(text: str) -> list[str]:
    """What a text shows whatever was drawn: words as w, everything else as it is."""
    cut = text.replace("[MASK]", "\0").replace(",", " , ").replace("?", " ?").split()
    return ["m" if piece == "\0" else "w" if piece.lower() in WORDS else piece for piece in cut]


def test_words_become_words_and_all_else_stays(tmp_path: Path, masked: TextMechanism) -> None:
    (tmp_path / "in.csv").write_bytes('\ufeffid;text\r\n1;"The room, 😀 was ""GOOD"""\r\n2;\r\n'.encode())
    summary = perturb(tmp_path / "in.csv", masked, to=tmp_path / "out.csv", columns="text")
    made = (tmp_path / "out.csv").read_bytes()
    assert made.startswith(b"\xef\xbb\xbfid;text\r\n1;")
    assert made.endswith(b"\r\n2;\r\n")
    cell = made.decode("utf-8-sig").splitlines()[1].partition(";")[2]
    assert cell.count('""') == 2  # quotes stay, doubled as CSV has them
    assert summary.empty == 1
    assert summary.masked == cell.count("[MASK]")
    assert summary.columns == ("text",)
    assert summary.kept_columns == ("id",)


def test_reports_follow_the_law_of_the_words(tmp_path: Path, words: Any, masked: TextMechanism) -> None:
    """4,000 times the same word in a table: shares of reports against the row of the matrix."""
    (tmp_path / "in.csv").write_text("text\n" + "good\n" * 4000)
    perturb(tmp_path / "in.csv", masked, to=tmp_path / "out.csv", rng=np.random.default_rng(1))
    drawn = Counter(line.partition(",")[0] for line in (tmp_path / "out.csv").read_text().splitlines()[1:])
    distribution = words.matrix[0] / words.matrix[0].sum()
    for word, chance in zip(WORDS, distribution, strict=True):
        assert drawn[word] / 4000 == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / 4000) + 1e-3)


def test_every_format_comes_back_in_its_own_way(tmp_path: Path, masked: TextMechanism) -> None:
    table = pa.table(
        {
            "n": [1, 2, 3],
            "text": pa.array([TEXT, None, ""]).dictionary_encode(),
            "review": [{"text": "bad room", "stars": 1}, {"text": None, "stars": 2}, None],
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    perturb(tmp_path / "in.parquet", masked, to=tmp_path / "out.parquet", columns=["text", "review.text"])
    made = pq.read_table(tmp_path / "out.parquet")
    assert made["n"].to_pylist() == [1, 2, 3]
    assert [text if text is None else shape(text) for text in made["text"].to_pylist()] == [SHAPE, None, []]
    assert made["review"][0]["stars"].as_py() == 1
    assert shape(made["review"][0]["text"].as_py()) == ["w", "w"]

    perturb(tmp_path / "in.parquet", masked, to=tmp_path / "out.jsonl", columns="text")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["text"] if row["text"] is None else shape(row["text"]) for row in rows] == [SHAPE, None, []]

    with closing(sqlite3.connect(tmp_path / "shop.db")) as base:
        base.execute("create table reviews (id integer, text text)")
        base.executemany("insert into reviews values (?, ?)", [(1, "bad house"), (2, None)])
        base.commit()
    perturb(f"{tmp_path / 'shop.db'}::reviews", masked, to=f"{tmp_path / 'shop.db'}::safe")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base:
        made_rows = base.execute("select * from safe order by id").fetchall()
    assert shape(made_rows[0][1]) == ["w", "w"]
    assert made_rows[1] == (2, None)


def test_plain_lines_are_documents(tmp_path: Path, masked: TextMechanism) -> None:
    with gzip.open(tmp_path / "in.lines.gz", "wb") as file:
        file.write(b"the room\r\n\r\nwas bad\r\n")
    perturb(tmp_path / "in.lines.gz", masked, to=tmp_path / "out.lines")
    lines = (tmp_path / "out.lines").read_bytes().split(b"\r\n")
    assert [len(line.split()) for line in lines] == [2, 0, 2, 0]
    (tmp_path / "two.csv").write_text("id,text\n1,room\n")
    with pytest.raises(InvalidInput, match="plain lines hold one column"):
        perturb(tmp_path / "two.csv", masked, to=tmp_path / "two.lines", columns="text")
    (tmp_path / "long.csv").write_text('text\nroom\n"bad\nroom"\n')
    with pytest.raises(InvalidInput, match=r"row 1 .* holds several lines"):
        perturb(tmp_path / "long.csv", masked, to=tmp_path / "long.lines")
    assert not list(tmp_path.glob("*o.lines")) + list(tmp_path.glob("long.lines"))


def test_unknown_words_are_refused_by_their_rows_alone(tmp_path: Path, words: Any) -> None:
    rows = ["good room"] * 20
    rows[7], rows[11] = "good Zebra", "the zyzzyva"
    pq.write_table(pa.table({"text": [None, *rows]}), tmp_path / "in.parquet")
    with pytest.raises(OutOfDomain) as caught:
        perturb(tmp_path / "in.parquet", TextMechanism(words), to=tmp_path / "out.parquet")
    assert caught.value.rows == (8, 12)
    assert "column 'text'" in str(caught.value)
    assert "8, 12" in str(caught.value)
    assert "ebra" not in str(caught.value)
    assert not (tmp_path / "out.parquet").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_bytes_that_are_no_text_are_refused_in_the_texts_and_kept_elsewhere(
    tmp_path: Path, masked: TextMechanism
) -> None:
    (tmp_path / "in.csv").write_bytes(b"name,text\ncaf\xe9,room\nx,b\xe4d\n")
    with pytest.raises(InvalidInput, match="not UTF-8 in row 1"):
        perturb(tmp_path / "in.csv", masked, to=tmp_path / "out.csv", columns="text")
    (tmp_path / "in.csv").write_bytes(b"name,text\ncaf\xe9,room\n")
    perturb(tmp_path / "in.csv", masked, to=tmp_path / "out.csv", columns="text")
    assert (tmp_path / "out.csv").read_bytes().startswith(b"name,text\ncaf\xe9,")


def test_columns_that_repeat_the_text_are_found(tmp_path: Path, masked: TextMechanism) -> None:
    rng = np.random.default_rng(8)
    texts = [" ".join(rng.choice(WORDS, size=5)) for _ in range(60)]
    table = pa.table(
        {
            "text": texts,
            "copy": [text.upper() for text in texts],
            "topic": [text.split()[2] for text in texts],
            "stars": rng.integers(1, 6, size=60),
            "answer": ["we are very sorry about this"] * 60,
            "label": rng.choice(["praise", "complaint"], size=60),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    summary = perturb(tmp_path / "in.parquet", masked, to=tmp_path / "out.parquet", columns="text")
    kinds = {one.column: one.kind for one in summary.findings}
    assert kinds["copy"] == "repeats"
    assert kinds["topic"] == "repeats"
    assert kinds["answer"] == "prose"
    assert "stars" not in kinds
    assert "label" not in kinds
    assert any("words of the protected text" in line for line in summary.lines())
    with pytest.raises(NotPrivate, match="--strict"):
        perturb(tmp_path / "in.parquet", masked, to=tmp_path / "strict.parquet", columns="text", strict=True)
    left = perturb(
        tmp_path / "in.parquet",
        masked,
        to=tmp_path / "left.parquet",
        columns="text",
        drop=["copy", "topic", "answer"],
        strict=True,
    )
    assert pq.read_schema(tmp_path / "left.parquet").names == ["text", "stars", "label"]
    assert any(line == "Dropped, as requested: copy, topic, answer." for line in left.lines())


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("txt", "no column 'txt'.*Did you mean 'text'"),
        ("n", "must hold text, it holds int64"),
        ("tokens", "'tokens' holds lists: join"),
        ("tokens[0]", "'tokens' holds lists: join"),
        (["text", "text"], "different ones"),
    ],
)
def test_columns_that_are_no_texts_are_refused(
    tmp_path: Path, masked: TextMechanism, columns: Any, reason: str
) -> None:
    table = pa.table({"n": [1, 2], "text": ["room", "bad"], "tokens": [["a", "b"], ["c", "d"]]})
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(InvalidInput, match=reason):
        perturb(tmp_path / "in.parquet", masked, to=tmp_path / "out.parquet", columns=columns)


def test_the_only_column_of_text_is_taken_and_two_are_asked_about(tmp_path: Path, masked: TextMechanism) -> None:
    pq.write_table(pa.table({"n": [1], "words": ["room"]}), tmp_path / "one.parquet")
    assert perturb(tmp_path / "one.parquet", masked, to=tmp_path / "a.parquet").columns == ("words",)
    pq.write_table(pa.table({"title": ["bad"], "words": ["room"]}), tmp_path / "two.parquet")
    with pytest.raises(InvalidInput, match="say which column holds the texts"):
        perturb(tmp_path / "two.parquet", masked, to=tmp_path / "b.parquet")


def test_a_cell_of_ten_megabytes_passes(tmp_path: Path, masked: TextMechanism) -> None:
    cell = '"' + " " * 10_000_000 + 'bad room"'
    (tmp_path / "in.csv").write_text(f"id,text\n1,{cell}\n2,good\n")
    perturb(tmp_path / "in.csv", masked, to=tmp_path / "out.csv", columns="text")
    assert (tmp_path / "out.csv").stat().st_size > 10_000_000


def test_long_texts_are_read_a_few_at_a_time_in_every_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dictionary hides how long texts are, and a row longer than a batch comes alone."""
    monkeypatch.setattr("metricdp.tables.formats.base.BATCH_BYTES", 100_000)
    table = pa.table({"text": ["bad room " * 1_000] * 90 + ["good " * 50_000]})
    pq.write_table(table, tmp_path / "coded.parquet")
    pq.write_table(table, tmp_path / "plain.parquet", use_dictionary=False)
    feather.write_feather(table, tmp_path / "in.feather")
    with closing(sqlite3.connect(tmp_path / "in.db")) as base:
        base.execute("create table reviews (text text)")
        base.executemany("insert into reviews values (?)", [(text,) for text in table["text"].to_pylist()])
        base.commit()
    for name in ("coded.parquet", "plain.parquet", "in.feather", "in.db::reviews"):
        with open_reader(locate_table(f"{tmp_path}/{name}")) as reader:
            sizes = [batch.num_rows for batch in reader.batches()]
        assert sum(sizes) == 91
        assert max(sizes) <= 12, name


def test_a_simulation_is_marked(tmp_path: Path, masked: TextMechanism) -> None:
    (tmp_path / "in.csv").write_text("text\nroom\n")
    summary = perturb(tmp_path / "in.csv", masked, to=tmp_path / "out.csv", rng=np.random.default_rng(1))
    assert summary.simulated
    assert (tmp_path / "out.csv").read_text().startswith("text,metricdp_simulated\n")
    assert "SIMULATION ONLY" in summary.lines()[-1]


def test_a_table_without_rows_has_nothing_to_protect(tmp_path: Path, masked: TextMechanism) -> None:
    (tmp_path / "in.csv").write_text("id,text\n")
    with pytest.raises(InvalidInput, match="no rows"):
        perturb(tmp_path / "in.csv", masked, to=tmp_path / "out.csv", columns="text")
    assert not (tmp_path / "out.csv").exists()


def test_a_cell_of_200_kilobytes_among_the_first_rows_does_no_harm(tmp_path: Path, masked: TextMechanism) -> None:
    """The csv module of Python, which a first look uses, takes no cell of more than 131,072 characters."""
    (tmp_path / "in.csv").write_text(f'id,text\n1,"{"a, " * 60_000}"\n2,good\n')
    perturb(tmp_path / "in.csv", masked, to=tmp_path / "out.csv", columns="text")
    assert (tmp_path / "out.csv").stat().st_size > 150_000


def in_this_process(job: Any, pending: Any, tell: Any, /, *, workers: Any = None) -> None:
    for number in pending:
        tell(run_partition(job.folder, number).rows)


def test_many_files_become_a_folder_at_once_or_not_at_all(
    tmp_path: Path, words: Any, masked: TextMechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metricdp.tables.files.runner", lambda engine: in_this_process)
    (tmp_path / "days" / "may").mkdir(parents=True)
    (tmp_path / "days" / "one.csv").write_text("text\ngood room\n")
    (tmp_path / "days" / "may" / "two.csv").write_text("text\nbad\nthe zebra\n")
    summary = perturb(tmp_path / "days", masked, to=tmp_path / "safe")
    assert (summary.rows, summary.masked) == (3, 1)
    assert sorted(path.name for path in (tmp_path / "safe").rglob("*.csv")) == ["one.csv", "two.csv"]
    assert (tmp_path / "safe" / "may" / "two.csv").read_text().count("\n") == 3
    with pytest.raises(OutOfDomain, match="row 1"):
        perturb(f"{tmp_path}/days/**/*.csv", TextMechanism(words), to=tmp_path / "again")
    with pytest.raises(OutputProblem, match="holds a finished job"):
        perturb(tmp_path / "days", masked, to=tmp_path / "safe")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".") == ["days", "safe"]


def test_a_column_without_words_is_hardly_the_one_that_is_meant(tmp_path: Path, masked: TextMechanism) -> None:
    (tmp_path / "in.csv").write_text("stars,text\n5,good room\n3,\n")
    with pytest.raises(InvalidInput, match="'stars' holds no words in its first 2 rows"):
        perturb(tmp_path / "in.csv", masked, to=tmp_path / "out.csv", columns="stars")
    (tmp_path / "in.csv").write_text('text\n""\n""\n')
    assert perturb(tmp_path / "in.csv", masked, to=tmp_path / "out.csv").empty == 2
