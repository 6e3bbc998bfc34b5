"""Design: how a mechanism is made. The only room where privacy meets solvers.

Every builder lives in the module of its idea, named in `builders`, and is loaded when first used.
"""
