"""What is asked for, by names: places, and the options of builders. Nothing heavy is imported here: help needs it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from metricdp.errors import InvalidInput
from metricdp.rendering import plural
from metricdp.tables.options import DEFAULT_READING, Reading

Left = Literal["refuse", "join", "disclose"]
Secrets = Literal["places", "areas"]
USUAL = (
    "a file of edges, areas:COLUMN (of --points), neighbours or neighbours:8 (with --grid), streets (with --roads), "
    "nearest:4, within:300m"
)
STEPS = ("learn", "history", "mechanism")
# what a way to release trips does not know, and why
UNKNOWN = {
    "--predict": ("--predict reports places anywhere", (*STEPS, "places", "snap")),
    "--times": ("--times reports places anywhere", (*STEPS, "places", "snap")),
    "--zones": ("--zones knows nothing of the steps before", STEPS),
}
SHAPE = "such as --requirement 200,4000: 200 within level 1, growing with the square of the level, up to 4000"


@dataclass(frozen=True)
class PlaceSpec:
    """Where secrets are, which of them must be hidden from each other, and how far.

    Attributes:
        points: A table of points, one a row, one coordinate a column (or lat, lon). `metricdp list formats` lists what
            can be read.
        metric: How far places are apart, such as l2 or haversine:mi; `metricdp list metrics` lists the names. lat and
            lon mean haversine. On roads distances run along the roads, in km.
        roads: The crossings of a city such as rome, a folder or a GraphML file. The folder has the tables nodes and
            edges (.parquet or .csv); the GraphML file is one that osmnx writes; a city lies in the data folder.
        nodes: With --roads: take this many crossings around the centre, instead of all.
        grid: The cells of a map between two corners, south,west,north,east. They are in degrees, such as
            41.8,12.4,42.0,12.6; with --metric l2 they are x,y,x,y. A secret lies at the middle of its cell.
        cell: With --grid: how wide and high a cell is, such as 200m.
        vectors: The words of a file of word vectors, such as glove.npz. It is GloVe, word2vec, fastText, .npz,
            safetensors or Parquet; several files with commas between; or bundled, 2,161 English words to try things
            with.
        words: With --vectors: how many of its first words, or a file with one word a line. Without: the words of a
            file, measured by their spelling.
        policy: Which places must be hidden from each other, so that epsilon is per hop. It is a table of edges with the
            columns from and to (rows of the points from 0, or names of their column id) and, where wanted, length; or
            areas:district, all places with the same value in that column of the points; or neighbours, neighbours:8
            (of --grid), streets (of --roads), nearest:4, within:300m.
        bordering: With areas: which areas are neighbours, so that their places are hidden from each other too, one hop
            apart. They are areas that come as near to each other as this distance, such as 500m, or a table of pairs
            with the columns from and to.
        lengths: How long an edge is: hop (the default), or distance, what the places lie apart; epsilon is then per km.
        isolated: With a policy: what becomes of places without an edge: refuse, join (to the nearest), disclose.
        apart: With a policy: what becomes of parts that no edge joins: refuse, join, disclose (reports may reveal it).
        elastic: Count distances in levels, each as far as it takes until enough public mass is inside, so that epsilon
            is per level: one (every place counts one), column:people (that column of the points), or a table of counts
            like that of --prior. Losses stay in the distances of before.
        elastic_column: Which column of that table holds the mass, where there are several.
        requirement: With elastic: how much mass lies within level 1, growing with the square of the level, and where it
            ends, such as 200,4000. Above 4,096 places it must end.
        columns: The columns of the coordinates of the points.
        reading: How the table of the points is read.
        force: Read points that look exchanged, constant or far from all others.
    """

    points: str | None = None
    metric: str | None = None
    roads: str | None = None
    nodes: int | None = None
    grid: str | None = None
    cell: str | None = None
    vectors: str | None = None
    words: str | None = None
    policy: str | None = None
    bordering: str | None = None
    lengths: Literal["hop", "distance"] | None = None
    isolated: Left | None = None
    apart: Left | None = None
    elastic: str | None = None
    elastic_column: str | None = None
    requirement: str | None = None
    columns: Sequence[str] | None = None
    reading: Reading = DEFAULT_READING
    force: bool = False

    @property
    def are_words(self) -> bool:
        """Whether secrets are words."""
        return self.vectors is not None or self.words is not None

    @property
    def source_name(self) -> str | None:
        """The file or folder that was named."""
        return self.points or self.roads or self.vectors or self.words

    @property
    def area_column(self) -> str | None:
        """The column of the points that names areas, where the policy is one of areas."""
        return _column_of(self.policy, "areas")

    @property
    def mass_column(self) -> str | None:
        """The column of the points that holds the mass of an elastic metric."""
        return _column_of(self.elastic, "column")

    def describe(self, count: int) -> str:
        """Return what the places are and how many."""
        kind = "crossing" if self.roads is not None else "cell" if self.grid is not None else "point"
        return plural(count, "word" if self.are_words else kind)

    def check(self) -> None:
        """Refuse places that are named twice or not at all, and options that belong to others."""
        given = [name for name in ("points", "roads", "grid", "vectors") if getattr(self, name) is not None]
        given = given or (["words"] if self.words is not None else [])
        if len(given) != 1:
            found = " and ".join(f"--{name}" for name in given) or "none of them"
            raise InvalidInput(
                "say where secrets are, with either --points cells.csv, or --roads and a city, a folder or a GraphML "
                f"file, or --grid 41.8,12.4,42.0,12.6 --cell 200m, or --vectors glove.npz for words; got {found}."
            )
        if self.words is not None and given[0] not in ("vectors", "words"):
            raise InvalidInput(f"--words is for words, alone or with --vectors: it does not go with --{given[0]}.")
        if self.nodes is not None and self.roads is None:
            raise InvalidInput(f"--nodes counts crossings and belongs to --roads: it does not go with --{given[0]}.")
        if self.metric is not None and self.roads is not None:
            raise InvalidInput("--metric belongs to --points: with --roads distances run along the roads, in km.")
        if (self.cell is None) != (self.grid is None):
            raise InvalidInput("--grid and --cell belong together, such as --grid 41.8,12.4,42.0,12.6 --cell 200m.")
        self._check_policy()
        self._check_elastic()
        if self.policy is not None and self.elastic is not None:
            raise InvalidInput("--policy counts hops and --elastic levels: a promise is in one of them.")
        if self.elastic is not None and self.are_words:
            raise InvalidInput("--elastic grows around places on a map; words have none.")

    def _check_policy(self) -> None:
        if self.policy is None:
            for option in ("bordering", "lengths", "isolated", "apart"):
                if getattr(self, option) is not None:
                    raise InvalidInput(f"--{option} says more about a policy: give --policy, which is {USUAL}.")
        elif self.bordering is not None and self.area_column is None:
            raise InvalidInput("--bordering says which areas are neighbours: it belongs to --policy areas:COLUMN.")

    def _check_elastic(self) -> None:
        if self.elastic is None:
            for option in ("elastic_column", "requirement"):
                if getattr(self, option) is not None:
                    shown = option.replace("_", "-")
                    raise InvalidInput(f"--{shown} says more about --elastic, which is not given.")
        elif self.requirement is None:
            raise InvalidInput(f"--elastic needs --requirement, how much of that mass a level holds, {SHAPE}.")


def _column_of(text: str | None, kind: str) -> str | None:
    """Return the column of `areas:COLUMN` or `column:COLUMN`."""
    word, _, rest = (text or "").partition(":")
    return rest.strip() or None if word == kind else None


@dataclass(frozen=True)
class BuilderOptions:
    """What only some builders take; None where it was not given.

    Attributes:
        prior: A public table that says how likely every place is. It holds shares or counts: one row a place in their
            order, or with the columns of the places (lat and lon), where rows count for the nearest one.
        sensitivity: A table of regions that need more protection: lat, lon, radius (in km) and scale, or tiles south,
            west, north, east and scale, or one scale a place. With scale 0.2 distances there count a fifth, so that
            epsilon does; the loss stays in the places' own distances. It must be public. Or a scale for every category,
            with --categories.
        categories: With sensitivity by category: the category of every place, column:kind of the points, or a table
            with the column category, one row a place in their order, or with lat and lon, where rows count for the
            nearest place; of several the most sensitive counts.
        reach: With sensitivity on more than 4,096 places without streets: the longest single step between two, such as
            250m; ways of such steps count in between.
        error: How far every best guess of a place has to be wrong, for every report, such as 100m, or a file with one
            such number a place. Places are divided into public protection sets (PIVE made sound), and epsilon is per
            diameter of a set, such as 1/diameter. It is a bound for people who follow the prior.
        prior_column: Which column of the prior holds the numbers, where there are several.
        prior_within: How far a row of the prior may lie from its place, such as 300m; rows beyond are left out. As far
            as places lie apart unless given.
        loss: What a report costs: distance, squared, ground, time, or a file with a matrix. distance is the default,
            squared its square, ground the distance on the map (where --policy counts hops), time that to drive there
            (with --roads). A matrix has one row per place and one column per report.
        speed: With --loss time: km/h on streets that do not say how fast they are.
        gap: How far the loss may be from the proven optimum, as a share; for builders that search. The default is 0.05
            on windows and with --anchors refine (see there), elsewhere 0.001.
        seconds: When to stop searching. The best result so far is written, with the gap that it reached.
        objective: expected (the default of optimal and spanner) or worst (that of constopt); for these three.
        solver: auto, interior, first_order or gpu, among others; on windows first_order or gpu; for optimal.
        window: How far from every report rows are stored, such as 2.2km; for optimal, which solves on windows above
            4,096 points or where one is given, and chooses it so that what lies beyond hardly costs.
        reports: finer, for candidate reports between the places as well, on a grid at half its steps: they cost time
            and no privacy, and may lower the loss; for optimal, dictionary and spanner.
        stretch: How much longer paths may be than the distance; for spanner. The published one is --stretch 3
            --objective worst.
        nearest: How many nearest reports are free; for constopt; 10 is the default.
        weights: A CSV file with a header and one positive number a point; for weighted_exponential.
        base: What is remapped: the name of another builder (exponential by default), or a mechanism file.
        parts: The mechanism files of a product, with commas between.
        matrix: A file with one's own matrix, one row per place and one column per report; for from_matrix.
        dimension: How many coordinates noise is added to; for laplace on l1, l2, linf, angular and hyperbolic.
        anchors: Cells along each axis, such as 7,7, or refine, which adds some until the gap is reached; on roads
            pieces of every street, or their longest length such as 200m; for interpolated, like the next four.
        rule: exact, direction or log (as published).
        split: How axes share the budget: even, grid, or one number per axis; searched unless given.
        budget: half (as published) or certified; for --rule log.
        box: The corners of the box, such as 0,0,10,10; the one around all points unless given.
        blocks: Into how many blocks the points are cut; for decomposed, like all that follows.
        partition: How they are cut: balanced, distances, records, neighbours or spectral.
        neighbours: The distance up to which pairs are constrained directly, such as 2km; its detours are charged.
        start: Where it begins: engine or kernels.
        executor: Who solves the blocks: threads, processes, ray, or ray:address.
        checkpoint: A file for the state of a long run.
        resume: Continue from the checkpoint, where there is one.
        set: name=value for an option that only this builder has, such as one of a plugin; may be repeated.
    """

    prior: str | None = None
    sensitivity: str | None = None
    categories: str | None = None
    reach: str | None = None
    error: str | None = None
    prior_column: str | None = None
    prior_within: str | None = None
    loss: str | None = None
    speed: float | None = None
    gap: float | None = None
    seconds: float | None = None
    objective: Literal["expected", "worst"] | None = None
    solver: str | None = None
    window: str | None = None
    reports: Literal["finer"] | None = None
    stretch: float | None = None
    nearest: int | None = None
    weights: str | None = None
    base: str | None = None
    parts: str | None = None
    matrix: str | None = None
    dimension: int | None = None
    anchors: str | None = None
    rule: str | None = None
    split: str | None = None
    budget: str | None = None
    box: str | None = None
    blocks: int | None = None
    partition: str | None = None
    neighbours: str | None = None
    start: str | None = None
    executor: str | None = None
    checkpoint: str | None = None
    resume: bool = False
    set: tuple[str, ...] = ()

    def given(self) -> dict[str, Any]:
        """Return the options that were given."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value for name, value in values.items() if value is not None and value is not False and value != ()
        }


