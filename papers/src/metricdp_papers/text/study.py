"""`metricdp reproduce text`: mechanisms for words side by side, at equal epsilon and at equal recovery."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.plots import palette
from metricdp_papers.common import Piece, Row, Study, StudyTable, draw_panels, plot_line
from metricdp_papers.text import measures, race
from metricdp_papers.text.corpora import TEXTS

RECOVERED = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
# One kernel exp(-a d) / N, whatever is guaranteed for it: at equal recovery both are the same mechanism.
KERNEL = {"half-budget exponential": "exponential kernel", "certified exponential": "exponential kernel"}
DRAWN = ("exponential kernel", "optimal", "truncated (TEM)", "SanText", "SanText+", "CusText", "noise + nearest",
         "Vickrey", "Mahalanobis noise")  # fmt: skip
COLOURS = (palette.BEST, palette.INK, palette.TRUE, palette.BOUND, "#b8860b", "#c2407a", palette.REPORTED,
           palette.MUTED, palette.PLAIN)  # fmt: skip


AXES: dict[str, Any] = {
    "xlabel": "words an attacker's first guess recovers", "ylabel": "accuracy", "xlim": (0, 1.02),
}  # fmt: skip


def derived(rows: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """Return the rows of Table 2 from those of Table 1."""
    return {"2": list(equal_recovery(rows.get("1", ())))}


def equal_recovery(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield accuracy, nominal epsilon and share of unchanged words where an attacker's first guess is right equally
    often, read off straight lines between the epsilons that were measured."""  # fmt: skip
    for (text, mechanism), points in curves(rows).items():
        tops = [point["top-1"] for point in points]
        for level in RECOVERED:
            if not (len(points) > 1 and tops[0] <= level <= tops[-1]):
                continue
            about = {"text": text, "mechanism": mechanism, "recovered": level}
            value = "corrected" if mechanism in DRAWN[:2] else "as_published"
            for measure in ("accuracy", "unchanged", "nominal epsilon", "true epsilon"):
                if mechanism == "exponential kernel" and measure == "nominal epsilon":
                    continue  # it depends on what is guaranteed
                known = [point[measure] for point in points if isinstance(point.get(measure), int | float)]
                if len(known) == len(points):
                    yield {**about, "measure": measure, value: float(np.interp(level, tops, known))}


