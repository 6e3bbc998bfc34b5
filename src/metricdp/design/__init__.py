"""Design: how a mechanism is made. The only package where privacy meets solvers.

Every builder lives in the module of its idea, named in `builders`, and is loaded when first used. So is what stands
here beside them: what studies, comparisons and plugins are made of.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
