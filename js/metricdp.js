/**
 * Read a mechanism file of metricdp and draw reports from it, in a browser, on a phone or in Node. No dependencies.
 *
 * The format is described in docs/format.md of the project. What is drawn has the same distribution as in Python, and
 * for tables of probabilities exactly the stored one. Randomness comes from crypto.getRandomValues only.
 */

const FORMAT = "metricdp-mechanism";
const VERSION = 2;
const FIELDS = ["body", "certificate", "format", "guarantee", "kind", "metrics", "sha256", "spaces", "units", "version"];
const FIELDS_OF = { 1: FIELDS, 2: [...FIELDS, "licence", "signature"].sort() };
const PURPOSE = "metricdp-mechanism-signature-1\0";
const HEADER_LIMIT = 64 * 2 ** 20;
const LARGEST_MATRIX = 2 ** 29;
const ROUNDING = 1e-9; // a value this close (relative to the largest coordinate) to a secret is that secret, rounded
const EARTH_RADIUS_KM = 6371.009;
const LARGEST_CELL = 2 ** 51;
const ULP = 2 ** -52;
const KEPT_ROWS = 4096; // running sums are kept for so many rows
const TYPES = {
  F64: Float64Array, I64: BigInt64Array, U8: Uint8Array, U16: Uint16Array, U32: Uint32Array, U64: BigUint64Array,
};

/** Every error this module raises on purpose; the message says what was expected, what came and what to do. */
export class MetricdpError extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}
/** The file is damaged, altered, foreign, newer, or not signed by a key that is trusted. */
export class CorruptFile extends MetricdpError {}
/** An argument is not what was asked for. */
export class InvalidInput extends MetricdpError {}
/** A value is not one of the secrets; it is never passed through. */
export class OutOfDomain extends InvalidInput {}
/** This module, or this browser, cannot do it; Python can. */
export class Unsupported extends MetricdpError {}

/**
 * Everything that is ever said about a secret that is refused. An error goes to the app and to its logs, so the sentences
 * are constant: no value, no distance, no nearest secret. That one was raised still tells outside from inside.
 */
const STRANGER = {
  code: [OutOfDomain, "a code must be a whole number from 0 to one below the number of secrets."],
  count: [InvalidInput, "a secret must have as many coordinates as the mechanism has columns."],
  number: [InvalidInput, "the coordinates of a secret must be finite numbers."],
  degrees: [InvalidInput, "latitude must lie in [-90, 90] and longitude in [-360, 360], in degrees."],
  word: [OutOfDomain, "this is not a word of the vocabulary: passing it through would publish it."],
  far: [OutOfDomain, "this is not a secret of the mechanism: ask for snapping with `snap`, or raise it (its slack is added to the promise)."],
  box: [OutOfDomain, "this lies outside the box of the mechanism."],
  street: [OutOfDomain, "this lies on no street: give a street number and an offset along it."],
  lattice: [OutOfDomain, "this is too far out for the lattice of the mechanism: subtract an origin."],
  parts: [InvalidInput, "a secret of a product is a list with one value for every part."],
};

/** Refuse a secret: the only place where an error about one is made. */
function refuseSecret(condition, why) {
  if (!condition) return;
  const [Kind, sentence] = STRANGER[why];
  throw new Kind(sentence);
}

// ---------------------------------------------------------------------------------------------------- randomness

/** Uniform 64-bit words of the system's cryptographic generator, as two halves `high` and `low`. */
class SystemSource {
  constructor() {
    this.high = 0;
    this.low = 0;
    this.words = new Uint32Array(4096);
    this.at = this.words.length;
  }

  next() {
    if (this.at >= this.words.length) {
      globalThis.crypto.getRandomValues(this.words);
      this.at = 0;
    }
    this.high = this.words[this.at];
    this.low = this.words[this.at + 1];
    this.words[this.at] = this.words[this.at + 1] = 0; // what was used is forgotten
    this.at += 2;
  }
}

const system = new SystemSource();

/** Return a uniform number in (0, 1) with 64 random bits, and 64 more below 2^-52 so that tails are not cut. */
function openUniform(source) {
  source.next();
  const { high, low } = source;
  const word = high * 4294967296 + low;
  if (high === 0 && low < 4096) {
    source.next();
    const deeper = (source.high * 4294967296 + source.low) * 2 ** -64;
    return (word + deeper + 2 ** -65) * 2 ** -64;
  }
  return Math.min((word + 0.5) * 2 ** -64, 1 - 2 ** -53);
}

/** Return a Gamma(shape, 1) variate for a whole-number shape: minus the log of a product of uniforms. */
function erlang(shape, source) {
  let total = 0;
  for (let start = 0; start < shape; start += 4) {
    let product = 1; // four factors cannot underflow
    for (let k = start; k < Math.min(shape, start + 4); k++) product *= openUniform(source);
    total -= Math.log(product);
  }
  return total;
}

function normal(source) {
  const radius = Math.sqrt(-2 * Math.log(openUniform(source)));
  return radius * Math.cos(2 * Math.PI * openUniform(source));
}

/** Return a Gamma(shape, 1) variate for 0 < shape <= 1 (Marsaglia and Tsang 2000, with their boost). */
function gamma(shape, source) {
  const d = shape + 1 - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normal(source);
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(openUniform(source)) < 0.5 * x * x + d - d * v + d * Math.log(v)) {
      return d * v * openUniform(source) ** (1 / shape);
    }
  }
}

// ---------------------------------------------------------------------------------------------------- exact numbers

const BITS = new DataView(new ArrayBuffer(8));

/** Return the double as a whole multiple of 2^-1074. */
function toWhole(value) {
  BITS.setFloat64(0, value);
  const bits = BITS.getBigUint64(0);
  const exponent = (bits >> 52n) & 0x7ffn;
  const mantissa = (bits & 0xfffffffffffffn) | (exponent > 0n ? 0x10000000000000n : 0n);
  const size = mantissa << (exponent > 0n ? exponent - 1n : 0n);
  return bits >> 63n ? -size : size;
}

/** Return e^x for x = value / 2^bits, as a multiple of 2^-bits; good to bits - 40 places for 0 <= x <= 2^20. */
function fixedExp(value, bits) {
  let halvings = 8n;
  for (let rest = value >> bits; rest > 0n; rest >>= 1n) halvings += 1n;
  const small = value >> halvings;
  let term = 1n << bits;
  let sum = term;
  for (let k = 1n; term > 0n; k += 1n) {
    term = ((term * small) >> bits) / k;
    sum += term;
  }
  for (let k = 0n; k < halvings; k += 1n) sum = (sum * sum) >> bits;
  return sum;
}

/** Return ln(y) for y = value / 2^bits > 1, as a multiple of 2^-bits: Halley's steps from the double nearby. */
function fixedLog(value, bits) {
  const shift = BigInt(value.toString(2).length) - bits;
  const rest = shift > 0n ? value >> shift : value; // y = rest * 2^shift with rest about 1
  const guess = Math.log(Number(rest >> (bits - 60n)) * 2 ** -60) + Number(shift > 0n ? shift : 0n) * Math.LN2;
  let log = BigInt(Math.max(0, Math.round(guess * 2 ** 40))) << (bits - 40n);
  for (let good = 30n; good < 2n * bits; good *= 3n) {
    const power = fixedExp(log, bits);
    log += (2n * (value - power) << bits) / (value + power);
    if (log < 0n) log = 0n;
  }
  return log;
}

