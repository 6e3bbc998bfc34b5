/** Laplace noise on the Earth, in the plane and in space, released on a public lattice; and noise before the nearest word. */

import { refuse, refuseSecret } from "./errors.js";
import { EARTH_RADIUS_KM, degrees, mod, norm, perKilometre, radians, unwhiten } from "./metrics.js";
import { erlang, openUniform, signedRoot, untilDecided } from "./randomness.js";
import { SHARED } from "./shared.js";
import { argmin } from "./spaces.js";
import { rint } from "./whole.js";

/** The multiples of a pitch, in every coordinate. */
class Lattice {
  constructor(pitch) {
    this.pitch = pitch;
    const inverse = rint(1 / pitch);
    this.perUnit = inverse >= 1 && 1 / inverse === pitch ? inverse : 0;
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

/** Return a radius with density proportional to exp(-epsilon r) sin(r / R) on [0, pi R], by exact rejection. */
function sphericalRadius(epsilon, source) {
  const circle = Math.PI * EARTH_RADIUS_KM;
  return untilDecided(() => {
    let radius;
    let chance;
    if (epsilon * EARTH_RADIUS_KM > 1) {
      radius = erlang(2, source) / epsilon; // propose the planar radius, keep with sin(t) / t
      const angle = (Math.PI * radius) / circle;
      chance = radius >= circle ? 0 : angle === 0 ? 1 : Math.sin(angle) / angle;
    } else {
      radius = EARTH_RADIUS_KM * Math.acos(1 - 2 * openUniform(source)); // a uniform point of the sphere
      chance = Math.exp(-epsilon * radius);
    }
    return openUniform(source) < chance ? radius : undefined;
  });
}

function sphericalReport(lattice, [latitude, longitude]) {
  const around = rint(360 / lattice.pitch);
  const east = mod(lattice.cell(longitude) + around / 2, around) - around / 2;
  const north = lattice.value(lattice.cell(latitude));
  return [north, Math.abs(north) >= 90 ? 0 : lattice.value(east)]; // longitudes mean nothing at the poles
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
  const draw = (point, source) => {
    const [north, east] = point.map(radians);
    const away = sphericalRadius(epsilon, source) / EARTH_RADIUS_KM;
    const bearing = 2 * Math.PI * openUniform(source);
    const [up, side] = [Math.sin(away) * Math.cos(bearing), Math.sin(away) * Math.sin(bearing)];
    const height = Math.sin(north) * Math.cos(away) + Math.cos(north) * up;
    const out = Math.cos(north) * Math.cos(away) - Math.sin(north) * up;
    const latitude = Math.atan2(height, Math.hypot(out, side));
    return sphericalReport(lattice, [degrees(latitude), degrees(east + Math.atan2(side, out))]);
  };
  const reach = radians(EARTH_RADIUS_KM) * scale * body.pitch * Math.SQRT1_2; // half the diagonal of a cell at the equator
  return { inputs, outputs: inputs, draw, rate: body.epsilon, reach };
}

/** Refuse a lattice on which noise drawn in doubles would show: what they add to a log-ratio must stay small. */
function checkPitch(drawingError) {
  refuse(!(drawingError <= SHARED.largest_drawing_error), "its lattice is finer than noise in doubles");
}

/** Return what doubles may add to a log-ratio; the reasons stand with VectorLaplace in Python. */
function vectorDrawingError({ metric, dimension: n }, epsilon, pitch) {
  const p = metric.name === "Lp" ? metric.parameters.p : 2;
  const widest = metric.name === "Mahalanobis" ? norm(Array.from(metric.factor), 2) : 1;
  const displaced = (widest * (3 * n + (64 + 2 * n) * (20 + n / 2)) * 2 ** -52) / epsilon;
  return (4.4 * n ** (1 - 1 / p) * displaced) / pitch;
}

function vectorNoise({ metric, dimension }, epsilon, source) {
  const p = metric.name === "Lp" ? metric.parameters.p : 2;
  let direction;
  if (dimension === 2 && p === 2) {
    const angle = 2 * Math.PI * openUniform(source);
    direction = [Math.cos(angle), Math.sin(angle)];
  } else {
    direction = untilDecided(() => {
      const raw = Array.from({ length: dimension }, () => signedRoot(p, source));
      const size = norm(raw, p);
      return size > 0 ? raw.map((x) => x / size) : undefined;
    });
  }
  const radius = erlang(dimension, source) / epsilon;
  const noise = direction.map((x) => x * radius);
  return metric.name === "Mahalanobis" ? unwhiten(metric.factor, noise) : noise;
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
  checkPitch(vectorDrawingError(inputs, body.epsilon, body.pitch));
  checkPromise(promise, body.epsilon);
  const draw = (point, source) => {
    const cells = point.map((x) => lattice.cell(x));
    refuseSecret(cells.some((cell) => !(Math.abs(cell) <= SHARED.largest_cell)), "lattice");
    const noise = vectorNoise(inputs, body.epsilon, source);
    return cells.map((cell, k) => lattice.value(cell + lattice.cell(noise[k] + (point[k] - lattice.value(cell)))));
  };
  return { inputs, outputs: inputs, draw, rate: body.epsilon, reach: cellReach(inputs, body.pitch) };
}

/** Read noise on the vector of a secret, after which the nearest vector is reported. */
export function readNearest(body, file, promise) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  const plane = { metric: inputs.metric, dimension: inputs.points.width };
  checkVectors(plane);
  refuse(outputs.points.text || outputs.points.width !== plane.dimension, "its reports do not fit its secrets");
  checkPromise(promise, body.epsilon);
  const rows = Array.from({ length: outputs.size }, (_, code) => outputs.points.row(code));
  const draw = (code, source) => {
    const noise = vectorNoise(plane, body.epsilon, source);
    const noisy = inputs.points.row(code).map((x, k) => x + noise[k]);
    return argmin(outputs.size, (k) => plane.metric.measure(noisy, rows[k]));
  };
  return { inputs, outputs, draw, rate: body.epsilon };
}