NO_OPTIONS = BuilderOptions()


@dataclass(frozen=True)
class WordSpec:
    """Which words there are, and how they are protected.

    Attributes:
        vectors: A public file of word vectors, such as glove.npz, or bundled. It is GloVe, word2vec, fastText, .npz,
            safetensors or Parquet, several with commas between. bundled has 2,161 English words to try things with.
        words: How many of the first words of that file (files are in the order of frequency), or a file with one word a
            line.
        metric: How words are measured: l2 (the default), angular, or another of `metricdp list metrics`.
        epsilon: How much a word may leak per distance.
        builder: exponential, truncated_exponential, madlib or another of `metricdp list builders`
            that is made for words.
        mechanism: Instead: a mechanism file from `metricdp design --vectors`.
        key: A public key file: the mechanism file is refused unless this key signed it.
    """

    vectors: str | None = None
    words: str | None = None
    metric: str | None = None
    epsilon: str | None = None
    builder: str | None = None
    mechanism: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class OriginSpec:
    """What made the reports that are decoded, and on which cells densities are wanted.

    Attributes:
        mechanism: The mechanism file that the reports were drawn with; said again for every further one.
        epsilon: Instead: the epsilon of Laplace noise, such as 10/km; it needs --grid and --cell. Said again likewise.
        which: The column that names the mechanism of every row, by its file's name or by its epsilon. Who was given
            which must not depend on the secret.
        metric: The metric of that noise, as for `metricdp perturb`.
        grid: For noise on places anywhere: two corners of a map, as for `metricdp design`. Secrets outside it are
            counted as elsewhere.
        cell: With grid: how wide and high a cell is, such as 1km.
        within: For noise: where in its cell a secret lies. anywhere assumes nothing, cell assumes all over it with
            equal probability, point at its middle.
        key: A public key file: the mechanism file is refused unless this key signed it.
    """

    mechanism: Sequence[str] | None = None
    epsilon: Sequence[str] | None = None
    which: str | None = None
    metric: str = "haversine"
    grid: str | None = None
    cell: str | None = None
    within: Literal["anywhere", "cell", "point"] | None = None
    key: str | None = None


