/**
 * True distances of the secrets of a kernel: in doubles within `relative` of themselves and `absolute` beside, NaN where doubles lost
 * something, and as balls of whole numbers. The metrics are those whose distance is a real number (src/metricdp/metrics/balls.py).
 */

import { UNDECIDED, nearest, settled } from "./balls.js";
import { UNIT, arctangent, circle, expOf, logOf, ofLatitude, root } from "./doubles.js";
import { Unsupported, refuse } from "./errors.js";
import { EARTH_RADIUS_KM, edits, fractionOf, mod, perKilometre } from "./metrics.js";
import { CONSTANTS } from "./constants.js";
import { exactFactor } from "./vectors.js";
import { toWhole } from "./whole.js";

const SAFE_SQUARES = [2 ** -900, 2 ** 900]; // sums of squares between these have lost nothing to under- or overflow
const SAFE_GAPS = [2 ** -450, 2 ** 450];

/** Return the length of a vector, NaN where doubles cannot be trusted with its squares. */
function lengthOf(squares) {
  return squares === 0 || (squares > SAFE_SQUARES[0] && squares < SAFE_SQUARES[1]) ? root(squares) : NaN;
}

const doublesOf = ({ data }) => (data instanceof Float64Array ? data : Float64Array.from(data, Number));

const GAPS = {
  1: (a, i, j, n) => {
    let total = 0;
    for (let k = 0; k < n; k++) total += Math.abs(a[i + k] - a[j + k]);
    return total;
  },
  2: (a, i, j, n) => {
    let total = 0;
    let lost = false;
    for (let k = 0; k < n; k++) {
      const gap = a[i + k] - a[j + k];
      total += gap * gap;
      lost ||= gap !== 0 && Math.abs(gap) < 2 ** -450;
    }
    return lost ? NaN : lengthOf(total);
  },
  Infinity: (a, i, j, n) => {
    let largest = 0;
    for (let k = 0; k < n; k++) largest = Math.max(largest, Math.abs(a[i + k] - a[j + k]));
    return largest;
  },
};

/** Vectors under l1, l2 or the largest gap. */
class Lengths {
  constructor(p, points) {
    this.p = p;
    this.data = doublesOf(points);
    this.width = points.width;
    this.relative = (this.width + 12) * UNIT;
    this.absolute = this.width * 2 ** -1021;
    this.between = GAPS[p];
  }

  measure(i, j) {
    return this.between(this.data, i * this.width, j * this.width, this.width);
  }

  ball(balls, i, j) {
    let total = balls.fraction(0n, 1n);
    for (let k = 0; k < this.width; k++) {
      let gap = balls.subtract(balls.double(this.data[i * this.width + k]), balls.double(this.data[j * this.width + k]));
      if (gap.m < 0n) gap = balls.negative(gap);
      if (this.p === 2) total = balls.add(total, balls.multiply(gap, gap));
      else if (this.p === 1) total = balls.add(total, gap);
      else total = { m: gap.m > total.m ? gap.m : total.m, r: gap.r > total.r ? gap.r : total.r };
    }
    return this.p === 2 ? balls.root(total) : total;
  }
}

/** Vectors under another l_p: m (sum (x / m)^p)^(1/p), m the largest gap. */
class Powers {
  constructor(p, points) {
    this.p = p;
    this.data = doublesOf(points);
    this.width = points.width;
    // A power of a ratio is within (10 |exponent| + 2 p + 6) UNIT of itself, and of the sum the p-th root is taken; below e^-60
    // powers no longer count. From 2^40 on the largest gap is within n^(1/p) of the distance.
    this.steep = p >= 2 ** 40;
    this.relative = (14 * this.width + 64) * UNIT + (this.steep ? Math.log(this.width) * 2 ** -39 : 0);
    this.absolute = this.width * 2 ** -1021;
  }