/**
 * Decide U < theta exactly, U being the word followed by as many further bits as needed, and theta the share of the far
 * anchor at position top / bottom: (e^(L t) - 1) / (e^a - 1) with L = 2 ln((1 + e^a) / 2), mirrored beyond the middle.
 */
function exactFlip(top, bottom, ratio, high, low, source) {
  let word = (BigInt(high) << 32n) | BigInt(low);
  for (let bits = 64n; ; bits += 64n) {
    const places = bits + 192n;
    const one = 1n << places;
    const error = 1n << 96n; // of theta in units of 2^-places: the functions above lose far fewer than 96 places
    const beyond = 2n * top > bottom;
    const near = ((beyond ? bottom - top : top) << places) / bottom;
    let share = near;
    if (ratio > 0) {
      const a = (toWhole(ratio) << places) >> 1074n;
      const power = fixedExp(a, places);
      const length = 2n * fixedLog((one + power) / 2n, places);
      share = ((fixedExp((length * near) >> places, places) - one) << places) / (power - one);
    }
    if (beyond) share = one - share;
    const scale = places - bits;
    if (share - error >= (word + 1n) << scale) return true;
    if (share + error <= word << scale) return false;
    source.next();
    word = (word << 64n) | (BigInt(source.high) << 32n) | BigInt(source.low);
  }
}

