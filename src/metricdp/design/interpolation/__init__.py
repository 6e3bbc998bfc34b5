"""Mechanisms for continuous secrets: optimise at anchors, interpolate, prove the promise for every point."""
