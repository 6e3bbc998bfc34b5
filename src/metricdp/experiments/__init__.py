"""The papers' studies, runnable by name."""
