/**
 * Kernels over small vocabularies: Pr[k | i] = w_k exp(-a min(d(i, k), cap)) / N_i in real numbers of the stored points.
 *
 * A draw is one uniform number, of which further bits are read where they are needed. The reports share the interval from 0 to
 * 1 by their probabilities: the secret itself first, then all others in their order. Doubles decide where their proven error
 * leaves no doubt, balls of whole numbers elsewhere: the same words give the same report as in Python. What a file says about
 * its normalisers is not used, and nothing is remembered of what was asked.
 */

import { UNDECIDED, nearest, settled } from "./balls.js";
import { trueDistances } from "./distances.js";
import { UNIT, expOf } from "./doubles.js";
import { refuse } from "./errors.js";
import { Uniforms } from "./noise.js";

const LARGEST_EXPONENT = 600.6; // of the farthest report; below, exp stays an ordinary double
const WIDEST_WEIGHTS = 90; // logarithm of the largest weight over the smallest
const EXTRA = 64n; // places of balls, for what large numbers take

/** Return the smaller of two balls, or one that holds both where that is not sure. */
function lesser(a, b) {
  if (a.m + a.r <= b.m - b.r) return a;
  if (b.m + b.r <= a.m - a.r) return b;
  const apart = a.m > b.m ? a.m - b.m : b.m - a.m;
  return { m: (a.m + b.m) >> 1n, r: apart + (a.r > b.r ? a.r : b.r) + 1n };
}

/** The rows of a kernel, each made when it is asked for. */
class KernelRows {
  constructor(metric, size, { inner, cap, logs }) {
    this.metric = metric;
    this.rows = this.reports = size;
    this.storage = "dense";
    this.inner = inner;
    this.cap = cap ?? Infinity;
    this.logs = logs;
    this.shift = logs === null ? 0 : logs.reduce((most, log) => Math.max(most, log), -Infinity);
    const least = logs === null ? 0 : logs.reduce((low, log) => Math.min(low, log), Infinity);
    refuse(this.shift - least > WIDEST_WEIGHTS, "its weights differ too much");
    this.weights = logs === null ? null : logs.map((log) => expOf(log - this.shift));
    let away = 0;
    for (let k = 0; k < size; k++) away = Math.max(away, metric.measure(0, k));
    const farthest = 2 * (away * (1 + 2 * metric.relative) + metric.absolute); // no two are farther apart than twice that
    const reach = farthest <= this.cap ? farthest : this.cap; // also where `farthest` is no number
    refuse(!(inner * reach <= LARGEST_EXPONENT), "its exponents are larger than doubles hold");
    const roundings = 4 * (inner * reach + this.shift - least + Math.abs(this.shift)) + size + 24;
    /** A bound of the relative error of any sum of terms of a row. */
    this.error = 1.01 * (inner * (metric.relative * reach + metric.absolute) + roundings * UNIT);
  }

  /** Return the terms of a row, relative to the largest weight; NaN where doubles lost a distance. */
  terms(row) {
    const result = new Float64Array(this.reports);
    for (let k = 0; k < result.length; k++) {
      const away = k === row ? 0 : this.metric.measure(row, k);
      const term = expOf(-this.inner * Math.min(away, this.cap));
      result[k] = this.weights === null ? term : term * this.weights[k];
    }
    return result;
  }

  draw(row, source) {
    const uniforms = new Uniforms(source);
    const [high, low] = uniforms.word(0, 0, 0);
    return this.#located(row, high * 4294967296 + low) ?? this.#decided(row, uniforms);
  }

  /**
   * Return the report that a word stands for, or undefined where doubles leave it open. With t the secret's own term and O the
   * sum of the others, report k is the first with t_0 + ... + t_k > U (t + O) - t.
   */
  #located(row, word) {
    const terms = this.terms(row);
    const own = terms[row];
    terms[row] = 0;
    let others = 0;
    for (let k = 0; k < terms.length; k++) others += terms[k];
    const total = own + others;
    const margin = 2 * this.error * others + 16 * UNIT * total;
    const low = word * 2 ** -64 * total - own;
    const high = low + 2 ** -64 * total;
    if (!(low >= 0)) return high + margin < 0 || others === 0 ? row : undefined; // undefined too where a term is no number
    const final = row === terms.length - 1 ? row - 1 : terms.length - 1; // no report lies beyond, whatever the sums say
    let before = 0;
    for (let k = 0; k < terms.length; k++) {
      const after = before + terms[k];
      if (after > low) return before + margin < low && (k === final || high + margin < after) ? k : undefined;
      before = after;
    }
    return undefined;
  }

  /** Return the report of one draw in balls of whole numbers: as many words of it as it takes. */
  #decided(row, uniforms) {
    const order = [row];
    for (let k = 0; k < this.reports; k++) if (k !== row) order.push(k);
    return settled((balls, words) => {
      const [inner, cap] = [balls.double(this.inner), this.cap < Infinity ? balls.double(this.cap) : null];
      const terms = order.map((k) => this.#ball(balls, row, k, inner, cap));
      const total = terms.reduce((sum, term) => balls.add(sum, term));
      const target = balls.multiply(balls.uniform(uniforms.digits(0, 0, words), 64n * words), total);
      let running = { m: 0n, r: 0n };
      for (let k = 0; k < order.length - 1; k++) {
        running = balls.add(running, terms[k]);
        if (balls.below(target, running)) return order[k];
      }
      return order[order.length - 1];
    }, EXTRA);
  }

  #ball(balls, row, k, inner, cap) {
    const weight = this.logs === null ? { m: 0n, r: 0n } : balls.subtract(balls.double(this.logs[k]), balls.double(this.shift));
    if (k === row) return balls.exp(weight);
    const away = this.metric.ball(balls, row, k);
    return balls.exp(balls.subtract(weight, balls.multiply(inner, cap === null ? away : lesser(away, cap))));
  }

  /** Return a term of a row where doubles lost its distance. */
  #near(row, k) {
    return settled((balls) => {
      const [inner, cap] = [balls.double(this.inner), this.cap < Infinity ? balls.double(this.cap) : null];
      const { m, r } = this.#ball(balls, row, k, inner, cap);
      if (r > m >> 60n) throw UNDECIDED;
      return nearest(m, Number(balls.places));
    }, EXTRA);
  }

  /** Return the distribution of a row over all reports. */
  distribution(row) {
    const terms = this.terms(row).map((term, k) => (Number.isNaN(term) ? this.#near(row, k) : term));
    let total = 0;
    for (const term of terms) total += term;
    return terms.map((term) => term / total);
  }

  /** Return [report, probability] of reports that hold at least `level` together: all of them. */
  likely(row) {
    return Array.from(this.distribution(row), (probability, k) => [k, probability]);
  }
}

/** Read a kernel on the secrets of a space, which are its reports. */
export function readKernel(body, file, guarantee) {
  const space = file.space(body.space);
  const measure = trueDistances(space);
  const logs = body.log_weights === null ? null : file.floats(body.log_weights, [space.size], "its weights");
  file.floats(body.log_normalisers, [space.size], "its normalisers");
  refuse(guarantee.basis !== "none" && !(body.inner <= guarantee.epsilon), "its kernel does not satisfy its guarantee");
  const table = new KernelRows(measure, space.size, { inner: body.inner, cap: body.cap, logs });
  return { inputs: space, outputs: space, table, draw: (code, source) => table.draw(code, source), distribution: (code) => table.distribution(code) };
}
