"""The leak board: what samplers of others, and our own, let one tell, each judged by the same auditor."""
