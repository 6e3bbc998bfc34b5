/**
 * Laplace and normal noise for vectors in whole numbers of cells: in doubles with proven bounds, in balls of whole numbers where those leave more than
 * one cell. The distributions, the words they take and the bounds are those of Python (src/metricdp/mechanisms/noise, docs/explanation/exact_noise.md).
 */

import { UNDECIDED, settled } from "./balls.js";
import { UNIT, centreOf, circle, expOf, logOf, root } from "./doubles.js";
import { Uniforms, exponentialOf, normalSize, sureCell, unlikely } from "./noise.js";
import { untilDecided } from "./randomness.js";
import { toWhole } from "./whole.js";

const FACTORS = 8;

/** Return -ln of the product of the first uniforms, and a bound of its error. */
export function gammaOf(count, uniforms) {
  let [total, inverses] = [0, 0];
  for (let start = 0; start < count; start += FACTORS) {
    let product = 1;
    for (let k = start; k < Math.min(count, start + FACTORS); k++) {
      const share = uniforms.middle(0, k);
      product *= share;
      inverses += 1 / share;
    }
    total -= logOf(product);
  }
  return [total, (9 + count / FACTORS) * UNIT * total + unlikely(UNIT * (inverses * 1.01 + count))];
}

/** Propose a number with density exp(-|x|^p): [x, error], undefined where it is not kept, an infinite error where unsure. */
function powerProposal(p, [sign, share], probability) {
  const body = share < (p - 1) / p;
  let doubtful = Math.abs(p * share - (p - 1)) < 8 * UNIT * p;
  const rest = body ? 1 : p * (1 - share);
  const beyond = body ? 0 : -logOf(rest);
  const ofBeyond = body ? 0 : 8 * UNIT * Math.abs(beyond) + unlikely((p * UNIT) / rest + 2 * UNIT);
  const x = body ? share : (p - 1 + beyond) / p;
  const ofX = body ? UNIT : ofBeyond / p + 3 * UNIT * x;
  const exponent = p * logOf(x);
  const power = expOf(exponent);
  const relative = (ofX < (0.001 * x) / p ? (p * ofX) / x : Infinity) + 10 * UNIT * Math.abs(exponent);
  const ofPower = 1.1 * power * (relative + 5 * UNIT) + 1e-300;
  const [limit, ofLimit] = exponentialOf(probability);
  const gap = limit + beyond - power;
  const wrong = 1.01 * (ofLimit + ofBeyond + ofPower) + 4 * UNIT * (limit + Math.abs(beyond));
  doubtful ||= !(Math.abs(gap) > wrong);
  if (doubtful) return [sign * x, Infinity];
  return gap > 0 ? [sign * x, ofX] : undefined;
}

function powerVector(p, n, uniforms) {
  const found = Array.from({ length: n }, (_, k) => {
    const at = n + 2 * k;
    return untilDecided((attempt) => powerProposal(p, uniforms.signed(attempt, at), uniforms.middle(attempt, at + 1)));
  });
  const largest = Math.max(...found.map(([x]) => Math.abs(x)));
  let [total, rounding, moved] = [0, 1, 0];
  for (const [x, error] of found) {
    const exponent = p * logOf(Math.max(Math.abs(x) / largest, 1e-300));
    const power = expOf(exponent);
    total += power;
    rounding += power * (1.2 * p + 12 * Math.abs(exponent) + 6);
    moved += error;
  }
  rounding += n * total;
  const length = largest * expOf(logOf(total) / p);
  const relative = (UNIT * ((1.1 * rounding) / total + 10 * logOf(total))) / p + 7 * UNIT;
  return [found, length, 1.01 * moved + length * relative];
}