/** Round to the nearest whole number, halves to even, as Python does. */
function rint(value) {
  const floor = Math.floor(value);
  const above = value - floor;
  if (above < 0.5) return floor;
  if (above > 0.5) return floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

// ---------------------------------------------------------------------------------------------------- tables

/**
 * Rows of probabilities in any storage. A draw is exact with respect to row / sum(row) of the stored numbers: a 64-bit
 * word is compared with running sums in doubles whose error is bounded, and a word within that bound of a boundary
 * (about one in a billion) is decided with whole numbers of any length and further random bits.
 */
class Table {
  constructor(rows, reports, columns) {
    this.rows = rows;
    this.reports = reports;
    this.columns = columns; // the reports in use, or null where all are stored
    this.kept = new Map();
  }

  /** Return the numbers of a row, one for every stored report. */
  weights(row) {
    const used = this.width;
    if (this.present === undefined) return this.values.subarray(row * used, (row + 1) * used);
    const result = new Float64Array(used);
    let at = this.starts[row];
    for (let k = 0; k < used; k++) {
      const bit = row * used + k;
      if ((this.present[bit >> 3] >> (bit & 7)) & 1) result[k] = this.values[at++];
    }
    return result;
  }

  get width() {
    return this.columns === null ? this.reports : this.columns.length;
  }

  /** Return the law of a row over all reports. */
  law(row) {
    const weights = this.weights(row);
    const total = this.bits === undefined ? sumOf(weights) : 2 ** this.bits;
    const result = new Float64Array(this.reports);
    for (let k = 0; k < weights.length; k++) result[this.report(k)] = Number(weights[k]) / total;
    return result;
  }

  report(k) {
    return this.columns === null ? k : Number(this.columns[k]);
  }

  running(row) {
    let sums = this.kept.get(row);
    if (sums === undefined) {
      if (this.kept.size >= KEPT_ROWS) this.kept.clear();
      sums = this.bits === undefined ? shares(this.weights(row)) : counted(this.weights(row));
      this.kept.set(row, sums);
    }
    return sums;
  }

  draw(row, source) {
    source.next();
    const sums = this.running(row);
    if (this.bits === undefined) return this.report(drawShares(sums, () => this.weights(row), source));
    // The leading bits of the word are a uniform whole number below 2^bits; counts and their sums are exact.
    const { high, low } = source;
    const bits = this.bits;
    const place = bits <= 32 ? high >>> (32 - bits) : high * 2 ** (bits - 32) + (low >>> (64 - bits));
    return this.report(firstAbove(sums, place));
  }
}

function sumOf(weights) {
  let total = 0;
  for (const weight of weights) total += weight;
  return total;
}

function shares(weights) {
  const sums = new Float64Array(weights.length);
  let total = 0;
  for (let k = 0; k < weights.length; k++) sums[k] = total += weights[k];
  for (let k = 0; k < sums.length; k++) sums[k] /= total;
  return sums;
}

function counted(counts) {
  const sums = new Float64Array(counts.length);
  let total = 0; // at most 2^52: exact
  for (let k = 0; k < counts.length; k++) sums[k] = total += Number(counts[k]);
  return sums;
}

/** Return the first place whose running sum is above the value, or the last place. */
function firstAbove(sums, value) {
  let low = 0;
  let high = sums.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sums[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

function drawShares(sums, weights, source) {
  const { high, low } = source;
  const level = (high * 4294967296 + low) * 2 ** -64;
  const k = firstAbove(sums, level);
  const band = (sums.length + 16) * ULP; // rounding of the running sum, of the division and of the level
  const unsure = sums[k] - level <= band || (k > 0 && level - sums[k - 1] <= band) || level >= 1 - band;
  return unsure ? exactDraw(weights(), high, low, source) : k;
}

/** Decide one draw in whole numbers: the word, then as many further bits as it takes. */
function exactDraw(weights, high, low, source) {
  const whole = Array.from(weights, toWhole);
  const total = whole.reduce((a, b) => a + b, 0n);
  let word = (BigInt(high) << 32n) | BigInt(low);
  for (let bits = 64n; ; bits += 64n) {
    let running = 0n;
    for (let k = 0; k < whole.length; k++) {
      running += whole[k];
      const edge = running << bits;
      if (word * total < edge) {
        if ((word + 1n) * total <= edge) return k;
        break;
      }
    }
    source.next();
    word = (word << 64n) | (BigInt(source.high) << 32n) | BigInt(source.low);
  }
}

function readTable(entry, file) {
  if (typeof entry === "string") {
    const { data, shape } = file.tensor(entry);
    refuse(shape.length !== 2 || !(data instanceof Float64Array), "its matrix is not a table of numbers");
    const table = new Table(shape[0], shape[1], null);
    table.values = data;
    table.storage = "dense";
    checkRows(table);
    return table;
  }
  const [rows, reports] = entry.shape;
  const sized = entry.shape.length === 2 && [rows, reports].every((side) => Number.isSafeInteger(side) && side > 0);
  refuse(!sized || rows * reports > LARGEST_MATRIX, `its matrix has the shape ${entry.shape}`);
  const columns = file.tensor(entry.columns).data;
  for (let k = 0; k < columns.length; k++) {
    refuse(Number(columns[k]) >= reports || (k > 0 && columns[k] <= columns[k - 1]), "reports are not listed in order");
  }
  const table = new Table(rows, reports, columns);
  table.storage = entry.storage;
  if (entry.storage === "sparse") {
    table.values = file.tensor(entry.values).data;
    refuse(!(table.values instanceof Float64Array), "its probabilities are not numbers");
    let expected = rows * columns.length;
    if (entry.present !== null) expected = readPresent(table, file.tensor(entry.present).data);
    refuse(expected !== table.values.length, "its bits do not say where the probabilities belong");
    for (const value of table.values) refuse(!(value > 0), "a stored probability is not positive");
  } else if (entry.storage === "quantised") {
    const { data, shape } = file.tensor(entry.counts);
    const good = Number.isInteger(entry.bits) && entry.bits >= 8 && entry.bits <= 52;
    refuse(!good || shape.length !== 2 || shape[0] !== rows || shape[1] !== columns.length, "its counts are no table");
    refuse(data instanceof Float64Array || data instanceof BigInt64Array, "its counts are no whole numbers");
    table.values = data;
    table.bits = entry.bits;
    for (let row = 0; row < rows; row++) {
      let total = 0;
      for (const count of table.weights(row)) total += Number(count);
      refuse(total !== 2 ** entry.bits, `a row of counts does not sum to 2^${entry.bits}`);
    }
    return table;
  } else refuse(true, `its probabilities are stored in an unknown way, ${entry.storage}`);
  checkRows(table);
  return table;
}

function readPresent(table, bits) {
  const used = table.columns.length;
  refuse(bits.length !== Math.ceil((table.rows * used) / 8), "its bits do not fit its table");
  table.present = bits;
  table.starts = new Uint32Array(table.rows);
  let count = 0;
  for (let row = 0; row < table.rows; row++) {
    table.starts[row] = count;
    for (let bit = row * used; bit < (row + 1) * used; bit++) count += (bits[bit >> 3] >> (bit & 7)) & 1;
  }
  return count;
}

function checkRows(table) {
  for (let row = 0; row < table.rows; row++) {
    let total = 0;
    for (const value of table.weights(row)) {
      refuse(!(value >= 0), "a stored probability is negative or no number");
      total += value;
    }
    refuse(!(Math.abs(total - 1) <= 1e-3), `row ${row} sums to ${total}, not to 1`);
  }
}

// ---------------------------------------------------------------------------------------------------- metrics and spaces

const radians = (degrees) => degrees * (Math.PI / 180);
const degrees = (angle) => angle * (180 / Math.PI);
const mod = (value, period) => value - Math.floor(value / period) * period;

function parallel(latitude) {
  return Math.abs(latitude) === 90 ? 0 : Math.cos(radians(latitude)); // every longitude is one place at a pole
}

/** Return the great-circle distance in kilometres between (latitude, longitude) in degrees. */
export function haversine(a, b) {
  const east = mod(a[1] - b[1] + 180, 360) - 180;
  const half =
    Math.sin(radians(a[0] - b[0]) / 2) ** 2 + parallel(a[0]) * parallel(b[0]) * Math.sin(radians(east) / 2) ** 2;
  return 2 * EARTH_RADIUS_KM * Math.atan2(Math.sqrt(half), Math.sqrt(Math.max(0, 1 - half)));
}

function norm(gaps, p) {
  let largest = 0;
  let total = 0;
  for (const gap of gaps) {
    largest = Math.max(largest, Math.abs(gap));
    total += Math.abs(gap);
  }
  if (p === 1) return total;
  if (p === Infinity || largest === 0) return largest;
  let sum = 0; // scaled by the largest gap, so that powers neither overflow nor underflow
  for (const gap of gaps) sum += (Math.abs(gap) / largest) ** p;
  return largest * sum ** (1 / p);
}

function cholesky(matrix, size) {
  const factor = new Float64Array(size * size);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = matrix[i * size + j];
      for (let k = 0; k < j; k++) sum -= factor[i * size + k] * factor[j * size + k];
      refuse(i === j && !(sum > 0), "a covariance is not positive definite");
      factor[i * size + j] = i === j ? Math.sqrt(sum) : sum / factor[j * size + j];
    }
  }
  return factor;
}

/** Return L^-1 x: the coordinates in which a Mahalanobis metric is Euclidean. */
function whiten(factor, vector) {
  const size = vector.length;
  const result = new Array(size);
  for (let i = 0; i < size; i++) {
    let sum = vector[i];
    for (let k = 0; k < i; k++) sum -= factor[i * size + k] * result[k];
    result[i] = sum / factor[i * size + i];
  }
  return result;
}

function unwhiten(factor, vector) {
  const size = vector.length;
  return vector.map((_, i) => {
    let sum = 0;
    for (let k = 0; k <= i; k++) sum += factor[i * size + k] * vector[k];
    return sum;
  });
}

const gapsOf = (a, b) => Array.from(a, (value, k) => value - b[k]);

/** How metrics measure; those that are missing here can be stored and sampled by code, not measured. */
const METRICS = {
  Haversine: () => haversine,
  Lp: ({ p }) => (a, b) => norm(gapsOf(a, b), p),
  Mahalanobis: (parameters, file) => {
    const { data, shape } = file.tensor(parameters.covariance);
    parameters.factor = cholesky(data, shape[0]);
    return (a, b) => norm(whiten(parameters.factor, gapsOf(a, b)), 2);
  },
  Temporal: ({ period }) => (a, b) => {
    const gap = Math.abs(a[0] - b[0]);
    return period === null ? gap : Math.min(mod(gap, period), period - mod(gap, period));
  },
  Hamming: () => (a, b) => Array.from(a).filter((value, k) => value !== b[k]).length,
  Precomputed: (parameters, file) => {
    const { data, shape } = file.tensor(parameters.distances);
    return (a, b) => data[a[0] * shape[1] + b[0]];
  },
  Angular: () => (a, b) => {
    const [one, two] = [norm(a, 2), norm(b, 2)];
    const [left, right] = [Array.from(a, (x) => x / one), Array.from(b, (x) => x / two)];
    return 2 * Math.atan2(norm(gapsOf(left, right), 2), norm(left.map((x, k) => x + right[k]), 2));
  },
  Hyperbolic: () => (a, b) => {
    const room = (1 - norm(a, 2) ** 2) * (1 - norm(b, 2) ** 2);
    return 2 * Math.asinh(norm(gapsOf(a, b), 2) / Math.sqrt(room));
  },
  Weighted: ({ parts }, file) => (a, b) =>
    parts.reduce((sum, [number, columns, weight]) => {
      const measure = file.metrics[number].measure;
      return sum + weight * measure(columns.map((c) => a[c]), columns.map((c) => b[c]));
    }, 0),
};

function readMetric({ name, parameters }, file) {
  const values = {};
  for (const [key, value] of Object.entries(parameters)) values[key] = fromPlain(value);
  for (const key of ["covariance", "distances", "ground", "vectors", "edges", "lengths"]) {
    if (typeof values[key] === "string") file.tensor(values[key]); // it belongs to the file, used here or not
  }
  const make = Object.hasOwn(METRICS, name) ? METRICS[name] : null;
  const measure = make
    ? make(values, file)
    : () => {
        throw new Unsupported(`distances of the metric ${name} are not computed here: give secrets by their code.`);
      };
  return { name, parameters: values, unit: values.unit ?? "", measure };
}

function checkDegrees(point) {
  refuseSecret(!(Math.abs(point[0]) <= 90 && Math.abs(point[1]) <= 360), "degrees");
}

class Finite {
  constructor(entry, file) {
    const points = file.tensor(entry.points);
    this.metric = file.metric(entry.metric);
    this.ground = file.metric(entry.ground);
    this.columns = entry.columns;
    this.size = points.shape[0];
    this.points = rowsOf(points);
    this.coordinates = entry.coordinates === entry.points ? this.points : rowsOf(file.tensor(entry.coordinates));
    this.text = typeof this.coordinates[0][0] === "string";
  }

  /** Return the code of a secret given by its code, its coordinates or its word, refusing strangers. */
  encode(secret, snap = 0) {
    if (typeof secret === "number") {
      refuseSecret(!Number.isInteger(secret) || secret < 0 || secret >= this.size, "code");
      return secret;
    }
    const point = typeof secret === "string" ? [secret] : Array.from(secret ?? []);
    refuseSecret(point.length !== this.coordinates[0].length, "count");
    return this.text ? this.encodeText(point) : this.encodeNumbers(point, snap);
  }

  encodeText(point) {
    this.words ??= new Map(this.coordinates.map((row, code) => [row.join("\x1f"), code]));
    const code = this.words.get(point.join("\x1f"));
    refuseSecret(code === undefined, "word");
    return code;
  }

  encodeNumbers(point, snap) {
    refuseSecret(!point.every(Number.isFinite), "number");
    if (!(snap >= 0 && snap < Infinity)) throw new InvalidInput(`snap must be a distance, zero or more, got ${snap}.`);
    const code = this.nearest(point);
    const away = this.ground.measure(point, this.coordinates[code]);
    this.scale ??= this.ground.name === "Haversine" ? EARTH_RADIUS_KM : 1 + largestOf(this.coordinates);
    refuseSecret(!(away <= Math.max(snap, ROUNDING * this.scale)), "far");
    return code;
  }

  nearest(point) {
    if (this.ground.name !== "Haversine") return argmin(this.size, (i) => this.ground.measure(point, this.coordinates[i]));
    checkDegrees(point);
    if (this.vectors === undefined) {
      this.vectors = new Float64Array(3 * this.size);
      this.coordinates.forEach((row, i) => this.vectors.set(unitVector(row), 3 * i));
    }
    const [x, y, z] = unitVector(point);
    const v = this.vectors;
    return argmin(this.size, (i) => (v[3 * i] - x) ** 2 + (v[3 * i + 1] - y) ** 2 + (v[3 * i + 2] - z) ** 2);
  }
}

function unitVector([latitude, longitude]) {
  const [north, east] = [radians(latitude), radians(longitude)];
  return [Math.cos(north) * Math.cos(east), Math.cos(north) * Math.sin(east), Math.sin(north)];
}

function argmin(size, value) {
  let best = 0;
  let least = Infinity;
  for (let i = 0; i < size; i++) {
    const here = value(i);
    if (here < least) [best, least] = [i, here];
  }
  return best;
}

function largestOf(rows) {
  let largest = 0;
  for (const row of rows) for (const value of row) largest = Math.max(largest, Math.abs(value));
  return largest;
}

function rowsOf({ data, shape }) {
  const width = shape.slice(1).reduce((a, b) => a * b, 1);
  return Array.from({ length: shape[0] }, (_, i) => {
    const row = Array.from(data.slice(i * width, (i + 1) * width));
    return typeof row[0] === "bigint" ? row.map(Number) : row;
  });
}

function numbersOf(point, dimension) {
  const values = Array.from(point ?? []);
  refuseSecret(values.length !== dimension, "count");
  refuseSecret(!values.every(Number.isFinite), "number"); // null, "1" and true are no numbers
  return values;
}

function readSpace(entry, file) {
  if (entry.kind === "finite") return new Finite(entry, file);
  const metric = file.metric(entry.metric);
  if (entry.kind === "unbounded") {
    refuse(!Number.isInteger(entry.dimension) || entry.dimension < 1, `a space has the dimension ${entry.dimension}`);
    return {
      metric,
      dimension: entry.dimension,
      encode(secret) {
        const point = numbersOf(secret, entry.dimension);
        if (metric.name === "Haversine") checkDegrees(point);
        return point;
      },
    };
  }
  if (entry.kind === "box") {
    const [lower, upper] = [fromPlain(entry.lower), fromPlain(entry.upper)];
    return {
      metric,
      dimension: lower.length,
      encode(secret) {
        const point = numbersOf(secret, lower.length);
        refuseSecret(point.some((x, k) => x < lower[k] || x > upper[k]), "box");
        return point;
      },
    };
  }
  refuse(entry.kind !== "streets", `it holds a space of the unknown kind ${entry.kind}`);
  const network = file.metric(metric.parameters.network);
  const lengths = file.tensor(network.parameters.lengths).data;
  return {
    metric,
    network,
    lengths,
    edges: file.tensor(network.parameters.edges).data,
    encode(secret) {
      const [street, offset] = numbersOf(secret, 2);
      refuseSecret(!Number.isInteger(street) || street < 0 || !(offset >= 0 && offset <= lengths[street]), "street");
      return [street, offset];
    },
  };
}

// ---------------------------------------------------------------------------------------------------- kinds

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

/** Return a radius with density proportional to exp(-epsilon r) sin(r / R) on [0, pi R], by exact rejection. */
function sphericalRadius(epsilon, source) {
  const circle = Math.PI * EARTH_RADIUS_KM;
  for (;;) {
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
    if (openUniform(source) < chance) return radius;
  }
}

function sphericalReport(lattice, [latitude, longitude]) {
  const around = rint(360 / lattice.pitch);
  const east = mod(lattice.cell(longitude) + around / 2, around) - around / 2;
  const north = lattice.value(lattice.cell(latitude));
  return [north, Math.abs(north) >= 90 ? 0 : lattice.value(east)]; // longitudes mean nothing at the poles
}

function vectorNoise(space, epsilon, source) {
  const { metric, dimension } = space;
  const p = metric.name === "Lp" ? metric.parameters.p : 2;
  let direction;
  if (dimension === 2 && p === 2) {
    const angle = 2 * Math.PI * openUniform(source);
    direction = [Math.cos(angle), Math.sin(angle)];
  } else {
    const raw = Array.from({ length: dimension }, () => signedRoot(p, source));
    const size = norm(raw, p);
    direction = raw.map((x) => x / size);
  }
  const radius = erlang(dimension, source) / epsilon;
  const noise = direction.map((x) => x * radius);
  return metric.name === "Mahalanobis" ? unwhiten(metric.parameters.factor, noise) : noise;
}

/** Return s G^(1/p) with G ~ Gamma(1/p) and a fair sign s: the direction law of the l_p Laplace. */
function signedRoot(p, source) {
  if (p === 2) return normal(source);
  const uniform = openUniform(source);
  if (p === Infinity) return 2 * uniform - 1;
  const size = p === 1 ? -Math.log(openUniform(source)) : gamma(1 / p, source) ** (1 / p);
  return uniform >= 0.5 ? size : -size;
}

/** Return the share of the far anchor at `position` in [0, 1/2] from the near one, and the length of the curve. */
function nearShare(position, ratio) {
  if (!(ratio > 0)) return [position, 0];
  const length =
    ratio < 1 ? 2 * Math.log1p(Math.expm1(ratio) / 2) : 2 * (ratio + Math.log1p(Math.exp(-ratio)) - Math.LN2);
  const travelled = length * position;
  const share = Math.exp(travelled - ratio) * (Math.expm1(-travelled) / Math.expm1(-ratio));
  return [Math.min(share, 0.5), length];
}

/** Flip a coin that comes up with exactly the probability theta; `exactly` gives the position as a fraction. */
function flip(position, ratio, exactly, source) {
  source.next();
  const { high, low } = source;
  if (position <= 0) return false;
  const [share, length] = nearShare(position, ratio);
  const level = (high * 4294967296 + low) * 2 ** -64;
  const band = share * ((32 + 8 * length) * ULP) + 2 ** -62;
  if (Math.abs(level - share) > band) return level < share;
  const [top, bottom] = exactly();
  return exactFlip(top, bottom, ratio, high, low, source);
}

function intervalOf(axis, x) {
  let low = 0;
  let high = axis.length - 2; // the last anchor belongs to the last interval
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (axis[middle] <= x) low = middle;
    else high = middle - 1;
  }
  return low;
}

