/**
 * Noise in hyperbolic space of any dimension, in the Poincare ball: how far in one sum, which way by normal numbers. In doubles with
 * proven bounds, in balls of whole numbers where those leave more than one cell. Words, lattice and bounds are those of Python
 * (src/metricdp/mechanisms/noise/hyperbolic.py, docs/explanation/exact_noise.md): with x in the ball, B = 1 - |x|^2, a unit vector u and C, S = cosh(r),
 * sinh(r), the report is the point of the hyperboloid whose first coordinates are v = S u + 2 (C + S <x, u>) x / B.
 */

import { UNDECIDED, settled } from "./balls.js";
import { UNIT, expOf, roomOf, root } from "./doubles.js";
import { refuse, refuseSecret } from "./errors.js";
import { Lattice, checkPitch, checkGuarantee } from "./lattice.js";
import { Uniforms, exponentialOf, sureCell } from "./noise.js";
import { exactNormals, normalsOf } from "./vectors.js";
import { toWhole } from "./whole.js";

const FARTHEST = 10n ** 300n; // cells: what lies beyond is put there
const LEAST_ROOM = 2 ** -20; // of 1 - |x|^2: nearer to the border doubles do not tell neighbours apart
const LEAST_MARGIN = 0.05; // of epsilon above n - 1
const BORDER = 1 - 2 ** -50; // the longest report

const totalOf = (values) => values.reduce((sum, x) => sum + x, 0);

/** The distribution of hyperbolic noise; a coordinate v of the hyperboloid lies at v * top / bottom cells. */
export class HyperbolicDistribution {
  constructor(dimension, epsilon, [top, bottom]) {
    Object.assign(this, { dimension, epsilon, top, bottom });
    this.scale = top / bottom;
    /** The rates of the exponentials that add up to the distance, each within UNIT of itself. */
    this.rates = Array.from({ length: dimension }, (_, k) => epsilon - (dimension - 1 - 2 * k));
  }

  cells(point, source) {
    const uniforms = new Uniforms(source);
    return this.inDoubles(point, uniforms) ?? this.exactly(point, uniforms);
  }

  /** Return the cells, or undefined where doubles do not know. */
  inDoubles(point, uniforms) {
    const { dimension: n, scale } = this;
    let [radius, ofRadius] = [0, 0];
    this.rates.forEach((rate, k) => {
      const [energy, ofEnergy] = exponentialOf(uniforms.middle(0, k));
      radius += energy / rate;
      ofRadius += ofEnergy / rate;
    });
    const places = boosted(point, normalsOf(n, n, uniforms), [radius, 1.01 * ofRadius + (n + 3) * UNIT * radius]);
    const cells = places?.map(([v, error]) => sureCell([0, 0], scale * v, scale * (error + 2 * UNIT * Math.abs(v))));
    return cells === undefined || cells.includes(undefined) ? undefined : cells;
  }

  exactly(point, uniforms) {
    const n = this.dimension;
    const wholes = point.map(toWhole);
    const one = 1n << 2148n;
    const left = wholes.reduce((sum, x) => sum - x * x, one);
    const perUnit = Math.ceil(Math.log2(4 + this.scale)) + 20; // over the room, which is at least 2^-20
    return settled((balls, words) => {
      const share = (k) => balls.uniform(uniforms.digits(0, k, words), 64n * words);
      const zero = { m: 0n, r: 0n };
      const product = (a, b) => a.reduce((sum, x, k) => balls.add(sum, balls.multiply(x, b[k])), zero);
      const away = this.rates.reduce((sum, _, k) => {
        const rate = balls.fraction(toWhole(this.epsilon) - (BigInt(n - 1 - 2 * k) << 1074n), 1n << 1074n);
        return balls.subtract(sum, balls.divide(balls.log(share(k)), rate));
      }, zero);
      const g = exactNormals(balls, n, n, share);
      const length = balls.root(product(g, g));
      if (length.m <= length.r) throw UNDECIDED;
      const [u, x] = [g.map((item) => balls.divide(item, length)), wholes.map((item) => balls.fraction(item, 1n << 1074n))];
      const [large, small] = [balls.exp(away), balls.exp(balls.negative(away))];
      const half = balls.fraction(1n, 2n);
      const [near, far] = [balls.add(large, small), balls.subtract(large, small)].map((sum) => balls.multiply(half, sum));
      const inner = balls.times(balls.add(near, balls.multiply(far, product(x, u))), 2n);
      const pull = balls.divide(inner, balls.fraction(left, one));
      const scale = balls.fraction(toWhole(this.top), toWhole(this.bottom));
      return u.map((item, k) => heldCell(balls, balls.multiply(scale, balls.add(balls.multiply(far, item), balls.multiply(pull, x[k])))));
    }, BigInt(perUnit + 2 * Math.ceil(Math.log2(n + 1)) + 64));
  }
}

