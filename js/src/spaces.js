/** Where secrets live: finitely many points, everywhere, a box, streets. A space says which values are secrets. */

import { MetricdpError, Unsupported, refuse, refuseSecret } from "./errors.js";
import { checkRow, radians } from "./metrics.js";
import { CONSTANTS } from "./constants.js";

const CACHED_POINTS = 2 ** 17; // rows are cached for spaces up to this size

/** Rows of a tensor of points, made where they are asked for. */
export class Points {
  constructor({ data, shape }) {
    this.data = data;
    this.size = shape[0];
    this.width = data.length / shape[0];
    this.text = Array.isArray(data);
    this.cache = this.size <= CACHED_POINTS ? new Array(this.size) : null;
  }

  /** Return a row that nobody may change. */
  row(code) {
    const known = this.cache?.[code];
    if (known !== undefined) return known;
    const row = new Array(this.width);
    for (let k = 0; k < this.width; k++) {
      const value = this.data[code * this.width + k];
      row[k] = typeof value === "bigint" ? Number(value) : value;
    }
    if (this.cache !== null) this.cache[code] = row;
    return row;
  }
}

/** Return the place with the smallest value, the first of several. */
export function argmin(size, value) {
  let best = -1;
  let least = Infinity;
  for (let i = 0; i < size; i++) {
    const here = value(i);
    if (here < least) [best, least] = [i, here];
  }
  if (best < 0) throw new MetricdpError("the distances are not finite numbers: nothing was drawn.");
  return best;
}

/** Return coordinates as a given number of finite numbers: null, "1" and true are none. */
function numbersOf(secret, dimension) {
  refuseSecret(!isRow(secret), "form");
  refuseSecret(secret.length !== dimension, "count");
  const values = Array.from(secret);
  refuseSecret(!values.every(Number.isFinite), "number");
  return values;
}

const isRow = (value) => Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));

/** Finitely many secrets. Codes are row numbers. */
class Finite {
  constructor(entry, file) {
    this.points = file.points(entry.points);
    this.metric = file.metric(entry.metric);
    this.ground = file.metric(entry.ground);
    this.sameGround = file.same(entry.metric, entry.ground) && entry.points === entry.coordinates;
    this.coordinates = entry.coordinates === entry.points ? this.points : file.points(entry.coordinates);
    this.columns = entry.columns;
    this.size = this.points.size;
    const { columns, coordinates } = this;
    refuse(coordinates.size !== this.size, "its coordinates do not fit its points");
    refuse(columns.length > 0 && columns.length !== coordinates.width, "its columns do not fit its coordinates");
    checkPoints(this.points, this.metric);
    if (!coordinates.text && coordinates !== this.points) checkPoints(coordinates, this.ground);
  }

  /** Return the code of a secret given by its code, its coordinates or its word, and refuse any other value. */
  encode(secret, { snap = 0, clamp = false } = {}) {
    if (typeof secret === "number") {
      refuseSecret(!Number.isInteger(secret) || secret < 0 || secret >= this.size, "code");
      return secret;
    }
    if (this.coordinates.text) return this.encodeText(secret);
    const point = numbersOf(secret, this.coordinates.width);
    const why = this.ground.legal(point);
    refuseSecret(why !== null, why);
    const code = this.nearest(point);
    if (clamp) return code;
    const away = this.ground.measure(point, this.coordinates.row(code));
    refuseSecret(!(away <= Math.max(snap, this.tolerance())), "far");
    return code;
  }

  encodeText(secret) {
    const word = typeof secret === "string" ? [secret] : secret;
    refuseSecret(!Array.isArray(word) || !word.every((part) => typeof part === "string"), "word");
    refuseSecret(word.length !== this.coordinates.width, "count");
    if (this.words === undefined) {
      this.words = new Map();
      for (let code = 0; code < this.size; code++) this.words.set(this.coordinates.row(code).join("\x1f"), code);
    }
    const code = this.words.get(word.join("\x1f"));
    refuseSecret(code === undefined, "word");
    return code;
  }

  /** Return how far a value may lie from a secret and still be that secret, rounded. */
  tolerance() {
    if (this.rounding === undefined) {
      let largest = 0;
      for (const value of this.coordinates.data) largest = Math.max(largest, Math.abs(Number(value)));
      const scale = this.ground.name === "Haversine" ? this.ground.measure([0, 0], [0, 180]) / Math.PI : 1 + largest;
      this.rounding = CONSTANTS.rounding * scale;
    }
    return this.rounding;
  }

  nearest(point) {
    const { ground, coordinates } = this;
    if (ground.name !== "Haversine") return argmin(this.size, (code) => ground.measure(point, coordinates.row(code)));
    if (this.vectors === undefined) {
      this.vectors = new Float64Array(3 * this.size);
      for (let code = 0; code < this.size; code++) this.vectors.set(unitVector(coordinates.row(code)), 3 * code);
    }
    const [x, y, z] = unitVector(point);
    const v = this.vectors;
    return argmin(this.size, (i) => (v[3 * i] - x) ** 2 + (v[3 * i + 1] - y) ** 2 + (v[3 * i + 2] - z) ** 2);
  }

