"""Vectors of words from files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metricdp.errors import InvalidInput
from metricdp.text import read_vectors

WORDS = ["tea", "coffee", "rain"]
ARRAY = np.array([[0.5, -1.0], [3.0, 4.0], [9.0, 9.25]], dtype=np.float32)


def glove(path):
    path.write_text("".join(f"{w} {' '.join(map(str, v))}\n" for w, v in zip(WORDS, ARRAY, strict=True)))


def npz(path):
    np.savez(path, words=np.array(WORDS), vectors=ARRAY, rank=np.arange(3))


def parquet(path):
    pq.write_table(pa.table({"word": WORDS, "vector": ARRAY.tolist()}), path)


@pytest.mark.parametrize(("name", "write"), [("a.txt", glove), ("a.npz", npz), ("a.parquet", parquet)])
def test_every_format_gives_the_same_words_and_vectors(tmp_path, name, write):
    write(tmp_path / name)
    found = read_vectors(tmp_path / name)
    assert found.words == WORDS
    assert found.array.dtype == np.float32
    assert np.array_equal(found.array, ARRAY)
    assert len(read_vectors(tmp_path / name, limit=2)) == 2
    assert found.space().distances[0, 1] == pytest.approx(np.hypot(2.5, 5.0))


def test_a_line_of_another_length_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("tea 1 2\nrain 1\n")
    with pytest.raises(InvalidInput, match="line 2"):
        read_vectors(tmp_path / "a.txt")
