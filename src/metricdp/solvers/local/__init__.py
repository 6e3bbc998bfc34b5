"""Ratio programs of whole cities: a report has variables near it only, and nothing is n x n."""
