"""Mechanisms for continuous secrets: optimise at anchors, interpolate, prove the guarantee for every point."""
