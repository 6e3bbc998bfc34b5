"""Which mechanism: the questions that decide, and what follows from the answers.

`metricdp choose` asks them, and the page docs/how-to/choose.md is written from the same lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_DENSE = 4_096  # places above which a builder solves on windows
MOST_FINE = 1_000  # places up to which the optimum is a matter of minutes on two cores


@dataclass(frozen=True)
class AdviceQuestion:
    """A question, the words that answer it (none: a name or a number is typed), and why it matters.

    Attributes:
        name: The option of `metricdp choose`.
        ask: The question itself.
        answers: What each word means.
        usual: The answer of somebody who just presses return.
        why: What depends on it, as a paragraph of the page.
    """

    name: str
    ask: str
    answers: Mapping[str, str] = field(default_factory=dict)
    usual: str = ""
    why: str = ""


QUESTIONS = (
    AdviceQuestion(
        "secrets",
        "What are the secrets?",
        {
            "anywhere": "positions anywhere on Earth, without a list of places",
            "points": "places in a file, one a row",
            "roads": "the crossings of a road network",
            "grid": "the cells of a map",
            "words": "words in a file, one a row",
            "texts": "sentences in a table, protected word by word",
            "trips": "trips: positions of somebody who moves",
        },
        "points",
        "**Is the set of secrets finite and public?** Then use a matrix mechanism. Reports stay on legal places, and "
        "the audit is a proof over every pair. If not, use Laplace noise, or an interpolated mechanism within a box.",
    ),
    AdviceQuestion(
        "places",
        "Which places: the file of points, the city, the corners south,west,north,east of the map, or word vectors?",
    ),
    AdviceQuestion("epsilon", "How much may leak: an epsilon such as 10/km, or a wish such as 2x@200m?"),
    AdviceQuestion(
        "prior",
        "Is it known how likely each place is? The file that says so, or none",
        usual="none",
        why="**Do you know how likely each place is?** A prior lowers the loss of `remapped` and `optimal`. It must be "
        "public: take it from older data or a census, never from the rows you protect. The guarantee does not "
        "depend on it.",
    ),
    AdviceQuestion(
        "loss",
        "What does an error cost: distance, squared, time (on roads), or a file with a matrix?",
        usual="distance",
        why="**What does an error cost?** The loss is the distance unless you give a matrix. For deliveries it may "
        "be the detour along the roads; for words the change in meaning.",
    ),
    AdviceQuestion(
        "wait",
        "How long may the design take?",
        {
            "now": "no time at all",
            "seconds": "seconds",
            "minutes": "minutes, for the least loss of all that report these places",
        },
        "minutes",
        "**How long may the design take?** It is made once. The closed forms are there at once, a mixture of simple "
        "columns takes seconds, and the optimum minutes, with a proof of how close it is.",
    ),
    AdviceQuestion(
        "rows",
        "How many rows does one person have?",
        {"one": "one", "several": "several"},
        "one",
        "**How many rows does one person have?** The guarantee is for one row. Rows of one person add up: `--id` names "
        "the column that says whose row it is, and `--budget` with `--allocation even` keeps the total below a limit.",
    ),
    AdviceQuestion(
        "device",
        "Where are reports drawn?",
        {"table": "here, for a table", "phone": "on a phone or in a browser"},
        "table",
        "**Where are reports drawn?** Where the secret is, if you can: a phone that draws its own report sends no "
        "secret to anybody. A mechanism file is small, and JavaScript reads it.",
    ),
)


@dataclass(frozen=True)
class Advice:
    """One row of the table: for whom, what to take and why.

    Attributes:
        name: How `chosen` finds it; empty for rows that are for Python.
        secrets: What the secrets are.
        have: What else there is.
        take: The call in Python.
        why: Why.
        builder: Its name at the command line.
    """

    name: str
    secrets: str
    have: str
    take: str
    why: str
    builder: str = ""


ADVICE = (
    Advice("laplace", "anywhere on Earth", "nothing but epsilon", "mdp.laplace(mdp.Haversine(), epsilon)",
           "no map needed, no projection: distances on the sphere", "laplace"),
    Advice("", "vectors in any dimension", "nothing but epsilon", "mdp.laplace(mdp.Lp(2), epsilon, dimension=n)",
           "the same for the plane and for embeddings"),
    Advice("exponential", "up to a few thousand places or words", "a list of them", "mdp.exponential(space, epsilon)",
           "instant; as much of the budget as can be proven, not half of it", "exponential"),
    Advice("remapped", "the same", "also a public prior, or a loss of your own",
           "mdp.remapped(mdp.exponential(...), prior=prior)",
           "never worse on average over that prior, often much better", "remapped"),
    Advice("optimal", "up to a thousand places (ten thousand on a GPU)", "also a minute or two",
           "mdp.optimal(problem)", "the least loss for these reports, proven: [how](../explanation/optimality.md)",
           "optimal"),
    Advice("city", "every crossing or cell of a city", "minutes, or a GPU", "mdp.optimal(problem, gap=0.05)",
           "the same on windows, nothing n x n: [whole cities](cities.md)", "optimal"),
    Advice("dictionary", "the same as for `optimal`", "only seconds", "mdp.dictionary(problem)",
           "usually within a few per cent of the optimum, any metric", "dictionary"),
    Advice("", "anywhere in a box or along streets", "places to report and a loss",
           "mdp.interpolated(box, outputs, epsilon, ...)",
           "private at every point, not only at cell centres: [how](../../papers/docs/aipo.md)"),
    Advice("trips", "places with their history", "trips, public or older", "mdp.contextual(problem, classes=...)",
           "uses where somebody came from: [what that guarantees](../../papers/docs/contextual.md)"),
    Advice("", "several things in one row", "a mechanism for each", "mdp.product(place, hour, word)",
           "every part on its own scale; the guarantees add up"),
    Advice("", "up to a hundred places", "a wish for the optimum to six digits", "mdp.decomposed(problem, gap=1e-6)",
           "ends at a vertex: [when it pays](../../papers/docs/benders.md)"),
    Advice("", "the same as for `optimal`", "machines that come and go, hours of time",
           'mdp.decomposed(problem, executor="ray", checkpoint="run.npz")',
           "lost workers and killed runs change no bound; not faster"),
    Advice("", "evenly spaced places, large epsilon", "nothing else", "mdp.tight_constraints(space, epsilon)",
           "every pair of places reaches its limit, where that exists"),
    Advice("texts", "sentences", "a file of word vectors", "mdp.text.TextMechanism(mdp.exponential(space, epsilon))",
           "word by word, over a whole vocabulary: [what that hides and what not](../tutorials/protect_text.md)",
           "exponential"),
    Advice("", "words with vectors", "a vocabulary", "mdp.madlib(space, epsilon)",
           "noise in the embedding, then the nearest word"),
)  # fmt: skip


@dataclass(frozen=True)
class Answers:
    """What somebody answered; `size` is how many places there are, 0 where that does not matter."""

    secrets: str
    prior: str = "none"
    loss: str = "distance"
    wait: str = "minutes"
    size: int = 0


def advice_for(answers: Answers) -> Advice:
    """Return the row of the table that fits."""
    named = {one.name: one for one in ADVICE if one.name}
    if answers.secrets in ("anywhere", "trips", "texts"):
        return named["laplace" if answers.secrets == "anywhere" else answers.secrets]
    if answers.size > MOST_DENSE:
        return named["city"]
    if answers.secrets == "words" or answers.wait == "now":
        return named["remapped" if (answers.prior, answers.loss) != ("none", "distance") else "exponential"]
    return named["dictionary" if answers.wait == "seconds" else "optimal"]


def table() -> str:
    """Return the advice as a table of the page."""
    rows = ["| your secrets are | and you have | take | why |", "| --- | --- | --- | --- |"]
    rows += [f"| {one.secrets} | {one.have} | `{one.take}` | {one.why} |" for one in ADVICE]
    return "\n".join(rows)


def paragraphs() -> str:
    """Return what the questions are for, as paragraphs of the page."""
    return "\n\n".join(question.why for question in QUESTIONS if question.why)
