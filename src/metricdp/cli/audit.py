"""The command that judges: a mechanism file, anyone's matrix, recorded samples, or a sampler that is asked."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from metricdp.cli import terminal
from metricdp.cli.options import (
    DEFAULT_READING,
    Epsilon,
    ReadingOptions,
    Verbose,
    distance_in,
    mechanism_in,
    metric_of,
)
from metricdp.cli.places import point_file
from metricdp.errors import InvalidInput

if TYPE_CHECKING:
    from metricdp.arrays import Floats, Points
    from metricdp.auditing import AuditReport, ConcentratedReport
    from metricdp.mechanisms import Mechanism
    from metricdp.metrics import Metric
    from metricdp.spaces import FiniteSpace

FEW_CALLS = 2000  # draws by default where each is a call over the network
MOST_SECRETS = 200  # of a mechanism file, where no others were named


@dataclass(frozen=True)
class RecordedOptions:
    """Recorded samples: a table with one row a draw.

    Attributes:
        secret: The columns of the secret, such as x,y or lat,lon or word.
        report: The columns of the report, in the same order.
    """

    secret: str | None = None
    report: str | None = None


@dataclass(frozen=True)
class SamplerOptions:
    """A sampler that is asked: a command, an address, or a JavaScript module.

    Attributes:
        command: A program that reads one secret a line and prints one report a line. A secret is 0.5,1.25 or a word;
            every report is printed at once. The program is started without a shell, once.
        url: An address that is called once a draw. Only made-up secrets may be sent: say so with --synthetic.
        module: An ES module with a function `sample`, run in Node; with a mechanism file before it, metricdp for
            JavaScript (js/dist/metricdp.js), which draws from that file.
        secrets: A table with the secrets to ask about: two or more, one a row.
        vectors: One vector a secret (.npy, CSV, Parquet), where secrets are words measured by their vectors.
        body: For --url: JSON with places to fill, such as '{"at": ["{lat}", "{lon}"]}'; {secret} is the whole secret,
            {count} asks for many reports at once. Without it the places stand in the address.
        found: For --url: where in the answer the report is, such as result.point, or result.lat,result.lon.
        header: For --url: a header whose value an environment variable holds, such as Authorization=API_TOKEN.
        synthetic: For --url: the secrets are made up and belong to nobody.
        rate: For --url: calls a second at most.
        function: For --module: the function that draws.
        timeout: Seconds to wait for an answer: 60, and 10 for --url, unless said.
        independent: The reports of one call are drawn independently of each other. They are then asked for many at a
            time, which is faster; without it every report that is judged comes from a call of its own.
    """

    command: str | None = None
    url: str | None = None
    module: str | None = None
    secrets: str | None = None
    vectors: str | None = None
    body: str | None = None
    found: str = ""
    header: str | None = None
    synthetic: bool = False
    rate: float = 5.0
    function: str = "sample"
    timeout: float | None = None
    independent: bool = False

    @property
    def way(self) -> str:
        """The option that says whom to ask; empty where nobody is asked."""
        ways = [f"--{name}" for name in ("command", "url", "module") if getattr(self, name) is not None]
        if len(ways) > 1:
            raise InvalidInput(f"{' and '.join(ways)} are two samplers: an audit is about one.")
        return ways[0] if ways else ""


@dataclass(frozen=True)
class ClaimOptions:
    """What is judged, and how sure a refutation has to be.

    Attributes:
        metric: How far secrets are apart, such as l2 (`metricdp list metrics`); lat and lon mean haversine.
        distances: Instead: a file with the distances between all secrets (.npy, CSV or Parquet), in their order.
        epsilon: The promise: 10/km on lat and lon, a bare number elsewhere; a mechanism file brings its own.
        slack: What the promise allows beside epsilon times the distance, whatever the distance; for samples.
        confidence: How sure a refutation by samples has to be.
        draws: How many reports are asked for at most: 100,000, and 2,000 from an address, unless said. A sampler that
            is refuted earlier is asked no further.
    """

    metric: str | None = None
    distances: str | None = None
    epsilon: Epsilon | None = None
    slack: float = 0.0
    confidence: float = 0.99
    draws: int | None = None

    def level(self, metric: Metric) -> float:
        """Return the epsilon in the unit of the metric."""
        from metricdp.units import parse_epsilon

        if self.epsilon is None:
            example = "--epsilon 10/km" if metric.unit else "--epsilon 1.0"
            raise InvalidInput(f"samples can only refute a promise: name it, such as {example}.")
        return parse_epsilon(self.epsilon, metric.unit)


@dataclass(frozen=True)
class CrowdOptions:
    """A crowd whose reports are shuffled.

    Attributes:
        people: Instead: what shuffling the reports of this many people adds. Everybody reports once through the
            mechanism file, and a trusted shuffler removes names and order. The answer is an epsilon that holds except
            with probability delta: it is approximate, never a pure guarantee, and no mechanism file states it.
        distance: With --people: how far the secret of one person may move, such as 200m.
        delta: With --people: the probability with which anything may show.
        diameter: With --people: the largest distance of two people's secrets; that of the file's secrets unless given.
            Noise on places anywhere needs it: the statement is then for crowds within it.
    """

    people: int | None = None
    distance: str | None = None
    delta: float = 1e-6
    diameter: str | None = None


NOT_RECORDED, NOBODY, NOTHING, NO_CROWD = RecordedOptions(), SamplerOptions(), ClaimOptions(), CrowdOptions()


def audit(
    source: str | None = None,
    /,
    *,
    points: str | None = None,
    claim: Annotated[ClaimOptions, Parameter(name="*")] = NOTHING,
    recorded: Annotated[RecordedOptions, Parameter(name="*")] = NOT_RECORDED,
    foreign: Annotated[SamplerOptions, Parameter(name="*")] = NOBODY,
    crowd: Annotated[CrowdOptions, Parameter(name="*")] = NO_CROWD,
    key: str | None = None,
    again: bool = False,
    json: bool = False,
    verbose: Verbose = False,
    table: Annotated[ReadingOptions, Parameter(name="*")] = DEFAULT_READING,
) -> int:
    """Say what a mechanism really leaks: exit code 0 if its guarantee holds, 1 if it is violated, 2 if undecided.

    An example: `metricdp audit cells.mdp`

    Anyone's matrix: `metricdp audit matrix.csv --points points.csv --metric l2 --epsilon 1.0 --json`

    Recorded samples: `metricdp audit samples.csv --secret x,y --report u,v --metric l2 --epsilon 1.0`

    A command: `metricdp audit --command "python their_sampler.py" --secrets points.csv --metric l2 --epsilon 1.0`

    An address: `metricdp audit --url https://example.org/report --body '{"at": ["{lat}", "{lon}"]}' --found point
    --secrets made_up.csv --synthetic --epsilon 10/km`

    JavaScript: `metricdp audit --module sampler.mjs --secrets points.csv --epsilon 1.0`, or `metricdp audit cells.mdp
    --module metricdp.js` to have metricdp for JavaScript draw from a mechanism file.

    A crowd whose reports are shuffled: `metricdp audit cells.mdp --people 10000 --distance 200m`

    Samples can refute a guarantee and never prove it: where they find nothing the verdict is "not refuted", which is
    exit code 2, and it says which leak they would have found.

    Args:
        source: A mechanism file, a matrix (CSV, Parquet, .npy; one row per secret), or a table of recorded samples.
        points: For a matrix: a file with its secrets, one a row.
        key: A public key file: a mechanism file is refused unless this key signed it.
        again: Audit a mechanism file anew, also where the result of a long audit is stored.
        json: Print the report as JSON.
        verbose: Print the whole report.
    """
    from metricdp import messages
    from metricdp.auditing import AuditReport
    from metricdp.cli import guarantees, summaries

    if crowd != NO_CROWD:
        return _audit_crowd(source, crowd, key, json=json)
    report, unit = _audit_source(source, points, claim, recorded, foreign, key, again=again, how=table)
    if json:
        terminal.say_json(guarantees.report_values(report, unit), sort_keys=True)
    elif report.claimed is None and isinstance(report, AuditReport):
        smallest = messages.number(report.epsilon, 12, "up")
        terminal.say(f"the smallest epsilon is {smallest}; name the promise with --epsilon to have it judged.")
    elif verbose:
        terminal.say(report)
    else:
        terminal.say(*summaries.audit_lines(report))
    return {"holds": 0, "violated": 1}.get(report.verdict, 2)


def _audit_source(
    source: str | None,
    points: str | None,
    claim: ClaimOptions,
    recorded: RecordedOptions,
    foreign: SamplerOptions,
    key: str | None,
    *,
    again: bool,
    how: ReadingOptions,
) -> tuple[AuditReport | ConcentratedReport, str]:
    """Find out what is to be judged, and by whom."""
    from metricdp.tables.formats import is_table
    from metricdp.tables.matrices import is_matrix_file

    table = source is not None and (is_matrix_file(source) or is_table(source))
    named = recorded.secret is not None or recorded.report is not None
    if foreign.way:
        _refuse(points is not None, f"--points is for matrices: with {foreign.way} the secrets are named by --secrets.")
        _refuse(named, f"--secret and --report name columns of recorded samples; {foreign.way} needs --secrets FILE.")
        _refuse(
            table, f"{source!r} and {foreign.way} are two things to judge: name the secrets with --secrets {source}."
        )
        return _audit_sampler(source, foreign, claim, key, how)
    if source is None:
        raise InvalidInput(
            "say what to judge: a mechanism file, a matrix, a table of samples, or a sampler with --command, --url or "
            "--module. `metricdp audit --help` has an example of each."
        )
    _refuse(table and key is not None, "a matrix or a table bears no signature: leave --key away.")
    if foreign.secrets is not None:
        raise InvalidInput(
            "--secrets is for samplers that are asked (--command, --url, --module): the secrets of a matrix are named "
            "by --points, the columns of recorded samples by --secret and --report."
        )
    if table and named:
        return _audit_samples(source, recorded, claim, points, how)
    _refuse(named, f"--secret and --report are for tables of samples (`metricdp list formats`), not for {source!r}.")
    asked = next(
        (name for name in ("slack", "confidence", "draws") if getattr(claim, name) != getattr(ClaimOptions(), name)), ""
    )
    _refuse(bool(asked), f"--{asked} is for samples: a matrix and a mechanism file are judged exactly.")
    if table:
        return _audit_matrix(source, points, claim, how)
    _refuse(points is not None, f"--points is for a matrix, and {source!r} is none: it brings its own secrets.")
    return _audit_file(source, claim.epsilon, key, again=again)


def _refuse(wrong: bool, sentence: str) -> None:
    if wrong:
        raise InvalidInput(sentence)


def _audit_matrix(source: str, points: str | None, claim: ClaimOptions, how: ReadingOptions) -> tuple[AuditReport, str]:
    import metricdp
    from metricdp.files import existing_file
    from metricdp.tables.matrices import is_matrix_file, read_matrix
    from metricdp.units import parse_epsilon

    if is_matrix_file(source):
        existing_file(source)  # before anything is said about what belongs to it
    space = _secrets_of_matrix(points, claim, how)
    matrix = read_matrix(source, rows=len(space))
    if len(matrix) != len(space):
        where = claim.distances if points is None else points
        raise InvalidInput(
            f"{source!r} has {len(matrix)} rows and {where!r} has {len(space)} points: one row belongs to one secret."
        )
    claimed = None if claim.epsilon is None else parse_epsilon(claim.epsilon, space.unit)
    with terminal.progress_bar("Auditing") as progress:
        report = metricdp.audit(matrix, metric=space.metric, points=space.points, epsilon=claimed, progress=progress)
    return report, space.unit


def _secrets_of_matrix(points: str | None, claim: ClaimOptions, how: ReadingOptions) -> FiniteSpace:
    import numpy as np

    from metricdp.metrics import Precomputed
    from metricdp.spaces import FiniteSpace
    from metricdp.tables.matrices import read_distances

    if claim.distances is None:
        if points is None:
            raise InvalidInput(
                "a matrix is judged with its secrets: --points points.csv --metric l2 --epsilon 1.0, or --distances "
                "distances.npy. A table of samples is judged with --secret x,y --report u,v."
            )
        return point_file(points, how).space(claim.metric)
    _refuse(claim.metric is not None, "--distances says how far secrets are apart: leave --metric away.")
    _refuse(points is not None, "--distances is given in the order of the rows of the matrix: leave --points away.")
    metric = Precomputed(read_distances(claim.distances))
    return FiniteSpace(np.arange(float(len(metric.distances)))[:, None], metric)


def _audit_file(
    source: str, epsilon: str | None, key: str | None, *, again: bool
) -> tuple[AuditReport | ConcentratedReport, str]:
    import metricdp
    from metricdp.artifacts import inspect as open_file
    from metricdp.artifacts.audit_cache import cached_audit
    from metricdp.mechanisms import ConcentratedGuarantee
    from metricdp.units import parse_epsilon

    found = open_file(source, verify=False, trusted=key)
    unit = found.mechanism.guarantee.unit
    claimed = None if epsilon is None else parse_epsilon(epsilon, unit)
    if isinstance(found.mechanism.guarantee, ConcentratedGuarantee):
        if claimed is None:
            return metricdp.auditing.audit_concentrated(found.mechanism), unit
        return metricdp.audit(found.mechanism, epsilon=claimed), unit
    with terminal.progress_bar("Auditing") as progress:
        return cached_audit(found.mechanism, found.sha256, epsilon=claimed, again=again, progress=progress), unit


@dataclass(frozen=True)
class SecretList:
    """Secrets, one a row, the names of their columns, and the metric between them."""

    points: Points
    columns: tuple[str, ...]
    metric: Metric


def _read_secrets(path: str, claim: ClaimOptions, vectors: str | None, table: ReadingOptions) -> SecretList:
    """Return the secrets of a file, measured by a named metric, a matrix of distances or vectors of their own."""
    from metricdp.metrics import Precomputed, listed_metric, pairwise
    from metricdp.tables.matrices import read_distances, read_matrix

    found, metric = point_file(path, table), claim.metric
    if claim.distances is None and vectors is None:
        return SecretList(found.points, found.columns, found.space(metric).metric)
    if claim.distances is not None:
        if vectors is not None or metric is not None:
            other = "--vectors" if vectors is not None else "--metric"
            raise InvalidInput(f"--distances says how far secrets are apart: leave {other} away.")
        apart: Floats = Precomputed(read_distances(claim.distances)).distances
        name, unit = claim.distances, ""
    else:
        rows = read_matrix(str(vectors), rows=len(found.points))
        chosen = metric_of(metric or "l2")
        chosen.check(rows)
        apart, name, unit = pairwise(chosen, rows, rows), str(vectors), chosen.unit
    if len(found.points) != len(apart):
        raise InvalidInput(
            f"{name!r} has {len(apart)} rows for {len(found.points)} secrets: one row belongs to one secret."
        )
    return SecretList(found.points, found.columns, listed_metric(found.points, apart, unit=unit))


def _audit_samples(
    source: str, columns: RecordedOptions, claim: ClaimOptions, names: str | None, how: ReadingOptions
) -> tuple[AuditReport, str]:
    """Judge a promise by recorded samples; `names` lists the secrets that the rows of `--distances` are about."""
    import metricdp
    from metricdp.tables.points import is_geographic, read_columns

    if columns.secret is None or columns.report is None:
        missing, there = ("--report", "--secret") if columns.report is None else ("--secret", "--report")
        raise InvalidInput(
            f"recorded samples are pairs of a secret and a report: {there} names columns, and {missing} must too, such "
            "as --secret x,y --report u,v."
        )
    if claim.draws is not None:
        raise InvalidInput("--draws is for samplers that are asked: of recorded samples all rows are used.")
    planar = claim.metric is not None and not claim.metric.startswith("haversine")
    found = {}
    for option, text in (("--secret", columns.secret), ("--report", columns.report)):
        if not text.strip(", "):
            raise InvalidInput(f"{option} names no column: write {option} x,y.")
        held = ReadingOptions(columns=text).names or []
        found[option] = read_columns(source, held, how.reading(), option=option, planar=planar)
    secrets, reports = found["--secret"], found["--report"].points
    _warn_of_exchange(secrets.points, reports)
    if claim.distances is not None:
        if names is None:
            raise InvalidInput(
                "--distances is about a list of secrets: name its file with --points, in the same order."
            )
        metric: Metric = _read_secrets(names, claim, None, how).metric
    else:
        if not secrets.geographic and is_geographic(secrets.columns[::-1]):
            raise InvalidInput(
                f"--secret {','.join(secrets.columns)} names the longitude first: latitude comes first, and in "
                "--report as well."
            )
        metric = secrets.metric(claim.metric)
    epsilon = claim.level(metric)
    verify = metricdp.audit_samples(
        secrets.points, reports, metric=metric, epsilon=epsilon, confidence=claim.confidence, slack=claim.slack
    )
    return verify, metric.unit


def _audit_sampler(
    source: str | None, foreign: SamplerOptions, claim: ClaimOptions, key: str | None, how: ReadingOptions
) -> tuple[AuditReport, str]:
    """Judge a promise by asking a sampler."""
    import metricdp

    if source is not None and foreign.module is None:
        raise InvalidInput(
            f"{source!r} and {foreign.way} are two things to judge: leave one away. The secrets to ask about are named "
            "with --secrets."
        )
    if foreign.secrets is None and source is None:
        raise InvalidInput(
            f"{foreign.way} is asked about secrets: name a file with two or more, such as --secrets points.csv."
        )
    if source is None:
        asked = _read_secrets(str(foreign.secrets), claim, foreign.vectors, how)
        epsilon, slack = claim.level(asked.metric), claim.slack
    else:
        asked, epsilon, slack = _secrets_of_file(source, foreign, claim, key)
    if len(asked.points) < 2:
        raise InvalidInput(f"{foreign.secrets!r} holds one secret: nothing can be told apart. Give two or more.")
    with _open_sampler(source, foreign, asked, claim) as draw, _audit_progress(epsilon, asked.metric.unit) as progress:
        report = metricdp.audit_sampler(
            draw,
            secrets=asked.points if asked.points.dtype.kind != "U" else asked.points[:, 0].tolist(),
            metric=asked.metric,
            epsilon=epsilon,
            confidence=claim.confidence,
            draws=_draws(foreign, claim),
            slack=slack,
            independent=foreign.independent,
            progress=progress,
        )
    return report, asked.metric.unit


def _draws(foreign: SamplerOptions, claim: ClaimOptions) -> int:
    several = foreign.independent and "{count}" in f"{foreign.body}{foreign.url}"
    return claim.draws or (FEW_CALLS if foreign.url is not None and not several else 100_000)


def _secrets_of_file(
    source: str, foreign: SamplerOptions, claim: ClaimOptions, key: str | None
) -> tuple[SecretList, float, float]:
    """Return the secrets and the promise of a mechanism file, which a JavaScript module is asked to keep."""
    import numpy as np

    from metricdp.artifacts import inspect as open_file
    from metricdp.metrics import listed_metric, pairwise
    from metricdp.spaces import FiniteSpace, require_space
    from metricdp.units import parse_epsilon

    mechanism = open_file(source, verify=False, trusted=key).mechanism
    kept, space, finite = mechanism.guarantee, mechanism.inputs, mechanism.inputs.finite
    listed = None if finite is None else require_space(finite, FiniteSpace, "inputs")
    if claim.metric is not None or claim.distances is not None:
        raise InvalidInput("a mechanism file brings its metric: leave --metric and --distances away.")
    epsilon = kept.epsilon if claim.epsilon is None else parse_epsilon(claim.epsilon, kept.unit)
    slack = max(claim.slack, kept.slack)
    if foreign.secrets is not None:
        file = point_file(foreign.secrets)
        rows, columns = file.space().points, file.columns
    elif listed is not None:
        chosen = np.unique(np.linspace(0, len(listed) - 1, min(len(listed), MOST_SECRETS)).astype(int))
        rows, columns = np.asarray(space.decode(chosen)), space.columns
    else:
        raise InvalidInput("this mechanism takes any value: name the ones to ask about with --secrets points.csv.")
    metric = space.metric
    if listed is not None:  # distances are between codes, what is asked and answered are values
        measured = listed.points[np.asarray(space.encode(rows))]
        metric = listed_metric(rows, pairwise(metric, measured, measured), unit=kept.unit)
    return SecretList(rows, columns, metric), epsilon, slack


@contextmanager
def _open_sampler(
    source: str | None, foreign: SamplerOptions, asked: SecretList, claim: ClaimOptions
) -> Iterator[Callable[[Any, int], Points]]:
    """Start a sampler and end it, whatever happens in between."""
    from metricdp.auditing import PROBED
    from metricdp.samplers import CommandSampler, NodeSampler, WebSampler

    made: CommandSampler | NodeSampler | WebSampler
    if foreign.command is not None:
        made = CommandSampler(foreign.command, patience=foreign.timeout or 60.0)
    elif foreign.module is not None:
        made = NodeSampler(
            foreign.module, function=foreign.function, mechanism=source, patience=foreign.timeout or 60.0
        )
    else:
        made = WebSampler(
            str(foreign.url), synthetic=foreign.synthetic, body=foreign.body, found=foreign.found,
            columns=asked.columns, rate=foreign.rate, patience=foreign.timeout or 10.0, headers=_header(foreign.header),
        )  # fmt: skip
        said = made.announcement(
            _draws(foreign, claim), len(asked.points), independent=foreign.independent, probes=PROBED
        )
        terminal.say(said, stream=sys.stderr)
    with made as draw:
        yield draw


def _header(words: str | None) -> dict[str, str]:
    """Return a header whose value an environment variable holds: command lines are seen by everybody."""
    if words is None:
        return {}
    name, equals, variable = (part.strip() for part in words.partition("="))
    if not equals or not name or variable not in os.environ:
        raise InvalidInput(
            f"--header must be a name and an environment variable that holds its value, such as "
            f"Authorization=API_TOKEN; {variable!r} is not set."
        )
    return {name: os.environ[variable]}


def _warn_of_exchange(points: Points, reports: Points) -> None:
    """Say where it looks as if `--secret` and `--report` were exchanged: secrets repeat, noisy reports do not."""
    import numpy as np

    if len(points) < 100:
        return
    kinds = [len(np.unique(part, axis=0)) for part in (points, reports)]
    if 2 * kinds[0] > len(points) and 10 * kinds[1] < len(points):
        terminal.note(
            f"there are {kinds[0]:,} different secrets and only {kinds[1]:,} different reports: are --secret and "
            "--report exchanged?"
        )


@contextmanager
def _audit_progress(claimed: float, unit: str) -> Iterator[Callable[[float, float], None] | None]:
    """Show on a terminal's error stream how far an audit is and what is known of epsilon."""
    from metricdp import messages

    per = f" per {unit}" if unit else ""
    with terminal.steps_bar("Asking", "nothing known yet") as bar:
        if bar is None:
            yield None
            return

        def show(share: float, bound: float) -> None:
            known = "infinite" if math.isinf(bound) else messages.number(bound, 3, "down")
            bar(share, f"epsilon at least {known}{per}, claimed {claimed:.6g}")

        yield show


