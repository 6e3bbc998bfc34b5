"""Small programs that let packages of others answer: one secret a line in, one report a line out.

They run in environments of their own (`packages`), never in ours, and hold nothing but calls of the public names of
each package. A program with `MATRIX` in its name prints a matrix once instead.
"""

from __future__ import annotations

_LINES = """
import sys
for line in sys.stdin:
    print(*map(repr, draw(*map(float, line.split(",")))), sep=",", flush=True)
"""

QIF_PLANAR = (
    """
from qif import mechanism
def draw(x, y):
    noise = mechanism.geo_ind.planar_laplace_sample(1.0)
    return x + noise.x, y + noise.y
"""
    + _LINES
)

_GRID = """
import sys
import numpy as np
from qif import lp, mechanism, metric, probab
def show(matrix):
    for row in np.asarray(matrix):
        print(*map(repr, row.tolist()), sep=",")
"""

QIF_LAPLACE_MATRIX = (
    _GRID
    + """
show(mechanism.geo_ind.planar_laplace_grid(10, 10, 1.0, 1.0))
"""
)

QIF_CHAINED_MATRIX = (
    _GRID
    + """
apart = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
distance = metric.from_distance_matrix(apart)
lp.defaults.solver = "CLP"  # its default
show(mechanism.d_privacy.min_loss_given_d(
    probab.uniform(20), 20, metric.scale(distance, 1.0), distance, d_priv_ch=lambda i, j: bool(apart[i, j] == 1.0)))
"""
)

QIF_TIGHT_MATRIX = (
    _GRID
    + """
points = np.array([(k % 7, k // 7) for k in range(49)], float)
distance = metric.from_distance_matrix(np.linalg.norm(points[:, None] - points[None], axis=2))
show(mechanism.d_privacy.tight_constraints(49, metric.scale(distance, 1.0)))
"""
)


def _diffprivlib(name: str, settings: str = "") -> str:
    """Return the program for a mechanism of diffprivlib."""
    return f"""
from diffprivlib.mechanisms import {name}
mechanism = {name}(epsilon=1.0, sensitivity=1.0{settings})
def draw(x):
    return (float(mechanism.randomise(x)),)
{_LINES}"""


DIFFPRIVLIB_LAPLACE = _diffprivlib("Laplace")
DIFFPRIVLIB_SNAPPING = _diffprivlib("Snapping", ", lower=-50.0, upper=50.0")

OPENDP_LAPLACE = (
    """
import opendp.prelude as dp
dp.enable_features("contrib")
mechanism = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0)
def draw(x):
    return (mechanism(x),)
"""
    + _LINES
)

_TEXT = """
import os, sys, tempfile
import numpy as np
def vocabulary():
    rng = np.random.default_rng(7)
    folder = tempfile.mkdtemp()
    place = os.path.join(folder, "vectors.txt")
    with open(place, "w") as file:
        for number, row in enumerate(rng.uniform(0.0, 10.0, (60, 2))):
            file.write("w%02d %.6f %.6f\\n" % (number, *row))
        file.write("end 99 99\\n")  # the reader of the package leaves out the last line of a file
    return place
def answer(draw):
    for line in sys.stdin:
        print(draw(line.strip()), flush=True)
"""


def _pantera(way: str, module: str, name: str, settings: str = "", call: str = "processText([word])") -> str:
    """Return the program for a mechanism of pypantera."""
    return f"""{_TEXT}
if __name__ == "__main__":
    from src.{way}.{module} import {name}
    mechanism = {name}({{"embPath": vocabulary(), "epsilon": 2.0{settings}}})
    answer(lambda word: mechanism.{call})
"""


_NOISY = "processText(mechanism.noisyEmb([word]))"
PYPANTERA_TEM = _pantera("SamplingPerturbationMechanism", "tem", "TEM", ', "beta": 0.3')
PYPANTERA_SANTEXT = _pantera("SamplingPerturbationMechanism", "santext", "SanText")
PYPANTERA_CMP = _pantera("EmbeddingPerturbationMechanism", "cmp", "CMP", call=_NOISY)

_DIFFRACTOR = """
import sys
import numpy as np
from diffractor import core
words = ["w%02d" % number for number in range(60)]
settings = core.DiffractorConfig(replace_stopwords=True, method="METHOD")
core._RESOURCES = {  # what its own workers set up, with a list of ours: the published ones are not to be had here
    "list": words, "mapping": {word: number for number, word in enumerate(words)}, "config": settings,
    "rng": np.random.default_rng(np.random.SeedSequence(settings.seed).spawn(1)[0]),
}
for line in sys.stdin:
    word = line.strip()
    chooser = type("Chooser", (), {"_rng": np.random.default_rng(settings.seed)})
    print(core.Diffractor._pick_final_word(chooser, word, [core.apply_privacy_mechanism(word, 1.0)]), flush=True)
"""
DIFFRACTOR_GEOMETRIC = _DIFFRACTOR.replace("METHOD", "geometric")
DIFFRACTOR_TEM = _DIFFRACTOR.replace("METHOD", "TEM")
