"""A client of the service for Python."""
