"""The survey of metric differential privacy: what it names, and where that is here."""
