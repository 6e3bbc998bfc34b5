/** Noise on the Earth, in the plane and in space, for unit vectors and after a projection, released on a public lattice. */

import { DirectionDistribution } from "./directions.js";
import { UNIT } from "./doubles.js";
import { Unsupported, refuse } from "./errors.js";
import { Profile } from "./hats.js";
import { Lattice, cellReach, checkPitch, checkPoles, checkGuarantee, checkVectors, widestOf } from "./lattice.js";
import { EARTH_RADIUS_KM, earthReach, isPositiveDefinite, perKilometre, radians, radiusOf } from "./metrics.js";
import { CONSTANTS } from "./constants.js";
import { SphereDistribution } from "./sphere.js";
import { VectorDistribution } from "./vectors.js";
import { rint, toWhole } from "./whole.js";

const LARGEST_PRODUCT = 2 ** 31; // operations that opening a projection may take

/** Return Laplace noise on the Earth, `draw(point, source)`: a uniform bearing, then the great circle. */
export function sphericalNoise({ metric, dimension }, epsilon, pitch) {
  refuse(metric.name !== "Haversine" || dimension !== 2, "its noise does not belong to its metric");
  const lattice = new Lattice(pitch);
  checkPoles(pitch);
  const perKm = epsilon * perKilometre(metric.unit);
  checkPitch((8.8 * ((6 + 68 * 21) / (perKm * radians(EARTH_RADIUS_KM)) + 8 * 180) * 2 ** -52) / pitch);
  const [radius, parts] = radiusOf(metric.unit);
  const distribution = new SphereDistribution([toWhole(epsilon) * radius, parts << 1074n], rint(90 / pitch));
  return (point, source) => distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
}

/** Read Laplace noise on the Earth. */
export function readSphericalLaplace(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const draw = sphericalNoise(inputs, body.epsilon, body.pitch);
  checkGuarantee(guarantee, body.epsilon);
  return { inputs, outputs: inputs, draw, rate: body.epsilon, reach: earthReach(inputs.metric.unit, body.pitch) };
}

/** Return a bound of the share of draws that doubles leave undecided; the reasons stand with VectorLaplace in Python. */
function undecidedShare({ metric, dimension: n }, epsilon, pitch) {
  const p = metric.name === "Lp" ? metric.parameters.p : 2;
  const displaced = (widestOf(metric) * (3 * n + (64 + 2 * n) * (20 + n / 2)) * 2 ** -52) / epsilon;
  return (4.4 * n ** (1 - 1 / p) * displaced) / pitch;
}

/** Return the distribution of the noise of a space on a lattice of `ratio` cells in a unit. */
export function distributionOf({ metric, dimension }, ratio, epsilon) {
  const mahalanobis = metric.name === "Mahalanobis";
  return new VectorDistribution({
    p: mahalanobis ? 2 : metric.parameters.p, dimension, ratio, epsilon, covariance: mahalanobis ? metric.covariance : null,
  });
}

/** Return Laplace noise for vectors, `draw(point, source)`: density proportional to exp(-epsilon d(x, y)), in whole cells. */
export function vectorNoise(space, epsilon, pitch) {
  checkVectors(space);
  const lattice = new Lattice(pitch);
  checkPitch(undecidedShare(space, epsilon, pitch));
  const distribution = distributionOf(space, lattice.ratio, epsilon);
  return (point, source) => {
    lattice.refuseFar(point);
    return distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  };
}

/** Read Laplace noise for vectors. */
export function readVectorLaplace(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const draw = vectorNoise(inputs, body.epsilon, body.pitch);
  checkGuarantee(guarantee, body.epsilon);
  return { inputs, outputs: inputs, draw, rate: body.epsilon, reach: cellReach(inputs, body.pitch) };
}

/** Read noise for unit vectors: density proportional to exp(-epsilon * angle), or to exp(epsilon <x, y>) under l_2. */
export function readDirectionNoise(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const { metric, dimension: n } = inputs;
  const isAngle = metric.name === "Angular";
  refuse(!isAngle && !(metric.name === "Lp" && metric.parameters.p === 2 && n >= 3), "its noise does not belong to its metric");
  refuse(body.pitch * Math.sqrt(n) > 1, "its lattice is too coarse for unit vectors");
  checkPitch(((2 * (4 * n + 80) * Math.sqrt(n)) / body.pitch + 2e4 * n) * UNIT);
  checkGuarantee(guarantee, body.epsilon);
  const lattice = new Lattice(body.pitch);
  const distribution = new DirectionDistribution(new Profile(isAngle ? "angle" : "height", n, body.epsilon, metric.unit === "deg"), lattice.ratio);
  const draw = (point, source) => distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  return { inputs, outputs: { metric, dimension: n }, draw };
}

/** Read l_2 noise around A x, which keeps its rate times the norm of A: so (epsilon / rate)^2 - A A^T has no negative direction. */
export function readProjectedLaplace(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const { metric, dimension: n } = inputs;
  const [k] = file.shape(body.matrix);
  const data = file.floats(body.matrix, [k, n], "its projection");
  refuse(metric.name !== "Lp" || metric.parameters.p !== 2 || k > n, "its noise does not belong to its metric");
  if (k * k * n > LARGEST_PRODUCT) throw new Unsupported("this module does not draw from a projection of this size.");
  const matrix = Array.from({ length: k }, (_, i) => Array.from(data.subarray(i * n, (i + 1) * n)));
  const allowed = guarantee.epsilon / body.epsilon;
  const room = new Float64Array(k * k);
  for (let i = 0; i < k; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let c = 0; c < n; c++) sum += (matrix[i][c] / allowed) * (matrix[j][c] / allowed);
      room[i * k + j] = (i === j ? 1 + CONSTANTS.rounding : 0) - sum;
    }
  }
  refuse(guarantee.basis !== "none" && !isPositiveDefinite(room, k), "its noise does not satisfy its guarantee");
  const lattice = new Lattice(body.pitch);
  checkPitch(undecidedShare({ metric, dimension: k }, body.epsilon, body.pitch));
  const distribution = new VectorDistribution({ p: 2, dimension: k, ratio: lattice.ratio, epsilon: body.epsilon, matrix });
  const draw = (point, source) => {
    lattice.refuseFar(distribution.places(point).map(([x]) => x));
    return distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  };
  return { inputs, outputs: { metric, dimension: k }, draw };
}