@dataclass(frozen=True)
class TripSpec:
    """How trips are released, and what a report may leak.

    Attributes:
        epsilon: How much one report may leak per distance, such as 0.5/km. It is for a place together with its history;
            with `--predict` for a fresh report; with `--zones` and `--times` for a place.
        places: What may be reported: a file with lat and lon, or a city or folder of roads. Of roads `--count`
            crossings are taken that cover the network. With `--predict` and `--times` any position may be reported.
        predict: How reports are predicted from those before, parrot or linear.
        total: With `--predict`: how much a whole trip may leak per distance, such as 40/km. After that it has no
            more reports.
        count: How many crossings of a road network become places.
        step: Seconds between two reports of a trip.
        weights: How much each step back counts in the distance, the latest first, with commas between.
        snap: How far a fix may lie from its place, such as 800m; as far as places lie apart unless given.
        speed: The fastest anyone drives, in km/h.
        learn: Count in this very table how places follow each other, at this budget for every whole trip.
        history: Count that in another file, which is taken as public.
        zones: Report coarsely in zones: home, or a file of public centres. Elsewhere reports are precise, over
            --places. `home` puts a zone around a report of every person's home, where their trips stay longest; a file
            with lat and lon has public centres, such as those of districts.
        zone_radius: How far a zone reaches.
        zone_scale: How much distances count inside a zone, above 0 and at most 1.
        centre_epsilon: With --zones home: how much the report of the home may leak that its zone lies around, such as
            1/km; it is spent once.
        stay: How long somebody must be within 200 m for a stay.
        times: Hide times too: how much a fix may leak about its time, such as 0.1/min. --epsilon is then for places
            with Laplace noise. Every fix has one row, sorted by the reported times.
        clock: With --times: report times of the day on a clock, such as 15min, drawn around it by the optimum; the day
            stays public.
        mechanism: Where to write the mechanism file as well.
    """

    epsilon: str
    places: str | None = None
    predict: str | None = None
    total: str | None = None
    count: int = 20
    step: float = 60.0
    weights: str = "0.5"
    snap: str | None = None
    speed: float = 60.0
    learn: float | None = None
    history: str | None = None
    zones: str | None = None
    zone_radius: str = "1km"
    zone_scale: float = 0.2
    centre_epsilon: str | None = None
    stay: str = "10min"
    times: str | None = None
    clock: str | None = None
    mechanism: str | None = None

    @property
    def way(self) -> str:
        """The option that names the way; empty for reports that know the steps before."""
        ways = [name for name in ("predict", "zones", "times") if getattr(self, name) is not None]
        if len(ways) > 1:
            raise InvalidInput("--predict, --zones and --times are three ways to release trips: choose one.")
        return "".join(f"--{name}" for name in ways)

    def check(self) -> None:
        """Refuse options that the way does not know."""
        if self.zones is None:
            for name in ("zone_radius", "zone_scale", "centre_epsilon", "stay"):
                if getattr(self, name) != getattr(TripSpec, name):
                    raise InvalidInput(
                        "--zone-radius, --zone-scale, --centre-epsilon and --stay belong to --zones: give --zones home."
                    )
        if self.times is None and self.clock is not None:
            raise InvalidInput("--clock belongs to --times: say how much a time may leak, such as --times 0.1/min.")
        why, unknown = UNKNOWN.get(self.way, ("", ()))
        if found := [f"--{name}" for name in unknown if getattr(self, name) is not None]:
            raise InvalidInput(f"{why}: {', '.join(found)} {'goes' if len(found) == 1 else 'go'} without it.")
        if self.places is None and self.way in ("", "--zones"):
            raise InvalidInput(
                "--places says what may be reported, a file of points or a city; or give --predict parrot."
            )
        if self.way != "--predict" and self.total is not None:
            raise InvalidInput(
                "--total is what a whole trip may leak with --predict; without it every tick has a report."
            )


