"""The tokeniser gives back what it was given, and names what people write by its kind."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricdp.text import tokenise


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_joining_the_tokens_gives_back_any_text(text):
    assert "".join(token.text for token in tokenise(text)) == text


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("https://x.org/a?b=1", ["url"]),
        ("bob.smith@mail.example.com", ["email"]),
        ("@bob", ["mention"]),
        ("#fun", ["tag"]),
        ("2020-05-17", ["date"]),
        ("14:30", ["time"]),
        ("$1,234.50", ["punctuation", "number"]),
        ("👨‍👩‍👧‍👦", ["emoji"]),
        ("हिन्दी", ["word"]),
        ("中文", ["word", "word"]),
        ("don't", ["word"]),
    ],
)
def test_kinds(text, kinds):
    assert [token.kind for token in tokenise(text)] == kinds
