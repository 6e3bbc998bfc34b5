"""Vectors of words from files, each written by hand as its program writes it."""

import gzip
import io
import json
import pickle
import struct
import zipfile
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from metricdp import progress
from metricdp.errors import InvalidInput
from metricdp.metrics import Angular, Levenshtein
from metricdp.text import read_vectors

WORDS = ["tea", "coffee", "naïve", "東京", "don't"]
ARRAY = np.array([[0.5, -1.0, 2.0], [3.0, 4.0, -5.5], [9.0, 9.25, 0.0], [1e-3, 2e5, -7.0], [0.1, 0.2, 0.3]], np.float32)


def lines(header="", tail="", mark=" "):
    body = "".join(
        f"{word}{mark}{mark.join(map(repr, row.tolist()))}{tail}\n" for word, row in zip(WORDS, ARRAY, strict=True)
    )
    return (header + body).encode()


def binary(newlines=True, count=5):
    """As word2vec.c writes it: each word, a space, its floats, a line end; gensim leaves the line end out."""
    out = f"{count} 3\n".encode()
    for word, row in zip(WORDS, ARRAY, strict=True):
        out += word.encode() + b" " + struct.pack("<3f", *row.tolist()) + (b"\n" if newlines else b"")
    return out


def npz(**arrays):
    held = io.BytesIO()
    np.savez(held, **arrays)
    return held.getvalue()


def npy(array):
    held = io.BytesIO()
    np.save(held, array)
    return held.getvalue()


def safetensors(kind="F32", words=WORDS, extra=None, array=ARRAY):
    raw = {"F32": array.tobytes(), "F64": array.astype("<f8").tobytes(),
           "BF16": (array.view(np.uint32) >> 16).astype("<u2").tobytes()}[kind]  # fmt: skip
    header = {
        "embedding.weight": {"dtype": kind, "shape": list(array.shape), "data_offsets": [0, len(raw)]},
        **(extra or {}),
    }
    if words:
        header["__metadata__"] = {"words": json.dumps(words)}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + raw


def table(write, **columns):
    held = io.BytesIO()
    write(pa.table(columns), held)
    return held.getvalue()


def arrow(made, held):
    with pa.ipc.new_file(held, made.schema) as writer:
        writer.write_table(made)


def packed(**files):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return held.getvalue()


FIXED = pa.FixedSizeListArray.from_arrays(pa.array(ARRAY.ravel()), 3)
GOOD = {
    "glove.txt": lines(),
    "tabs.tsv": lines(mark="\t"),
    "word2vec.txt": lines("5 3\n"),
    "fasttext.vec": lines("5 3\n", tail=" "),
    "windows.txt": lines().replace(b"\n", b"\r\n"),
    "cut.txt": lines().rstrip(b"\n"),
    "word2vec.bin": binary(),
    "gensim.bin": binary(newlines=False),
    "glove.txt.gz": gzip.compress(lines()),
    "word2vec.bin.gz": gzip.compress(binary()),
    "glove.zip": packed(glove__txt=lines()),
    "a.npz": npz(words=np.array(WORDS), vectors=ARRAY, rank=np.arange(5)),
    "b.npz": npz(vocab=np.array([word.encode() for word in WORDS]), embeddings=ARRAY.astype(np.float64)),
    "c.npz": npz(first=np.array(WORDS), second=np.asfortranarray(ARRAY)),
    "by_word.npz": npz(**dict(zip(WORDS, ARRAY, strict=True))),
    "a.safetensors": safetensors(),
    "double.safetensors": safetensors("F64"),
    "a.parquet": table(pq.write_table, word=WORDS, vector=ARRAY.tolist()),
    "fixed.parquet": table(pq.write_table, token=WORDS, note=["x"] * 5, embedding=FIXED),
    "columns.parquet": table(pq.write_table, word=WORDS, **{f"d{k}": ARRAY[:, k] for k in range(3)}),
    "a.arrow": table(arrow, word=WORDS, vector=FIXED),
    "a.feather": table(lambda made, held: pyarrow.feather.write_feather(made, held), word=WORDS, vector=FIXED),
}


@pytest.mark.parametrize("name", GOOD)
def test_every_format_gives_the_same_words_and_vectors(tmp_path, name):
    (tmp_path / name).write_bytes(GOOD[name])
    found = read_vectors(tmp_path / name)
    assert found.words == WORDS
    assert found.array.dtype == np.float32
    assert np.array_equal(found.array, ARRAY)
    assert found.notes == ()
    first = read_vectors(str(tmp_path / name), limit=2)
    assert first.words == WORDS[:2]
    assert np.array_equal(first.array, ARRAY[:2])
    assert len(read_vectors(tmp_path / name, limit=99)) == 5


