"""Benders decomposition of a ratio program: boundary rows in a master, inner rows in blocks."""
