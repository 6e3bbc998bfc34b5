"""What leaves a table beside the reports: what gives the secret away, what is trimmed, what is left behind."""
