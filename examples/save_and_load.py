"""Keep a mechanism in one file; loading it checks the proof again."""

import tempfile
from pathlib import Path

import metricdp as mdp

mechanism = mdp.exponential(mdp.grid((4, 4)), 1.0)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "grid.mdp"
    mdp.save(mechanism, path)
    again = mdp.load(path)
print(again.guarantee, again.certificate.epsilon)
