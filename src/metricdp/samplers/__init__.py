"""Samplers of others as `draw(secret, count) -> reports`: commands, addresses, JavaScript modules.

What is drawn here goes to `audit_sampler`, which asks nothing of a sampler but that; commands and modules answer many
calls at once (`each(secrets) -> reports`, one for every secret in their order). Every sampler is closed when it is
no longer needed (`with CommandSampler(...) as draw:`), and `fresh()` starts a command or a module anew.
"""

from metricdp.samplers.command import CommandSampler as CommandSampler
from metricdp.samplers.node import NodeSampler as NodeSampler
from metricdp.samplers.web import WebSampler as WebSampler