  measure(i, j) {
    const largest = GAPS.Infinity(this.data, i * this.width, j * this.width, this.width);
    if (largest === 0 || this.steep) return largest;
    if (!(largest > SAFE_GAPS[0] && largest < SAFE_GAPS[1])) return NaN;
    let total = 0;
    for (let k = 0; k < this.width; k++) {
      const gap = Math.abs(this.data[i * this.width + k] - this.data[j * this.width + k]) / largest;
      const exponent = gap > 0 ? this.p * logOf(gap) : -Infinity;
      if (exponent > -60) total += expOf(exponent);
    }
    return largest * expOf(logOf(total) / this.p);
  }

  ball(balls, i, j) {
    const gaps = [];
    let largest = balls.fraction(0n, 1n);
    for (let k = 0; k < this.width; k++) {
      const exact = toWhole(this.data[i * this.width + k]) - toWhole(this.data[j * this.width + k]);
      if (exact === 0n) continue;
      const gap = balls.fraction(exact < 0n ? -exact : exact, 1n << 1074n);
      gaps.push(gap);
      if (gap.m > largest.m) largest = gap;
    }
    if (gaps.length === 0) return largest;
    const power = balls.double(this.p);
    const total = gaps
      .map((gap) => balls.exp(balls.multiply(power, balls.log(balls.divide(gap, largest)))))
      .reduce((a, b) => balls.add(a, b));
    return balls.multiply(largest, balls.exp(balls.divide(balls.log(total), power)));
  }
}

/** Vectors under a Mahalanobis metric: the lengths of L^-1 (x - y), L the Cholesky factor of the covariance. */
class Whitened {
  constructor({ covariance }, points) {
    const n = points.width;
    this.data = doublesOf(points);
    this.width = n;
    this.covariance = covariance;
    const inverse = settled((balls) => {
      const rows = inverseOf(balls, exactFactor(balls, covariance, n));
      for (const row of rows) for (const { r } of row) if (r > row[row.length - 1].m >> 90n) throw UNDECIDED;
      return rows.map((row) => row.map(({ m }) => Number(m) * 2 ** -Number(balls.places)));
    }, 256n);
    // Points are put where the first is zero. A coordinate is a sum of n products, each off by 2 UNIT and the sum by n; an entry
    // is known within UNIT of itself and 2^-90 of the diagonal.
    this.units = new Float64Array(this.data.length);
    const widest = new Float64Array(n);
    const size = this.data.length / n;
    for (let i = 0; i < size; i++) {
      for (let k = 0; k < n; k++) widest[k] = Math.max(widest[k], Math.abs(this.data[i * n + k] - this.data[k]));
      for (let c = 0; c < n; c++) {
        let sum = 0;
        for (let k = 0; k <= c; k++) sum += inverse[c][k] * (this.data[i * n + k] - this.data[k]);
        this.units[i * n + c] = sum;
      }
    }
    let squares = 0;
    inverse.forEach((row, c) => {
      let sum = 0;
      row.forEach((x, k) => (sum += (Math.abs(x) + row[c] * 2 ** -36) * widest[k]));
      squares += ((n + 6) * UNIT * sum) ** 2;
    });
    this.relative = (n + 12) * UNIT;
    this.absolute = 2.1 * Math.sqrt(squares) + n * 2 ** -1021;
    this.known = null;
  }

  measure(i, j) {
    return GAPS[2](this.units, i * this.width, j * this.width, this.width);
  }

  ball(balls, i, j) {
    if (this.known?.balls !== balls) this.known = { balls, factor: exactFactor(balls, this.covariance, this.width) };
    const found = [];
    let total = balls.fraction(0n, 1n);
    this.known.factor.forEach((row, c) => {
      let rest = balls.fraction(toWhole(this.data[i * this.width + c]) - toWhole(this.data[j * this.width + c]), 1n << 1074n);
      for (let k = 0; k < c; k++) rest = balls.subtract(rest, balls.multiply(row[k], found[k]));
      found.push(balls.divide(rest, row[c]));
      total = balls.add(total, balls.multiply(found[c], found[c]));
    });
    return balls.root(total);
  }
}

