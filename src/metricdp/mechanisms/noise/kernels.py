"""Noise in doubles that knows how wrong it may be: a report where that leaves one cell, "undecided" elsewhere.

One row at a time, or arrays of rows. u = 2^-53. Every number computed here carries a bound of its distance from the
real number that all bits of the uniforms would give; docs/explanation/exact_noise.md derives the bounds line by line. A
report is decided if its whole interval lies in one cell of the lattice. What is undecided goes to
`arbitrary_precision`, with the same words.
"""

from __future__ import annotations

import numpy as np

from metricdp.mechanisms.noise.functions import (
    UNIT,
    Real,
    arctangent,
    centre,
    choose,
    circle,
    latitude,
    log,
    middle,
    sine_and_cosine,
)

REJECTED, DECIDED, UNDECIDED = 0, 1, 2
MOST_AWAY = 3.2  # just above pi: beyond, no proposal is kept


def exponential(share: Real) -> tuple[Real, Real]:
    """Return -ln(U) for the middle of the interval of U, and a bound of its error."""
    size, unsure = -log(share), UNIT / share
    return size, 8.0 * UNIT * size + choose(unsure < 0.001, 1.1 * unsure, np.inf)


def exponentials(first: Real, second: Real) -> tuple[Real, Real]:
    """Return -ln(U1 U2) for two uniforms given by the middles of their intervals, and a bound of its error."""
    one, two = middle(first), middle(second)
    total = -log(one * two)
    unsure = UNIT * (1.0 / one + 1.0 / two + 1.0)
    return total, 8.0 * UNIT * total + choose(unsure < 0.001, 1.1 * unsure, np.inf)


def place_cell(whole: Real, rest: Real, moved: Real, error: Real) -> tuple[Real, Real]:
    """Return the cell of a centre (whole + rest cells) moved by that many cells, and whether that is sure."""
    total = rest + moved
    step = np.rint(total)
    return whole + step, np.abs(total - step) + (error + 4.0 * UNIT * (1.0 + np.abs(moved))) < 0.5


def planar_noise(words: tuple[Real, Real, Real]) -> tuple[Real, Real, Real]:
    """Return planar Laplace noise of rate one, along x and y, and a bound of the error of both."""
    radius, error = exponentials(words[0], words[1])
    sine, cosine = circle(middle(words[2]))
    # bearing: 6 u, and 2 pi u since the uniform is only known within u; the product 1 u
    return radius * cosine, radius * sine, error + 14.0 * UNIT * radius


def plane(
    place: tuple[Real, Real], words: tuple[Real, Real, Real], lattice: tuple[float, float], scale: float
) -> tuple[Real, Real, Real]:
    """Return the cells of planar Laplace noise around a place, and whether they are sure.

    `scale` is 1 / epsilon in cells, within u of itself; a coordinate is coordinate * lattice[0] / lattice[1] cells.
    """
    across, up, error = planar_noise(words)
    unsure = scale * (error + 3.0 * UNIT * (np.abs(across) + np.abs(up)))
    whole, rest = centre(place[0], lattice[0], lattice[1])
    column, clear = place_cell(whole, rest, scale * across, unsure)
    whole, rest = centre(place[1], lattice[0], lattice[1])
    row, sharp = place_cell(whole, rest, scale * up, unsure)
    return column, row, clear & sharp


def propose_narrow(words: tuple[Real, Real, Real], away: float) -> tuple[Real, Real, Real, Real]:
    """Propose an angle t = -ln(U1 U2) / rate and keep it with probability sin(t) / t.

    Return sine, cosine, the error of t and what became of it. `away` is 1 / rate in radians, within u of itself.
    """
    total, error = exponentials(words[0], words[1])
    angle = away * total
    error = away * (error + 3.0 * UNIT * total) + 8.0 * UNIT * angle  # the last for the sine beyond pi/4
    sine, cosine = sine_and_cosine(np.minimum(angle, MOST_AWAY))
    gap = middle(words[2]) * angle - sine
    unsure = 2.0 * error + 16.0 * UNIT * angle
    accepted = choose(gap > unsure, REJECTED, UNDECIDED)
    return sine, cosine, error, choose(gap < -unsure, DECIDED, accepted)


def propose_wide(words: tuple[Real, Real, Real], rate: float) -> tuple[Real, Real, Real, Real]:
    """Propose a uniform point of the sphere, cos(t) = 1 - 2 U, and keep it with probability exp(-rate t).

    As `propose_narrow`, for a rate of at most 1 per radian, within u of itself.
    """
    share = middle(words[0])
    sine, cosine = 2.0 * np.sqrt(share * (1.0 - share)), 1.0 - 2.0 * share
    angle = arctangent(sine, cosine)
    # t moves by dU / sqrt(U (1 - U)); the roundings of sine and cosine turn it by at most 5 u.
    error = 2.2 * UNIT / sine + 20.0 * UNIT * angle
    limit, of_limit = exponential(middle(words[2]))
    gap, unsure = rate * angle - limit, of_limit + rate * (error + 4.0 * UNIT * angle)
    accepted = choose(gap > unsure, REJECTED, UNDECIDED)
    accepted = choose(gap < -unsure, DECIDED, accepted)
    return sine, cosine, error, choose(sine > 1e-6, accepted, UNDECIDED)


