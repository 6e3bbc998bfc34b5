"""Mobility: how traces become contexts, priors and blankets, and what releasing them over time costs."""
