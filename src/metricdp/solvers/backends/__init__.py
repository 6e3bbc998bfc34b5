"""Backends: one file per way to solve a program, and the linear algebra they share."""