/** Return the inverse of a lower triangle of balls, row by row. */
function inverseOf(balls, factor) {
  const rows = [];
  factor.forEach((row, i) => {
    const made = row.map((_, j) => {
      if (j === i) return balls.divide(balls.one, row[i]);
      let sum = { m: 0n, r: 0n };
      for (let k = j; k < i; k++) sum = balls.add(sum, balls.multiply(row[k], rows[k][j]));
      return balls.negative(balls.divide(sum, row[i]));
    });
    rows.push(made);
  });
  return rows;
}

/** Vectors under the angle between them. */
class Angles {
  constructor(unit, points) {
    this.degrees = unit === "deg";
    this.data = doublesOf(points);
    this.width = points.width;
    const scale = this.degrees ? 180 / Math.PI : 1;
    this.relative = 32 * UNIT;
    this.absolute = (4 * this.width + 64) * UNIT * scale;
    this.units = new Float64Array(this.data.length);
    for (let at = 0; at < this.data.length; at += this.width) {
      let squares = 0;
      for (let k = 0; k < this.width; k++) squares += this.data[at + k] ** 2;
      const length = lengthOf(squares);
      for (let k = 0; k < this.width; k++) this.units[at + k] = this.data[at + k] / length;
    }
  }

  measure(i, j) {
    let [apart, along] = [0, 0];
    for (let k = 0; k < this.width; k++) {
      const [a, b] = [this.units[i * this.width + k], this.units[j * this.width + k]];
      apart += (a - b) ** 2;
      along += (a + b) ** 2;
    }
    if (!(apart + along > 0)) return NaN;
    const angle = 2 * arctangent(root(apart), root(along));
    return this.degrees ? angle * (180 / Math.PI) : angle;
  }

  ball(balls, i, j) {
    const [a, b] = [this.direction(balls, i), this.direction(balls, j)];
    const along = (combine) =>
      balls.root(a.map((x, k) => combine(x, b[k])).reduce((sum, x) => balls.add(sum, balls.multiply(x, x)), balls.fraction(0n, 1n)));
    const apart = along((x, y) => balls.subtract(x, y));
    const angle = balls.times(balls.angle(apart, along((x, y) => balls.add(x, y))), 2n);
    return this.degrees ? balls.divide(balls.times(angle, 180n), balls.pi) : angle;
  }

  direction(balls, i) {
    const row = Array.from({ length: this.width }, (_, k) => balls.double(this.data[i * this.width + k]));
    const length = balls.root(row.reduce((sum, x) => balls.add(sum, balls.multiply(x, x)), balls.fraction(0n, 1n)));
    return row.map((x) => balls.divide(x, length));
  }
}

/** Points of the open unit ball under the hyperbolic metric: 2 asinh(|x - y| / sqrt((1 - |x|^2) (1 - |y|^2))). */
class Curved {
  constructor(points) {
    this.data = doublesOf(points);
    this.width = points.width;
    this.relative = (this.width + 24) * UNIT;
    this.absolute = 64 * UNIT; // of the logarithm near one, and of the twice
    // What is left to the border is known to UNIT: the sum of squares is exact.
    const places = 1n << 2148n;
    this.rooms = Float64Array.from({ length: this.data.length / this.width }, (_, i) => {
      const room = places - this.#squares(i);
      refuse(room <= 0n, "its metric cannot measure one of its points");
      return nearest(room, 2148);
    });
  }