@dataclass(frozen=True)
class PruneSpec:
    """Places that a mechanism file never reports.

    Attributes:
        areas: Names of areas, such as Bonfim,Foz. A name with a comma stands in double quotes. Without --tree they are
            numbers of places, from 0.
        around: The reports around this place.
        radius: How far around it, such as 300m.
        tree: With --areas: a folder from `metricdp design --levels`, or its tree.json.
        level: With --tree: the level that --areas names, such as district; found by the names unless given.
        rule: What replaces a removed report: cheapest the one of least expected loss, nearest the nearest; renormalise
            none, as published, and it is refused where that breaks the guarantee.
        prior: With --rule cheapest: how likely every place is, as for `metricdp design`. It must be public.
        loss: With --rule cheapest: what a report costs, as for `metricdp design`: distance, squared, ground or a file.
    """

    areas: Sequence[str] | None = None
    around: str | None = None
    radius: str | None = None
    tree: str | None = None
    level: str | None = None
    rule: Literal["cheapest", "nearest", "renormalise"] = "cheapest"
    prior: str | None = None
    loss: str | None = None

    def check(self) -> None:
        """Refuse pruning of nothing, and what says more about another rule."""
        if (self.areas is None) == (self.around is None) or (self.around is None) != (self.radius is None):
            raise InvalidInput("say what is never reported: --areas and names, or --around 41.15,-8.61 --radius 300m.")
        if self.rule != "cheapest" and (self.prior is not None or self.loss is not None):
            raise InvalidInput("--prior and --loss say which report is cheapest: they belong to --rule cheapest.")


