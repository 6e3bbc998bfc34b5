"""Columns that give the secret away: found by name, anywhere in a table, and by value, on a sample."""

from metricdp.tables.leaks.look import SAMPLED, SAMPLED_FROM, Finding, Secret, look, sample_rows
from metricdp.tables.leaks.names import kind_by_name, words_of

__all__ = ["SAMPLED", "SAMPLED_FROM", "Finding", "Secret", "kind_by_name", "look", "sample_rows", "words_of"]
