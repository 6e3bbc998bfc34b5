"""The study of the decomposition paper."""
