/** Noise on the Earth, in the plane and in space, for unit vectors and after a projection, released on a public lattice; and noise before the nearest word. */

import { DirectionLaw } from "./directions.js";
import { UNIT } from "./doubles.js";
import { Unsupported, refuse, refuseSecret } from "./errors.js";
import { Profile } from "./hats.js";
import { EARTH_RADIUS_KM, fractionOf, isPositiveDefinite, norm, perKilometre, radians } from "./metrics.js";
import { Uniforms } from "./noise.js";
import { SHARED } from "./shared.js";
import { argmin } from "./spaces.js";
import { SphereLaw } from "./sphere.js";
import { VectorLaw, stretched, unitNoise } from "./vectors.js";
import { rint, toWhole } from "./whole.js";

const LARGEST_PRODUCT = 2 ** 31; // operations that opening a projection may take

/** The multiples of a pitch, in every coordinate. */
class Lattice {
  constructor(pitch) {
    this.pitch = pitch;
    const inverse = rint(1 / pitch);
    this.perUnit = inverse >= 1 && 1 / inverse === pitch ? inverse : 0;
  }

  /** How many cells make a unit, as a fraction of doubles. */
  get ratio() {
    return this.perUnit ? [this.perUnit, 1] : [1, this.pitch];
  }

  cell(value) {
    return rint(this.perUnit ? value * this.perUnit : value / this.pitch);
  }

  value(cell) {
    return (this.perUnit ? cell / this.perUnit : cell * this.pitch) + 0;
  }
}

/** Refuse a promise that the noise does not keep: a smaller epsilon than its rate. */
function checkPromise(promise, rate) {
  const kept = promise.basis === "none" || rate <= promise.epsilon;
  refuse(!kept, "its noise does not keep its promise");
}

/** Return epsilon per radian of a great circle as a fraction: the radius is a decimal number, epsilon a double. */
function rateOf(epsilon, unit) {
  const [radius, parts] = fractionOf(String(EARTH_RADIUS_KM));
  const [metres, pieces] = fractionOf(SHARED.metres[unit]);
  return [toWhole(epsilon) * radius * 1000n * pieces, parts * metres << 1074n];
}

/** Read Laplace noise on the Earth: a uniform bearing, then the great circle. */
export function readSpherical(body, file, promise) {
  const inputs = file.space(body.inputs);
  refuse(inputs.metric.name !== "Haversine" || inputs.dimension !== 2, "its noise does not belong to its metric");
  const lattice = new Lattice(body.pitch);
  refuse(!(Math.abs(rint(90 / body.pitch) * body.pitch - 90) <= SHARED.rounding), "its lattice misses the poles");
  const scale = perKilometre(inputs.metric.unit);
  const epsilon = body.epsilon * scale; // per kilometre
  checkPitch((8.8 * ((6 + 68 * 21) / (epsilon * radians(EARTH_RADIUS_KM)) + 8 * 180) * 2 ** -52) / body.pitch);
  checkPromise(promise, body.epsilon);
  const law = new SphereLaw(rateOf(body.epsilon, inputs.metric.unit), rint(90 / body.pitch));
  const draw = (point, source) => law.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  const reach = radians(EARTH_RADIUS_KM) * scale * body.pitch * Math.SQRT1_2; // half the diagonal of a cell at the equator
  return { inputs, outputs: inputs, draw, rate: body.epsilon, reach };
}

/** Refuse a lattice on which doubles would leave too many draws undecided. */
function checkPitch(undecided) {
  refuse(!(undecided <= SHARED.largest_drawing_error), "its lattice is finer than noise in doubles");
}

/** Return a bound of the share of draws that doubles leave undecided; the reasons stand with VectorLaplace in Python. */
function undecidedShare({ metric, dimension: n }, epsilon, pitch) {
  const p = metric.name === "Lp" ? metric.parameters.p : 2;
  const widest = metric.name === "Mahalanobis" ? norm(Array.from(metric.factor), 2) : 1;
  const displaced = (widest * (3 * n + (64 + 2 * n) * (20 + n / 2)) * 2 ** -52) / epsilon;
  return (4.4 * n ** (1 - 1 / p) * displaced) / pitch;
}

/** Return the law of the noise of a space on a lattice of so many cells in a unit. */
function lawOf({ metric, dimension }, ratio, epsilon) {
  const mahalanobis = metric.name === "Mahalanobis";
  return new VectorLaw(mahalanobis ? 2 : metric.parameters.p, dimension, ratio, epsilon, { covariance: mahalanobis ? metric.covariance : null });
}

function checkVectors({ metric, dimension }) {
  refuse(metric.name !== "Lp" && metric.name !== "Mahalanobis", "its noise does not belong to its metric");
  refuse(metric.legal(new Array(dimension).fill(0)) !== null, "its noise does not fit its metric");
}

