"""The command that protects texts, and its help for choosing epsilon."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

import metricdp
from metricdp import messages
from metricdp.cli import summaries, terminal
from metricdp.cli.options import (
    DEFAULT_JOB,
    HIDDEN,
    NO_DISCLOSURE,
    STANDARD,
    DisclosureOptions,
    Epsilon,
    Input,
    JobOptions,
    Output,
    ReadingOptions,
    Verbose,
    check_targets,
    option_group,
    plain_record,
    redirect_prints,
    seeded_generator,
    with_resume_hint,
)
from metricdp.errors import InvalidInput
from metricdp.files import check_target
from metricdp.rendering import command_line
from metricdp.specs import WordSpec
from metricdp.tables.options import Job

if TYPE_CHECKING:
    from metricdp.tables import Reading, Summary
    from metricdp.text import Rules, TextMechanism
    from metricdp.text.numbers import Numeric
    from metricdp.text.word_evaluation import WordEvaluation

PLAIN = (".txt", ".text")


@option_group
class TextSource(ReadingOptions):
    """How the table is read, where the file does not say it.

    Attributes:
        column: A column of texts; several with commas between or the option again. review.text is a field of a struct,
            text#2 the second of two columns text. The only column of text unless given.
        format: The format of the file, where its name does not say it; `metricdp list formats` lists them. A .txt
            file and standard input have one document a line, unless --column or --from says otherwise.
    """

    column: tuple[str, ...] = ()
    target_format: Annotated[str | None, Parameter(name="--to")] = None
    decimal: Annotated[Literal["point", "comma"] | None, HIDDEN] = "point"
    crs: Annotated[str | None, HIDDEN] = None
    scale: Annotated[float, HIDDEN] = 1.0
    columns: Annotated[str | None, HIDDEN] = None
    force: Annotated[bool, HIDDEN] = False

    @property
    def names(self) -> list[str]:
        """The columns that were named."""
        return [name for text in self.column for name in ReadingOptions(columns=text).names or ()]


DEFAULT_SOURCE = TextSource()


@option_group
class WordOptions(WordSpec):
    """Which words there are, and how they are protected."""

    epsilon: Epsilon | None = None


@dataclass(frozen=True)
class TokenOptions:
    """What becomes of the tokens of a text.

    Attributes:
        unknown: Words outside the vocabulary: refuse, drop, mask, or the nearest spelling. refuse refuses the table,
            drop removes the words, mask replaces them, spelling takes the word nearest by spelling. No such word is
            ever passed through.
        keep_words: A file with one word a line: words that are public and stay as they are.
        numbers: Noise for numbers: 1/10 is epsilon 1 per difference of 10. Without it numbers count as words.
        amounts: The same for numbers beside a currency sign.
        dates: The same for dates; 1/7 is epsilon 1 per 7 days.
        times: The same for times of day; 1/30 is epsilon 1 per 30 minutes.
        month_first: 05/06/2024 is in May; otherwise in June.
        decimal_comma: Numbers are written 1.234,50; otherwise 1,234.50.
        units: Words of the vocabulary that are written apart (new_york, "new york") are one word.
        case: restore writes reports as the words were written, lower hides it.
        budget: The largest sum of epsilons that the words of one text may cost. Numbers count too.
        beyond: What becomes of the last words of a text that its budget does not pay for: refuse the table, drop them
            or mask them.
        lower: With a budget: smaller epsilons with commas between, or mechanism files, for texts that are too long for
            the first one; the largest at which the budget pays for all words is taken.
    """

    unknown: Literal["refuse", "drop", "mask", "spelling"] = "refuse"
    keep_words: str | None = None
    numbers: str | None = None
    amounts: str | None = None
    dates: str | None = None
    times: str | None = None
    month_first: bool = False
    decimal_comma: bool = False
    units: bool = False
    case: Literal["restore", "lower"] = "restore"
    budget: float | None = None
    beyond: Literal["refuse", "drop", "mask"] = "refuse"
    lower: str | None = None

    def rules(self) -> Rules:
        """Return the rules."""
        from metricdp.text import Rules
        from metricdp.text.lists import word_list

        if self.budget is None and (self.beyond != "refuse" or self.lower is not None):
            raise InvalidInput("--beyond and --lower say more about --budget, which is not given.")
        kept_words, notes = ([], ()) if self.keep_words is None else word_list(self.keep_words, "keep-words")
        terminal.note(*notes)
        return Rules(
            unknown=self.unknown,
            keep=tuple(kept_words),
            numbers=_noise("numbers", self.numbers),
            amounts=_noise("amounts", self.amounts),
            dates=_noise("dates", self.dates),
            times=_noise("times", self.times),
            day_first=not self.month_first,
            decimal_comma=self.decimal_comma,
            units=self.units,
            case=self.case,
            budget=self.budget,
            beyond=self.beyond,
        )

    @property
    def levels(self) -> list[str]:
        """The smaller epsilons or mechanism files, one by one."""
        return [] if self.lower is None else [part.strip() for part in self.lower.split(",") if part.strip()]


NO_WORDS, DEFAULT_TOKENS = WordOptions(), TokenOptions()


@dataclass(frozen=True)
class TextReportOptions:
    """What to write besides the table.

    Attributes:
        report: Write a page (.html) with limits, guarantee and an example. The example is a public text before and
            after; nothing of the table is in the page.
        json: Write the same as a record for programs.
    """

    report: str | None = None
    json: Annotated[str | None, Parameter(name="--json")] = None

    def check(self, source: str | None, output: str | None, *, overwrite: bool) -> None:
        """Refuse what cannot be written before any work is done."""
        check_targets([source or STANDARD], overwrite=overwrite, table=output, page=self.report, record=self.json)


NO_REPORT = TextReportOptions()


def text(
    source: Input | None = None,
    /,
    *,
    output: Output | None = None,
    table: Annotated[TextSource, Parameter(name="*")] = DEFAULT_SOURCE,
    words: Annotated[WordOptions, Parameter(name="*")] = NO_WORDS,
    speech: Annotated[TokenOptions, Parameter(name="*")] = DEFAULT_TOKENS,
    leaving: Annotated[DisclosureOptions, Parameter(name="*")] = NO_DISCLOSURE,
    choose: bool = False,
    report_options: Annotated[TextReportOptions, Parameter(name="*")] = NO_REPORT,
    job: Annotated[JobOptions, Parameter(name="*")] = DEFAULT_JOB,
    seed: int | None = None,
    verbose: Verbose = False,
) -> int:
    """Protect texts: every word becomes a word drawn at random, the likelier the closer its meaning.

    An example: `metricdp text reviews.csv --column text --vectors glove.npz --epsilon 1.5 --unknown mask -o out.csv`

    With a mechanism that was made once: `metricdp text reviews.csv --mechanism words.mdp --unknown mask -o out.csv`

    Many files: `metricdp text 'days/*.parquet' --mechanism words.mdp --unknown mask -o protected --engine local`

    What epsilons do to public sentences, to choose one: `metricdp text --vectors glove.npz --choose`

    Topic, style, length and rare combinations of words can still identify people.

    Args:
        source: A table, a .txt file, a folder, or a pattern such as 'days/*.csv'. A table is a CSV file with a header,
            Parquet, JSON Lines, a table of a database (shop.db::reviews) and more (`metricdp list formats`). A .txt
            file has one document a line. So has standard input (-), unless --column or --from is given.
        output: Where the protected table goes (- for standard output). Its name says the format. It appears when all
            rows are done. For many files it is a new folder.
        choose: Show what epsilons do to bundled sentences, to choose one. It takes the first 2,500 words unless --words
            names others; --epsilon 1,2,3 names the epsilons.
        seed: SIMULATION ONLY: draw from a seed, so that a run can be repeated. Never release the result.
        verbose: Print everything that is known about the release.
    """
    from metricdp.tables import names_many

    report_options.check(source, output, overwrite=job.overwrite)
    if choose:
        _refuse_table(source, output)
        return _choose(words, report_options)
    if source is None or output is None:
        raise InvalidInput(
            "name the table and where the protected one goes: metricdp text reviews.csv --column text --vectors "
            "glove.npz --epsilon 1.5 -o out.csv. To choose an epsilon: metricdp text --vectors glove.npz --choose."
        )
    if source != STANDARD:  # which is checked when it is read
        _check_first(source, output, table, leaving, job)
    mechanism = _mechanism(source, words, speech)
    with terminal.progress_bar(f"Protecting {Path(source).name}") as progress:
        several = names_many(source, job)
        summary = (with_resume_hint(metricdp.perturb) if several else metricdp.perturb)(
            source, mechanism, columns=table.names or None, to=output, disclosure=leaving.disclosure(),
            reading=_reading(source, output, table), rng=seeded_generator(seed),
            job=plain_record(Job, job, overwrite=job.overwrite and not several, progress=progress),
        )  # fmt: skip
    with redirect_prints(output):
        from metricdp.tables.reporting import staying_words, word_pairs

        files = _write_reports(summary, report_options)  # before anything is printed: the reader may go away
        if not verbose:
            terminal.say(*summaries.text_lines(summary, files))
            return 0
        terminal.say(messages.visible_in_texts(), *summary.lines())
        terminal.say("What epsilon means between words of the vocabulary:")
        made = mechanism.words
        terminal.say(*(f"  {line}" for line in word_pairs(made)), *staying_words(made), *files)
    return 0


def _check_first(source: str, output: str, table: TextSource, leaving: DisclosureOptions, job: Job) -> None:
    """Refuse a table or an output that does not fit before a mechanism is built, which takes minutes for many words."""
    from metricdp.tables import check_texts_in, names_many

    if not names_many(source, job) and output != STANDARD and Path(output).is_file():
        check_target(output, source=source, overwrite=job.overwrite)
    check_texts_in(source, job, table.names, leaving.disclosure(), _reading(source, output, table))


def _mechanism(source: str, words: WordOptions, speech: TokenOptions) -> TextMechanism:
    """Read or build what is done to every text."""
    from metricdp.specs import build_words
    from metricdp.text import TextMechanism

    rules = speech.rules()
    with terminal.progress_bar(f"Protecting {Path(source).name}"):
        made, lower, notes = build_words(words, speech.levels)
        terminal.note(*notes)
        return TextMechanism(made, rules, lower)


def _reading(source: str, output: str, table: TextSource) -> Reading:
    """Return how the table is read: a .txt file without a column has one document a line."""
    form = table.format
    if form is None and not table.column and (source == STANDARD or _is_plain(source)):
        form = "lines"
    target = table.target_format
    if target is None and form == "lines" and (output == STANDARD or _is_plain(output)):
        target = "lines"
    return table.reading(format=form, target_format=target)


def _is_plain(name: str) -> bool:
    ends = [end.lower() for end in Path(name).suffixes]
    return bool(ends) and (ends[-2] if ends[-1] in (".gz", ".zst") and len(ends) > 1 else ends[-1]) in PLAIN


def _write_reports(summary: Summary, report_options: TextReportOptions) -> list[str]:
    """Write the page and the record, and return a line about each."""
    from metricdp.tables.reporting import page_of_texts, record_of_texts, write_record

    lines, files = [], [(Path(summary.target).name, "the protected table")]
    if report_options.json is not None:
        write_record(record_of_texts(summary), report_options.json)
        lines.append(f"Record: {report_options.json}.")
        files.append((Path(report_options.json).name, "what was done and guaranteed, for programs"))
    if report_options.report is not None:
        page_of_texts(summary, repeat=[command_line(sys.argv[1:])], files=files).write(report_options.report)
        lines.append(f"Page: {report_options.report}. Nothing of the table is in it.")
    return lines


def _refuse_table(source: str | None, output: str | None) -> None:
    if source is not None or output is not None:
        raise InvalidInput(
            "--choose looks at public sentences only, never at a table: remove the table and -o, and protect it "
            "with the epsilon that you choose."
        )


def _choose(words: WordOptions, report_options: TextReportOptions) -> int:
    """Show what epsilons do to the bundled sentences."""
    from metricdp.specs import try_epsilons

    with terminal.progress_bar("Trying epsilons") as progress:
        found, places, limited = try_epsilons(words, progress=progress)
    terminal.note(*places.notes)
    count = len(places.space)
    lines = _choice_lines(found, count, words.builder or "exponential")
    if limited:
        lines.append(
            f"These are the first {count:,} words of the file. The more words, the more there are to choose between: "
            "with all of them fewer stay at the same epsilon. --words 20000 looks at more, and takes minutes."
        )
    terminal.say(*lines, *_write_choice_reports(found, count, report_options))
    return 0


def _write_choice_reports(found: list[WordEvaluation], words: int, report_options: TextReportOptions) -> list[str]:
    """Write the page and the record of several epsilons, and return a line about each."""
    lines = []
    if report_options.json is not None:
        from metricdp.tables.reporting import write_record

        held = {"format": "metricdp.text.choose", "version": 1, "words": words, "rows": [asdict(one) for one in found]}
        write_record(held, report_options.json)
        lines.append(f"Record: {report_options.json}.")
    if report_options.report is not None:
        from metricdp.tables.reporting import page_of_choices

        page_of_choices(found, words, repeat=[command_line(sys.argv[1:])]).write(report_options.report)
        lines.append(f"Page: {report_options.report}.")
    return lines


def _choice_lines(found: list[WordEvaluation], words: int, builder: str) -> list[str]:
    """Return the table of epsilons and what its columns mean, one line each."""
    from metricdp.tables.reporting import evaluation_cells

    names = ["epsilon", "unchanged", "attacker right", "median rank", "accuracy"]
    rows = [dict(zip(names, evaluation_cells(one), strict=True)) for one in found]
    clean = found[0].clean
    return [
        f"{builder} on {words:,} words, bundled English sentences:",
        *terminal.table_lines(names, rows),
        "unchanged: the share of the words of the sample text that are reported as they are.",
        "attacker right: how often the likeliest word is the true one for somebody who knows the mechanism, how "
        "frequent words are, and the report.",
        f"median rank: where the true word stands in that attacker's list of {words:,} words; 1 is the first.",
        "accuracy: how often a classifier tells praise from complaint in held-out reviews when all reviews are "
        "protected" + (f"; {clean:.2f} when none are." if clean is not None else "."),
        messages.figure_sources(found[0].known),
        "Take the smallest epsilon that your task bears. Where nearly all words stay, hardly anything is hidden.",
    ]


def _noise(option: str, text: str | None) -> Numeric | None:
    """Return the noise behind 1/10: epsilon 1 per difference of 10."""
    from metricdp.text.numbers import Numeric

    if text is None:
        return None
    epsilon, _, scale = text.partition("/")
    try:
        return Numeric(float(epsilon), float(scale or 1.0))
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise InvalidInput(f"--{option} {text}: {error}") from None
        raise InvalidInput(
            f"--{option} must be an epsilon per a difference, such as 1/10 (epsilon 1 per 10), got {text!r}."
        ) from None
