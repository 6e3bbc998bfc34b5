"""The page of a table of protected texts: what it does not hide, then the guarantee, examples and the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metricdp.plots import page, scenes
from metricdp.plots.release import WordExample
from metricdp.plots.vector import MAP_WIDTH, svg
from metricdp.text.word_evaluation import WordEvaluation

LINES = (("unchanged", "words unchanged"), ("recovered", "attacker right"), ("accuracy", "accuracy of the task"))


@dataclass(frozen=True)
class TextPage:
    """The content of the page: finished sentences and public examples. None of it comes from the table."""

    title: str
    lead: str
    facts: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    promise: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    before_after: tuple[tuple[str, str], ...] = ()
    likely: tuple[WordExample, ...] = ()
    distribution: tuple[str, ...] = ()
    evaluations: tuple[WordEvaluation, ...] = ()
    unprotected: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    repeat: tuple[str, ...] = ()
    citation: tuple[str, str] = ("", "")
    simulated: str = ""


def write_text_page(content: TextPage, path: str | Path) -> Path:
    """Write the page of protected texts."""
    return page.write_page(text_html(content), path)


def text_html(content: TextPage) -> str:
    """Return the page as text."""
    head = page.header(
        "metricdp report", content.title, content.lead, content.facts, [content.simulated] if content.simulated else []
    )
    return page.whole_page(
        content.title,
        [
            head,
            page.section("What this does not hide", page.bullets(content.limits)),
            page.section("What is guaranteed", page.bullets(content.promise) + _pairs(content.pairs)),
            page.section("Before and after, on a public text", _examples(content.before_after)),
            page.section("What words become", _likely(content.likely)),
            page.section("What it costs, and what an attacker makes of it", page.bullets(content.distribution)),
            page.section("What epsilons do", _evaluations(content.evaluations)),
            page.section("What stayed in the table", page.bullets(content.unprotected)),
            page.section("Files, and how to repeat", page.repeat_block(content.files, content.repeat)),
            page.cite(content.citation),
            page.footer(),
        ],
    )


def _pairs(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    words = "Between two words of the vocabulary, in one report, for a person who must guess which of the two it was:"
    return f'<p style="margin-top:1rem">{words}</p>{page.bullets(sentences)}'


def _examples(pairs: Sequence[tuple[str, str]]) -> str:
    if not pairs:
        return ""
    return (
        "<p>These sentences come with metricdp and are about no real person. They were protected for this page alone, "
        "by the same mechanism and rules; nothing of the table is here.</p>"
        + page.table(("Public sentence", "Protected"), pairs, "tt")
    )


def _likely(examples: Sequence[WordExample]) -> str:
    if not examples:
        return ""
    return (
        "<p>The likeliest reports of some words of the public vocabulary, with their probabilities:</p>"
        + scenes.word_table(examples)
    )


def _evaluations(evaluations: Sequence[WordEvaluation]) -> str:
    if not evaluations:
        return ""
    names = ["epsilon", "words unchanged", "attacker right", "median rank of the true word", "accuracy of the task"]
    table = page.table(names, map(cells_of, evaluations), "n" * len(names))
    return f'<figure class="card">{evaluations_svg(evaluations)}</figure>{table}'


def cells_of(one: WordEvaluation) -> list[str]:
    """Return a row of the table: epsilon, share unchanged, recovered, rank, accuracy; - for a missing one."""
    return [
        f"{one.epsilon:g}",
        f"{100 * one.unchanged:.1f} %",
        "-" if one.recovered is None else f"{100 * one.recovered:.1f} %",
        "-" if one.rank is None else f"{one.rank:,.0f}",
        "-" if one.accuracy is None else f"{one.accuracy:.2f}",
    ]


def evaluations_svg(evaluations: Sequence[WordEvaluation]) -> str:
    """Return shares by epsilon: words unchanged, guesses of an attacker that are right, accuracy of the task."""
    height, left, right, bottom = 320.0, 64.0, MAP_WIDTH - 270.0, 268.0
    low, high = evaluations[0].epsilon, evaluations[-1].epsilon
    wide = (high - low) or 1.0

    def at(epsilon: float, value: float) -> tuple[float, float]:
        return left + (right - left) * (epsilon - low) / wide, bottom - (bottom - 14.0) * value

    parts = [
        f'<path class="axis" d="M{left:.1f} 14V{bottom:.1f}H{right:.1f}"/>',
        *(
            f'<text class="small end" x="{left - 8:.0f}" y="{at(low, value)[1] + 5:.0f}">{100 * value:.0f} %</text>'
            for value in (0.0, 0.5, 1.0)
        ),
        *(
            f'<text class="small" text-anchor="middle" x="{at(one.epsilon, 0)[0]:.0f}" y="{bottom + 24:.0f}">'
            f"{one.epsilon:g}</text>"
            for one in evaluations
        ),
        f'<text class="small" x="{left:.0f}" y="{height - 8:.0f}">epsilon</text>',
    ]
    dashes = ("", ' stroke-dasharray="10 6"', ' stroke-dasharray="3 5"')
    for number, ((field, words), dash) in enumerate(zip(LINES, dashes, strict=True)):
        points = [at(one.epsilon, value) for one in evaluations if (value := getattr(one, field)) is not None]
        if points:
            line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            y = 40.0 + 30.0 * number
            parts.append(f'<path class="curve" d="{line}"{dash}/>')
            parts.append(f'<path class="curve" d="M{right + 16:.0f} {y - 5:.0f}h34"{dash}/>')
            parts.append(f'<text class="small" x="{right + 58:.0f}" y="{y:.0f}">{words}</text>')
    return svg("".join(parts), height, "the effect of several epsilons on words")