function positionIn(axis, cell, x) {
  const [below, above] = [x - axis[cell], axis[cell + 1] - x];
  const upper = above < below;
  return [Math.min((upper ? above : below) / (axis[cell + 1] - axis[cell]), 0.5), upper];
}

/** Return one of the two anchors around a coordinate, the far one with probability theta. */
function rounded(axis, ratios, x, source) {
  const cell = intervalOf(axis, x);
  const [position, upper] = positionIn(axis, cell, x);
  const exactly = () => {
    const [low, high, here] = [toWhole(axis[cell]), toWhole(axis[cell + 1]), toWhole(x)];
    return [upper ? high - here : here - low, high - low];
  };
  const far = flip(position, ratios[cell], exactly, source);
  return cell + (upper !== far ? 1 : 0);
}

/** Return [anchor, weight] for the corners of the cell of a point; multilinear, in theta where `ratios` is given. */
function cornerWeights(axes, ratios, point) {
  let corners = [[0, 1]];
  axes.forEach((axis, l) => {
    const cell = intervalOf(axis, point[l]);
    const [position, upper] = positionIn(axis, cell, point[l]);
    const near = ratios === null ? position : nearShare(position, ratios[l][cell])[0];
    const [lower, higher] = upper ? [near, 1 - near] : [1 - near, near];
    corners = corners.flatMap(([anchor, weight]) => [
      [anchor * axis.length + cell, weight * lower],
      [anchor * axis.length + cell + 1, weight * higher],
    ]);
  });
  return corners;
}