def _audit_crowd(source: str | None, crowd: CrowdOptions, key: str | None, *, json: bool) -> int:
    """Say what shuffling the reports of a crowd adds to a mechanism; it is approximate, never a pure guarantee."""
    from metricdp import messages
    from metricdp.auditing import shuffled_epsilon
    from metricdp.mechanisms import require_pure

    if source is None or crowd.people is None or crowd.distance is None:
        raise InvalidInput(
            "a crowd needs a mechanism file, its size and a distance: metricdp audit cells.mdp --people 10000 "
            "--distance 200m."
        )
    made = mechanism_in(source, trusted=key)
    people, delta = int(crowd.people or 0), crowd.delta
    guarantee = require_pure(made.guarantee, "`audit --people`")
    if guarantee.slack > 0 or guarantee.radius is not None:
        raise InvalidInput(f"a crowd is counted for a guarantee of all pairs without slack, and this is {guarantee}.")
    moved = distance_in(str(crowd.distance), guarantee.unit, "distance")
    across = distance_in(crowd.diameter, guarantee.unit, "diameter") if crowd.diameter is not None else _across(made)
    found = shuffled_epsilon(guarantee.epsilon, people, distance=moved, diameter=across, delta=delta)
    values: dict[str, Any] = {
        "approximate": True,
        "epsilon": found,
        "delta": delta,
        "without_shuffling": guarantee.epsilon * moved,
        "people": people,
        "distance": moved,
        "diameter": across,
        "unit": guarantee.unit,
    }
    if json:
        terminal.say_json(values, sort_keys=True)
        return 0
    far, wide = (messages.distance(one, guarantee.unit, "up") for one in (moved, across))
    terminal.say(f"APPROXIMATE, never a pure guarantee: shuffled reports of {people:,} people, each through {source}.")
    terminal.say(
        f"Moving one person by at most {far} changes the probability of anything that the crowd shows by a factor of "
        f"at most exp({messages.number(found, 4, 'up')}), except with probability {delta:g}. Without a shuffler the "
        f"factor is exp({messages.number(guarantee.epsilon * moved, 4, 'up')}), for certain."
    )
    terminal.say(
        f"It holds where all secrets lie within {wide} of each other, everybody reports once, and the shuffler removes "
        "names and order. Somebody who sees a report before the shuffler has only the guarantee of the file."
    )
    return 0


def _across(made: Mechanism) -> float:
    """Return the largest distance of two secrets of a mechanism."""
    from metricdp.spaces.finite import MOST_DISTANCES

    places: Any = made.inputs.finite
    if places is None or len(places) ** 2 > MOST_DISTANCES:
        many = "places anywhere" if places is None else f"{len(places):,} places, too many to measure all pairs"
        raise InvalidInput(
            "say how far apart the secrets of two people may be, with --diameter such as 5km: this mechanism is for "
            f"{many}."
        )
    return float(places.distances.max())
