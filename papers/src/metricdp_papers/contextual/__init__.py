"""The study of the trajectory paper."""