function mixed(table, corners) {
  const result = new Float64Array(table.reports);
  for (const [row, weight] of corners) table.law(row).forEach((value, k) => (result[k] += weight * value));
  return result;
}

/** Return the normalised geometric mean of the corners' laws. */
function geometric(table, corners) {
  const exponents = new Float64Array(table.reports);
  const possible = new Uint8Array(table.reports);
  for (const [row, weight] of corners) {
    table.law(row).forEach((value, k) => {
      if (value > 0) possible[k] = 1;
      exponents[k] += weight * Math.max(Math.log(value), -1e6);
    });
  }
  const largest = exponents.reduce((a, b, k) => (possible[k] ? Math.max(a, b) : a), -Infinity);
  const masses = exponents.map((value, k) => (possible[k] ? Math.exp(value - largest) : 0));
  const total = sumOf(masses);
  return masses.map((mass) => mass / total);
}

const positive = (value) => {
  refuse(typeof value !== "number" || !(value > 0 && value < Infinity), `a rate or a pitch is ${value}`);
  return value;
};

/** Draw every part of a secret with its own mechanism; secrets and reports are lists with one entry per part. */
function readProduct(body, file) {
  const parts = body.parts.map((entry) => {
    const make = entry.kind !== "product" && Object.hasOwn(KINDS, entry.kind) ? KINDS[entry.kind] : null;
    refuse(make === null || entry.guarantee.basis === "none", `a part of it is of the kind ${entry.kind}`);
    return make(entry.body, file);
  });
  refuse(parts.length < 2, "a product has two parts or more");
  const split = (secret) => {
    refuseSecret(!Array.isArray(secret) || secret.length !== parts.length, "parts");
    return secret;
  };
  const draw = (secret, source, snap) => {
    const secrets = split(secret);
    secrets.forEach((value, k) => parts[k].inputs.encode(value, snap)); // refuse strangers before anything is drawn
    return parts.map((part, k) => reportOf(part, part.draw(secrets[k], source, snap)));
  };
  return { inputs: {}, outputs: {}, draw, product: true };
}

function reportOf(parts, drawn) {
  if (typeof drawn !== "number") return { code: null, point: drawn };
  return { code: drawn, point: [...parts.outputs.coordinates[drawn]] };
}

/** What is drawn for each kind: `draw(secret, source, snap)` gives a code or coordinates, `law` the probabilities. */
const KINDS = {
  matrix(body, file) {
    const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
    const table = readTable(body.matrix, file);
    refuse(table.rows !== inputs.size || table.reports !== outputs.size, "its matrix does not fit its spaces");
    return {
      inputs, outputs, table,
      draw: (secret, source, snap) => table.draw(inputs.encode(secret, snap), source),
      law: (secret, snap) => table.law(inputs.encode(secret, snap)),
    };
  },
  interpolated(body, file) {
    const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
    const table = readTable(body.matrix, file);
    const [axes, ratios] = [body.axes, body.ratios].map((names) => names.map((name) => file.tensor(name).data));
    const anchors = axes.reduce((product, axis) => product * axis.length, 1);
    refuse(table.rows !== anchors || table.reports !== outputs.size, "its matrix does not fit its anchors");
    refuse(axes.length !== inputs.dimension || ratios.some((r, l) => r.length !== axes[l].length - 1), "bad anchors");
    const rounding = body.rule === "exact" || body.rule === "direction";
    refuse(!rounding && body.rule !== "log" && body.rule !== "relaxed", `its rule is ${body.rule}`);
    const law = (secret) => {
      const corners = cornerWeights(axes, rounding ? ratios : null, inputs.encode(secret));
      return rounding ? mixed(table, corners) : geometric(table, corners);
    };
    const draw = (secret, source) => {
      const point = inputs.encode(secret);
      if (rounding) {
        let row = 0;
        axes.forEach((axis, l) => (row = row * axis.length + rounded(axis, ratios[l], point[l], source)));
        return table.draw(row, source);
      }
      const masses = law(point);
      source.next();
      return drawShares(shares(masses), () => masses, source);
    };
    return { inputs, outputs, table, draw, law };
  },
  streets(body, file) {
    const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
    const table = readTable(body.matrix, file);
    const counts = Array.from(file.tensor(body.counts).data, Number);
    const ratios = file.tensor(body.ratios).data;
    const firstCut = [];
    let next = inputs.network.parameters.nodes;
    for (const count of counts) {
      firstCut.push(next);
      next += count - 1;
    }
    refuse(counts.length !== inputs.lengths.length || ratios.length !== counts.length, "its streets do not fit");
    refuse(table.rows !== next || table.reports !== outputs.size, "its matrix does not fit its anchors");
    const anchor = (street, step) => {
      if (step === 0) return Number(inputs.edges[2 * street]);
      return step === counts[street] ? Number(inputs.edges[2 * street + 1]) : firstCut[street] + step - 1;
    };
    const located = (street, offset) => {
      const steps = (offset / inputs.lengths[street]) * counts[street];
      const step = Math.min(Math.floor(steps), counts[street] - 1);
      const along = Math.min(Math.max(steps - step, 0), 1);
      const [lower, upper] = [anchor(street, step), anchor(street, step + 1)];
      return along > 0.5 ? [upper, lower, 1 - along] : [lower, upper, along];
    };
    const draw = (secret, source) => {
      const [street, offset] = inputs.encode(secret);
      const [near, far, position] = located(street, offset);
      const exactly = () => {
        const bottom = toWhole(inputs.lengths[street]);
        const top = (toWhole(offset) * BigInt(counts[street])) % bottom;
        return 2n * top < bottom ? [top, bottom] : [bottom - top, bottom];
      };
      return table.draw(flip(position, ratios[street], exactly, source) ? far : near, source);
    };
    const law = (secret) => {
      const [street, offset] = inputs.encode(secret);
      const [near, far, position] = located(street, offset);
      const share = nearShare(position, ratios[street])[0];
      return mixed(table, [[near, 1 - share], [far, share]]);
    };
    return { inputs, outputs, table, draw, law };
  },
  "spherical-laplace"(body, file) {
    const inputs = file.space(body.inputs);
    refuse(inputs.metric.name !== "Haversine" || inputs.dimension !== 2, "its noise does not belong to its metric");
    const [epsilon, lattice] = [positive(body.epsilon), new Lattice(positive(body.pitch))];
    const draw = (secret, source) => {
      const [north, east] = inputs.encode(secret).map((x) => radians(lattice.value(lattice.cell(x))));
      const away = sphericalRadius(epsilon, source) / EARTH_RADIUS_KM;
      const bearing = 2 * Math.PI * openUniform(source);
      const [up, side] = [Math.sin(away) * Math.cos(bearing), Math.sin(away) * Math.sin(bearing)];
      const height = Math.sin(north) * Math.cos(away) + Math.cos(north) * up;
      const out = Math.cos(north) * Math.cos(away) - Math.sin(north) * up;
      const latitude = Math.atan2(height, Math.hypot(out, side));
      return sphericalReport(lattice, [degrees(latitude), degrees(east + Math.atan2(side, out))]);
    };
    return { inputs, outputs: inputs, draw, rate: epsilon };
  },
  "vector-laplace"(body, file) {
    const inputs = file.space(body.inputs);
    refuse(inputs.metric.name !== "Lp" && inputs.metric.name !== "Mahalanobis", "its noise does not belong to its metric");
    const [epsilon, lattice] = [positive(body.epsilon), new Lattice(positive(body.pitch))];
    const draw = (secret, source) => {
      const cells = inputs.encode(secret).map((x) => lattice.cell(x));
      refuseSecret(cells.some((cell) => Math.abs(cell) > LARGEST_CELL), "lattice");
      const noise = vectorNoise(inputs, epsilon, source);
      return cells.map((cell, k) => lattice.value(cell + lattice.cell(noise[k]))); // whole numbers add exactly
    };
    return { inputs, outputs: inputs, draw, rate: epsilon };
  },
  product: readProduct,
  nearest(body, file) {
    const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
    const { metric } = inputs;
    refuse(metric.name !== "Lp" && metric.name !== "Mahalanobis", "its noise does not belong to its metric");
    const epsilon = positive(body.epsilon);
    const plane = { metric, dimension: inputs.points[0].length };
    const draw = (secret, source, snap) => {
      const noise = vectorNoise(plane, epsilon, source);
      const noisy = inputs.points[inputs.encode(secret, snap)].map((x, k) => x + noise[k]);
      return argmin(outputs.size, (i) => metric.measure(noisy, outputs.points[i]));
    };
    return { inputs, outputs, draw, rate: epsilon };
  },
};