/** Return normal numbers by pairs (Box and Muller) as [x, error], from the uniforms after `at`. */
export function normalsOf(n, at, uniforms) {
  const found = [];
  for (let k = at; found.length < n; k += 2) {
    const [radius, error] = normalSize(uniforms.middle(0, k));
    const [sine, cosine] = circle(uniforms.middle(0, k + 1));
    found.push([radius * cosine, error]);
    if (found.length < n) found.push([radius * sine, error]);
  }
  return found;
}

function normalVector(n, uniforms) {
  const found = normalsOf(n, n, uniforms);
  const length = root(found.reduce((sum, [x]) => sum + x * x, 0));
  const moved = found.reduce((sum, [, error]) => sum + error, 0); // at least their length
  return [found, length, 1.01 * moved + (n + 5) * UNIT * length];
}

/** Return l_p noise of rate one: a list of [coordinate, error]. */
export function unitNoise(p, n, uniforms) {
  if (p === 1 || n === 1) {
    return Array.from({ length: n }, (_, k) => {
      const [sign, share] = uniforms.signed(0, k);
      const [total, error] = exponentialOf(share);
      return [sign * total, error];
    });
  }
  if (p === 2 && n === 2) {
    const [radius, error] = gammaOf(2, uniforms);
    const [sine, cosine] = circle(uniforms.middle(0, 2));
    return [cosine, sine].map((x) => [radius * x, error + 14 * UNIT * radius]);
  }
  if (p === Infinity) {
    const [radius, error] = gammaOf(n + 1, uniforms);
    return Array.from({ length: n }, (_, k) => [radius * (2 * uniforms.middle(0, n + 1 + k) - 1), 1.01 * error + 5 * UNIT * radius]);
  }
  if (p > 2 ** 40) return new Array(n).fill([0, Infinity]);
  const [radius, ofRadius] = gammaOf(n, uniforms);
  const [found, length, ofLength] = p === 2 ? normalVector(n, uniforms) : powerVector(p, n, uniforms);
  const factor = radius / length;
  const relative = ofRadius / radius + ofLength / length + 6 * UNIT;
  const sure = ofLength < 0.01 * length && ofRadius < 0.05 * radius;
  return found.map(([x, error]) => [factor * x, sure ? 1.1 * factor * (error + Math.abs(x) * relative) : Infinity]);
}

/** Return the sign and the uniform of a whole number of 64 * words bits. */
export function signedBall(balls, digits, words) {
  const bits = 64n * words - 1n;
  return [digits >> bits, balls.uniform(digits & ((1n << bits) - 1n), bits)];
}

/** Return a number with density exp(-|x|^p) as a ball. */
function exactPower(balls, words, exponent, uniforms, at) {
  const less = balls.subtract(exponent, balls.one);
  return untilDecided((attempt) => {
    const [sign, share] = signedBall(balls, uniforms.digits(attempt, at, words), words);
    const limit = balls.negative(balls.log(balls.uniform(uniforms.digits(attempt, at + 1, words), 64n * words)));
    let [x, beyond] = [share, { m: 0n, r: 0n }];
    if (!balls.below(share, balls.divide(less, exponent))) {
      beyond = balls.negative(balls.log(balls.multiply(exponent, balls.subtract(balls.one, share))));
      x = balls.divide(balls.add(less, beyond), exponent);
    }
    const power = balls.exp(balls.multiply(exponent, balls.log(x)));
    if (!balls.below(power, balls.add(beyond, limit))) return undefined;
    return sign ? balls.negative(x) : x;
  });
}

/** Return normal numbers as balls; `share(k)` is the uniform of number k, those after `at` are used. */
export function exactNormals(balls, n, at, share) {
  const found = [];
  for (let k = at; found.length < n; k += 2) {
    const radius = balls.root(balls.times(balls.log(share(k)), -2n));
    const [sine, cosine] = fullTurn(balls, share(k + 1));
    found.push(balls.multiply(radius, cosine), balls.multiply(radius, sine));
  }
  return found.slice(0, n);
}

const fullTurn = (balls, share) => balls.circle(balls.times(balls.multiply(balls.pi, share), 2n));