/** Return the cell of a ball as a double; beyond `FARTHEST` cells that one. */
function heldCell(balls, value) {
  const most = FARTHEST << balls.places;
  if (value.m - value.r > most) return Number(FARTHEST);
  if (value.m + value.r < -most) return -Number(FARTHEST);
  return Number(balls.cell(value));
}

/**
 * Return where the walk from a row ends as [coordinate of the hyperboloid, error], or undefined where the bounds, which are of first
 * order and 10 % more, do not hold.
 */
function boosted(row, normals, [radius, ofRadius]) {
  const n = row.length;
  const many = (n + 4) * UNIT; // of a sum of n products
  const length = root(totalOf(normals.map(([g]) => g * g)));
  const ofLength = 1.01 * root(totalOf(normals.map(([, error]) => error * error))) + (n + 5) * UNIT * length;
  const [room, ofRoom] = roomOf(row);
  if (!(ofLength < 0.01 * length && ofRadius < 0.001 && radius < 600 && ofRoom < 0.001 * room)) return undefined;
  const unit = normals.map(([g]) => g / length);
  const ofUnit = normals.map(
    ([, error], k) => 1.1 * (error / length + Math.abs(unit[k]) * (ofLength / length)) + 3 * UNIT * Math.abs(unit[k]),
  );
  const small = expOf(-radius);
  const large = 1 / small;
  const relative = 1.1 * ofRadius + 6 * UNIT; // of e^r and e^-r: those of r, and 5 UNIT of the function and the inverse
  const [near, far] = [0.5 * (large + small), 0.5 * (large - small)];
  const ofFar = near * relative + 3 * UNIT * near;
  const along = totalOf(row.map((x, k) => x * unit[k]));
  const ofAlong = totalOf(row.map((x, k) => Math.abs(x) * ofUnit[k])) + many * totalOf(row.map((x, k) => Math.abs(x * unit[k])));
  const inner = near + far * along;
  const ofInner = ofFar * (1 + Math.abs(along)) + far * ofAlong + 4 * UNIT * (near + far * Math.abs(along));
  const pull = (2 * inner) / room;
  const ofPull = 1.05 * ((2 * ofInner) / room + Math.abs(pull) * (ofRoom / room + 3 * UNIT));
  return row.map((x, k) => {
    const [aside, ahead] = [far * unit[k], pull * x];
    const error = far * ofUnit[k] + ofFar * Math.abs(unit[k]) + ofPull * Math.abs(x);
    return [aside + ahead, 1.1 * (error + 4 * UNIT * (Math.abs(aside) + Math.abs(ahead)))];
  });
}

/** Return a point of the hyperboloid, given by its first coordinates, as a point of the ball: the doubles of Python. */
function inTheBall(places) {
  const largest = places.reduce((most, v) => Math.max(most, Math.abs(v)), 1);
  const scaled = places.map((v) => v / largest); // so that squares do not overflow
  const inverse = 1 / largest;
  const size = Math.sqrt(inverse * inverse + totalOf(scaled.map((v) => v * v)));
  const found = scaled.map((v) => v / (inverse + size));
  const length = Math.sqrt(totalOf(found.map((y) => y * y)));
  const factor = BORDER / Math.max(length, BORDER);
  return found.map((y) => y * factor + 0);
}

/** Tell whether a point of the ball is far enough from its border for noise. */
export const isInside = (point) => roomOf(point)[0] >= LEAST_ROOM;

/** Return noise in the Poincare ball, `draw(point, source)`. */
export function hyperbolicNoise({ metric, dimension: n }, epsilon, pitch) {
  refuse(metric.name !== "Hyperbolic", "its noise does not belong to its metric");
  refuse(!(epsilon >= n - 1 + LEAST_MARGIN), "its epsilon is too small for noise in this space");
  const lattice = new Lattice(pitch);
  const distribution = new HyperbolicDistribution(n, epsilon, lattice.ratio);
  const mean = totalOf(distribution.rates.map((rate) => 1 / rate));
  checkPitch((2 * (6 * n + 80) * Math.sqrt(n) * Math.exp(Math.min(mean, 20)) * UNIT) / pitch);
  return (point, source) => {
    refuseSecret(!isInside(point), "border");
    return inTheBall(distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell)));
  };
}

/** Read Laplace noise in the Poincare ball: density proportional to exp(-epsilon d(x, y)) with respect to its volume. */
export function readHyperbolicLaplace(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const draw = hyperbolicNoise(inputs, body.epsilon, body.pitch);
  checkGuarantee(guarantee, body.epsilon);
  return { inputs, outputs: inputs, draw };
}