  /**
   * Return the distance that snapping up to `snap` may add between two secrets, in the metric of the guarantee: twice the
   * snap where coordinates are measured as secrets are; elsewhere (roads under coordinates) the largest distance between two
   * secrets that can be reached from one place, that is, whose coordinates are at most twice the snap apart.
   */
  charge(snap) {
    if (snap === 0) return 0;
    if (this.sameGround) return 2 * snap;
    this.charges ??= new Map();
    if (!this.charges.has(snap)) this.charges.set(snap, this.widest(2 * snap));
    return this.charges.get(snap);
  }

  widest(near) {
    let largest = 0;
    const rows = Array.from({ length: this.size }, (_, code) => this.coordinates.row(code));
    for (let a = 0; a < this.size; a++) {
      for (let b = 0; b < this.size; b++) {
        if (a === b || !(this.ground.measure(rows[a], rows[b]) <= near * (1 + CONSTANTS.rounding))) continue;
        const away = this.metric.measure(this.points.row(a), this.points.row(b));
        if (away !== this.metric.apart) largest = Math.max(largest, away); // parts of a policy may be told apart
      }
    }
    return largest;
  }
}

function checkPoints(points, metric) {
  refuse(metric.text !== "either" && points.text !== (metric.text === true), "its points do not fit their metric");
  const seen = new Set();
  for (let code = 0; code < points.size; code++) {
    const row = points.row(code);
    checkRow(row, metric);
    const spelled = row.join("\x1f");
    refuse(seen.has(spelled), "two of its points are the same");
    seen.add(spelled);
  }
}

function unitVector([latitude, longitude]) {
  const [north, east] = [radians(latitude), radians(longitude)];
  return [Math.cos(north) * Math.cos(east), Math.cos(north) * Math.sin(east), Math.sin(north)];
}

/** Every point that the metric can measure. */
class Unbounded {
  constructor({ metric, dimension }, file) {
    this.metric = file.metric(metric);
    this.dimension = dimension;
  }

  encode(secret) {
    const point = numbersOf(secret, this.dimension);
    const why = this.metric.legal(point);
    refuseSecret(why !== null, why);
    return point;
  }
}

const UNIT_WITHIN = 1e-3; // unit vectors stored in 16 bits have lengths within this of one
const LENGTHS = { unit: [1 - UNIT_WITHIN, 1 + UNIT_WITHIN], any: [1e-100, 1e100] };

/** All directions: a row stands for the unit vector x / |x|; with `lengths` "unit" it must be one, within a thousandth. */
class Sphere {
  constructor({ metric, dimension, lengths }, file) {
    this.metric = file.metric(metric);
    this.dimension = dimension;
    this.lengths = lengths;
  }

  encode(secret) {
    const point = numbersOf(secret, this.dimension);
    const squares = point.reduce((sum, x) => sum + x * x, 0);
    const [shortest, longest] = LENGTHS[this.lengths];
    refuseSecret(!(squares >= shortest * shortest && squares <= longest * longest), this.lengths === "unit" ? "unit" : "direction");
    return point;
  }
}

/** A box, lower <= x <= upper in every coordinate. */
class Box {
  constructor({ metric, lower, upper }, file) {
    this.metric = file.metric(metric);
    this.lower = lower;
    this.upper = upper;
    this.dimension = lower.length;
    refuse(upper.length !== lower.length || lower.some((low, k) => !(low < upper[k])), "its box is empty");
  }

  /** With `clamp`, every coordinate is put between its ends: no two points are farther apart afterwards in any l_p. */
  encode(secret, { clamp = false } = {}) {
    const point = numbersOf(secret, this.dimension);
    if (clamp) return point.map((x, k) => Math.min(Math.max(x, this.lower[k]), this.upper[k]));
    refuseSecret(point.some((x, k) => x < this.lower[k] || x > this.upper[k]), "box");
    return point;
  }
}

/** Places along streets: a street number and an offset from its first end. */
class Streets {
  constructor({ metric }, file) {
    this.metric = file.metric(metric);
    this.network = this.metric.network;
  }

  encode(secret) {
    const [street, offset] = numbersOf(secret, 2);
    const { lengths } = this.network;
    const good = Number.isInteger(street) && street >= 0 && street < lengths.length;
    refuseSecret(!good || !(offset >= 0 && offset <= lengths[street]), "street");
    return [street, offset];
  }
}

const SPACES = { finite: Finite, box: Box, unbounded: Unbounded, sphere: Sphere, streets: Streets };

/** Rebuild a space from its checked entry. */
export function readSpace(entry, file) {
  if (!Object.hasOwn(SPACES, entry.kind)) throw new Unsupported("this module does not draw for secrets in a space of this kind.");
  const Space = SPACES[entry.kind];
  return new Space(entry, file);
}
