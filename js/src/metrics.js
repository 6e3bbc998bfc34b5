/** Metrics: how far two secrets are apart. Those not measured here can be stored, and their secrets drawn by code. */

import { roomOf } from "./doubles.js";
import { Unsupported, refuse } from "./errors.js";
import { pathMeasure } from "./roads.js";
import { CONSTANTS } from "./constants.js";

export const EARTH_RADIUS_KM = CONSTANTS.earth_radius_km;

export const radians = (degrees) => degrees * (Math.PI / 180);
export const degrees = (angle) => angle * (180 / Math.PI);
export const mod = (value, period) => value - Math.floor(value / period) * period;

/** Return how many of a unit of length make a kilometre. */
export function perKilometre(unit) {
  if (!Object.hasOwn(CONSTANTS.metres, unit)) throw new Unsupported("this module does not know this unit for distances on the Earth.");
  return Number(CONSTANTS.metres.km) / Number(CONSTANTS.metres[unit]);
}

/** Return a decimal number as a fraction of whole numbers. */
export function fractionOf(decimal) {
  const [whole, rest = ""] = decimal.split(".");
  return [BigInt(whole + rest), 10n ** BigInt(rest.length)];
}

/** Return the radius of the Earth in a unit of length as a fraction: it is a decimal number. */
export function radiusOf(unit) {
  const [radius, parts] = fractionOf(String(EARTH_RADIUS_KM));
  const [metres, pieces] = fractionOf(CONSTANTS.metres[unit]);
  return [radius * 1000n * pieces, parts * metres];
}

/** Return half the diagonal of a cell with a side in degrees, at the equator, where it is longest. */
export const earthReach = (unit, pitch) => radians(EARTH_RADIUS_KM) * perKilometre(unit) * pitch * Math.SQRT1_2;

function parallel(latitude) {
  return Math.sin(radians(90 - Math.abs(latitude))); // by the distance to the pole, which is exact near it and zero at it
}

/** Return the difference of two longitudes, taken the short way round, as one rounding of the exact one. */
function around(east, other) {
  const gap = east - other;
  if (!(Math.abs(gap) > 180)) return gap;
  const part = gap - east;
  const lost = east - (gap - part) - (other + part); // what rounding the difference took off, exactly
  return gap - 360 * Math.round(gap / 360) + lost;
}

/**
 * Return the great-circle distance in kilometres between (latitude, longitude) in degrees.
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 * @returns {number}
 */
export function haversine(a, b) {
  const east = around(a[1], b[1]);
  const half =
    Math.sin(radians(a[0] - b[0]) / 2) ** 2 + parallel(a[0]) * parallel(b[0]) * Math.sin(radians(east) / 2) ** 2;
  return 2 * EARTH_RADIUS_KM * Math.atan2(Math.sqrt(half), Math.sqrt(Math.max(0, 1 - half)));
}

/** Return the l_p norm, scaled by the largest gap, so that powers neither overflow nor underflow. */
export function norm(gaps, p) {
  let largest = 0;
  let total = 0;
  for (const gap of gaps) {
    largest = Math.max(largest, Math.abs(gap));
    total += Math.abs(gap);
  }
  if (p === 1) return total;
  if (p === Infinity || largest === 0) return largest;
  let sum = 0;
  for (const gap of gaps) sum += (Math.abs(gap) / largest) ** p;
  return largest * sum ** (1 / p);
}

function gapsOf(a, b) {
  const gaps = new Array(a.length);
  for (let k = 0; k < a.length; k++) gaps[k] = a[k] - b[k];
  return gaps;
}

/** Return the Cholesky factor of a symmetric matrix, of which the lower half is read; null where it has none. */
function factorOf(matrix, size) {
  const factor = new Float64Array(size * size);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = matrix[i * size + j];
      for (let k = 0; k < j; k++) sum -= factor[i * size + k] * factor[j * size + k];
      if (i === j && !(sum > 0)) return null;
      factor[i * size + j] = i === j ? Math.sqrt(sum) : sum / factor[j * size + j];
    }
  }
  return factor;
}

/** Tell whether a symmetric matrix is positive definite, in doubles. */
export const isPositiveDefinite = (matrix, size) => factorOf(matrix, size) !== null;

function cholesky(matrix, size) {
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < i; j++) {
      const [here, there] = [matrix[i * size + j], matrix[j * size + i]];
      refuse(Math.abs(here - there) > 1e-12 + 1e-9 * Math.abs(there), "a covariance is not symmetric");
    }
  }
  const factor = factorOf(matrix, size);
  refuse(factor === null, "a covariance is not positive definite");
  return factor;
}

