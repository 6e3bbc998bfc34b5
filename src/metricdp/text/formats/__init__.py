"""Files of words and vectors, one module a format."""
