"""The page of a protected table: the guarantee, the reports, the loss, and what is not protected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from metricdp import messages
from metricdp.mechanisms import Guarantee
from metricdp.plots import page, scenes
from metricdp.plots.release import NoiseDistribution, ReleaseScene, ShareOfBudget, TableRelease
from metricdp.rendering import escape

SECRET_PAGE = (
    "This page shows secrets: --show-secrets put true positions on it. Treat it like the table itself, and "
    "never publish it."
)
OWN_LEVEL = 0.95
MOST_SHARES = 12  # rows of the table of shares


def write_release(release: TableRelease, path: str | Path) -> Path:
    """Write the page of a protected table."""
    return page.write_page(release_html(release), path)


def release_html(release: TableRelease) -> str:
    """Return the page as text."""
    return page.whole_page(
        release.title,
        [
            _head(release),
            *(
                _reports_section(scene, distribution, release)
                for scene, distribution in zip(release.scenes, release.distributions, strict=True)
            ),
            *(
                _cost(distribution, scene)
                for scene, distribution in zip(release.scenes, release.distributions, strict=True)
            ),
            _shares(release),
            _guarantee_section(release),
            page.section("Totals per person", page.bullets(release.people)),
            _unprotected_section(release),
            page.section("Files, and how to repeat", page.repeat_block(release.files, release.repeat)),
            page.cite(release.citation),
            page.footer(),
        ],
    )


def _head(release: TableRelease) -> str:
    guarantee = release.guarantee
    facts = [_first_fact(guarantee)]
    if release.together:
        words = "apart in every row, histories of one person differ by at most a factor of two in all their reports"
        facts.insert(0, (messages.short_distance(release.together, guarantee.unit), words))
    for distribution in release.distributions[:2]:
        radius = _radius(distribution)
        which = "around a report, or less," if release.shares else "around a report"
        facts.append(
            (messages.length(radius, distribution.unit), f"{which} hold the truth with {messages.per_cent(OWN_LEVEL)}")
        )
    facts.append((f"{release.rows:,}", "rows released"))
    if release.person:
        whose = "all rows of any person together" if release.shares else "the person with the most rows: rows add up"
        facts.append((release.person, f"is the epsilon of {whose}"))
    head = page.header(
        "metricdp report",
        release.title,
        " ".join(part for part in (release.whole_history, messages.lead_sentence(guarantee)) if part),
        facts,
        [release.simulated] if release.simulated else [],
    )
    return head + (f'<p class="danger">{escape(SECRET_PAGE)}</p>' if release.shows_secrets else "")


def _first_fact(guarantee: Guarantee) -> tuple[str, str]:
    things, near = messages.things(guarantee.unit), messages.reach(guarantee)
    if near > 0:
        words = f"apart{guarantee.along}, {things} differ by at most a factor of two in one report"
        return messages.distance(near, guarantee.unit, "down"), words
    return messages.factor(
        messages.largest_factor(guarantee, 0.0)
    ), f"is the factor that the slack alone allows between {things}"


def _radius(distribution: NoiseDistribution) -> float:
    return next(radius for level, radius in distribution.curve if level >= OWN_LEVEL)


def _reports_section(scene: ReleaseScene, distribution: NoiseDistribution, release: TableRelease) -> str:
    names = ", ".join(f"<code>{escape(name)}</code>" for name in scene.columns)
    if scene.kind == "words":
        return page.section("What was released", _words(scene, names))
    if scene.kind == "none":
        text = (
            f"The reports are in {names}. Reports of this kind have no picture; their distance from the truth has one."
        )
        return page.section("What was released", f"<p>{text}</p>")
    if scene.kind == "line":
        picture, outside = scenes.bars_svg(scene.reports[:, 0], f"the reports in {', '.join(scene.columns)}"), 0
    else:
        picture, outside = scenes.density_svg(scene)
    shown = len(scene.reports)
    some = f"{shown:,} of {scene.total:,} reports, evenly picked." if shown < scene.total else f"All {shown:,} reports."
    beyond = f" {outside:,} of them lie outside the picture." if outside else ""
    true = '<li><i style="background:var(--true)"></i>true, secret</li>' if scene.true is not None else ""
    intro = f"Where the reports in {names} lie, the stronger the colour the more"
    if scene.true is None:
        intro += ". They are the released reports: no true position is in this picture."
    else:
        intro += ", and some true positions behind them, joined by thin lines."
    figure = (
        '<figure class="card"><ul class="legend"><li><i style="background:var(--reported)"></i>reported</li>'
        f"{true}</ul>"
        f"{picture}<figcaption>{some}{beyond}</figcaption></figure>"
    )
    return page.section("What was released", f"<p>{intro}</p>{figure}") + _example(scene, distribution, release)


def _example(scene: ReleaseScene, distribution: NoiseDistribution, release: TableRelease) -> str:
    example = scene.example
    if example is None or scene.kind not in ("map", "plane"):
        return ""
    radius = _radius(distribution)
    legend = (
        '<ul class="legend"><li><i style="background:var(--true)"></i>a public place</li>'
        '<li><i style="background:var(--reported)"></i>reports drawn for it</li></ul>'
    )
    most = " Its noise is the largest there is, that of persons with the most rows." if release.shares else ""
    return page.section(
        "Before and after, by example",
        f"<p>{escape(example.words)}{most} The blue dot is that place, the orange ones are "
        f"{len(example.reports):,} reports drawn for it by the same mechanism, for this page alone.</p>"
        f'<figure class="card">{legend}{scenes.example_svg(scene, radius)}'
        f"<figcaption>Nothing of the table is in this picture. The circle has a radius of "
        f"{escape(messages.length(radius, distribution.unit))}: whatever the truth is, at least "
        f"{messages.per_cent(OWN_LEVEL)} of its reports lie this close.</figcaption></figure>",
    )


def _words(scene: ReleaseScene, names: str) -> str:
    shown = sum(count for _, count in scene.words)
    figure = (
        f'<figure class="card">{scenes.words_html(scene.words)}<figcaption>The {len(scene.words)} words that were '
        f"reported most: {shown:,} of {scene.total:,} reports. Words as reported, never as written.</figcaption>"
        "</figure>"
        if scene.words
        else ""
    )
    table = (
        '<p style="margin-top:1.2rem">By example, for words of the public vocabulary, not of the table:</p>'
        f"{scenes.word_table(scene.word_examples)}"
        if scene.word_examples
        else ""
    )
    return f"<p>The reports are in {names}.</p>{figure}{table}"


def _cost(distribution: NoiseDistribution, scene: ReleaseScene) -> str:
    names = ", ".join(scene.columns)
    exact = "" if distribution.tight else " These are upper bounds: for most secrets reports lie closer."
    return page.section(
        "What it costs",
        f"<p>{escape(distribution.loss)} This follows from the distribution of the noise. It was not measured on this "
        "table, which would reveal something about it.</p>"
        f'<figure class="card">{scenes.distribution_svg(distribution)}<figcaption>The least probability '
        f"that the report in {escape(names)} lies within a distance of the truth ({escape(distribution.measured)}), "
        f"for every secret. The probability is over the noise alone.{exact}</figcaption></figure>"
        f'<p style="margin-top:1rem">To model with it: {escape(distribution.formula)}.</p>',
    )


def _shares(release: TableRelease) -> str:
    """Return what the rows of persons get who share a budget among different numbers of rows."""
    if not release.shares:
        return ""
    some = _sample_evenly(release.shares, MOST_SHARES)
    radii = [f"Truth within, {messages.per_cent(OWN_LEVEL)} ({', '.join(scene.columns)})" for scene in release.scenes]
    names = ["Rows of a person", "Persons", "Epsilon of each row", *radii]
    rows = ((f"{one.rows:,}", f"{one.persons:,}", one.epsilon, *one.radii) for one in some)
    left = f" {len(some)} of {len(release.shares)} are shown, evenly picked." if len(some) < len(release.shares) else ""
    return page.section(
        "What each row gets of a person's budget",
        "<p>A person's rows share one budget, so rows of persons with many rows have more noise. What is said above of "
        f"distances holds for the noisiest, and so for all.{left}</p>" + page.table(names, rows, "n" * len(names)),
    )


def _sample_evenly(shares: Sequence[ShareOfBudget], most: int) -> list[ShareOfBudget]:
    """Return at most `most` of them, evenly chosen, with the first and the last."""
    steps = min(most, len(shares))
    return [shares[round(step * (len(shares) - 1) / max(1, steps - 1))] for step in range(steps)]


def _guarantee_section(release: TableRelease) -> str:
    stated = messages.epsilon(release.guarantee.epsilon, release.guarantee.unit)
    things = messages.things(release.guarantee.unit)
    return page.section(
        "What is guaranteed",
        f'{page.bullets([*release.promise, f"Mechanism: {release.mechanism}."])}<p style="margin-top:1rem">Epsilon is '
        f"{escape(stated)}. Take two {things} and any one report. How many times likelier can it be from one than from "
        f"the other?</p>{page.meaning_table(release.guarantee)}",
    )


def _unprotected_section(release: TableRelease) -> str:
    body = ""
    if release.kept:
        names = ", ".join(f"<code>{escape(name)}</code>" for name in release.kept)
        body = f"<p>These columns are as they were, not protected: {names}.</p>"
    body += page.bullets(release.remarks)
    return page.section("What stayed in the table", body or "<p>Nothing but the reports.</p>")
