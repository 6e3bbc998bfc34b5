"""The tokeniser gives back what it was given, names what people write by its kind, and takes linear time."""

import time
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metricdp.errors import InvalidInput
from metricdp.text import KINDS, Cutting, tokenise
from metricdp.text.columns import column_of

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=40)
PIECES = st.sampled_from(
    ["don't", "re-imagining", "U.S.", "中文", "ภาษา", "हिन्दी", "👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "1️⃣",
     "e\u0301", "\u0301",
     "\u200d", "\u200b", "https://x.org/a?b=1", "www.x.org", "bob@x.org", "@bob", "#fun", "#1", "-5", "1,234.50",
     "3.5s", "2020-05-17", "14:30", "_", "__", "...", "--", "'", "’s", "n't", "'s", " ", "\n", "\t", "\u00a0",
     "\u2028", "\x00", "\ud800", "½", "°", "€", "."]
)  # fmt: skip
WRITTEN = st.one_of(ANYTHING, st.lists(st.one_of(PIECES, ANYTHING), max_size=8).map("".join))
KNOWN = Cutting({"do", "n't", "中文", "文字", "bug"}, 2, contractions=True)


@settings(max_examples=150, deadline=None)
@given(WRITTEN)
@example("x's's's's 'tn't'd")
def test_joining_the_tokens_gives_back_any_text(text):
    for cutting in (Cutting(), KNOWN):
        found = tokenise(text, cutting=cutting)
        assert "".join(token.text for token in found) == text
        assert all(token.text and token.kind in KINDS for token in found)
        column = column_of([text, "", text], cutting)
        assert [column.tokens[place] for place in column.ids.tolist()] == found + found
        assert column.starts.tolist() == [0, len(found), len(found), 2 * len(found)]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("https://x.org/a?b=1", "url"),
        ("HTTP://X.ORG", "url"),
        ("www.example.org/p_(q)x", "url"),
        ("example.com", "url"),
        ("news.example.co.uk/today", "url"),
        ("bob.smith+x@mail.example.com", "email"),
        ("@bob_7", "mention"),
        ("#fun", "tag"),
        ("#1", "punctuation number"),
        ("2020-05-17", "date"),
        ("17.5.2020", "date"),
        ("5/17/2020", "date"),
        ("14:30", "time"),
        ("14:30:05", "time"),
        ("1:2", "number punctuation number"),
        ("$1,234.50", "punctuation number"),
        ("-5", "number"),
        ("10-5", "number punctuation number"),
        ("50%", "number punctuation"),
        ("1930s", "word"),
        ("3D", "word"),
        ("192.168.1.1", "number"),
        ("don't", "word"),
        ("don’t", "word"),
        ("rock-and-roll", "word"),
        ("U.S.", "word"),
        ("snake_case", "word"),
        ("👨‍👩‍👧‍👦", "emoji"),
        ("🇩🇪🇫🇷", "emoji emoji"),
        ("👍🏽", "emoji"),
        ("❤️", "emoji"),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", "emoji"),
        ("1️⃣", "emoji"),
        (":)", "punctuation"),
        ("“so”…", "punctuation word punctuation"),
        ("Привет", "word"),
        ("Ελλάδα", "word"),
        ("مَرْحَبًا", "word"),
        ("می‌خواهم", "word"),
        ("שָׁלוֹם", "word"),
        ("हिन्दी", "word"),
        ("தமிழ்", "word"),
        ("한국어", "word"),
        (unicodedata.normalize("NFD", "한국어 näive"), "word space word"),
        ("中文", "word word"),
        ("東京abc", "word word word"),
        ("ひらがな。", "word word word word punctuation"),
        ("ที่นี่", "word word"),
        ("zero\u00adwidth", "word"),
        ("\u200b\ufeff", "invisible invisible"),
        ("a\x00b", "word invisible word"),
        ("\ud83d", "invisible"),
        (" \t\n", "space"),
    ],
)
def test_kinds(text, kinds):
    assert " ".join(token.kind for token in tokenise(text)) == kinds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't", "do|n't"),
        ("Can’t", "Ca|n’t"),
        ("it's", "it|'s"),
        ("shouldn't've", "should|n't|'ve"),
        ("n't", "n't"),
        ("bug-eyed", "bug|-|eyed"),
        ("7-year", "7|-|year"),
        ("u.s.", "u|.|s|."),
        ("中文字", "中文|字"),
        ("文字中文", "文字|中文"),
    ],
)
def test_a_vocabulary_decides_how_words_are_cut(text, expected):
    assert "|".join(token.text for token in tokenise(text, cutting=KNOWN)) == expected


@pytest.mark.parametrize(
    "piece",
    ["a", "a.b", "a-", "a'", "x's", "a@", "@", "#1", "1,", "http://", "www.", "1:", "-", "!", "中", "é\u0301", "👍🏽",
     "\u200d", "_", "a.com/"],
)  # fmt: skip
def test_time_is_linear_whatever_is_written(piece):
    """30,000 characters without a space; what looks ahead without a bound would take minutes."""
    text = piece * (30_000 // len(piece))
    started = time.process_time()
    assert "".join(token.text for token in tokenise(text, cutting=KNOWN)) == text
    assert time.process_time() - started < 3.0


def test_only_text_is_cut():
    with pytest.raises(InvalidInput, match="must be a text, got bytes"):
        tokenise(b"tea")
