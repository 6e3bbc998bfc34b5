"""Figures on matplotlib axes, given or new: the map, loss by mechanism, and the certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from metricdp import messages
from metricdp.auditing.accuracy import radii_of
from metricdp.mechanisms import Mechanism, Witness
from metricdp.plots import palette
from metricdp.plots.report_content import Comparison, Map, ReportContent


def map_plot(scene: Map, axes: Any = None, *, title: str = "", arrows: int = 60) -> Any:
    """Draw streets, true points and reports; some pairs are joined, so that the eye sees how far reports lie."""
    with palette.drawing(axes, 8.0, 7.2) as axes:
        from matplotlib.collections import LineCollection

        axes.add_collection(
            LineCollection([line[:, ::-1] for line in scene.streets], colors=palette.LINE, linewidths=0.8, zorder=1)
        )
        chosen = np.linspace(0, len(scene.true) - 1, min(arrows, len(scene.true))).astype(int)
        joins = np.stack([scene.true[chosen], scene.reported[chosen]], axis=1)[..., ::-1]
        axes.add_collection(LineCollection(list(joins), colors=palette.MUTED, linewidths=0.6, alpha=0.55, zorder=2))
        places, counts = np.unique(scene.reported, axis=0, return_counts=True)
        look: dict[str, Any] = {"color": palette.REPORTED, "edgecolors": palette.REPORTED, "linewidths": 0.8}
        axes.scatter(places[:, 1], places[:, 0], s=22.0 * counts, alpha=0.4, zorder=3, **look)
        axes.scatter([], [], s=40, color=palette.REPORTED, alpha=0.5, label="reported (larger: more often)")
        axes.scatter(
            scene.true[:, 1], scene.true[:, 0], s=9, color=palette.TRUE, linewidths=0, label="true, secret", zorder=4
        )
        if scene.worst_pair is not None:
            ring: dict[str, Any] = {"marker": "o", "markersize": 7, "markerfacecolor": "none"}
            axes.plot(
                *scene.worst_pair.T[::-1], color=palette.BOUND, linewidth=1.6, label="worst pair", zorder=5, **ring
            )
        middle = float(np.mean(scene.true[:, 0]))
        axes.set_aspect(1.0 / np.cos(np.radians(middle)))
        everything = np.concatenate([scene.true, scene.reported])
        low, high = everything.min(axis=0), everything.max(axis=0)
        margin = 0.06 * (high - low) + 1e-6
        axes.set_xlim(low[1] - margin[1], high[1] + margin[1])
        axes.set_ylim(low[0] - margin[0], high[0] + margin[0])
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.set_title(title or "True positions and what is released")
        axes.legend(loc="upper left", frameon=True, framealpha=0.92, edgecolor=palette.LINE, fontsize=10)
    return axes


def loss_bars(comparison: Comparison, axes: Any = None, *, title: str = "") -> Any:
    """Draw loss by mechanism under one guarantee, with the bound for all mechanisms that report the same."""
    with palette.drawing(axes, 8.0, 1.4 + 0.5 * len(comparison.contenders)) as axes:
        entries = sorted(comparison.contenders, key=lambda entry: entry.loss)
        losses = np.array([entry.loss for entry in entries])
        colours = [palette.BEST if entry.best else palette.PLAIN for entry in entries]
        axes.barh(np.arange(len(entries)), losses, color=colours, height=0.62)
        axes.set_yticks(np.arange(len(entries)), [entry.name for entry in entries], color=palette.INK)
        axes.tick_params(length=0)
        axes.set_xlim(0, 1.18 * losses.max())
        axes.set_ylim(-0.6, len(entries) - 0.1)
        for row, loss in enumerate(losses):
            axes.text(loss + 0.012 * losses.max(), row, messages.distance(loss, comparison.unit), va="center")
        if comparison.lower_bound > 0:
            least = messages.distance(comparison.lower_bound, comparison.unit, "down")
            about = [row for row, entry in enumerate(entries) if entry.bounded]  # it says nothing about the others
            line = {"color": palette.BOUND, "linewidth": 1.6, "linestyle": (0, (4, 3))}
            axes.vlines(
                np.full(len(about), comparison.lower_bound), np.array(about) - 0.5, np.array(about) + 0.5, **line
            )
            axes.text(
                comparison.lower_bound,
                len(entries) - 0.38,
                f" none that reports these {messages.things(comparison.unit)} below {least}",
                color=palette.BOUND,
                fontsize=9.5,
                va="bottom",
                ha="left" if comparison.lower_bound < 0.5 * losses.max() else "right",
            )
        axes.set_xticks([])
        axes.set_xlabel(f"{messages.objective(comparison.objective)}: the shorter the better", loc="left")
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.set_title(title or "Loss at equal epsilon")
    return axes


def accuracy_plot(mechanism: Mechanism, axes: Any = None) -> Any:
    """Draw the probability that the truth lies within a distance of its report, for every secret; return the axes."""
    levels = sorted({0.95, *(float(level) for level in np.round(np.arange(0.02, 0.99, 0.02), 2))})
    radii = radii_of(mechanism, levels)
    with palette.drawing(axes, 8.0, 4.0) as axes:
        axes.plot([one.value for one in radii], [100 * one.level for one in radii], color=palette.REPORTED)
        for level in (0.5, 0.95):
            one = radii[levels.index(level)]
            axes.plot([one.value], [100 * level], "o", color=palette.REPORTED)
            said = f"{100 * level:g} % within {messages.length(one.value, one.unit)}"
            axes.annotate(said, (one.value, 100 * level), xytext=(8, -14), textcoords="offset points")
        axes.set_xlim(left=0)
        axes.set_ylim(0, 100)
        axes.set_xlabel(f"from the truth{f', in {radii[0].unit}' if radii[0].unit else ''}")
        axes.set_ylabel("probability, in %")
        axes.set_title("How far reports lie from the truth, at most")
    return axes


def certificate_card(content: ReportContent, axes: Any = None) -> Any:
    """Draw the certificate as a card."""
    rows = certificate_rows(content)
    with palette.drawing(axes, 8.0, 1.2 + 0.42 * len(rows)) as axes:
        axes.axis("off")
        colour = palette.BEST if content.audit.verdict == "holds" else palette.REPORTED
        axes.set_title(f"{content.mechanism}: {content.audit.verdict}", color=colour)
        for row, (name, value) in enumerate(rows):
            height = 1.0 - (row + 0.5) / len(rows)
            axes.text(0.0, height, name, color=palette.MUTED, va="center", transform=axes.transAxes)
            axes.text(0.34, height, value, va="center", transform=axes.transAxes)
    return axes


def overview(content: ReportContent, axes: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
    """Draw the map and the comparison side by side on two axes: one picture that tells the whole content."""
    with palette.plot_style():
        if axes is None:
            axes = tuple(palette.figure(12.0, 5.2).subplots(1, 2, width_ratios=[1.0, 1.05]))
        left, right = axes
        map_plot(content.map, left, arrows=50)
        loss_bars(content.comparison, right, title="Loss by mechanism at equal epsilon")
        if content.attribution:
            left.figure.supxlabel(content.attribution, fontsize=8, color=palette.MUTED, x=0.995, ha="right")
    return left, right


def certificate_rows(content: ReportContent) -> list[tuple[str, str]]:
    """Return what the certificate says, as pairs of a label and a text."""
    guarantee, certificate, audit = content.guarantee, content.certificate, content.audit
    proven = messages.number(audit.epsilon, messages.templates()["digits"]["audited"], "up")
    rows = [
        ("Guarantee", str(guarantee)),
        ("Proven", f"epsilon {proven}, {audit.pairs:,} pairs audited, {audit.method}"),
        *([("Worst pair", _worst_pair(audit.witness, content))] if audit.witness else []),
        (messages.objective(certificate.objective).capitalize(), messages.cost(certificate, guarantee.unit)),
    ]
    if certificate.lower_bound > 0:
        least = messages.distance(certificate.lower_bound, guarantee.unit, "down")
        rows.append(("None with these reports below", f"{least} (gap {messages.gap(certificate.gap)})"))
    rows.append(("Method", f"{certificate.method}, {certificate.seconds:.1f} s"))
    return rows


def _worst_pair(witness: Witness, content: ReportContent) -> str:
    apart = messages.distance(content.worst_distance, content.guarantee.unit)
    return (
        f"places {witness.secret} and {witness.other}, {apart} apart, "
        f"report {witness.report}: factor {messages.number(witness.ratio, 6, 'up')}"
    )
