"""Columns that give the secret away: found by name, anywhere in a table, and by value, on a sample."""

from metricdp.tables.leaks.look import SAMPLED_FROM, Finding, Secret, look, rows_looked_at
from metricdp.tables.leaks.names import kind_by_name, words_of
from metricdp.tables.leaks.repeats import look_at_texts
from metricdp.tables.leaks.sample import SAMPLED, Sample, rows_sampled, sample_of, sample_rows
from metricdp.tables.leaks.texts import text_kind

__all__ = [
    "SAMPLED",
    "SAMPLED_FROM",
    "Finding",
    "Sample",
    "Secret",
    "kind_by_name",
    "look",
    "look_at_texts",
    "rows_looked_at",
    "rows_sampled",
    "sample_of",
    "sample_rows",
    "text_kind",
    "words_of",
]
