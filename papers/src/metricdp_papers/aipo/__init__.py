"""The study of the AIPO paper: continuous secrets on real road networks."""
