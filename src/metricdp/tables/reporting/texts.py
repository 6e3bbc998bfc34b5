"""From what was done to a table of texts to the page that tells it and the record that programs read.

All of it is public: what is guaranteed, what follows from the distribution, and bundled sentences. Nothing is measured
on the table, whose words would show in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from metricdp import messages
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mechanisms import Mechanism, require_pure
from metricdp.plots import page, vector
from metricdp.plots.page import Page
from metricdp.rendering import file_name
from metricdp.tables.reporting.pages import closing_sections, word_table
from metricdp.tables.results import Summary
from metricdp.text import TextMechanism
from metricdp.text.bundled import sample_sentences
from metricdp.text.word_evaluation import WordEvaluation, evaluate_words, unchanged, words_of

PAIRS = (
    ("good", "great"), ("doctor", "nurse"), ("monday", "friday"), ("london", "paris"), ("beer", "wine"),
    ("brother", "sister"), ("car", "train"), ("he", "she"),
)  # fmt: skip
MOST_PAIRS, SHOWN = 4, 6
MUCH = 0.9  # of the words unchanged


def word_pairs(mechanism: Mechanism) -> list[str]:
    """Return what the guarantee means between some public words, one sentence each."""
    space = words_of(mechanism)
    place = {word: code for code, word in enumerate(space.coordinates[:, 0].tolist())}
    pairs = [(place[one], place[two]) for one, two in PAIRS if one in place and two in place]
    if not pairs:  # another language: some words and the ones that come next in the vocabulary
        some = np.unique(np.linspace(0, len(space) - 2, MOST_PAIRS).astype(int))
        pairs = [(int(code), int(code) + 1) for code in some]
    words, lines = space.coordinates[:, 0], []
    for first, second in pairs[:MOST_PAIRS]:
        apart = float(space.metric(space.points[first : first + 1], space.points[second : second + 1])[0])
        lines.append(messages.word_pair(mechanism.guarantee, str(words[first]), str(words[second]), apart))
    return lines


def staying_words(mechanism: Mechanism) -> list[str]:
    """Return how many words of public sentences stay, by the distribution; nothing where it has no closed form."""
    found = unchanged(mechanism)
    if found is None:
        return []
    much = " Hardly anything is hidden at this epsilon: `metricdp text --choose` shows others." if found > MUCH else ""
    return [messages.unchanged(found) + " That follows from the distribution; no table was looked at." + much]


def distribution_lines(found: WordEvaluation, unit: str) -> list[str]:
    """Return what a mechanism does to public words, one sentence a line."""
    lines = [
        messages.unchanged(found.unchanged),
        f"On average a report lies {messages.distance(found.distance, unit)} from its word.",
    ]
    if found.rank is not None and found.recovered is not None:
        lines.append(
            f"An attacker who knows the mechanism, how frequent words are and the report finds the true word at rank "
            f"{found.rank:,.0f} of the likeliest (the median), and first in {messages.share(found.recovered)} of cases."
        )
    if found.accuracy is not None and found.clean is not None:
        lines.append(
            f"A classifier tells praise from complaint in {found.accuracy:.2f} of held-out bundled reviews when all "
            f"are protected, and in {found.clean:.2f} when none are."
        )
    return [*lines, messages.figure_sources(found.known)]


def record_of_texts(summary: Summary) -> dict[str, Any]:
    """Return what was done to a table of texts as plain values; `metricdp.schema.json` says what each is."""
    found = _worth(mechanism_of(summary).words)
    record = summary.to_dict() | {"on_public_sentences": None if found is None else asdict(found)}
    texts = record["texts"]
    old = {name: texts[name] for name in ("cells_without_text", "masks", "rules", "vocabulary")}
    promise = texts["guarantee"] | {"per": texts["per"], "lower": texts["lower"], "words": texts["sentences"]}
    return record | old | {"rows": summary.written, "promise": promise}


def mechanism_of(summary: Summary) -> TextMechanism:
    """Return what the texts of a table were protected with; a table of something else is refused."""
    if summary.texts is None:
        raise InvalidInput("this summary is of a table of points or words: its record is that of `metricdp perturb`.")
    return summary.texts


def page_of_texts(
    summary: Summary,
    *,
    repeat: Sequence[str] = (),
    files: Sequence[tuple[str, str]] = (),
) -> Page:
    """Return the page of a table of protected texts: what it does not hide, the guarantee, examples and the loss."""
    mechanism = mechanism_of(summary)
    words = mechanism.words
    found, guarantee = _worth(words), require_pure(words.guarantee, "a text")
    facts = [(messages.epsilon(guarantee.epsilon, guarantee.unit), "is epsilon, per distance between words")]
    if found is not None:
        facts.append((messages.share(found.unchanged), "of the words of a public sample stay as they are"))
    if found is not None and found.recovered is not None:
        facts.append((messages.share(found.recovered), "of them an attacker guesses right"))
    facts.append((f"{summary.written:,}", "rows released"))
    unprotected = (
        [messages.unprotected_columns(summary.kept_columns)]
        if summary.kept_columns
        else ["Nothing but the protected texts."]
    )
    unprotected += messages.found_columns([one for one in summary.findings if one.evidence == "name"])[:-1]
    return Page(
        title=f"{file_name(summary.source)}, protected",
        lead="Every word was drawn anew at random, the likelier the closer its meaning; often it is the word itself. "
        "What that guarantees is below; what it does not hide comes first.",
        facts=facts,
        sections=[
            (
                "What this does not hide",
                page.bullets(
                    [messages.visible_in_texts(), messages.texts_of_one_person(), messages.second_text_release()]
                ),
            ),
            (
                "What is guaranteed",
                page.bullets([*mechanism.promise(), *mechanism.rules.sentences()])
                + '<p style="margin-top:1rem">Between two words of the vocabulary, in one report, for a person who '
                f"must guess which of the two it was:</p>{page.bullets(word_pairs(words))}",
            ),
            ("Before and after, on a public text", _public_texts(mechanism)),
            ("What words become", _likely(words)),
            (
                "What it costs, and what an attacker makes of it",
                "" if found is None else page.bullets(distribution_lines(found, guarantee.unit)),
            ),
            ("What stayed in the table", page.bullets([*unprotected, *summary.notes])),
            *closing_sections(files, repeat),
        ],
        notices=[messages.simulated()] if summary.simulated else [],
    )


def page_of_choices(found: Sequence[WordEvaluation], words: int, *, repeat: Sequence[str] = ()) -> Page:
    """Return the page of several epsilons."""
    limits = [messages.visible_in_texts(), messages.figure_sources(found[0].known)]
    names = ["epsilon", "words unchanged", "attacker right", "median rank of the true word", "accuracy of the task"]
    lines: dict[str, list[float | None]] = {
        "words unchanged": [one.unchanged for one in found],
        "attacker right": [one.recovered for one in found],
        "accuracy of the task": [one.accuracy for one in found],
    }
    picture = vector.shares_svg([one.epsilon for one in found], lines, "the effect of several epsilons on words")
    table = page.table(names, map(evaluation_cells, found), "n" * len(names))
    return Page(
        title="Choosing epsilon for texts",
        lead=f"What a mechanism on {words:,} words does to public sentences at {len(found)} epsilons. Where nearly all "
        "words stay, hardly anything is hidden.",
        facts=(),
        sections=[
            ("What this does not hide", page.bullets(limits)),
            ("What epsilons do", f'<figure class="card">{picture}</figure>{table}'),
            *closing_sections((), repeat),
        ],
    )


def evaluation_cells(one: WordEvaluation) -> list[str]:
    """Return a row of a table: epsilon, share unchanged, recovered, rank, accuracy; - for a missing one."""
    return [
        f"{one.epsilon:g}",
        f"{100 * one.unchanged:.1f} %",
        "-" if one.recovered is None else f"{100 * one.recovered:.1f} %",
        "-" if one.rank is None else f"{one.rank:,.0f}",
        "-" if one.accuracy is None else f"{one.accuracy:.2f}",
    ]


def _worth(mechanism: Mechanism) -> WordEvaluation | None:
    """Return what a mechanism does to the bundled sentences; None for words of another language."""
    try:
        return evaluate_words(mechanism)
    except InvalidInput:
        return None


def before_after(mechanism: TextMechanism) -> list[tuple[str, str]]:
    """Return the bundled sentences and what becomes of them, without those that the rules refuse."""
    found = []
    for sentence in sample_sentences():
        try:
            found.append((sentence, mechanism.protect([sentence])[0]))
        except OutOfDomain:
            continue
    return found


def _public_texts(mechanism: TextMechanism) -> str:
    """Return the bundled sentences and what becomes of them, without those that the rules refuse, as a table."""
    pairs = before_after(mechanism)
    if not pairs:
        return ""
    return (
        "<p>These sentences come with metricdp and are about no real person. They were protected for this page alone, "
        "by the same mechanism and rules; nothing of the table is here.</p>"
        + page.table(("Public sentence", "Protected"), pairs, "tt")
    )


def _likely(mechanism: Mechanism) -> str:
    """Return what some public words may be reported as, by the distribution."""
    words = words_of(mechanism).coordinates[:, 0].tolist()
    place = {word: code for code, word in enumerate(words)}
    codes = [place[word] for word, _ in PAIRS if word in place][:SHOWN]
    if not codes:
        codes = np.unique(np.linspace(0, len(words) - 1, SHOWN).astype(int)).tolist()
    return (
        "<p>The likeliest reports of some words of the public vocabulary, with their probabilities:</p>"
        + word_table(mechanism, np.array(codes))
    )
