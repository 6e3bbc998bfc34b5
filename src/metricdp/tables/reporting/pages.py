"""From what was done to a table to the page that tells it and the record that programs read.

All of it is public: what is guaranteed, what follows from the distribution, and what was released. True values are
there only where `Preview` was asked to keep them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from metricdp import messages
from metricdp.arrays import Floats, Points
from metricdp.auditing.accuracy import Radius, radii_of
from metricdp.auditing.distributions import describe_distribution, distribution_of
from metricdp.auditing.leakage import has_rows
from metricdp.auditing.loss import counts_distance
from metricdp.files import replace_file
from metricdp.mechanisms import Mechanism, require_pure
from metricdp.metrics import distance_phrase, points_are
from metricdp.plots.release import (
    Example,
    NoiseDistribution,
    ReleaseScene,
    SceneKind,
    ShareOfBudget,
    TableRelease,
    WordExample,
)
from metricdp.plots.release_page import OWN_LEVEL
from metricdp.rendering import add_old_fields, file_name, json_text
from metricdp.spaces import FiniteSpace, Space, require_space
from metricdp.tables.batch import secrets_of
from metricdp.tables.people import BudgetLevel, Spending
from metricdp.tables.pipeline import ProtectedBatch
from metricdp.tables.plan import ColumnGroup, TableTask, is_geographic
from metricdp.tables.results import Summary
from metricdp.tables.values import rows_of, whole

PAGE = ("the page of a protected table", "Leave the page out: what is printed says what such a guarantee keeps")

TITLE = "metricdp: metric differential privacy, designed, proven and applied"
AUTHORS = "The metricdp maintainers"
CURVE: tuple[float, ...] = tuple(np.round([*np.arange(0.02, 0.97, 0.03), 0.95, 0.97, 0.98, 0.99, 0.995], 3).tolist())
EXAMPLE_DRAWS, EXAMPLE_WORDS, MOST_WORDS, MOST_LIKELY = 400, 4, 12, 5


def release_of(
    summary: Summary,
    mechanism: Mechanism,
    preview: Preview,
    *,
    repeat: Sequence[str] = (),
    files: Sequence[tuple[str, str]] = (),
) -> TableRelease:
    """Return what the page of a protected table tells."""
    guarantee, people = require_pure(summary.guarantee, *PAGE), summary.people
    spread = summary.spending if summary.spending is not None and summary.spending.is_spread else None
    lines = [messages.row_guarantee(guarantee) if spread is None else messages.allocation_guarantee(guarantee)]
    groups = _noisiest_groups(preview, spread)
    if summary.snapping is not None:
        lines.append(messages.snapping_cost(summary.snapping, guarantee))
    return TableRelease(
        title=f"{file_name(summary.source)}, protected",
        guarantee=guarantee,
        mechanism=mechanism.certificate.method,
        rows=summary.written,
        columns=summary.columns,
        scenes=tuple(
            _scene(replace(group_preview, group=group))
            for group_preview, group in zip(preview.groups, groups, strict=True)
        ),
        distributions=tuple(_noise_curve(group, spread) for group in groups),
        person=""
        if people is None and spread is None
        else messages.epsilon(summary.composed_epsilon or 0.0, guarantee.unit),
        together=summary.reach_together(),
        whole_history=messages.uncounted_rows() if people is None else " ".join(summary.whole_history()),
        people=(*summary.composition(), summary.again()),
        kept=summary.kept_columns,
        remarks=tuple(_remarks(summary)),
        promise=tuple(lines),
        files=tuple(files),
        repeat=tuple(repeat),
        citation=citation(),
        simulated=messages.simulated() if summary.simulated else "",
        shares=() if spread is None else tuple(_budget_share(level, guarantee.unit) for level in spread.released),
    )


def _noisiest_groups(preview: Preview, spread: Spending | None) -> list[ColumnGroup]:
    """Return the groups whose noise the page describes: where rows have several, the one with the most noise."""
    if spread is None:
        return [group_preview.group for group_preview in preview.groups]
    levels = spread.released or spread.levels
    return [
        max((level.task.groups[number] for level in levels), key=lambda group: _own_radius(group).value)
        for number in range(len(preview.groups))
    ]


def _own_radius(group: ColumnGroup) -> Radius:
    return radii_of(group.mechanism, [OWN_LEVEL])[0]


def _budget_share(level: BudgetLevel, unit: str) -> ShareOfBudget:
    found = [(_own_radius(group), group.snap) for group in level.task.groups]
    radii = tuple(messages.length(radius.value + snap, radius.unit) for radius, snap in found)
    return ShareOfBudget(level.rows, level.persons, messages.epsilon(level.amount, unit), radii)


def distribution_record(summary: Summary, mechanism: Mechanism) -> dict[str, Any]:
    """Return the distribution of the noise as plain values; where a budget was spread, of every share too."""
    distribution = describe_distribution(mechanism, snap=summary.snap)
    if summary.spending is not None and summary.spending.is_spread:
        distribution["shares"] = [
            add_old_fields({"rows": one.rows, "distribution": made}, law="distribution")
            for one in summary.spending.released
            for made in [describe_distribution(one.task.mechanism, snap=summary.snap)]
        ]
    return distribution


def record_of(summary: Summary, distribution: dict[str, Any]) -> dict[str, Any]:
    """Return what was done to a table as plain values that JSON holds; `metricdp.schema.json` says what each is.

    `distribution` is what `distribution_record` returns.
    """
    record = summary.to_dict() | {"distribution": distribution}
    old = record["guarantee"] | {"words": record["guarantee"]["sentence"]}
    return add_old_fields(record, rows="counts", law="distribution") | {"promise": old}


def _remarks(summary: Summary) -> list[str]:
    """Return what is said of the columns that stayed, to be shown to others.

    What was found by looking at values depends on the secrets and is for the owner of the table; so is which rows
    were bad. What names alone suggest is there for all to see.
    """
    lines = summary.trimmed()
    lines += messages.found_columns([one for one in summary.findings if one.evidence == "name"])[:-1]
    return [*lines, *([messages.dropped_metadata(summary.dropped)] if summary.dropped else []), *summary.notes]


def write_record(record: dict[str, Any], path: str | Path) -> Path:
    """Write plain values as JSON; a failed write leaves no half file."""
    with replace_file(path) as partial:
        partial.write_text(json_text(record, ascii_only=False) + "\n", encoding="utf-8")
    return Path(path)


def citation() -> tuple[str, str]:
    """Return how metricdp is cited, as text and as BibTeX: what CITATION.cff says."""
    now = version("metricdp")
    text = f"{AUTHORS}. {TITLE}. Version {now}. Please cite the papers behind the mechanism as well."
    entry = (
        f"@software{{metricdp,\n  author = {{{{{AUTHORS}}}}},\n  title = {{{{{TITLE}}}}},\n  version = {{{now}}}\n}}"
    )
    return text, entry


def _noise_curve(group: ColumnGroup, spread: Spending | None) -> NoiseDistribution:
    mechanism, levels = group.mechanism, sorted(CURVE)
    radii = radii_of(mechanism, levels)
    certificate, guarantee = mechanism.certificate, mechanism.guarantee
    is_distance = counts_distance(mechanism)
    if spread is not None and is_distance:
        sentence = messages.allocation_loss(spread, guarantee.unit)
    else:
        about = {"is_distance": is_distance, "at_most": certificate.at_most}
        sentence = messages.loss(certificate.loss, guarantee.unit, certificate.objective, **about)
    if guarantee.along:
        sentence += f" Such distances run{guarantee.along}."
    if group.snap and mechanism.inputs.same_ground:  # elsewhere the two distances do not add
        sentence += " " + messages.snapped_loss(group.snap, mechanism.inputs.ground.unit)
    formula = distribution_of(mechanism).density["formula"]
    return NoiseDistribution(
        curve=tuple((one.level, one.value + group.snap) for one in radii),
        unit=radii[0].unit,
        measured=distance_phrase(radii[0].metric),
        formula=f"{formula}; epsilon = {guarantee.epsilon:.6g}{f' per {guarantee.unit}' if guarantee.unit else ''}",
        loss=sentence,
        tight=radii[0].tight and not group.snap,
    )


def _scene(group_preview: GroupPreview) -> ReleaseScene:
    group = group_preview.group
    outputs = group.mechanism.outputs
    if outputs.is_text:
        return ReleaseScene(
            "words",
            group.reports,
            group_preview.total,
            words=tuple(group_preview.words.most_common(MOST_WORDS)),
            word_examples=tuple(_word_examples(group.mechanism)),
        )
    rows, true = group_preview.rows(), group_preview.secrets()
    if true is not None:
        some = np.unique(np.linspace(0, len(rows) - 1, min(MOST_SECRETS, len(rows))).astype(int))
        rows, true = rows[some], true[some]
    kind: SceneKind = "map" if is_geographic(outputs) else ("none", "line", "plane")[min(2, outputs.width)]
    if outputs.width > 2 or not len(rows):
        kind = "none"
    return ReleaseScene(
        kind,
        group.reports,
        group_preview.total,
        reports=rows,
        streets=_streets(outputs),
        example=_example(group, rows) if kind in ("map", "plane") else None,
        true=true,
        unit=group.mechanism.inputs.ground.unit,
    )


def _streets(space: Space) -> tuple[Floats, ...]:
    """Return the streets between the crossings of a road network, straight: they are public."""
    network, crossings = space.network, cast("Any", space.finite)
    if network is None or crossings is None:
        return ()
    codes = np.full(network.nodes, -1)
    codes[crossings.points[:, 0].astype(int)] = np.arange(len(crossings))
    ends = codes[np.unique(np.sort(network.edges, axis=1), axis=0)]
    coordinates = _places(space)
    return tuple(coordinates[pair] for pair in ends[(ends >= 0).all(axis=1)])


def _example(group: ColumnGroup, reports: Floats) -> Example | None:
    """Return draws for a public place: one of the design in its middle, or a round place amid the reports."""
    mechanism = group.mechanism
    inputs, outputs = mechanism.inputs, mechanism.outputs
    if inputs.size is None and points_are(inputs.ground, "streets"):
        streets: Any = inputs
        place = _places(outputs)
        node = _middle(place)
        crossings = require_space(outputs.finite, FiniteSpace, "outputs").points
        secret = streets.at_crossings(crossings[node : node + 1, 0])
        words = "A crossing of the network, which is public, has the same noise as everybody's position."
        return _draw_example(mechanism, secret, place[node : node + 1], words)
    if inputs.size is not None:
        if inputs.width != outputs.width:
            return None
        places = _places(inputs)
        code = _middle(places)
        words = "A place of the design, which is public, is treated like everybody's."
        return _draw_example(mechanism, np.array([code]), places[code : code + 1], words)
    if inputs.limits is not None:
        place = (0.5 * (inputs.limits[0] + inputs.limits[1]))[None]
        words = "The middle of the box, which is public, is treated like any place."
        return _draw_example(mechanism, place, place, words)
    place = _round_place(reports)
    words = "A round place amid the reports, nobody's position, is treated like everybody's."
    return _draw_example(mechanism, place, place, words)


def _draw_example(mechanism: Mechanism, secret: Any, place: Floats, words: str) -> Example:
    drawn = mechanism.sample(np.repeat(secret, EXAMPLE_DRAWS, axis=0))
    return Example(place, np.asarray(mechanism.outputs.decode(drawn), dtype=np.float64), words)


def _places(space: Space) -> Floats:
    """Return the secrets of a finite space as tables hold them."""
    return np.asarray(space.decode(np.arange(space.size or 0)), dtype=np.float64)


def _middle(places: Floats) -> int:
    return int(np.square(places - np.median(places, axis=0)).sum(axis=1).argmin())


def _round_place(reports: Floats) -> Floats:
    """Return the middle of the reports, rounded to what can still be told apart in a picture of them."""
    middle = np.median(reports, axis=0)
    spread = np.quantile(reports, 0.9, axis=0) - np.quantile(reports, 0.1, axis=0)
    steps = 10.0 ** np.floor(np.log10(np.maximum(spread, 1e-6)) - 1.0)
    return np.asarray(np.round(middle / steps) * steps)[None]


def _word_examples(mechanism: Mechanism) -> list[WordExample]:
    """Return what some words of the vocabulary, evenly picked, may be reported as."""
    if mechanism.inputs.size is None or mechanism.outputs.size is None or not mechanism.inputs.is_text:
        return []
    words, reports = (
        [" ".join(row) for row in space.decode(np.arange(size)).tolist()]
        for space, size in ((mechanism.inputs, mechanism.inputs.size), (mechanism.outputs, mechanism.outputs.size))
    )
    codes = np.unique(np.linspace(0, len(words) - 1, EXAMPLE_WORDS + 2)[1:-1].astype(int))
    found = []
    for code in codes:
        if has_rows(mechanism):
            probabilities = np.exp(mechanism.log_density(np.full(len(reports), code), np.arange(len(reports))))
        else:
            drawn = mechanism.sample(np.full(2_000, code))
            probabilities = np.bincount(drawn, minlength=len(reports)) / 2_000
        found.append(word_example(words[code], reports, probabilities))
    return found


def word_example(word: str, reports: Any, probabilities: Floats) -> WordExample:
    """Return a word with its likeliest reports."""
    best = np.argsort(-probabilities, kind="stable")[:MOST_LIKELY]
    return WordExample(word, tuple((str(reports[k]), float(probabilities[k])) for k in best if probabilities[k] > 0))


MOST_ROWS = 20_000  # reports that are kept for a picture
MOST_SECRETS = 260  # true positions that are drawn where they were asked for


@dataclass
class GroupPreview:
    """Some reports of one group, evenly picked from all, and words with their numbers; `true` row by row with them."""

    group: ColumnGroup
    total: int = 0
    reports: list[Floats] = field(default_factory=list)
    true: list[Floats] = field(default_factory=list)
    words: Counter[str] = field(default_factory=Counter)
    stride: int = 1

    def rows(self) -> Floats:
        """Return the reports as rows of numbers."""
        return _join(self.reports, self.group.mechanism.outputs.width)

    def secrets(self) -> Floats | None:
        """Return the true values of those rows, where they were kept."""
        return _join(self.true, self.group.mechanism.outputs.width) if self.true else None


class Preview:
    """Told every batch of a file as it is written (`watch` of a `Job`); memory does not grow with its length.

    Without `secrets` it looks at what is released and at nothing else.
    """

    def __init__(self, *, secrets: bool = False) -> None:
        self._secrets = secrets
        self.groups: list[GroupPreview] = []

    def __call__(self, task: TableTask, step: ProtectedBatch) -> None:
        self.begin(task)
        for group_preview in self.groups:
            self.add_batch(group_preview, step.result, step.kept if self._secrets else None)

    def released(self, task: TableTask, batch: Any) -> None:
        """Take in reports that lie in a file already (`watch` of a `Job`)."""
        self.begin(task)
        for group_preview in self.groups:
            self.add_batch(group_preview, batch, None)

    def begin(self, task: TableTask) -> None:
        """Make room for what every group of a task reports."""
        if not self.groups:
            self.groups = [GroupPreview(group) for group in task.groups]

    def add_batch(self, group_preview: GroupPreview, released: Any, kept: Any | None) -> None:
        """Take in the reports of one batch, and what is behind them where it is passed in."""
        group, count = group_preview.group, released.num_rows
        columns = [whole(released.column(name)) for name in group.reports]
        if group.mechanism.outputs.is_text:
            group_preview.total += count - columns[0].null_count
            texts = columns[0].cast(pa.string()).drop_null()
            for entry in texts.value_counts().to_pylist():
                group_preview.words[entry["values"]] += entry["counts"]
            return
        width = group.mechanism.outputs.width
        rows = rows_of(columns[0], width, group.reports[0]) if group.packed else _numbers(columns)
        picked = np.arange(count)[(np.arange(count) + group_preview.total) % group_preview.stride == 0]
        picked = picked[np.isfinite(rows[picked]).all(axis=1)]
        group_preview.total += count
        group_preview.reports.append(rows[picked])
        if kept is not None and group.columns == group.reports and group.mechanism.inputs.width == width:
            group_preview.true.append(_true_places(group, kept)[picked])
        while sum(len(part) for part in group_preview.reports) > MOST_ROWS:
            group_preview.reports, group_preview.true = (
                [group_preview.rows()[::2]],
                [true[::2]] if (true := group_preview.secrets()) is not None else [],
            )
            group_preview.stride *= 2


def _true_places(group: ColumnGroup, kept: Any) -> Floats:
    """Return the secrets of rows as tables hold them; where values were snapped, where they were put."""
    secrets = secrets_of([whole(kept.column(name)) for name in group.columns], group)
    places: Points = np.full((kept.num_rows, group.mechanism.inputs.width), np.nan)
    places[secrets.good] = np.asarray(group.mechanism.inputs.decode(secrets.of(secrets.good)), dtype=np.float64)
    return places


def _numbers(columns: list[Any]) -> Floats:
    return np.column_stack([column.cast(pa.float64()).to_numpy(zero_copy_only=False) for column in columns])


def _join(parts: list[Floats], width: int) -> Floats:
    return np.concatenate(parts) if parts else np.empty((0, width))