/** Return L^-1 x: the coordinates in which a Mahalanobis metric is Euclidean. */
export function whiten(factor, vector) {
  const size = vector.length;
  const result = new Array(size);
  for (let i = 0; i < size; i++) {
    let sum = vector[i];
    for (let k = 0; k < i; k++) sum -= factor[i * size + k] * result[k];
    result[i] = sum / factor[i * size + i];
  }
  return result;
}

/** Return the least number of insertions, deletions and substitutions that turn one word into another, by code points. */
export function edits(one, other) {
  const [left, right] = [Array.from(one), Array.from(other)];
  const row = Uint32Array.from({ length: right.length + 1 }, (_, k) => k);
  left.forEach((letter, i) => {
    let diagonal = row[0];
    row[0] = i + 1;
    for (let k = 0; k < right.length; k++) {
      const above = row[k + 1];
      row[k + 1] = Math.min(diagonal + (letter === right[k] ? 0 : 1), above + 1, row[k] + 1);
      diagonal = above;
    }
  });
  return row[right.length];
}

const isCode = (value, size) => Number.isSafeInteger(value) && value >= 0 && value < size;
const notMeasured = (name) => () => {
  throw new Unsupported(`distances of the metric ${name} are not computed here: give secrets by their codes.`);
};
const measuredInPython = (name) => () => ({ measure: notMeasured(name) });

/**
 * What each metric is made of: `measure(a, b)`, and where it is not every row of finite numbers, `legal(row)`: null, or why
 * a row cannot be measured (a name in `errors.js`). `text` says that it measures words. Every metric has checked
 * parameters by now (`manifest.js`); what depends on tensors or on other metrics is checked here.
 */
const METRICS = {
  Haversine: ({ unit }) => {
    const scale = perKilometre(unit);
    return {
      measure: (a, b) => scale * haversine(a, b),
      legal: (row) =>
        row.length !== 2 ? "count" : Math.abs(row[0]) <= 90 && Math.abs(row[1]) <= 360 ? null : "degrees",
    };
  },
  Lp: ({ p }) => ({ measure: (a, b) => norm(gapsOf(a, b), p) }),
  Mahalanobis: ({ covariance }, file) => {
    const [size] = file.shape(covariance);
    const entries = file.floats(covariance, [size, size], "a covariance");
    const factor = cholesky(entries, size);
    return {
      measure: (a, b) => norm(whiten(factor, gapsOf(a, b)), 2),
      legal: (row) => (row.length === size ? null : "count"),
      factor,
      covariance: entries,
    };
  },
  Temporal: ({ period }) => ({
    measure: (a, b) => {
      const gap = Math.abs(a[0] - b[0]);
      return period === null ? gap : Math.min(mod(gap, period), period - mod(gap, period));
    },
    legal: (row) => (row.length === 1 ? null : "count"),
  }),
  Hamming: () => ({ measure: (a, b) => Array.from(a).filter((value, k) => value !== b[k]).length, text: "either" }),
  Precomputed: ({ distances }, file) => {
    const [size] = file.shape(distances);
    const data = file.floats(distances, [size, size], "its distances");
    checkDistances(data, size);
    return {
      measure: (a, b) => data[a[0] * size + b[0]],
      legal: (row) => (isCode(row[0], size) ? null : "far"),
    };
  },
  Angular: ({ unit }) => ({
    measure: (a, b) => {
      const [one, two] = [norm(a, 2), norm(b, 2)];
      const [left, right] = [Array.from(a, (x) => x / one), Array.from(b, (x) => x / two)];
      const angle = 2 * Math.atan2(norm(gapsOf(left, right), 2), norm(left.map((x, k) => x + right[k]), 2));
      return unit === "deg" ? degrees(angle) : angle;
    },
    legal: (row) => (norm(row, 2) > 0 ? null : "far"),
  }),
  Hyperbolic: () => ({
    measure: (a, b) => 2 * Math.asinh(norm(gapsOf(a, b), 2) / Math.sqrt(roomOf(a)[0] * roomOf(b)[0])),
    legal: (row) => (row.every((x) => Math.abs(x) < 1) && roomOf(row)[0] > 0 ? null : "ball"),
  }),
  Weighted: ({ parts }, file) => {
    const groups = parts.map(([number, columns, weight]) => [file.metric(number), columns, weight]);
    const used = new Set(groups.flatMap(([, columns]) => columns));
    refuse(groups.some(([metric]) => metric.text === true), "a part of a weighted metric is a metric of words");
    const taken = (row, columns) => columns.map((column) => row[column]);
    return {
      measure: (a, b) =>
        groups.reduce((sum, [metric, columns, weight]) => sum + weight * metric.measure(taken(a, columns), taken(b, columns)), 0),
      legal: (row) => {
        if (used.size !== row.length || !row.every((_, column) => used.has(column))) return "count";
        for (const [metric, columns] of groups) {
          const why = metric.legal(taken(row, columns));
          if (why !== null) return why;
        }
        return null;
      },
    };
  },
  ShortestPath: (parameters, file) => {
    const { nodes, one_way: oneWay } = parameters;
    const count = file.shape(parameters.edges)[0];
    const edges = file.wholes(parameters.edges, [count, 2], "its streets");
    const lengths = file.floats(parameters.lengths, [count], "its streets");
    for (let k = 0; k < count; k++) {
      const [from, to] = [edges[2 * k], edges[2 * k + 1]];
      refuse(!isCode(from, nodes) || !isCode(to, nodes) || from === to || !(lengths[k] > 0), "a street has no length, or an end that is not a crossing");
    }
    return {
      measure: pathMeasure({ edges, lengths, nodes, oneWay }),
      legal: (row) => (isCode(row[0], nodes) ? null : "far"),
      edges,
      lengths,
      nodes,
    };
  },
  StreetPath: ({ network }, file) => {
    const roads = file.metric(network);
    return { measure: notMeasured("StreetPath"), network: roads, unit: roads.unit };
  },
  PolicyGraph: ({ network, apart }, file) => {
    const graph = file.metric(network);
    const longest = graph.lengths.reduce((sum, length) => sum + length, 0);
    refuse(graph.parameters.one_way !== "open", "its policy has one-way streets");
    refuse(!(apart > longest), "the distance between the parts of its policy is too small");
    return { measure: (a, b) => Math.min(graph.measure(a, b), apart), legal: graph.legal, unit: graph.unit, apart };
  },
  Levenshtein: () => ({ measure: (a, b) => edits(a[0], b[0]), text: true, legal: (row) => (row.length === 1 ? null : "count") }),
  Wasserstein: ({ ground }, file) => {
    const [size, ...sides] = file.shape(ground);
    const data = file.floats(ground, sides.length === 0 ? [size] : [size, size], "the ground of a metric");
    if (sides.length > 0) checkDistances(data, size);
    else refuse(data.some((place, k) => k > 0 && !(place > data[k - 1])), "the ground of a metric is not in increasing order");
    return { measure: notMeasured("Wasserstein"), legal: histogram(size) };
  },
  WordMovers: ({ vectors, ground, unit }, file) => {
    const [size, width] = file.shape(vectors);
    const data = file.floats(vectors, [size, width ?? null], "the vectors of a metric");
    const metric = file.metric(ground);
    for (let k = 0; k < size; k++) checkRow(Array.from(data.subarray(k * width, (k + 1) * width)), metric);
    return { measure: notMeasured("WordMovers"), legal: histogram(size), unit: unit || metric.unit };
  },
  Frechet: (parameters, file) => rowsOfVectors("Frechet", parameters, file),
  Bags: (parameters, file) => rowsOfVectors("Bags", parameters, file),
};

