"""Audits by samples: recorded ones, and those of a command, an address or a module that is asked."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import metricdp
from metricdp import wording
from metricdp.arrays import Points
from metricdp.auditing import PROBED, AuditReport
from metricdp.cli import secrets, terminal
from metricdp.cli.choices import Epsilon
from metricdp.cli.tables import AS_IT_IS, Source
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, pairwise
from metricdp.spaces import FiniteSpace, given
from metricdp.units import parse_epsilon

FEW_CALLS = 2000  # draws by default where each is a call over the network
MOST_SECRETS = 200  # of a mechanism file, where no others were named


@dataclass(frozen=True)
class Recorded:
    """Recorded samples: a table with one row a draw.

    Attributes:
        secret: The columns of the secret, such as x,y or lat,lon or word.
        report: The columns of the report, in the same order.
    """

    secret: str | None = None
    report: str | None = None


@dataclass(frozen=True)
class Foreign:
    """A sampler that is asked: a command, an address, or a JavaScript module.

    Attributes:
        command: A program that reads one secret a line (0.5,1.25 or a word) and prints one report a line, at once. It
            is started without a shell and kept running.
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
class Promise:
    """What is judged, and how sure a refutation has to be.

    Attributes:
        metric: How far secrets are apart, such as l2; `metricdp metrics` lists the names. lat and lon mean haversine.
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
        if self.epsilon is None:
            example = "--epsilon 10/km" if metric.unit else "--epsilon 1.0"
            raise InvalidInput(f"samples can only refute a promise: name it, such as {example}.")
        return parse_epsilon(self.epsilon, metric.unit)


NOT_RECORDED, NOBODY, NOTHING = Recorded(), Foreign(), Promise()


def audit_recorded(
    source: str, columns: Recorded, promise: Promise, names: str | None, how: Source = AS_IT_IS
) -> tuple[AuditReport, str]:
    """Judge a promise by recorded samples; `names` lists the secrets that the rows of `--distances` are about."""
    if columns.secret is None or columns.report is None:
        missing, there = ("--report", "--secret") if columns.report is None else ("--secret", "--report")
        raise InvalidInput(
            f"recorded samples are pairs of a secret and a report: {there} names columns, and {missing} must too, such "
            "as --secret x,y --report u,v."
        )
    if promise.draws is not None:
        raise InvalidInput("--draws is for samplers that are asked: of recorded samples all rows are used.")
    planar = promise.metric is not None and not promise.metric.startswith("haversine")
    found, points = secrets.columns_of(source, columns.secret, "--secret", how, planar=planar)
    _, reports = secrets.columns_of(source, columns.report, "--report", how, planar=planar)
    _warn_of_exchange(points, reports)
    if promise.distances is not None:
        if names is None:
            raise InvalidInput(
                "--distances is about a list of secrets: name its file with --points, in the same order."
            )
        metric = secrets.listed(
            names, metric=promise.metric, distances=promise.distances, vectors=None, table=how
        ).metric
    else:
        metric = secrets.measuring(found.columns, points, promise.metric, placed=found.geographic)
    epsilon = promise.level(metric)
    judged = metricdp.audit_samples(
        points, reports, metric=metric, epsilon=epsilon, confidence=promise.confidence, slack=promise.slack
    )
    return judged, metric.unit


def audit_asked(
    source: str | None, foreign: Foreign, promise: Promise, key: str | None, how: Source = AS_IT_IS
) -> tuple[AuditReport, str]:
    """Judge a promise by asking a sampler."""
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
        asked = secrets.listed(
            str(foreign.secrets), metric=promise.metric, distances=promise.distances, vectors=foreign.vectors, table=how
        )
        epsilon, slack = promise.level(asked.metric), promise.slack
    else:
        asked, epsilon, slack = _of_file(source, foreign, promise, key)
    if len(asked.points) < 2:
        raise InvalidInput(f"{foreign.secrets!r} holds one secret: nothing can be told apart. Give two or more.")
    with _opened(source, foreign, asked, promise) as draw, progress_line(epsilon, asked.metric.unit) as progress:
        report = metricdp.audit_sampler(
            draw,
            secrets=asked.points if asked.points.dtype.kind != "U" else asked.points[:, 0].tolist(),
            metric=asked.metric,
            epsilon=epsilon,
            confidence=promise.confidence,
            draws=_draws(foreign, promise),
            slack=slack,
            independent=foreign.independent,
            progress=progress,
        )
    return report, asked.metric.unit


def _draws(foreign: Foreign, promise: Promise) -> int:
    several = foreign.independent and "{count}" in f"{foreign.body}{foreign.url}"
    return promise.draws or (FEW_CALLS if foreign.url is not None and not several else 100_000)


def _of_file(source: str, foreign: Foreign, promise: Promise, key: str | None) -> tuple[secrets.Listed, float, float]:
    """Return the secrets and the promise of a mechanism file, which a JavaScript module is asked to keep."""
    from metricdp.artifacts import inspect as open_file

    mechanism = open_file(source, judged=False, trusted=key).mechanism
    kept, space, finite = mechanism.guarantee, mechanism.inputs, mechanism.inputs.finite
    listed = None if finite is None else given(finite, FiniteSpace, "inputs")
    if promise.metric is not None or promise.distances is not None:
        raise InvalidInput("a mechanism file brings its metric: leave --metric and --distances away.")
    epsilon = kept.epsilon if promise.epsilon is None else parse_epsilon(promise.epsilon, kept.unit)
    slack = max(promise.slack, kept.slack)
    if foreign.secrets is not None:
        found = secrets.listed(foreign.secrets, metric=None, distances=None, vectors=None)
        rows, columns = found.points, found.columns
    elif listed is not None:
        chosen = np.unique(np.linspace(0, len(listed) - 1, min(len(listed), MOST_SECRETS)).astype(int))
        rows, columns = np.asarray(space.decode(chosen)), space.columns
    else:
        raise InvalidInput("this mechanism takes any value: name the ones to ask about with --secrets points.csv.")
    metric = space.metric
    if listed is not None:  # distances are between codes, what is asked and answered are values
        measured = listed.points[np.asarray(space.encode(rows))]
        metric = secrets.looked_up(rows, pairwise(metric, measured, measured), source, unit=kept.unit)
    return secrets.Listed(rows, columns, metric), epsilon, slack


@contextmanager
def _opened(
    source: str | None, foreign: Foreign, asked: secrets.Listed, promise: Promise
) -> Iterator[Callable[[Any, int], Points]]:
    """Start a sampler and end it, whatever happens in between."""
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
            _draws(foreign, promise), len(asked.points), independent=foreign.independent, probes=PROBED
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
    if len(points) < 100:
        return
    kinds = [len(np.unique(part, axis=0)) for part in (points, reports)]
    if 2 * kinds[0] > len(points) and 10 * kinds[1] < len(points):
        terminal.say(
            f"note: there are {kinds[0]:,} different secrets and only {kinds[1]:,} different reports: are --secret and "
            "--report exchanged?",
            stream=sys.stderr,
        )


@contextmanager
def progress_line(claimed: float, unit: str) -> Iterator[Callable[[float, float], None] | None]:
    """Show on a terminal's error stream how far an audit is and what is known of epsilon."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    text = terminal.plain_column("{task.description}"), terminal.plain_column("{task.fields[bound]}")
    per = f" per {unit}" if unit else ""
    with Progress(text[0], BarColumn(bar_width=20), TimeElapsedColumn(), text[1], console=Console(stderr=True),
                  transient=True) as bar:  # fmt: skip
        task = bar.add_task("Asking", total=1.0, bound="nothing known yet")

        def show(share: float, bound: float) -> None:
            known = "infinite" if math.isinf(bound) else wording.number(bound, 3, "down")
            bar.update(task, completed=share, bound=f"epsilon at least {known}{per}, claimed {claimed:.6g}")

        yield show
