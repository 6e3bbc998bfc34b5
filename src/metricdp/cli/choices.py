"""From words on the command line to metrics, spaces, priors and mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from cyclopts import Parameter

import metricdp
from metricdp import wording
from metricdp.arrays import Integers
from metricdp.cli import tables
from metricdp.cli.elastic import NOT_ELASTIC, Elastic
from metricdp.cli.embeddings import AS_THEY_ARE, Vectors
from metricdp.cli.policies import NO_POLICY, Ground, Policy
from metricdp.cli.shaping import SHAPES, shaped
from metricdp.cli.terminal import note
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import AnyGuarantee, ConcentratedGuarantee, Mechanism, pure
from metricdp.mechanisms.concentrated import rho_for
from metricdp.metrics import METRICS, Metric, earth_of, exponent_of
from metricdp.spaces import FiniteSpace
from metricdp.units import Wish, how_to_write, parse_distance, parse_epsilon, parse_rho, parse_wish

if TYPE_CHECKING:
    from metricdp.cli.reading import PointFile  # pyarrow is imported where something is read

Progress = Callable[[float], None]


def _file_name(_: object, value: object) -> None:
    """Refuse an option in the place of a file; - alone is standard input or output."""
    if isinstance(value, str) and value.startswith("-") and value != "-":
        raise ValueError(f"A file is expected here, and {value} reads as an option; a file of that name is ./{value}.")


Output = Annotated[str, Parameter(name=["--output", "-o"], allow_leading_hyphen=True, validator=_file_name)]
Input = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_file_name)]
Corners = Annotated[str, Parameter(allow_leading_hyphen=True)]  # such as -8.7,41.1,...
Epsilon = Annotated[str, Parameter(name="--epsilon", allow_leading_hyphen=True)]  # so that -1 gets our own answer


def metric_named(name: str) -> Metric:
    """Return the metric a name stands for; `haversine:mi` and `l2:m` name the unit of its distances too."""
    if "=" in name:
        return shaped(name)
    word, colon, unit = name.strip().partition(":")
    words = METRICS.words()
    found = words.get(word.strip().lower())
    if found is None:
        raise InvalidInput(f"unknown metric {word!r}: use one of {', '.join([*words, *SHAPES])}.")
    metric: Any = found()
    if colon and (not unit.strip() or not is_dataclass(metric)):
        raise InvalidInput(f"--metric {name} names no unit that {word} can take; write haversine:mi, or {word} alone.")
    chosen: Metric = replace(metric, unit=unit.strip()) if colon else metric
    return chosen


@dataclass(frozen=True)
class Level:
    """How much may leak: an epsilon, or a wish that whatever is built has to keep, its slack included."""

    asked: float | Wish

    def epsilon(self, slack: Callable[[float], float] | float = 0.0) -> float:
        """Return the epsilon that was named, or the largest one that keeps the wish with such a slack."""
        return self.asked.epsilon(slack) if isinstance(self.asked, Wish) else self.asked

    def kept(self, stated: AnyGuarantee) -> list[str]:
        """Return the sentence that compares a promise with the wish, where there was one; raise where it is broken."""
        if not isinstance(self.asked, Wish):
            return []
        promise = pure(stated, "--protect")
        outside = promise.radius is not None and self.asked.distance > promise.radius
        if outside or not self.asked.kept(promise.epsilon, promise.slack):
            raise NotPrivate(
                f"the promise allows more than the factor {self.asked.level:g} asked for at {self.asked.distance:g} "
                f"{promise.unit}: {promise}. Nothing was written."
            )
        return [wording.wish(promise, self.asked.level, self.asked.distance)]


@dataclass(frozen=True)
class ConcentratedLevel:
    """How much may leak where the promise is concentrated: a rho, or a wish with the delta it may be broken with."""

    rho: float
    wish: Wish | None = None
    delta: float = 0.0

    def kept(self, promise: AnyGuarantee) -> list[str]:
        """Return the sentence that compares a promise with the wish, where there was one; raise where it is broken."""
        if self.wish is None:
            return []
        if not isinstance(promise, ConcentratedGuarantee):
            raise InvalidInput("--set delta=... is for concentrated promises.")
        if not promise.delta_at(self.wish.distance, math.log(self.wish.level)) <= self.delta * (1.0 + 1e-9):
            raise NotPrivate(f"the promise does not keep what was asked for: {promise}. Nothing was written.")
        return [wording.concentrated_wish(promise, self.wish.level, self.wish.distance, self.delta)]


NO_EPSILON = (
    "Gaussian noise has a concentrated promise, which is approximate and has no epsilon per unit: say what it keeps at "
    "a distance with --protect 2x@200m --set delta=1e-6, or name --set rho=0.35/km2."
)


def concentrated_level(own: Mapping[str, Any], protect: str | None, unit: str) -> ConcentratedLevel:
    """Return what `--set rho=...`, or `--protect` with `--set delta=...`, asks for."""
    if "rho" in own and protect is None and "delta" not in own:
        return ConcentratedLevel(parse_rho(own["rho"], unit))
    if "rho" in own or protect is None or "delta" not in own:
        raise InvalidInput(NO_EPSILON)
    wish = parse_wish(protect, unit)
    return ConcentratedLevel(rho_for(wish.level, wish.distance, own["delta"]), wish, own["delta"])


def level_from(epsilon: str | None, protect: str | None, unit: str) -> Level:
    """Return what `--epsilon` or `--protect` asks for."""
    if (epsilon is None) == (protect is None):
        how = (
            how_to_write(unit)
            if unit
            else "Write --epsilon 1.0, or --protect 2x@0.5 for a factor of two at distance 0.5."
        )
        raise InvalidInput(f"say how much may leak, with either --epsilon or --protect. {how}")
    return Level(parse_epsilon(epsilon, unit) if epsilon is not None else parse_wish(str(protect), unit))


def resumable(work: Callable[..., Any]) -> Callable[..., Any]:
    """Let an interruption say how the job goes on."""

    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return work(*arguments, **options)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted: the parts that are done stay; continue with --resume") from None

    return run


@dataclass(frozen=True, eq=False)
class Places:
    """The secrets, and which of them every row of the file of points stands for, where rows were merged."""

    space: FiniteSpace
    rows: Integers | None = None
    where: Where | None = None
    before: FiniteSpace | None = None  # in distances of their own, where the promise counts levels


@dataclass(frozen=True)
class Where:
    """Where secrets are: the points of a file, the crossings of a road network, or the cells of a map.

    Attributes:
        points: A table (`metricdp formats`) with one point a row and one coordinate a column (or lat, lon).
        metric: Its name (`metricdp metrics` lists them), with a unit where wanted: l2, haversine:mi; lat and lon mean
            haversine. On roads distances run along the roads, in km.
        roads: Instead of points: a GraphML file as osmnx writes it, a folder with the tables nodes and edges (.parquet
            or .csv), or a city of the data folder such as rome.
        nodes: With roads: so many crossings around the centre, instead of all.
        grid: Instead of points: two corners of a map, south,west,north,east in degrees, such as
            41.8,12.4,42.0,12.6; its cells are the secrets, each at its middle. With --metric l2 they are x,y,x,y.
        cell: With grid: how wide and high a cell is, such as 200m.
        vectors: Instead of points: a file of word vectors (GloVe, word2vec, fastText, .npz, safetensors or Parquet),
            several with commas between, or bundled, for 2,161 English words to try things with. Its words are the
            secrets.
        words: With vectors: so many of its first words, or a file with one word a line. Without: the words of a file,
            measured by their spelling.
        policy: Which of them must be hidden from each other.
        levels: How far a place is hidden, where that is not a distance.
        table: How the points are read.
    """

    points: str | None = None
    metric: str | None = None
    roads: str | None = None
    nodes: int | None = None
    grid: Corners | None = None
    cell: str | None = None
    vectors: str | None = None
    words: str | None = None
    policy: Annotated[Policy, Parameter(name="*")] = NO_POLICY
    levels: Annotated[Elastic, Parameter(name="*")] = NOT_ELASTIC
    table: Annotated[tables.Source, Parameter(name="*")] = tables.AS_IT_IS

    def space(self) -> FiniteSpace:
        """Return the space of them."""
        return self.places().space

    def places(self) -> Places:
        """Return them, and what became of the rows of a file; a note is said where some are one place."""
        self._check()
        found = self._found()
        if self.policy.policy is None and self.levels.elastic is None:
            return found
        sides = None if self.grid is None else sides_of(found.space)
        ground = Ground(found.space, found.rows, self.points, sides, self.table.reading())
        if self.levels.elastic is not None:
            return replace(found, space=self.levels.laid_over(ground), before=found.space)
        return replace(found, space=self.policy.laid_over(ground))

    def _found(self) -> Places:
        if self.points is not None:
            besides = (*self.policy.besides, *self.levels.besides)
            return replace(places_from(self.points, self.metric, self.table, besides=besides), where=self)
        if self.are_words:
            from metricdp.cli.lexicon import word_space

            metric = None if self.metric is None else metric_named(self.metric)
            return Places(word_space(self.vectors, self.words, metric), where=self)
        if self.grid is not None:
            return Places(cells(self.grid, str(self.cell), self.metric), where=self)
        return Places(metricdp.road_network(str(self.roads), nodes=self.nodes), where=self)

    def _check(self) -> None:
        given = [name for name in ("points", "roads", "grid", "vectors") if getattr(self, name) is not None]
        given = given or (["words"] if self.words is not None else [])
        if len(given) != 1:
            found = " and ".join(f"--{name}" for name in given) or "none of them"
            raise InvalidInput(
                "say where secrets are, with either --points cells.csv, or --roads and a city, a folder or a GraphML "
                f"file, or --grid 41.8,12.4,42.0,12.6 --cell 200m, or --vectors glove.npz for words; got {found}."
            )
        if self.words is not None and given[0] not in ("vectors", "words"):
            raise InvalidInput(f"--words is for words, alone or with --vectors; leave it away with --{given[0]}.")
        if self.nodes is not None and self.roads is None:
            raise InvalidInput(f"--nodes counts crossings and belongs to --roads; leave it away with --{given[0]}.")
        if self.metric is not None and self.roads is not None:
            raise InvalidInput("--metric belongs to --points: with --roads distances run along the roads, in km.")
        if (self.cell is None) != (self.grid is None):
            raise InvalidInput("--grid and --cell belong together, such as --grid 41.8,12.4,42.0,12.6 --cell 200m.")
        self.policy.check()
        self.levels.check()
        if self.policy.policy is not None and self.levels.elastic is not None:
            raise InvalidInput("--policy counts hops and --elastic levels: a promise is in one of them.")
        if self.levels.elastic is not None and self.are_words:
            raise InvalidInput("--elastic grows around places on a map; words have none.")

    @property
    def are_words(self) -> bool:
        """Whether secrets are words."""
        return self.vectors is not None or self.words is not None

    @property
    def named(self) -> str | None:
        """The file or folder that was named."""
        return self.points or self.roads or self.vectors or self.words

    def called(self, space: FiniteSpace) -> str:
        """Return what they are and how many."""
        kind = "crossings" if self.roads is not None else "cells" if self.grid is not None else "points"
        kind = "words" if self.are_words else kind
        return f"{len(space):,} {kind}"


NOWHERE = Where()


MOST_CELLS = 1_000_000


def cells(corners: str, size: str, metric: str | None) -> FiniteSpace:
    """Return the middles of the square cells that cover a map: `south,west,north,east` on the Earth, else x,y,x,y."""
    chosen = metric_named(metric or "haversine")
    earth = earth_of(chosen)
    names = ("lat", "lon") if earth else ("x", "y")
    try:
        low, high = np.array([float(part) for part in corners.split(",")]).reshape(2, 2)
    except ValueError:
        meaning = "south,west,north,east in degrees" if earth else "x,y of two corners"
        raise InvalidInput(
            f"--grid must be four numbers, {meaning}, such as 41.8,12.4,42.0,12.6; got {corners!r}."
        ) from None
    if not np.all(low < high):
        axis = names[int(np.argmin(high - low))]
        raise InvalidInput(
            f"--grid names the lower corner first, then the upper one: {axis} does not grow in {corners!r}."
            + (" Latitudes come before longitudes." if earth else "")
        )
    side = distance_in(size, chosen.unit, "cell")
    if not side > 0:
        raise InvalidInput(f"--cell must be a distance above 0, got {size!r}.")
    lengths = high - low
    if earth is not None:
        chosen.check(np.stack([low, high]))
        widest = np.cos(np.radians(min(abs(low[0]), abs(high[0])) if low[0] * high[0] > 0 else 0.0))
        lengths = lengths * earth.degree * np.array([1.0, widest])
    count = np.maximum(np.ceil(lengths / side - 1e-9), 1.0)
    if not 2 <= count.prod() <= MOST_CELLS:
        raise InvalidInput(
            f"--cell {size} makes {count.prod():,.0f} cells of {lengths[0]:.4g} x {lengths[1]:.4g} {chosen.unit}; "
            f"from 2 to {MOST_CELLS:,} can be designed for: take {'smaller' if count.prod() < 2 else 'larger'} ones."
        )
    middle, shape = (low + high) / 2, (int(count[0]), int(count[1]))
    steps = np.full(2, side)
    if earth is not None:
        steps = steps / (earth.degree * np.array([1.0, np.cos(np.radians(middle[0]))]))
    corner = middle - steps * (count - 1) / 2
    made = metricdp.grid(shape, spacing=side, origin=corner, metric=chosen)
    return FiniteSpace(made.points, chosen, columns=names)


def cell_radius(where: Where | None, space: FiniteSpace) -> float:
    """Return how far a position of a map lies from the middle of its cell at most; zero where secrets are no cells."""
    if where is None or where.cell is None:
        return 0.0
    if space.cell_radius is not None:
        return space.cell_radius
    side, middles = distance_in(where.cell, space.ground.unit, "cell"), np.asarray(space.coordinates, dtype=np.float64)
    steps = np.full(2, side)
    earth = earth_of(space.ground)
    if earth is not None:
        middle = (middles[:, 0].min() + middles[:, 0].max()) / 2
        steps = steps / (earth.degree * np.array([1.0, np.cos(np.radians(middle))]))
    single = np.ptp(middles, axis=0) == 0  # one row or one column: another one beside it shows how wide cells are
    found = None
    if single.any():
        found = FiniteSpace(np.concatenate([middles, middles + steps * single]), space.ground).cell_radius
    if found is not None:
        return found
    scale = 1.0 if earth is None else earth.degree
    return float(scale * steps.sum() / 2.0)  # along one axis, then along the other


def sides_of(space: FiniteSpace) -> tuple[int, int]:
    """Return how many rows and columns the cells of a map have."""
    rows = len(np.unique(space.points[:, 0]))
    return rows, len(space) // rows


def distance_in(text: str, unit: str, option: str) -> float:
    """Return a distance of the command line; where distances have a unit it has to name one."""
    if unit and not text.strip()[-1:].isalpha():
        raise InvalidInput(f"--{option} {text} has no unit, and distances here are in {unit}: write {text}{unit}.")
    return parse_distance(text, unit)


def space_from(points: str, metric: str | None, table: tables.Source = tables.AS_IT_IS) -> FiniteSpace:
    """Return the space of the points in a file, one secret a row; latitude and longitude are measured on the Earth."""
    found, chosen = _measured(points, metric, table)
    return FiniteSpace(found.points, chosen, columns=found.columns)


def _measured(
    points: str, metric: str | None, table: tables.Source, besides: Sequence[str] = ()
) -> tuple[PointFile, Metric]:
    """Return the points of a file and the metric between them."""
    from metricdp.cli.reading import read_points

    found = read_points(points, table.names, table.reading(), yes_really=table.yes_really, besides=besides)
    text = found.points.dtype.kind == "U"
    if metric is None:
        metric = "haversine" if found.geographic else "levenshtein" if text else "l2"
    chosen = metric_named(metric)
    if found.geographic and exponent_of(chosen) is not None:
        raise InvalidInput(
            f"{points!r} holds degrees ({', '.join(found.columns)}), which {metric} would take for lengths: use "
            "--metric haversine, or rename the columns to x and y if they are lengths."
        )
    return found, chosen


def places_from(
    points: str, metric: str | None, table: tables.Source = tables.AS_IT_IS, *, besides: Sequence[str] = ()
) -> Places:
    """Return the points in a file, rows that are one place merged; columns `besides` say something else about them."""
    found, chosen = _measured(points, metric, table, besides)
    _, first, inverse = np.unique(found.points, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(found.points):
        return Places(FiniteSpace(found.points, chosen, columns=found.columns))
    if len(first) == 1:
        raise InvalidInput(f"all rows of {points!r} are one point: a mechanism needs at least two places.")
    order = np.argsort(first)  # places stay in the order in which the file names them
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    note(
        f"rows of {points} that repeat a point: {len(found.points) - len(first):,} of {len(found.points):,}. They are "
        f"merged, which leaves {len(first):,} places; what a prior gives to their rows is added up."
    )
    return Places(FiniteSpace(found.points[np.sort(first)], chosen, columns=found.columns), rank[inverse.ravel()])


def seeded(seed: int | None) -> np.random.Generator | None:
    """Return a generator for simulations, where a seed was asked for."""
    return None if seed is None else np.random.default_rng(seed)


def mechanism_in(path: str, *, trusted: str | None) -> Mechanism:
    """Return the mechanism of a file."""
    from metricdp.artifacts import load

    return load(path, trusted=trusted)


def noise_for(level: Level, metric: Metric, dimension: int | None, vectors: Vectors = AS_THEY_ARE) -> Mechanism:
    """Return Laplace noise at the epsilon asked for, or at the one that keeps a wish."""
    matrix = vectors.matrix()
    return metricdp.laplace(
        metric, level.epsilon(), dimension=dimension, normalise=vectors.normalise, projection=matrix
    )