  #squares(i) {
    let total = 0n;
    for (let k = 0; k < this.width; k++) total += toWhole(this.data[i * this.width + k]) ** 2n;
    return total;
  }

  measure(i, j) {
    const apart = GAPS[2](this.data, i * this.width, j * this.width, this.width);
    const room = this.rooms[i] * this.rooms[j];
    const away = apart / root(room);
    return room > SAFE_SQUARES[0] && away < SAFE_GAPS[1] ? 2 * logOf(away + root(away * away + 1)) : NaN;
  }

  ball(balls, i, j) {
    let apart = balls.fraction(0n, 1n);
    for (let k = 0; k < this.width; k++) {
      const gap = balls.fraction(toWhole(this.data[i * this.width + k]) - toWhole(this.data[j * this.width + k]), 1n << 1074n);
      apart = balls.add(apart, balls.multiply(gap, gap));
    }
    const [one, other] = [i, j].map((at) => balls.fraction((1n << 2148n) - this.#squares(at), 1n << 2148n));
    const away = balls.divide(balls.root(apart), balls.root(balls.multiply(one, other)));
    return balls.times(balls.log(balls.add(away, balls.root(balls.add(balls.multiply(away, away), balls.one)))), 2n);
  }
}

/** Places on the Earth: directions of three coordinates, and twice the arctangent of |u - v| over |u + v|. */
class Places {
  constructor({ unit }, points) {
    const scale = perKilometre(unit);
    this.data = doublesOf(points);
    this.radius = EARTH_RADIUS_KM * scale;
    this.unit = unit;
    this.relative = 32 * UNIT;
    this.absolute = 256 * UNIT * this.radius; // every coordinate of a direction is within 32 UNIT
    this.units = new Float64Array((this.data.length / 2) * 3);
    for (let i = 0; i < this.data.length / 2; i++) {
      const [up, out] = ofLatitude(this.data[2 * i]);
      const [sine, cosine] = circle(mod(this.data[2 * i + 1], 360) / 360);
      this.units.set([out * cosine, out * sine, up], 3 * i);
    }
  }

  measure(i, j) {
    let [apart, along] = [0, 0];
    for (let k = 0; k < 3; k++) {
      const [a, b] = [this.units[3 * i + k], this.units[3 * j + k]];
      apart += (a - b) ** 2;
      along += (a + b) ** 2;
    }
    return 2 * this.radius * arctangent(root(apart), root(along));
  }

  /** Return the angle between two places. */
  angle(balls, i, j) {
    const whole = (at) => toWhole(this.data[at]);
    const turn = (angle) => balls.circle(balls.multiply(balls.pi, balls.fraction(angle, 360n << 1074n)));
    const [north, south] = [whole(2 * i), whole(2 * j)];
    const [[, one], [, other]] = [turn(2n * north), turn(2n * south)];
    const parallels = balls.multiply(one, other);
    const [sine, cosine] = turn(whole(2 * i + 1) - whole(2 * j + 1));
    const square = (x) => balls.multiply(x, x);
    const away = balls.root(balls.add(square(turn(north - south)[0]), balls.multiply(parallels, square(sine))));
    const back = balls.root(balls.add(square(turn(north + south)[0]), balls.multiply(parallels, square(cosine))));
    return balls.times(balls.angle(away, back), 2n);
  }

  ball(balls, i, j) {
    const [metres, pieces] = fractionOf(CONSTANTS.metres[this.unit]);
    const radius = balls.fraction(toWhole(EARTH_RADIUS_KM) * 1000n * pieces, metres << 1074n);
    return balls.multiply(this.angle(balls, i, j), radius);
  }
}

/** Words and symbols: how many edits or places they differ by, a whole number. */
class Counted {
  constructor(count, points) {
    this.rows = Array.from({ length: points.size }, (_, i) => points.row(i));
    this.count = count;
    this.relative = this.absolute = 0;
  }

  measure(i, j) {
    return this.count(this.rows[i], this.rows[j]);
  }

  ball(balls, i, j) {
    return balls.fraction(BigInt(this.measure(i, j)), 1n);
  }
}

const MEASURES = {
  Lp: ({ parameters: { p } }, points) => (Object.hasOwn(GAPS, p) ? new Lengths(p, points) : new Powers(p, points)),
  Mahalanobis: (metric, points) => new Whitened(metric, points),
  Angular: ({ unit }, points) => new Angles(unit, points),
  Hyperbolic: (_, points) => new Curved(points),
  Haversine: (metric, points) => new Places(metric, points),
  Levenshtein: (_, points) => new Counted((a, b) => edits(a[0], b[0]), points),
  Hamming: ({ measure }, points) => new Counted(measure, points),
};

/** Return the true distances of a space: `measure(i, j)` and `ball(balls, i, j)` of codes, and the errors of the first. */
export function trueDistances({ metric, points }) {
  if (!Object.hasOwn(MEASURES, metric.name)) throw new Unsupported("this module does not draw from a kernel in this metric.");
  return MEASURES[metric.name](metric, points);
}