// ---------------------------------------------------------------------------------------------------- the file

function refuse(condition, reason) {
  if (condition) throw new CorruptFile(`the file was refused: ${reason}. Take a fresh copy from whoever made it.`);
}

function fromPlain(value) {
  if (Array.isArray(value)) return value.map(fromPlain);
  if (value === null || typeof value !== "object") return value;
  const named = { inf: Infinity, "-inf": -Infinity, nan: NaN }[value.float];
  refuse(named === undefined || Object.keys(value).length !== 1, "it holds an unknown value");
  return named;
}

function parsed(text, what) {
  try {
    const value = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  } catch {
    // said below
  }
  throw new CorruptFile(`the file was refused: it is not a mechanism file, or its ${what} is damaged.`);
}

/** The bytes of a file, taken apart and checked. */
class MechanismFile {
  constructor(buffer) {
    refuse(buffer.byteLength < 8, "it is not a mechanism file");
    const size = new DataView(buffer).getBigUint64(0, true);
    refuse(size < 2n || size > BigInt(HEADER_LIMIT), "it is not a mechanism file, or its first bytes are damaged");
    this.start = 8 + Number(size);
    refuse(this.start > buffer.byteLength, "it is cut off");
    this.bytes = new Uint8Array(buffer);
    let text;
    try {
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.bytes.subarray(8, this.start));
    } catch {
      refuse(true, "it is not a mechanism file, or its header is damaged");
    }
    const { __metadata__: metadata, ...entries } = parsed(text, "header");
    refuse(typeof metadata?.metricdp !== "string", "it is a safetensors file, but not one of metricdp");
    this.manifest = parsed(metadata.metricdp, "manifest");
    refuse(this.manifest.format !== FORMAT, "it is a safetensors file, but not one of metricdp");
    const { version } = this.manifest;
    if (Number.isInteger(version) && version > VERSION) {
      throw new CorruptFile(
        `the file was refused: it has format version ${version}, this module reads up to ${VERSION}. Update metricdp.`,
      );
    }
    const fields = Object.keys(this.manifest).sort().join();
    refuse(fields !== FIELDS_OF[version]?.join(), "its manifest does not hold what its version asks for");
    this.layOut(entries, buffer.byteLength - this.start);
    this.used = new Set();
    this.read = new Map();
  }

  /** Check that the tensors fill the rest of the file from end to end, each as long as its shape says. */
  layOut(entries, size) {
    this.entries = entries;
    let end = 0;
    const inOrder = Object.values(entries).sort((a, b) => a.data_offsets?.[0] - b.data_offsets?.[0]);
    for (const { dtype, shape, data_offsets: span } of inOrder) {
      refuse(!Object.hasOwn(TYPES, dtype) || !Array.isArray(shape) || !Array.isArray(span), "a tensor is not described as one");
      refuse(!shape.every((side) => Number.isSafeInteger(side) && side >= 0), "a tensor has no shape");
      const length = shape.reduce((a, b) => a * b, 1) * TYPES[dtype].BYTES_PER_ELEMENT;
      refuse(span.length !== 2 || span[0] !== end || span[1] - span[0] !== length, "its tensors overlap or have gaps");
      end = span[1];
    }
    refuse(end !== size, end > size ? "it is cut off" : "it is too long");
  }

  /** Return where these ASCII digits stand in the header; they must occur once. */
  find(digits) {
    const head = this.bytes.subarray(0, this.start);
    let found = -1;
    for (let at = head.indexOf(digits.charCodeAt(0)); at >= 0; at = head.indexOf(digits.charCodeAt(0), at + 1)) {
      let k = 1;
      while (k < digits.length && head[at + k] === digits.charCodeAt(k)) k += 1;
      if (k === digits.length) {
        refuse(found >= 0, "its checksum or signature is written twice");
        found = at;
      }
    }
    refuse(found < 0, "its checksum or signature is missing");
    return found;
  }

  /** Verify checksum and signature; return the key that signed it, and whether that could be verified here. */
  async verify() {
    const subtle = globalThis.crypto?.subtle;
    if (!subtle) throw new Unsupported("this page has no crypto.subtle: serve it over https (or from localhost).");
    const { sha256, signature } = this.manifest;
    refuse(typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256), "its checksum is missing");
    const blank = this.bytes.slice();
    const place = this.find(sha256);
    blank.fill(48, place, place + 64);
    const digest = hex(await subtle.digest("SHA-256", blank));
    refuse(digest !== sha256, "its checksum does not fit its contents: it was altered or damaged");
    if (signature === null || signature === undefined) return { signedBy: null, verified: false };
    const { algorithm, public_key: key, value } = signature;
    const fields = Object.keys(signature).sort().join();
    refuse(fields !== "algorithm,public_key,value" || algorithm !== "ed25519", "its signature is not written as one");
    refuse(!/^[0-9a-f]{64}$/.test(key) || !/^[0-9a-f]{128}$/.test(value), "its signature is not written as one");
    const at = this.find(value);
    blank.fill(48, at, at + 128);
    const message = new Uint8Array([...new TextEncoder().encode(PURPOSE), ...new Uint8Array(await subtle.digest("SHA-256", blank))]);
    let imported;
    try {
      imported = await subtle.importKey("raw", unhex(key), { name: "Ed25519" }, false, ["verify"]);
    } catch (error) {
      if (error?.name !== "NotSupportedError") refuse(true, "its public key is no key");
      return { signedBy: key, verified: false }; // an old browser: only an error where a signature was asked for
    }
    const good = await subtle.verify({ name: "Ed25519" }, imported, unhex(value), message);
    refuse(!good, "its signature does not fit its contents: it was altered after it was signed");
    return { signedBy: key, verified: true };
  }

  /** Return {data, shape} of a tensor; text comes as strings. */
  tensor(name) {
    if (!this.read.has(name)) {
      const text = `${name}.bytes` in this.entries;
      this.read.set(name, text ? this.texts(name) : this.numbers(name));
    }
    return this.read.get(name);
  }

  numbers(name) {
    const entry = Object.hasOwn(this.entries, name) ? this.entries[name] : undefined;
    refuse(entry === undefined, `it refers to the tensor ${name} that it does not hold`);
    this.used.add(name);
    const [from, to] = entry.data_offsets;
    const data = new TYPES[entry.dtype](this.bytes.slice(this.start + from, this.start + to).buffer);
    return { data, shape: entry.shape };
  }

  texts(name) {
    const bytes = this.numbers(`${name}.bytes`).data;
    const { data: ends, shape } = this.numbers(`${name}.ends`);
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    let start = 0;
    const data = Array.from(ends, (end) => {
      const word = decoder.decode(bytes.subarray(start, Number(end)));
      start = Number(end);
      return word;
    });
    return { data, shape };
  }

  metric(number) {
    refuse(!Number.isInteger(number) || !(number in this.metrics), `a reference is ${number}`);
    return this.metrics[number];
  }

  space(number) {
    refuse(!Number.isInteger(number) || !(number in this.spaces), `a reference is ${number}`);
    return this.spaces[number];
  }

  /** Rebuild metrics, spaces and the kind from a manifest whose every byte is as it was written. */
  build() {
    const { manifest } = this;
    this.metrics = [];
    for (const entry of manifest.metrics) this.metrics.push(readMetric(entry, this));
    this.spaces = manifest.spaces.map((entry) => readSpace(entry, this));
    const make = Object.hasOwn(KINDS, manifest.kind) ? KINDS[manifest.kind] : undefined;
    if (make === undefined) throw new Unsupported(`a mechanism of the kind ${manifest.kind} is not read here.`);
    const parts = make(manifest.body, this);
    const left = Object.keys(this.entries).filter((name) => !this.used.has(name));
    refuse(left.length > 0, `it holds the tensor ${left[0]} that nothing refers to`);
    return parts;
  }
}

