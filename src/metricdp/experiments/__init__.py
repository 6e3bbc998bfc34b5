"""Studies that run by name from an installed package."""
