"""Write the mechanism of js/example, signed with a key that is thrown away afterwards."""

import shutil
import tempfile
from pathlib import Path

import metricdp as mdp

FOLDER = Path(__file__).parents[1] / "js" / "example"
RADIUS_KM = 0.2

mechanism = mdp.laplace(mdp.Haversine(), mdp.epsilon_for(2, RADIUS_KM))
with tempfile.TemporaryDirectory() as folder:
    private, public = mdp.artifacts.create_keys(Path(folder) / "example")
    mdp.save(mechanism, FOLDER / "position.mdp", key=private)
    shutil.copy(public, FOLDER / "example.pub")
print(mdp.load(FOLDER / "position.mdp", trusted=FOLDER / "example.pub").guarantee)
