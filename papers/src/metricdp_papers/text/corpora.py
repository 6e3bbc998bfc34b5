"""Sentences as codes of words that have a vector: two sets of film reviews, and one made up that needs no data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.spaces import FiniteSpace
from metricdp.text import vocabulary
from metricdp_papers.common import GLOVE, DataSource, data_file, glove

Singles = NDArray[np.float32]
FILES = ("vectors", "review_extra")
HELD_OUT = 5  # MR has no split: every fifth sentence is held out


@dataclass(frozen=True)
class Corpus:
    """Sentences of two classes; words without a vector are left out.

    Attributes:
        name: What the rows call it.
        words: The whole vocabulary, words of the text and others.
        vectors: Their vectors, as stored.
        codes: The words of all sentences, one after the other.
        sentences: The sentence of every word.
        labels: The class of every sentence, 0 or 1.
        train: Which sentences a classifier learns from.
        test: Which sentences it is judged by.
        unknown: How many words were left out.
    """

    name: str
    words: tuple[str, ...]
    vectors: Singles
    codes: Integers
    sentences: Integers
    labels: Integers
    train: Booleans
    test: Booleans
    unknown: int

    @cached_property
    def counts(self) -> Integers:
        """How often every word of the vocabulary occurs."""
        return np.bincount(self.codes, minlength=len(self.words))

    @cached_property
    def used(self) -> Integers:
        """The words that occur, most frequent first."""
        order = np.argsort(-self.counts, kind="stable")
        return order[: np.count_nonzero(self.counts)]

    @cached_property
    def prior(self) -> Floats:
        """The share of every word that occurs, in the order of `used`: what an attacker knows beforehand."""
        return np.asarray(self.counts[self.used] / len(self.codes))

    @property
    def space(self) -> FiniteSpace:
        """The vocabulary as secrets."""
        return vocabulary(self.words, self.vectors.astype(float))


@cache
def corpus(name: str) -> Corpus:
    """Return a text by name."""
    return TEXTS[name].read()


def sst2() -> Corpus:
    """The Stanford Sentiment Treebank in two classes, with the split it comes with."""
    texts, labels, split = _sentences("text_sst2", "split")
    return _encode_corpus("SST-2", texts, labels, split == "train", split == "test")


def mr() -> Corpus:
    """Sentence polarity of film reviews, every fifth sentence held out."""
    texts, labels, _ = _sentences("text_mr", "label")
    held_out = np.arange(len(texts)) % HELD_OUT == HELD_OUT - 1
    return _encode_corpus("MR", texts, labels, ~held_out, held_out)


def made_up(size: int = 240, sentences: int = 400) -> Corpus:
    """Words in clusters and sentences of two moods, from a fixed seed."""
    rng = np.random.default_rng(18)
    centres = rng.normal(0.0, 2.0, (size // 8, 6))
    vectors = (np.repeat(centres, 8, axis=0) + rng.normal(0.0, 0.7, (size, 6))).astype(np.float32)
    mood, often = rng.normal(0.0, 0.03, 6), 1.0 / (np.arange(size) + 3.0)
    labels = np.arange(sentences) % 2
    lengths = rng.integers(5, 15, sentences)
    probabilities = [often * np.exp(sign * (vectors @ mood)) for sign in (-1.0, 1.0)]
    codes = [rng.choice(size, length, p=probabilities[label] / probabilities[label].sum())
             for label, length in zip(labels, lengths, strict=True)]  # fmt: skip
    where = np.repeat(np.arange(sentences), lengths)
    test = np.arange(sentences) % 4 > 1
    words = tuple(f"word{number}" for number in range(size))
    return Corpus("made up", words, vectors, np.concatenate(codes), where, labels, ~test, test, 0)


def _encode_corpus(name: str, texts: list[str], labels: Integers, train: Booleans, test: Booleans) -> Corpus:
    known = glove(*FILES)
    numbers = {word: code for code, word in enumerate(known.words)}
    found = [(numbers[word], row) for row, text in enumerate(texts) for word in text.split() if word in numbers]
    total = sum(len(text.split()) for text in texts)
    codes, where = np.array(found, dtype=np.int64).T
    return Corpus(name, tuple(known.words), known.array, codes, where, labels, train, test, total - len(codes))


def _sentences(folder: str, column: str) -> tuple[list[str], Integers, NDArray[np.str_]]:
    import pyarrow.parquet as parquet

    table = parquet.read_table(data_file(f"{folder}/sentences.parquet"))
    labels = np.asarray(table["label"].to_numpy(), dtype=np.int64)
    return table["text"].to_pylist(), labels, np.array([str(one) for one in table[column].to_pylist()])


TEXTS = {
    "SST-2": DataSource(sst2, (GLOVE, "text_sst2")),
    "MR": DataSource(mr, (GLOVE, "text_mr")),
    "made up": DataSource(made_up),
}