/** Return l_p noise of rate one as balls, from a given number of words of every uniform. */
function exactNoise(balls, words, p, n, uniforms) {
  const share = (k) => balls.uniform(uniforms.digits(0, k, words), 64n * words);
  const product = (count) => Array.from({ length: count }, (_, k) => balls.log(share(k))).reduce((a, b) => balls.add(a, b));
  const gamma = (count) => balls.negative(product(count));
  if (p === 1 || n === 1) {
    return Array.from({ length: n }, (_, k) => {
      const [sign, part] = signedBall(balls, uniforms.digits(0, k, words), words);
      return sign ? balls.log(part) : balls.negative(balls.log(part));
    });
  }
  if (p === 2 && n === 2) {
    const [radius, [sine, cosine]] = [gamma(2), fullTurn(balls, share(2))];
    return [balls.multiply(radius, cosine), balls.multiply(radius, sine)];
  }
  if (p === Infinity) {
    const radius = gamma(n + 1);
    return Array.from({ length: n }, (_, k) =>
      balls.multiply(radius, balls.subtract(balls.times(share(n + 1 + k), 2n), balls.one)),
    );
  }
  let [raw, length] = [[], null];
  if (p === 2) {
    raw = exactNormals(balls, n, n, share);
    length = balls.root(raw.map((x) => balls.multiply(x, x)).reduce((a, b) => balls.add(a, b)));
  } else {
    const exponent = balls.double(p);
    raw = Array.from({ length: n }, (_, k) => exactPower(balls, words, exponent, uniforms, n + 2 * k));
    const sizes = raw.map((x) => (x.m < 0n ? balls.negative(x) : x));
    const largest = sizes.reduce((a, b) => (a.m > b.m ? a : b));
    const total = sizes
      .map((x) => balls.exp(balls.multiply(exponent, balls.log(balls.divide(x, largest)))))
      .reduce((a, b) => balls.add(a, b));
    length = balls.multiply(largest, balls.exp(balls.divide(balls.log(total), exponent)));
  }
  const factor = balls.divide(gamma(n), length);
  return raw.map((x) => balls.multiply(x, factor));
}

/** Return the rows of the Cholesky factor of a covariance as balls. */
export function exactFactor(balls, covariance, n) {
  const rows = [];
  for (let i = 0; i < n; i++) {
    const row = [];
    for (let j = 0; j <= i; j++) {
      const other = j < i ? rows[j] : row;
      let rest = balls.double(covariance[i * n + j]);
      for (let k = 0; k < j; k++) rest = balls.subtract(rest, balls.multiply(row[k], other[k]));
      row.push(j < i ? balls.divide(rest, other[j]) : balls.root(rest));
    }
    rows.push(row);
  }
  return rows;
}

/** Return the factor as rows of doubles, each entry within UNIT of a size that is given with it. */
function doubleFactor(covariance, n) {
  return settled((balls) => {
    const rows = exactFactor(balls, covariance, n);
    return rows.map((row, i) =>
      row.map(({ m, r }) => {
        if (r > row[i].m >> 90n) throw UNDECIDED;
        const [x, diagonal] = [m, row[i].m].map((value) => Number(value) * 2 ** -Number(balls.places));
        return [x, Math.abs(x) + diagonal * 2 ** -36];
      }),
    );
  }, 128n);
}

/** Return L z for noise with errors. */
export function stretched(factor, noise) {
  if (!factor) return noise;
  return factor.map((row) => {
    let [total, error] = [0, 0];
    row.forEach(([x, size], k) => {
      total += x * noise[k][0];
      error += size * (noise[k][1] + (noise.length + 4) * UNIT * Math.abs(noise[k][0]));
    });
    return [total, 1.01 * error];
  });
}