def walk_angle(
    place: tuple[Real, Real], way: tuple[Real, Real, Real], bearing: Real, quarter: float
) -> tuple[Real, Real, Real]:
    """Walk an angle (sine, cosine and error) from a place in degrees; return the cells and whether they are sure.

    `quarter` is the number of cells in 90 degrees. Latitude and longitude are differences from the start, so that
    errors shrink with the way.
    """
    sine, cosine, error = way
    east, north = circle(middle(bearing))
    sin_start, cos_start = latitude(place[0])
    n, e = sine * north, sine * east
    step = error + 24.0 * UNIT * sine  # of n and e: 8 u of the sine, 13 u of the bearing, 1 u of the product
    level = error + 8.0 * UNIT  # of the cosine
    out = cos_start * cosine - sin_start * n
    up = sin_start * cosine + cos_start * n
    of_out = cos_start * (level + 10.0 * UNIT) + step + 10.0 * UNIT * sine
    of_up = np.abs(sin_start) * (level + 10.0 * UNIT) + step + 10.0 * UNIT * sine
    axis = np.sqrt(out * out + e * e)
    of_axis = of_out + step + 3.0 * UNIT * axis
    # (out, up) is (cosine, n) turned by the latitude; (axis, up) is the report. The angle between the two is small.
    reach = axis + np.abs(out)
    ahead = out > 0.0
    side = choose(ahead, e * e / reach, reach)
    beside = 1.2 * ((2.0 * np.abs(e) + step) * step + side * (of_axis + of_out)) / reach
    of_side = choose(ahead, beside, of_axis + of_out) + 4.0 * UNIT * side
    cross, dot = up * side, out * axis + up * up
    of_cross = of_side * (np.abs(up) + of_up) + side * of_up + 2.0 * UNIT * np.abs(cross)
    of_dot = 1.1 * (of_out + of_axis + 2.0 * of_up) + 3.0 * UNIT
    length = n * n + cosine * cosine
    per = 1.1 / length
    rise, bend, turn = arctangent(n, cosine), arctangent(cross, dot), arctangent(e, out)
    of_rise = per * (np.abs(cosine) * step + np.abs(n) * level)
    of_bend = per * (np.abs(dot) * of_cross + np.abs(cross) * of_dot)
    of_turn = 1.1 * (np.abs(out) * step + np.abs(e) * of_out) / (axis * axis)
    scale = quarter * (2.0 / np.pi)
    of_latitude = scale * (of_rise + of_bend + 20.0 * UNIT * (np.abs(rise) + np.abs(bend)))
    of_longitude = scale * (of_turn + 20.0 * UNIT * np.abs(turn))
    whole, rest = centre(place[0], quarter, 90.0)
    row, sharp = place_cell(whole, rest, scale * (rise - bend), of_latitude)
    row = wrap_longitude(row, quarter)  # of two angles that are each known up to whole turns
    whole, rest = centre(place[1], quarter, 90.0)
    column, clear = place_cell(whole, rest, scale * turn, of_longitude)
    # The bounds above are first order and 10 % more: they hold where errors are small beside what they belong to.
    fits = (axis > 64.0 * (of_out + step)) & (length > 0.001) & (of_cross + of_dot < 1e-6)
    return row, wrap_longitude(column, quarter), fits & sharp & (clear | (np.abs(row) == quarter))


def wrap_longitude(column: Real, quarter: float) -> Real:
    """Return the cell of the same angle in [-180, 180) degrees."""
    turns = np.floor((column + 2.0 * quarter) / (4.0 * quarter))
    return column - 4.0 * quarter * turns


def sphere(
    place: tuple[Real, Real], words: tuple[Real, Real, Real, Real], rate: float, away: float, quarter: float
) -> tuple[Real, Real, Real]:
    """Return the cells of Laplace noise on the sphere, `rate` per radian, and what became of the proposal.

    `away` is 1 / rate.
    """
    drawn = (words[0], words[1], words[2])
    sine, cosine, error, accepted = propose_narrow(drawn, away) if rate > 1.0 else propose_wide(drawn, rate)
    row, column, sure = walk_angle(place, (sine, cosine, error), words[3], quarter)
    column = choose(np.abs(row) == quarter, 0.0, column)
    return row, column, choose((accepted == DECIDED) & ~sure, UNDECIDED, accepted)


def normal_size(word: Real) -> tuple[Real, Real]:
    """Return sqrt(-2 ln U), the size of a normal pair, and a bound of its error and of 17 roundings of it."""
    energy, of_energy = exponential(middle(word))
    size = np.sqrt(2.0 * energy)
    # d sqrt(2 E) = dE / sqrt(2 E), within a tenth while dE is below E / 10; the direction is known within 13 u
    return size, choose(of_energy < 0.1 * energy, 1.1 * of_energy / size, np.inf) + 17.0 * UNIT * size


def project_from_centre(
    place: tuple[Real, Real], words: tuple[Real, Real, Real, Real], reach: float, quarter: float
) -> tuple[Real, Real, Real]:
    """Return the cells of a place moved by normal noise in space, seen from the centre, and whether they are sure.

    In the frame of the place the noise has a part of size sqrt(-2 ln U0) along the ground, at a uniform bearing, and a
    normal one upward, which only changes how far the first is seen to go. `reach` is the standard deviation in radii,
    within u of itself.
    """
    size, of_size = normal_size(words[0])
    height, of_height = normal_size(words[2])
    _, share = circle(middle(words[3]))
    aside, up = reach * size, 1.0 + reach * (height * share)
    of_aside, of_up = reach * of_size, reach * of_height + 2.0 * UNIT * (1.0 + reach * height)
    length = np.sqrt(aside * aside + up * up)
    # a vector V moved by d turns by at most (|V_x d_y| + |V_y d_x|) / (|V|^2 - |V| |d|)
    error = 1.1 * (np.abs(up) * of_aside + aside * of_up) / (length * length)
    row, column, sure = walk_angle(place, (aside / length, up / length, error), words[1], quarter)
    column = choose(np.abs(row) == quarter, 0.0, column)
    return row, column, sure & (64.0 * (of_aside + of_up) < length)
