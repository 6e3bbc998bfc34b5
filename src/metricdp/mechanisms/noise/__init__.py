"""Laplace noise that is exact: real numbers around the secret, put on a public lattice once.

`functions` and `kernels` compute in doubles with proven bounds, `vectors` likewise in any dimension, `compiled` makes
the kernels into machine code, `arbitrary_precision` takes over where doubles do not decide, and `distributions` puts
them together.
"""
