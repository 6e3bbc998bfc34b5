"""Columns that give the secret away: found by name, anywhere in a table, and by value, on a sample."""

from metricdp.tables.leaks.look import SAMPLED, Finding, Secret, look, rows_looked_at, sample_rows
from metricdp.tables.leaks.names import kind_by_name, words_of

__all__ = ["SAMPLED", "Finding", "Secret", "kind_by_name", "look", "rows_looked_at", "sample_rows", "words_of"]
