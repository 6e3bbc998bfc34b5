"""Repair: from an approximate matrix to one that keeps every ratio exactly."""
