"""Pictures and the report: whole, self-contained, escaped, and true to the numbers."""

import math
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from metricdp.auditing import AuditReport
from metricdp.errors import InvalidInput, OutputProblem
from metricdp.mechanisms import Certificate, Guarantee, Witness
from metricdp.metrics import Haversine
from metricdp.plots import (
    Comparison,
    Contender,
    Map,
    ReportContent,
    certificate_card,
    loss_bars,
    loss_plot,
    map_plot,
    overview,
    report_page,
    write_picture,
    write_report,
)

pytest.importorskip("matplotlib")

EPSILON = math.log(2) / 0.1


@pytest.fixture
def story():
    generator = np.random.default_rng(5)
    true = np.array([41.15, -8.61]) + 0.004 * generator.normal(size=(40, 2))
    scene = Map(
        true=true,
        reported=np.round(true + 0.002 * generator.normal(size=(40, 2)), 3),
        streets=(true[:3], true[3:6]),
        worst_pair=true[:2],
        caption="forty points",
    )
    comparison = Comparison((Contender("exponential", 0.3), Contender("optimal", 0.2, "proven", best=True)), 0.19)
    return ReportContent(
        title="Points <b>& more</b>",
        place="Porto",
        mechanism="Optimal mechanism",
        guarantee=Guarantee(EPSILON, Haversine(), basis="certificate"),
        certificate=Certificate(
            loss=0.2,
            lower_bound=0.19,
            witness=Witness(1, 2, 3, 1.9),
            pairs=780,
            method="optimal",
            seconds=1.5,
            epsilon=EPSILON - 1e-6,
        ),
        audit=AuditReport(
            claimed=EPSILON,
            epsilon=EPSILON - 1e-6,
            basis="proof",
            method="exact",
            witness=Witness(1, 2, 3, 1.9),
            pairs=780,
        ),
        map=scene,
        comparison=comparison,
        rows=40,
        rows_per_person=7,
        person="trip",
        kept_columns=("trip", "<script>"),
        worst_distance=0.0926,
        repeat=("metricdp demo",),
        attribution="© OpenStreetMap contributors",
        files=(("protected.parquet", "the table"),),
    )


class Reader(HTMLParser):
    """Checks that tags close and collects links."""

    VOID = frozenset({"meta", "br", "img", "link", "hr"})

    def __init__(self):
        super().__init__()
        self.open, self.links, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        return None

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_report_is_whole_and_stands_alone(story, tmp_path):
    path = write_report(story, tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert reader.links == []
    assert "http" not in page.lower()
    assert "url(" not in page
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    assert list(tmp_path.iterdir()) == [path]


def test_report_says_what_matters(story):
    reader = Reader()
    reader.feed(report_page(story).html())
    text = " ".join(reader.text)
    for needed in ("What it costs", "The certificate", "Epsilon explained", "What stays unprotected", "How to repeat"):
        assert needed in text
    assert "at most a factor of two" in text
    assert "200 m" in text
    assert "190 m" in text
    assert "5 %" in text
    assert f"{7 * EPSILON:.4g}" in text


def test_text_is_escaped(story):
    page = report_page(story).html()
    assert "<b>& more" not in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_broken_promise_is_not_dressed_up(story):
    broken = replace(story, audit=replace(story.audit, epsilon=EPSILON + 1, refuted=True))
    page = report_page(broken).html()
    assert '<span class="seal broken">violated</span>' in page


def test_no_bound_is_drawn_where_none_is_known(story):
    bare = replace(
        story,
        certificate=replace(story.certificate, lower_bound=0.0),
        comparison=replace(story.comparison, lower_bound=0.0),
    )
    page = report_page(bare).html()
    assert 'class="bound"' not in page
    assert "None with these reports below" not in page


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_written(story, tmp_path, ending):
    paths = [
        write_picture(map_plot(story.map), tmp_path / f"map.{ending}"),
        write_picture(loss_bars(story.comparison), tmp_path / f"bars.{ending}"),
        write_picture(certificate_card(story), tmp_path / f"card.{ending}"),
        write_picture(overview(story)[0], tmp_path / f"all.{ending}"),
        write_picture(loss_plot([replace(story.comparison, epsilon=1.0)]), tmp_path / f"losses.{ending}"),
    ]
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    for path in paths:
        assert path.read_bytes().startswith(start)


def test_nothing_global_is_touched(story, tmp_path):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    write_picture(map_plot(story.map), tmp_path / "map.png")
    assert dict(mpl.rcParams) == before


def test_unwritable_output(story, tmp_path):
    with pytest.raises(OutputProblem):
        write_report(story, tmp_path / "missing" / "report.html")
    with pytest.raises(OutputProblem):
        write_picture(loss_bars(story.comparison), tmp_path / "missing" / "bars.png")


def test_pictures_are_drawn_on_the_axes_they_are_given(story):
    from matplotlib.figure import Figure

    left, right = Figure().subplots(1, 2)
    assert map_plot(story.map, left) is left
    assert loss_bars(story.comparison, right) is right
    assert overview(story, (left, right)) == (left, right)
    assert certificate_card(story, left) is left
    assert loss_plot([replace(story.comparison, epsilon=1.0)], right) is right


def test_a_bound_above_a_loss_is_refused_before_it_is_drawn(story):
    with pytest.raises(InvalidInput, match="lies above the loss"):
        Comparison((Contender("exponential", 0.3), Contender("optimal", 0.2)), 0.21)
    with pytest.raises(InvalidInput, match="lies above the loss"):
        replace(story.comparison, lower_bound=0.2 + 1e-6)
    kept = Comparison((Contender("noise with a slack", 0.1, bounded=False), Contender("optimal", 0.2)), 0.19)
    assert [kept.bound_of(entry) for entry in kept.contenders] == [None, 0.19]
    assert kept.gap_of(kept.contenders[1]) == pytest.approx(0.05)
    for bad in (math.nan, math.inf):
        with pytest.raises(InvalidInput, match="finite"):
            Comparison((Contender("exponential", 0.3),), bad)
        with pytest.raises(InvalidInput, match="finite"):
            Comparison((Contender("exponential", bad),), 0.1)


def test_a_report_does_not_mix_objectives(story):
    with pytest.raises(InvalidInput, match="a report tells one of the two"):
        replace(story, comparison=replace(story.comparison, objective="worst"))
    with pytest.raises(InvalidInput, match="one objective"):
        loss_plot([replace(story.comparison, epsilon=e, objective=o) for e, o in ((1.0, "expected"), (2.0, "worst"))])
    worst = replace(
        story,
        certificate=replace(story.certificate, objective="worst"),
        comparison=replace(story.comparison, objective="worst"),
    )
    page = report_page(worst).html()
    assert "Expected loss" not in page
    assert "Worst loss of any secret" in page
    assert page.count("with the largest one") == 2  # the fact and the caption
