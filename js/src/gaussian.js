/** Normal noise, released on a public lattice: a concentrated guarantee, never a pure one. */

import { refuse } from "./errors.js";
import { Lattice, cellReach, checkPitch, checkPoles, checkVectors, widestOf } from "./lattice.js";
import { EARTH_RADIUS_KM, earthReach, perKilometre, radians, radiusOf } from "./metrics.js";
import { SphereGaussianDistribution } from "./sphere.js";
import { VectorDistribution } from "./vectors.js";
import { rint, toWhole } from "./whole.js";

const DISPLACED = 40; // times 2^-52 of sigma: the mean error of a normal number in doubles, with room
const UP = 6; // standard deviations that noise upward goes down with a probability below ONE_IN
const ONE_IN = 1e-9;

/** Refuse a guarantee that the noise does not satisfy: 2 rho sigma^2 must be at least one, exactly. */
function checkRho({ rho }, sigma) {
  refuse(2n * toWhole(rho) * toWhole(sigma) ** 2n < 1n << 3222n, "its noise does not satisfy its guarantee");
}

/** Return how far a pair of normal numbers goes with a probability of `level`, in standard deviations. */
const pairWithin = (level) => Math.sqrt(-2 * Math.log1p(-level)) * (1 + 2 ** -48);

/** Read normal noise for vectors: y = x + sigma L z, L L^T the covariance of the metric, or 1. */
export function readGaussianNoise(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const { metric, dimension: n } = inputs;
  checkVectors(inputs);
  const mahalanobis = metric.name === "Mahalanobis";
  refuse(!mahalanobis && metric.parameters.p !== 2 && n !== 1, "its noise does not belong to its metric");
  const { sigma, pitch } = body;
  const lattice = new Lattice(pitch);
  checkPitch((4.4 * n * (DISPLACED + n) * 2 ** -52 * sigma * widestOf(metric)) / pitch);
  checkRho(guarantee, sigma);
  const distribution = new VectorDistribution({ dimension: n, ratio: lattice.ratio, sigma, covariance: mahalanobis ? metric.covariance : null });
  const draw = (point, source) => {
    lattice.refuseFar(point);
    return distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  };
  const within = n === 2 ? (level) => sigma * pairWithin(level) + cellReach(inputs, pitch) : null;
  return { inputs, outputs: inputs, draw, within };
}

/** Read normal noise for places on the Earth: added in space, then seen from the centre of the Earth. */
export function readSphericalGaussian(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const { metric, dimension } = inputs;
  const { sigma, pitch } = body;
  refuse(metric.name !== "Haversine" || dimension !== 2, "its noise does not belong to its metric");
  checkPoles(pitch);
  const degree = radians(EARTH_RADIUS_KM) * perKilometre(metric.unit);
  checkPitch((4.4 * 2 * ((4 * DISPLACED * sigma) / degree + 8 * 180) * 2 ** -52) / pitch);
  checkRho(guarantee, sigma);
  const lattice = new Lattice(pitch);
  const [radius, parts] = radiusOf(metric.unit);
  const distribution = new SphereGaussianDistribution([toWhole(sigma) * parts, radius << 1074n], rint(90 / pitch));
  const draw = (point, source) => distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  /**
   * Noise along the ground is seen farther the deeper the other part goes: not below 1 - 6 reach but for a probability of 1e-9. The angle is
   * at most its tangent.
   */
  const within = (level) => {
    const up = 1 - UP * distribution.reach;
    if (!(up > 0.5) || !(level < 1 - ONE_IN)) return 180 * degree; // anywhere on the Earth
    return (sigma * pairWithin(level / (1 - ONE_IN))) / up + earthReach(metric.unit, pitch);
  };
  return { inputs, outputs: inputs, draw, within };
}
