"""Great circles in JavaScript against Python, where naive formulas lose their digits."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp

MODULE = Path(__file__).parents[2] / "js" / "dist" / "metricdp.js"
PAIRS = [
    ((41.1579438, -8.6291053), (41.1579438, -8.62910515)),  # 13 mm
    ((41.1579438, -8.6291053), (41.15795, -8.6291053)),
    ((-17.8, 179.99999999), (-17.8, -179.99999999)),
    ((10.0, 359.999999), (10.0, 0.000001)),
    ((89.9999999, 40.0), (89.9999999, -120.0)),
    ((90.0, 5.0), (90.0, -77.0)),
    ((60.0, 10.0), (-30.0, 100.0)),
]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_great_circles_agree_to_the_digits_of_doubles():
    script = (
        f"import {{ haversine }} from {json.dumps(MODULE.as_uri())};"
        f"console.log(JSON.stringify({json.dumps(PAIRS)}.map(([a, b]) => haversine(a, b))));"
    )
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, text=True, check=True, timeout=60
    )
    a, b = (np.array([pair[side] for pair in PAIRS]) for side in (0, 1))
    np.testing.assert_allclose(json.loads(done.stdout), mdp.Haversine()(a, b), rtol=1e-13)
