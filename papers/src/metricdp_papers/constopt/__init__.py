"""The study of the ConstOPT paper."""
