"""The command about a crowd: what shuffling the reports of many people adds to a mechanism, approximately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metricdp.cli import terminal
from metricdp.cli.options import Input, distance_in, mechanism_in
from metricdp.errors import InvalidInput

if TYPE_CHECKING:
    from metricdp.mechanisms import Mechanism


def shuffle(
    mechanism: Input,
    /,
    *,
    people: int,
    distance: str,
    delta: float = 1e-6,
    diameter: str | None = None,
    json: bool = False,
    key: str | None = None,
) -> int:
    """Say what shuffling the reports of a crowd adds to a mechanism; it is approximate, never a pure promise.

    An example: `metricdp shuffle cells.mdp --people 10000 --distance 200m --delta 1e-6`

    Everybody reports once through the mechanism; a shuffler that is trusted takes the names off and forgets the order.
    The number that comes back is an epsilon that holds but for a chance of delta. Nothing is written, and no mechanism
    file ever states it: its own promise stays what it is.

    Args:
        mechanism: The mechanism file that all use.
        people: How many report, each once.
        distance: How far a person's secret may move, such as 200m.
        delta: The chance with which anything may show.
        diameter: The largest distance of two people's secrets; that of the file's secrets unless given. Noise on places
            anywhere needs it: the statement is then for crowds within it.
        json: Print the same as JSON.
        key: A public key file: the mechanism file is refused unless this key signed it.
    """
    from metricdp import messages
    from metricdp.auditing import shuffled_epsilon
    from metricdp.mechanisms import require_pure

    made = mechanism_in(mechanism, trusted=key)
    guarantee = require_pure(made.guarantee, "`metricdp shuffle`")
    if guarantee.slack > 0 or guarantee.radius is not None:
        raise InvalidInput(f"a crowd is counted for a promise of all pairs without slack, and this is {guarantee}.")
    moved = distance_in(distance, guarantee.unit, "distance")
    across = distance_in(diameter, guarantee.unit, "diameter") if diameter is not None else _across(made)
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
    terminal.say(f"APPROXIMATE, never a pure promise: shuffled reports of {people:,} people, each through {mechanism}.")
    terminal.say(
        f"Moving one person by at most {far} changes the chance of whatever the crowd shows by a factor of at most "
        f"exp({messages.number(found, 4, 'up')}), but for a chance of {delta:g}."
    )
    terminal.say(
        f"Without a shuffler the factor is exp({messages.number(guarantee.epsilon * moved, 4, 'up')}), for certain."
    )
    terminal.say(
        f"It holds where all secrets lie within {wide} of each other, everybody reports once, and the shuffler takes "
        "names off and forgets the order. Whoever sees a report before it does has the promise of the file alone."
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