const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const unhex = (digits) => Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));

/** Return the 64 digits of a public key given as PEM text or as the digits themselves. */
function keyDigits(key) {
  if (typeof key === "string" && /^[0-9a-f]{64}$/i.test(key.trim())) return key.trim().toLowerCase();
  const body = /-----BEGIN PUBLIC KEY-----([\s\S]+?)-----END PUBLIC KEY-----/.exec(String(key));
  const bytes = body === null ? "" : hex(Uint8Array.from(atob(body[1].replace(/\s/g, "")), (c) => c.charCodeAt(0)));
  const prefix = "302a300506032b6570032100"; // SubjectPublicKeyInfo of Ed25519
  if (bytes.length !== 88 || !bytes.startsWith(prefix)) {
    throw new InvalidInput("a trusted key must be the text of a .pub file (PEM, Ed25519) or its 64 digits.");
  }
  return bytes.slice(prefix.length);
}

/** Tell whether a name is that of a file on the machine of a Node program, which `fetch` does not read. */
function isLocalFile(source) {
  return globalThis.process?.versions?.node !== undefined && (/^file:/i.test(source) || !/^[a-z][a-z0-9+.-]+:/i.test(source));
}

async function localFile(source) {
  const { readFile } = await import("node:fs/promises");
  try {
    return await readFile(/^file:/i.test(source) ? new URL(source) : source);
  } catch (error) {
    throw new InvalidInput(`${source} could not be read: ${error.message}.`);
  }
}

async function bytesOf(source) {
  if (source instanceof ArrayBuffer) return source;
  if (ArrayBuffer.isView(source)) return source.buffer.slice(source.byteOffset, source.byteOffset + source.byteLength);
  if (typeof source === "string" || source instanceof URL) {
    if (isLocalFile(source)) return bytesOf(await localFile(source));
    const response = await fetch(source);
    if (!response.ok) throw new InvalidInput(`${source} could not be read: ${response.status} ${response.statusText}.`);
    return response.arrayBuffer();
  }
  throw new InvalidInput("give a mechanism file as an ArrayBuffer, as bytes or as a URL (in Node also as a path).");
}

/**
 * Open a mechanism file and check it: every byte by its checksum, the signature where there is one.
 *
 * With `trusted` (the text of a .pub file or its digits, or a list of them) the file is refused unless one of these keys
 * signed it. That is what stands between your users and a forged file: the checksum alone only finds accidents.
 */
export async function open(source, { trusted = null, largest = 256 * 2 ** 20 } = {}) {
  const keys = trusted === null ? null : (Array.isArray(trusted) ? trusted : [trusted]).map(keyDigits);
  const buffer = await bytesOf(source);
  refuse(buffer.byteLength > largest, `it has ${buffer.byteLength} bytes, more than the limit of ${largest}`);
  const file = new MechanismFile(buffer);
  const { signedBy, verified } = await file.verify();
  if (keys !== null) {
    refuse(signedBy === null, "nobody signed it");
    refuse(!keys.includes(signedBy), `it is signed by ${signedBy}, which is no key you trust`);
    if (!verified) throw new Unsupported("this browser cannot check Ed25519 signatures: use a newer one.");
  }
  try {
    return new Mechanism(file, { signedBy, verified, trusted: keys !== null, bytes: buffer.byteLength });
  } catch (error) {
    if (error instanceof MetricdpError) throw error;
    throw new CorruptFile(`the file was refused: its contents do not make a mechanism (${error.message}).`);
  }
}

/** A mechanism as its file holds it. */
export class Mechanism {
  #parts;