/**
 * The distribution of noise for vectors: a coordinate x lies at x * top / bottom cells. `covariance` is that of a Mahalanobis metric, whose noise
 * is that of l_2 times the Cholesky factor; points are multiplied with `matrix` first, one row for every coordinate of a report. With
 * `sigma` in the place of `epsilon` the noise is normal, with that standard deviation.
 */
export class VectorDistribution {
  constructor({ p = 2, dimension, ratio: [top, bottom], epsilon = null, sigma = null, covariance = null, matrix = null }) {
    Object.assign(this, { p, dimension, top, bottom, covariance, matrix });
    this.normal = sigma !== null;
    // 1 / epsilon or sigma in cells, within 2 UNIT, and as a fraction; doubles are multiples of 2^-1074
    this.scale = this.normal ? (top * sigma) / bottom : top / (bottom * epsilon);
    this.scaleTop = toWhole(top) * (this.normal ? toWhole(sigma) : 1n << 1074n);
    this.scaleBottom = toWhole(bottom) * (this.normal ? 1n << 1074n : toWhole(epsilon));
    this.factor = covariance ? doubleFactor(covariance, dimension) : null;
  }

  cells(point, source) {
    const uniforms = new Uniforms(source);
    return this.inDoubles(point, uniforms) ?? this.exactly(point, uniforms);
  }

  /** Return where a point lies as [coordinate, error]: a sum of n products is off by (n + 2) UNIT of their sizes. */
  places(point) {
    if (this.matrix === null) return point.map((x) => [x, 0]);
    return this.matrix.map((row) => {
      let [sum, sizes] = [0, 0];
      row.forEach((a, k) => {
        sum += a * point[k];
        sizes += Math.abs(a * point[k]);
      });
      return [sum, (row.length + 4) * 1.01 * UNIT * sizes];
    });
  }

  inDoubles(point, uniforms) {
    const { p, dimension: n } = this;
    const noise = stretched(this.factor, this.normal ? normalsOf(n, 0, uniforms) : unitNoise(p, n, uniforms));
    const cells = this.places(point).map(([x, unsure], k) => {
      const [moved, error] = noise[k];
      const wrong = this.scale * (error + 5 * UNIT * Math.abs(moved)) + unsure * (this.top / this.bottom) * 1.01;
      return sureCell(centreOf(x, this.top, this.bottom), this.scale * moved, wrong);
    });
    return cells.includes(undefined) ? undefined : cells;
  }

  /** Return where a point lies as fractions of whole numbers, exactly: [tops, the common bottom]. */
  #fractions(point) {
    const wholes = point.map(toWhole);
    if (this.matrix === null) return [wholes, 1n << 1074n];
    const sum = (row) => row.reduce((total, a, k) => total + toWhole(a) * wholes[k], 0n);
    return [this.matrix.map(sum), 1n << 2148n];
  }

  exactly(point, uniforms) {
    const widest = Math.max(...this.places(point).map(([x]) => Math.abs(x)));
    const extra = BigInt(Math.ceil(Math.log2(2 + this.scale + widest * (this.top / this.bottom)))) + BigInt(this.dimension);
    const [tops, bottom] = this.#fractions(point);
    return settled((balls, words) => {
      const share = (k) => balls.uniform(uniforms.digits(0, k, words), 64n * words);
      let noise = this.normal
        ? exactNormals(balls, this.dimension, 0, share)
        : exactNoise(balls, words, this.p, this.dimension, uniforms);
      if (this.covariance) {
        const zero = { m: 0n, r: 0n };
        const factor = exactFactor(balls, this.covariance, this.dimension);
        noise = factor.map((row) => row.reduce((sum, x, k) => balls.add(sum, balls.multiply(x, noise[k])), zero));
      }
      const scale = balls.fraction(this.scaleTop, this.scaleBottom);
      return tops.map((top, k) => {
        const centre = balls.fraction(top * toWhole(this.top), toWhole(this.bottom) * bottom);
        return Number(balls.cell(balls.add(centre, balls.multiply(scale, noise[k]))));
      });
    }, extra);
  }
}