@dataclass(frozen=True)
class RecordedSpec:
    """Recorded samples: a table with one row a draw.

    Attributes:
        secret: The columns of the secret, such as x,y or lat,lon or word.
        report: The columns of the report, in the same order.
    """

    secret: str | None = None
    report: str | None = None


@dataclass(frozen=True)
class SamplerSpec:
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
        timeout: Seconds to wait for an answer: 60, or 10 for --url, unless given.
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
class ClaimSpec:
    """What is claimed, and how sure a refutation has to be.

    Attributes:
        metric: How far secrets are apart, such as l2 (`metricdp list metrics`); lat and lon mean haversine.
        distances: Instead: a file with the distances between all secrets (.npy, CSV or Parquet), in their order.
        epsilon: The guarantee that is claimed: 10/km on lat and lon, a bare number elsewhere. A mechanism file brings
            its own.
        slack: What the guarantee allows beside epsilon times the distance, whatever the distance; for samples.
        confidence: How sure a refutation by samples has to be.
        draws: How many reports are asked for at most: 100,000, or 2,000 from an address, unless given. A sampler that
            is refuted earlier is asked no further.
    """

    metric: str | None = None
    distances: str | None = None
    epsilon: str | None = None
    slack: float = 0.0
    confidence: float = 0.99
    draws: int | None = None


@dataclass(frozen=True)
class CrowdSpec:
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


def parse_names(text: str, option: str, what: str, example: str) -> list[str]:
    """Return names with commas between; a name with a comma in it stands in double quotes."""
    try:
        found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error:  # a line break outside of quotes
        found = []
    if not found or not all(found):
        raise InvalidInput(f"--{option} must name {what} with commas between, such as {example}; got {text!r}.")
    return found