def curves(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the points of every mechanism by text, in the order of recovery; those without one are left out."""
    found: dict[tuple[str, str], dict[tuple[str, float], Row]] = {}
    for row in rows:
        mechanism = KERNEL.get(row["mechanism"], row["mechanism"])
        value = row.get("corrected") if row.get("corrected") is not None else row.get("as_published")
        if mechanism in DRAWN and isinstance(row["epsilon"], int | float):
            point = found.setdefault((row["text"], mechanism), {}).setdefault(
                (row["mechanism"], row["epsilon"]), {"nominal epsilon": row["epsilon"]}
            )
            point[row["measure"]] = value
    whole = {
        key: sorted((one for one in points.values() if {"top-1", "accuracy"} <= one.keys()), key=lambda p: p["top-1"])
        for key, points in found.items()
    }
    return {key: points for key, points in whole.items() if points}


def picture(table: StudyTable, rows: Sequence[Row], path: Path) -> None:
    """Draw accuracy against the attacker's first guess, one panel a text."""
    if table.number == "1":
        known = [row for row in rows if row["text"] != "made up"] or rows
        draw_panels(known, path, ("text",), _curves, size=(5.6, 4.6), settings=AXES)


def _curves(axes: Any, rows: Sequence[Row]) -> None:
    lines = {mechanism: points for (_, mechanism), points in curves(rows).items()}
    for number, (mechanism, colour) in enumerate(zip(DRAWN, COLOURS, strict=True)):
        style = {"marker": palette.MARKERS[number % 6], "markersize": 5, "color": colour, "label": mechanism}
        plot_line(axes, lines.get(mechanism, ()), "top-1", "accuracy", **style)
    for row in rows:
        if (row["mechanism"], row["measure"]) == ("clean text", "accuracy"):
            axes.axhline(row["corrected"], color=palette.LINE, linestyle=":", label="clean text")


TEXTS_OF = ("SST-2", "MR")
GROUPS = ((2.0, 3.0), (1.0, 4.0), (2.5, 3.5), (6.0, 8.0, 12.0))  # what a piece of a distribution is about
CERTIFIED = (3.0, 2.0, 4.0, 1.0, 6.0, 8.0, 12.0)
OPTIMAL = (3.0, 2.0, 4.0)
NOISE = (3.0, 2.0, 8.0, 12.0, 6.0, 4.0, 1.0, 16.0, 24.0)  # it needs more before the words come back
FEWER = (3.0, 2.0, 8.0, 12.0)  # noise takes minutes: on MR, and again, at these only
SHAPED = (3.0, 12.0, 6.0, 2.0, 24.0)
REPETITIONS = 3
SMALL = (1.0, 2.0, 4.0)  # of the text that is made up
MECHANISMS: dict[str, Callable[..., list[Row]]] = {
    "half": measures.half,
    "santext": measures.santext,
    "custext": measures.custext,
    "santext+": measures.santext_plus,
    "truncated": measures.truncated,
}
TABLES = (
    StudyTable("1", "every mechanism at the same nominal epsilon",
               "The papers report accuracy of fine-tuned language models; none is reported for this classifier.",
               "One classifier for all: the mean GloVe vector of a sentence and logistic regression. Training and "
               "test sentences are both protected."),
    StudyTable("2", "every mechanism where an attacker recovers as many words", "Nothing of the kind is published.",
               "Read off straight lines between the epsilons of Table 1. The exponential mechanism is one kernel, "
               "whatever is guaranteed for it: with half the budget and with a certified one it has one line here."),
    StudyTable("3", "words a second, on the same sentences and vectors", "Packages say nothing about it.",
               "Every package runs in an environment of its own, at epsilon 8, getting ready not counted; words a "
               "second of processors do not depend on what else the machine does."),
)  # fmt: skip


def pieces(full: bool) -> Iterator[Piece]:
    """List the work, the most telling first; texts whose data is not at hand are left out."""
    yield from _made_up()
    at_hand = [name for name in TEXTS_OF if TEXTS[name].at_hand]
    for name in at_hand:
        yield _piece(name, measures.yardsticks, (name,))
    work = _real(at_hand, REPETITIONS) if full else _real(at_hand[:1], 1)
    yield from sorted(work, key=_later)
    if at_hand:
        yield from _race(at_hand[0], 30.0 if full else 5.0)


def _later(piece: Piece) -> int:
    """Tell whether a piece may wait: certified budgets and noise at the first two epsilons show most."""
    name, what, *rest = piece.arguments
    own = piece.function in (measures.certified, measures.noisy) and what in FEWER[:2] and rest[0] in (0, REPETITIONS)
    return (
        0 if name in (TEXTS_OF, TEXTS_OF[0]) and (own or (piece.function is measures.half and what == GROUPS[0])) else 1
    )


def _made_up() -> Iterator[Piece]:
    name = "made up"
    yield _piece(name, measures.yardsticks, (name,))
    for mechanism_name, function in MECHANISMS.items():
        yield _piece(name, function, (name, SMALL, 1), mechanism_name)
    for epsilon in SMALL:
        yield _piece(name, measures.certified, ((name,), epsilon, 1))
        yield _piece(name, measures.noisy, (name, epsilon, 0))
        yield _piece(name, measures.shaped, (name, epsilon, 0))


def _real(names: Sequence[str], repetitions: int) -> Iterator[Piece]:
    """Yield the work on texts of one vocabulary: one, at two epsilons, where it is done once."""
    short = repetitions == 1
    for name in names:
        for epsilons in GROUPS[:1] if short else GROUPS:
            for mechanism_name, function in MECHANISMS.items():
                if epsilons != GROUPS[2] or mechanism_name in ("half", "santext"):
                    yield _piece(name, function, (name, epsilons, repetitions), mechanism_name)
            if name == names[0] and (chosen := [one for one in CERTIFIED if one in epsilons]):
                for epsilon in chosen:
                    yield _piece("+".join(names), measures.certified, (tuple(names), epsilon, repetitions))
                    if epsilon in OPTIMAL:
                        yield _piece("+".join(names), measures.best, (tuple(names), epsilon, repetitions), "optimal")
        yield from _noise(name, repetitions, first=name == names[0])


def _noise(name: str, repetitions: int, *, first: bool) -> Iterator[Piece]:
    short = repetitions == 1
    for epsilon in FEWER[:2] if short else NOISE if first else FEWER:
        yield _piece(name, measures.noisy, (name, epsilon, 0))
    for epsilon in SHAPED[:1] if short or not first else SHAPED:
        yield _piece(name, measures.shaped, (name, epsilon, 0))
    for repetition in range(1, repetitions if first else 1):
        for epsilon in FEWER:
            yield _piece(name, measures.noisy, (name, epsilon, repetition))


def _race(name: str, seconds: float) -> Iterator[Piece]:
    for key in race.OURS:
        yield Piece(f"race_{key}", "3", race.of_ours, (name, key))
    for key in race.RUNNERS:
        yield Piece(f"race_{key}_{seconds:g}", "3", race.of_others, (name, key, seconds))


def _piece(
    name: str, function: Callable[..., list[Row]], arguments: tuple[Any, ...], mechanism_name: str = ""
) -> Piece:
    said = "_".join(_argument_text(one) for one in arguments[1:])
    key = f"{name.replace(' ', '-')}_{mechanism_name or function.__name__}"
    return Piece(f"{key}_{said}" if said else key, ("1", "2"), function, arguments)


def _argument_text(value: Any) -> str:
    return ",".join(map(_argument_text, value)) if isinstance(value, tuple) else f"{value:g}"


STUDY = Study(
    "text",
    "words of reviews protected one by one: accuracy, what an attacker recovers, and what is truly guaranteed",
    TABLES,
    pieces,
    picture,
    notes=(
        "The Bayes attacker sees one reported word, and knows the distribution and how often every word occurs in this "
        "very text. Recovery is exact where the distribution is a table or a kernel. For noise it is simulated: "
        "guesses scored on fresh draws, and at most. An attacker who reads the neighbouring words too recovers more.",
        "The true epsilon is the largest |ln Pr[k|x] - ln Pr[k|y]| / d(x, y) in Euclidean distance of the vectors: by "
        "the exact audit of kernels, by theorem for noise; infinite where some report excludes a word.",
        "SST-2 and MR are read from the data folder and are no part of the package. Without them the study runs on a "
        "small text that is made up.",
    ),
    needs=("glove_6b_100d", "text_sst2", "text_mr"),
    derived=derived,
)