/** Rows of several vectors of one metric, one after the other. */
function rowsOfVectors(name, { ground: number, dimension, unit }, file) {
  const ground = file.metric(number);
  const starts = (row) => Array.from({ length: row.length / dimension }, (_, k) => k * dimension);
  return {
    measure: notMeasured(name),
    legal: (row) => {
      if (row.length % dimension !== 0) return "count";
      return starts(row).map((at) => ground.legal(row.slice(at, at + dimension))).find((why) => why !== null) ?? null;
    },
    unit: unit || ground.unit,
    ground,
    dimension,
  };
}

const histogram = (size) => (row) => {
  const total = row.reduce((sum, value) => sum + value, 0);
  return row.length === size && row.every((value) => value >= 0) && Math.abs(total - 1) <= CONSTANTS.rounding ? null : "far";
};

/** Refuse distances that are no metric; that no detour is shorter is left to Python, it takes size^3 steps. */
function checkDistances(data, size) {
  let largest = 1;
  for (const value of data) largest = Math.max(largest, Math.abs(value));
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      const [there, back] = [data[i * size + j], data[j * size + i]];
      refuse(there < 0 || (i === j && there !== 0), "a distance is negative, or a point has a distance to itself");
      refuse(Math.abs(there - back) > CONSTANTS.rounding * largest, "its distances are not symmetric");
    }
  }
}

/** Refuse a row of a file that its metric cannot measure. */
export function checkRow(row, metric) {
  const numbers = row.every((value) => typeof value === "string" || Math.abs(value) <= CONSTANTS.largest_coordinate);
  refuse(!numbers || metric.legal(row) !== null, "its metric cannot measure one of its points");
}

/** Rebuild a metric from its checked entry; it may refer to earlier ones. */
export function readMetric({ name, parameters }, file) {
  const make = METRICS[name] ?? measuredInPython(name);
  const made = make(parameters, file);
  return { name, unit: parameters.unit ?? "", legal: () => null, text: false, parameters, ...made };
}