def test_half_precision_of_the_brain_is_the_upper_half_of_a_float(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(safetensors("BF16"))
    assert np.allclose(read_vectors(tmp_path / "a.safetensors").array, ARRAY, rtol=2**-7)


@pytest.mark.parametrize(
    ("list_name", "content"),
    [("a.txt", "\n".join(WORDS)), ("vocab.txt", "\n".join(WORDS) + "\n"), ("a.json", json.dumps(WORDS)),
     ("vocab.json", json.dumps({word: row for row, word in enumerate(WORDS)}))],
)  # fmt: skip
def test_vectors_alone_take_their_words_from_a_list_beside_them(tmp_path, list_name, content):
    (tmp_path / list_name).write_text(content, encoding="utf-8")
    (tmp_path / "a.npy").write_bytes(npy(ARRAY))
    (tmp_path / "b.safetensors").write_bytes(safetensors(words=None))
    assert read_vectors(tmp_path / "a.npy").words == WORDS
    found = read_vectors(tmp_path / "b.safetensors", words=tmp_path / list_name, limit=3)
    assert found.words == WORDS[:3]
    assert np.array_equal(found.array, ARRAY[:3])


def test_many_blocks_are_read_as_one(tmp_path, monkeypatch):
    """More lines than a block holds, in text, binary and gzip, with one word that has spaces in the middle."""
    monkeypatch.setattr("metricdp.text.formats.lines.BLOCK", 1000)
    monkeypatch.setattr("metricdp.text.formats.lines.BLOCK", 1000)
    rng = np.random.default_rng(0)
    array = rng.normal(size=(700, 4)).astype(np.float32)
    words = [f"w{row}" if row != 350 else ". . ." for row in range(700)]
    text = "".join(f"{word} {' '.join(map(repr, row.tolist()))}\n" for word, row in zip(words, array, strict=True))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text.encode()))
    heard = []
    with progress.listen(heard.append):
        found = read_vectors(tmp_path / "a.txt.gz")
    assert found.words == words
    assert np.array_equal(found.array, array)
    assert "1 words hold spaces" in found.notes[0]
    assert any("words" in said for said in heard)
    words[350] = "plain"
    raw = b"".join(word.encode() + b" " + row.tobytes() for word, row in zip(words, array, strict=True))
    (tmp_path / "a.bin").write_bytes(b"700 4\n" + raw)
    found = read_vectors(tmp_path / "a.bin")
    assert found.words == words
    assert np.array_equal(found.array, array)


def test_what_comes_again_is_left_out_with_a_note(tmp_path):
    (tmp_path / "a.txt").write_text("tea 1 2\nrain 0 0\ntea 3 4\n")
    found = read_vectors(tmp_path / "a.txt")
    assert found.words == ["tea", "rain"]
    assert found.array.tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert "line 3 ('tea') after line 1 ('tea')" in found.notes[0]
    assert "zero vector, 'rain'" in found.notes[1]
    assert found.distinct().words == ["tea"]


def test_a_few_lines_that_are_not_utf8_are_left_out_and_many_are_refused(tmp_path):
    good = b"".join(b"w%d 1 2\n" % row for row in range(200))
    (tmp_path / "a.txt").write_bytes(good + b"caf\xe9 1 2\n")
    found = read_vectors(tmp_path / "a.txt")
    assert len(found) == 200
    assert "line 201 left out, not UTF-8" in found.notes[0]
    (tmp_path / "b.txt").write_bytes(b"caf\xe9 1 2\n" * 3 + good[:70])
    with pytest.raises(InvalidInput, match="line 1 and 2 others"):
        read_vectors(tmp_path / "b.txt")


def test_several_files_are_joined(tmp_path):
    (tmp_path / "a.txt").write_text("tea 1 2\nrain 0 1\n")
    (tmp_path / "b.txt").write_text("rain 9 9\nsnow 3 4\n")
    found = read_vectors([tmp_path / "a.txt", tmp_path / "b.txt"])
    assert found.words == ["tea", "rain", "snow"]
    assert found.array.tolist() == [[1.0, 2.0], [0.0, 1.0], [3.0, 4.0]]
    (tmp_path / "c.txt").write_text("sun 9 9 9\n")
    with pytest.raises(InvalidInput, match="one length, got 2, 3"):
        read_vectors([tmp_path / "a.txt", tmp_path / "c.txt"])