/** Return how far the corner (1, 1, ...) or (1, -1, 1, ...) of a cell lies from its centre: in a plane these are all. */
function cellReach({ metric, dimension }, pitch) {
  const corners = [1, -1].map((sign) => Array.from({ length: dimension }, (_, k) => (k % 2 ? sign : 1) * (pitch / 2)));
  const zero = new Array(dimension).fill(0);
  return Math.max(...corners.map((corner) => metric.measure(corner, zero)));
}

/** Read Laplace noise for vectors: density proportional to exp(-epsilon d(x, y)), in whole numbers of cells. */
export function readVector(body, file, promise) {
  const inputs = file.space(body.inputs);
  checkVectors(inputs);
  const lattice = new Lattice(body.pitch);
  checkPitch(undecidedShare(inputs, body.epsilon, body.pitch));
  checkPromise(promise, body.epsilon);
  const law = lawOf(inputs, lattice.ratio, body.epsilon);
  const draw = (point, source) => {
    refuseSecret(point.some((x) => !(Math.abs(lattice.cell(x)) <= SHARED.largest_cell)), "lattice");
    return law.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  };
  return { inputs, outputs: inputs, draw, rate: body.epsilon, reach: cellReach(inputs, body.pitch) };
}

/** Read noise for unit vectors: density proportional to exp(-epsilon * angle), or to exp(epsilon <x, y>) under l_2. */
export function readDirection(body, file, promise) {
  const inputs = file.space(body.inputs);
  const { metric, dimension: n } = inputs;
  const isAngle = metric.name === "Angular";
  refuse(!isAngle && !(metric.name === "Lp" && metric.parameters.p === 2 && n >= 3), "its noise does not belong to its metric");
  refuse(body.pitch * Math.sqrt(n) > 1, "its lattice is too coarse for unit vectors");
  checkPitch(((2 * (4 * n + 80) * Math.sqrt(n)) / body.pitch + 2e4 * n) * UNIT);
  checkPromise(promise, body.epsilon);
  const lattice = new Lattice(body.pitch);
  const law = new DirectionLaw(new Profile(isAngle ? "angle" : "height", n, body.epsilon, metric.unit === "deg"), lattice.ratio);
  const draw = (point, source) => law.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  return { inputs, outputs: { metric, dimension: n }, draw };
}

/** Read l_2 noise around A x, which keeps its rate times the norm of A: so (epsilon / rate)^2 - A A^T has no negative direction. */
export function readProjected(body, file, promise) {
  const inputs = file.space(body.inputs);
  const { metric, dimension: n } = inputs;
  const [k] = file.shape(body.matrix);
  const data = file.floats(body.matrix, [k, n], "its projection");
  refuse(metric.name !== "Lp" || metric.parameters.p !== 2 || k > n, "its noise does not belong to its metric");
  if (k * k * n > LARGEST_PRODUCT) throw new Unsupported("a projection of this size is not drawn from here.");
  const matrix = Array.from({ length: k }, (_, i) => Array.from(data.subarray(i * n, (i + 1) * n)));
  const allowed = promise.epsilon / body.epsilon;
  const room = new Float64Array(k * k);
  for (let i = 0; i < k; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let c = 0; c < n; c++) sum += (matrix[i][c] / allowed) * (matrix[j][c] / allowed);
      room[i * k + j] = (i === j ? 1 + SHARED.rounding : 0) - sum;
    }
  }
  refuse(promise.basis !== "none" && !isPositiveDefinite(room, k), "its noise does not keep its promise");
  const lattice = new Lattice(body.pitch);
  checkPitch(undecidedShare({ metric, dimension: k }, body.epsilon, body.pitch));
  const law = new VectorLaw(2, k, lattice.ratio, body.epsilon, { matrix });
  const draw = (point, source) => {
    refuseSecret(law.places(point).some(([x]) => !(Math.abs(lattice.cell(x)) <= SHARED.largest_cell)), "lattice");
    return law.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  };
  return { inputs, outputs: { metric, dimension: k }, draw };
}

/** Read noise on the vector of a secret, after which the nearest vector is reported. */
export function readNearest(body, file, promise) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  const plane = { metric: inputs.metric, dimension: inputs.points.width };
  checkVectors(plane);
  refuse(outputs.points.text || outputs.points.width !== plane.dimension, "its reports do not fit its secrets");
  checkPromise(promise, body.epsilon);
  const law = lawOf(plane, [1, 1], body.epsilon);
  const rows = Array.from({ length: outputs.size }, (_, code) => outputs.points.row(code));
  const draw = (code, source) => {
    const noise = stretched(law.factor, unitNoise(law.p, plane.dimension, new Uniforms(source)));
    const noisy = inputs.points.row(code).map((x, k) => x + noise[k][0] / body.epsilon);
    return argmin(outputs.size, (k) => plane.metric.measure(noisy, rows[k]));
  };
  return { inputs, outputs, draw, rate: body.epsilon };
}
