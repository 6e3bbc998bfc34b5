"""The caller's own engine: thin adapters around the kernel, each imported when it is used."""
