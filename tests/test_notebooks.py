"""The example notebooks run in a real kernel, hold no outputs, and what they show is compact and escaped."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp.design import Measure
from metricdp.plots import bar_html, progress, share_and_words

PROJECT = Path(__file__).parents[1]
NOTEBOOKS = sorted((PROJECT / "examples" / "notebooks").glob("*.ipynb"))


def test_notebooks_hold_no_outputs() -> None:
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if "outputs" in cell)


def test_notebooks_run_in_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel runs them all, one after the other: starting one takes longer than the work."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(PROJECT / "src"), os.environ.get("PYTHONPATH", "")]))
    books = [nbformat.read(path, as_version=4) for path in NOTEBOOKS]
    joined = nbformat.v4.new_notebook(cells=[cell for book in books for cell in book.cells])
    joined.metadata = books[0].metadata
    if sys.platform == "win32":
        asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages that start kernels
        nbclient.NotebookClient(joined, timeout=240, kernel_name="python3").execute(cwd=str(PROJECT / "examples"))
    outputs = [output for cell in joined.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/html", "image/png"} <= kinds
    pages = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert any("none with these reports below" in page for page in pages)
    assert any("violated" in page for page in pages)
    assert any("Designing: done" in page for page in pages)  # the bar, without widgets


def things() -> list[object]:
    space = mdp.FiniteSpace([[0.0, 0.0], [1.0, 0.0]], mdp.Lp(2), columns=["<i>x</i>", "y"])
    words = mdp.vocabulary(["<script>", "b"], np.eye(2))
    mechanism = mdp.exponential(space, 1.0)
    noise = mdp.laplace(mdp.Haversine(), 10.0)
    return [
        space, words, mdp.Box([0, 0], [1, 1], mdp.Lp(2)), noise.inputs, mdp.spaces.Augmented(space, [[0, 1], [1,
            0]], [0.5]),
        mechanism, mechanism.certificate, mechanism.guarantee, mdp.audit(mechanism), mdp.Problem(space, 1.0), noise,
        mdp.exponential(words, 1.0), mdp.product(noise, mechanism), mdp.product(noise, mechanism).inputs,
        mdp.compare(space, [1.0], builders=["exponential"], measures=[Measure("<b>")]),
    ]  # fmt: skip


def test_everything_one_looks_at_is_a_small_table() -> None:
    for thing in things():
        html = thing._repr_html_()
        assert html.startswith("<table>")
        assert html.endswith("</table>")
        assert len(html) < 4_000
        for raw in ("<i>", "<script>", "<b>&"):
            assert raw not in html
        for colour in ("color:", "background", "#"):  # the notebook's own colours, light or dark
            assert colour not in html


def test_a_bar_says_what_it_is_told() -> None:
    assert share_and_words((0.25,)) == (0.25, "")
    assert share_and_words((2.0, "<b>")) == (1.0, "<b>")
    assert share_and_words((0.9, 1.0, 12.3, 40)) == (None, "12 s, gap 10 %")
    assert share_and_words((float("-inf"), float("inf"), 1.0, 1))[1] == "1 s, gap 100 %"
    assert "&lt;b&gt;" in bar_html("work", 0.5, "<b>")
    with progress("quiet") as tell:  # neither a notebook nor a terminal
        tell(0.5)
        tell(0.1, 1.0, 2.0, 3)


def test_axes_go_in_and_come_out() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    space = mdp.FiniteSpace([[0.0], [1.0], [2.0]], mdp.Lp(2))
    compared = mdp.compare(space, [0.5, 1.0], builders=["exponential", "madlib"], draws=300)
    own = Figure().add_subplot()
    assert mdp.plots.comparison_plot(compared, own) is own
    assert mdp.plots.accuracy_plot(mdp.laplace(mdp.Lp(2), 1.0), own) is own
    both = mdp.compare(space, [1.0], builders=["exponential"], measures=[Measure(), Measure(objective="worst")])
    assert len(mdp.plots.comparison_plot(both)) == 2
