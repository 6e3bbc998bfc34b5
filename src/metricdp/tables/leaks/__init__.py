"""Columns that give the secret away: found by name, anywhere in a table, and by value, on a sample."""

from metricdp.tables.leaks.look import SAMPLED, SAMPLED_FROM, Finding, Secret, look, rows_looked_at, sample_rows
from metricdp.tables.leaks.names import kind_by_name, words_of
from metricdp.tables.leaks.repeats import look_at_texts

__all__ = [
    "SAMPLED",
    "SAMPLED_FROM",
    "Finding",
    "Secret",
    "kind_by_name",
    "look",
    "look_at_texts",
    "rows_looked_at",
    "sample_rows",
    "words_of",
]