MATRIX = {"dtype": "F32", "shape": [5, 3], "data_offsets": [0, 60]}
BAD = {
    "empty.txt": (b"", "empty"),
    "blank.txt": (b"\n\n", "empty"),
    "short.txt": (b"tea 1 2\nrain 1\nsun 3 4\n", "1 numbers in line 2"),
    "words.txt": (b"tea 1 2\nrain one two\n", "line 2"),
    "nan.txt": (b"tea 1 2\nrain nan 1\n", r"not finite \(nan\) in line 2 \('rain'\)"),
    "huge.txt": (b"tea 1 2\nrain 1e99 1\n", r"not finite \(inf\) in line 2"),
    "fewer.txt": (lines("6 3\n"), "says 6 words in line 1 and holds 5"),
    "more.txt": (lines("4 3\n"), "says 4 words in line 1 and holds 5"),
    "wide.txt": (lines("5 4\n"), "says 4 numbers a word in line 1, and line 2 has 3"),
    "cut.bin": (binary()[:-20], "at word 4"),
    "more.bin": (binary(count=6), "at word 5"),
    "giant.bin": (b"999999999999 300\ntea \0\0\0\0", "more than are read at once"),
    "none.bin": (b"5 0\ntea \0\0\0\0", "1 to 65,536 numbers"),
    "long.txt": (b"a" * 10_000_000, "a line of over"),
    "cut.txt.gz": (gzip.compress(lines())[:-9], "not copied whole"),
    "objects.npz": (npz(words=np.array(WORDS, dtype=object), vectors=ARRAY), "pickle"),
    "objects.npy": (npy(np.array(WORDS, dtype=object)), "no words|pickle"),
    "uneven.npz": (npz(words=np.array(WORDS[:4]), vectors=ARRAY), "4 words in 'words' and 5 vectors"),
    "lists.npz": (npz(a=np.array(WORDS), b=np.array(WORDS), c=ARRAY), "several lists of words"),
    "numbers.npz": (npz(vectors=ARRAY), "must hold a list of words"),
    "cut.npz": (npz(words=np.array(WORDS), vectors=ARRAY)[:-40], "damaged|not copied whole"),
    "alone.npy": (npy(ARRAY), "no words"),
    "model.bin": ((793712314).to_bytes(4, "little") + b"\0" * 40, "`.vec`"),
    "model.kv": (pickle.dumps(WORDS), "pickle"),
    "model.pt": (packed(**{"archive/data__pkl": b"x", "archive/version": b"3"}), "pickle"),
    "two.zip": (packed(a__txt=lines(), b__txt=lines()), "name one of a.txt, b.txt"),
    "short.safetensors": (safetensors()[:-4], "does not hold them"),
    "plain.safetensors": (safetensors(words=None), "no words"),
    "odd.safetensors": (safetensors(extra={"x.embedding": MATRIX}),
                        "one matrix of vectors"),
    "lies.safetensors": (safetensors(extra={"embedding.weight": {**MATRIX, "shape": [-5, 3]}}),
                         "makes no sense"),
    "broken.safetensors": (struct.pack("<Q", 20) + b"{" + b"x" * 60, "no header"),
    "ragged.parquet": (table(pq.write_table, word=WORDS, vector=[[1.0, 2.0]] * 4 + [[1.0]]), "1 numbers in row 4"),
    "gap.parquet": (table(pq.write_table, word=[*WORDS[:4], None], vector=FIXED), "no word in row 4"),
    "hole.parquet": (table(pq.write_table, word=WORDS, vector=[[1.0], None, *[[1.0]] * 3]), "no vector in row 1"),
    "other.parquet": (table(pq.write_table, number=[1, 2]), "a column of words"),
    "cut.parquet": (table(pq.write_table, word=WORDS, vector=FIXED)[:-30], "damaged|not copied whole"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_file_is_said(tmp_path, name):
    content, said = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=said) as caught:
        read_vectors(tmp_path / name)
    assert str(caught.value).endswith(".")
    assert str(tmp_path) not in str(caught.value)


def test_other_bad_input(tmp_path):
    (tmp_path / "a.txt").write_text("tea 1 2\nrain 0 0\nsnow 1 2\n")
    with pytest.raises(InvalidInput, match="does not exist"):
        read_vectors(tmp_path / "b.txt")
    with pytest.raises(InvalidInput, match="limit"):
        read_vectors(tmp_path / "a.txt", limit=0)
    with pytest.raises(InvalidInput, match="at least one"):
        read_vectors([])
    found = read_vectors(tmp_path / "a.txt")
    with pytest.raises(InvalidInput, match="'tea' and 'snow'"):
        found.space()
    with pytest.raises(InvalidInput, match="zero vector"):
        read_vectors(tmp_path / "a.txt", limit=2).space(Angular())
    assert len(found.distinct().space(Angular())) == 1
    assert found.space(Levenshtein()).distances[0, 1] == 4


def test_words_of_several_scripts_are_found(tmp_path):
    (tmp_path / "a.txt").write_bytes(lines())
    space = read_vectors(tmp_path / "a.txt").space()
    assert space.encode(["東京", "naïve"]).tolist() == [3, 2]


def test_damage_anywhere_is_an_error_of_ours_or_harmless(tmp_path):
    """A few bytes of every format changed, left out or put in: never another error, never a warning."""
    rng = np.random.default_rng(4)
    for name, content in GOOD.items():
        for _ in range(4):
            held = bytearray(content)
            at = int(rng.integers(len(held)))
            held[at : at + int(rng.integers(0, 9))] = rng.bytes(int(rng.integers(0, 9)))
            (tmp_path / name).write_bytes(held)
            with suppress(InvalidInput):
                read_vectors(tmp_path / name)