  constructor(file, { signedBy, verified, trusted, bytes }) {
    const { manifest } = file;
    this.#parts = file.build();
    const promise = manifest.guarantee;
    const good = typeof promise.epsilon === "number" && promise.epsilon > 0 && promise.slack >= 0;
    refuse(!good || !["theorem", "certificate", "none"].includes(promise.basis), "its promise is not one");
    this.kind = manifest.kind;
    this.version = manifest.version;
    this.bytes = bytes;
    this.sha256 = manifest.sha256;
    this.storage = this.#parts.table?.storage ?? "dense";
    this.bits = this.#parts.table?.bits ?? null;
    this.guarantee = Object.freeze({ ...promise, metric: manifest.metrics[promise.metric].name });
    const stated = Object.entries(manifest.certificate).map(([name, value]) => [name, fromPlain(value)]);
    this.certificate = Object.freeze(Object.fromEntries(stated));
    this.licence = manifest.licence ?? "";
    this.signedBy = signedBy;
    this.signature = signedBy === null ? "none" : !verified ? "unchecked" : trusted ? "trusted" : "good";
    this.columns = Object.freeze([...(this.#parts.inputs.columns ?? [])]);
    Object.freeze(this);
  }

  /** The number of secrets, where they are finitely many. */
  get secrets() {
    return this.#parts.inputs.size ?? null;
  }

  /** The number of reports, where they are finitely many. */
  get reports() {
    return this.#parts.outputs.size ?? null;
  }

  /**
   * Draw one report for a secret: a code, coordinates or a word (a list of them for a product). A stranger is an error, never passed through.
   *
   * With `snap`, coordinates up to that distance from a secret become that secret; the promise then holds with a slack
   * of 2 * epsilon * snap. `words` replaces the random source, for tests only.
   */
  sample(secret, { snap = 0, words = system } = {}) {
    if (this.guarantee.basis === "none") {
      throw new InvalidInput("this mechanism promises nothing; it was made for comparisons. Do not release its reports.");
    }
    const drawn = this.#parts.draw(secret, words, snap);
    if (this.#parts.product) return { code: null, point: drawn.map((report) => report.point), parts: drawn };
    return reportOf(this.#parts, drawn);
  }

  /** Return the probabilities of all reports for a secret, where there are finitely many. */
  law(secret, { snap = 0 } = {}) {
    if (!this.#parts.law) throw new Unsupported(`a ${this.kind} mechanism has no table of probabilities.`);
    return this.#parts.law(secret, snap);
  }

  /** Return the coordinates of a secret by its code. */
  secretAt(code) {
    const { inputs } = this.#parts;
    if (!inputs.coordinates) throw new Unsupported("the secrets of this mechanism are not finitely many.");
    return [...inputs.coordinates[inputs.encode(code)]];
  }

  /** Return the largest factor between the probabilities of any report from two secrets at this distance. */
  factor(distance, { snap = 0 } = {}) {
    const { epsilon, slack } = this.guarantee;
    return Math.exp(epsilon * distance + slack + 2 * epsilon * snap);
  }

  /** Return the distance up to which one report shifts the odds between two secrets by at most `factor`. */
  reach(factor = 2, { snap = 0 } = {}) {
    const { epsilon, slack } = this.guarantee;
    return Math.max(0, (Math.log(factor) - slack) / epsilon - 2 * snap);
  }

  /**
   * Return a radius, in the unit of the distances, that holds a report with at least this probability whatever the
   * secret: the same for all secrets, so it tells nothing about them.
   */
  accuracy(level = 0.95) {
    const { inputs, outputs, table, rate } = this.#parts;
    const { slack, epsilon } = this.guarantee; // slack / epsilon: what the lattice moves, before and after the noise
    if (rate !== undefined && inputs.dimension === 2) return gammaTwoQuantile(level) / rate + slack / epsilon;
    if (this.kind !== "matrix") throw new Unsupported(`the accuracy of a ${this.kind} mechanism is not computed here.`);
    let largest = 0;
    for (let row = 0; row < table.rows; row++) {
      const law = table.law(row);
      const away = outputs.coordinates.map((place, k) => [inputs.ground.measure(inputs.coordinates[row], place), law[k]]);
      away.sort((a, b) => a[0] - b[0]);
      let mass = 0;
      const reached = away.find(([, share]) => (mass += share) >= level - 1e-12) ?? away[away.length - 1];
      largest = Math.max(largest, reached[0]);
    }
    return largest;
  }

  /**
   * Judge every pair of secrets again in doubles: the smallest epsilon of a matrix, good to `tolerance` (relative). The
   * proof itself is Python's (`mdp.load`, `metricdp audit`); this finds a forged table without it.
   */
  audit() {
    const { inputs, table } = this.#parts;
    if (this.kind !== "matrix") throw new Unsupported("only matrices are judged here; use `metricdp audit`.");
    const { epsilon: claimed, slack, radius } = this.guarantee;
    const logs = Array.from({ length: table.rows }, (_, row) => table.law(row).map(Math.log));
    let worst = 0;
    for (let i = 0; i < table.rows; i++) {
      for (let j = i + 1; j < table.rows; j++) {
        const apart = inputs.metric.measure(inputs.points[i], inputs.points[j]);
        if (radius !== null && apart > radius) continue;
        let spread = 0;
        for (let k = 0; k < table.reports; k++) {
          const [a, b] = [logs[i][k], logs[j][k]];
          if (a !== b) spread = Math.max(spread, Math.abs(a - b));
        }
        worst = Math.max(worst, (spread - slack) / apart);
      }
    }
    const tolerance = 1e-9;
    return { epsilon: worst, claimed, tolerance, holds: worst <= claimed * (1 + tolerance) };
  }

  /** Explain the promise to a person: `short` is one sentence, `lines` more of it. */
  explain({ snap = 0 } = {}) {
    const { epsilon, unit, slack, basis } = this.guarantee;
    const show = (distance) => showDistance(distance, unit);
    const reach = this.reach(2, { snap });
    let short = "This file promises nothing; it is for comparisons.";
    if (basis !== "none" && reach === 0) short = "Its slack alone allows more than a factor of two between any two places.";
    else if (basis !== "none") {
      short =
        `One report shifts the odds between two ${unit === "km" || unit === "m" ? "places" : "secrets"} up to ` +
        `${show(reach)} apart by at most a factor of two. Every further report adds to that.`;
    }
    const lines = [short];
    for (const share of [0.1, 0.3, 1, 3]) {
      const distance = Number((share / epsilon).toPrecision(2));
      lines.push(`${show(distance)} apart: at most a factor of ${this.factor(distance, { snap }).toPrecision(3)}.`);
    }
    lines.push(`epsilon ${epsilon}${unit ? ` per ${unit}` : ""}${slack ? `, slack ${slack.toPrecision(3)}` : ""}, by ${basis}.`);
    lines.push(`Licence of the data: ${this.licence || "not stated"}.`);
    lines.push(`Signature: ${this.signature}${this.signedBy ? ` (ed25519 ${this.signedBy})` : ""}.`);
    return { short, lines };
  }
}

/** Return r with P(Gamma(2, 1) <= r) = level: 1 - (1 + r) exp(-r), by Newton's steps. */
function gammaTwoQuantile(level) {
  let r = 2;
  for (let k = 0; k < 60; k++) r = Math.max(1e-9, r - (1 - (1 + r) * Math.exp(-r) - level) / (r * Math.exp(-r)));
  return r;
}

/** Return a distance for people: 0.2 km is 200 m. */
export function showDistance(distance, unit) {
  if (unit === "km" && distance > 0 && distance < 1) return `${Number((distance * 1000).toPrecision(3))} m`;
  return `${Number(distance.toPrecision(4))}${unit ? ` ${unit}` : ""}`;
}

/** Parts of the exact arithmetic, for this module's own tests. */
export const internals = { exactDraw, exactFlip, toWhole, nearShare, rint };
