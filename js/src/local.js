/** Sparse rows over one background: the mechanisms of whole cities and their districts, and exact draws from them. */

import { refuse } from "./errors.js";
import { drawShares, shares, sumOf } from "./rows.js";
import { wholesOf } from "./whole.js";

const BLOCK = 65536; // reports whose numbers take two bytes
const PREPARED_ROWS = 1024; // running sums are cached for at most this many rows
const REPEATS = 8; // draws from the background before what a row leaves of it is drawn by itself
const SINGLE = 1074n - 149n; // every float of 32 bits is a multiple of 2^-149

/** Return a multiple of 2^-1074 that is one of 2^-149 as a double, rounded once. */
const toDouble = (whole) => Number(whole >> SINGLE) * 2 ** -149;

const wholeSum = (weights) => wholesOf(weights).reduce((sum, weight) => sum + weight, 0n);

/**
 * Rows of weights for near reports, and one background for all others. A draw is exact with respect to weight / total of the
 * stored numbers, as from `Rows`: the row's own reports in order, and one last cell for what it leaves of the background.
 */
class LocalRows {
  constructor({ starts, columns, values, background }) {
    this.starts = starts;
    this.columns = columns;
    this.values = values;
    this.background = background;
    this.rows = starts.length - 1;
    this.reports = background.length;
    this.storage = "sparse";
    this.everything = wholeSum(background);
    this.positive = background.reduce((count, weight) => count + (weight > 0 ? 1 : 0), 0);
    this.prepared = new Map();
    this.shares = null; // of the background, made when it is first drawn from
  }

  /**
   * Return the row's own reports, their weights, the running sums, and what is left of the background. In doubles that is
   * off by at most (k + 2) 2^-53 (all + covered): where this is below 8 ULP of the total, which `drawShares` has to spare, it
   * does; elsewhere it is computed in whole numbers.
   */
  row(row) {
    let found = this.prepared.get(row);
    if (found === undefined) {
      if (this.prepared.size >= PREPARED_ROWS) this.prepared.clear();
      const columns = this.columns.subarray(this.starts[row], this.starts[row + 1]);
      const weights = Array.from(this.values.subarray(this.starts[row], this.starts[row + 1]));
      const hidden = Float64Array.from(columns, (k) => this.background[k]);
      const [all, covered] = [toDouble(this.everything), sumOf(hidden)];
      const exactRest = () => this.everything - wholeSum(hidden);
      const rest = (columns.length + 2) * (all + covered) <= 16 * sumOf(weights) ? all - covered : toDouble(exactRest());
      found = { columns, weights, rest, exactRest, sums: shares([...weights, Math.max(rest, 0)]) };
      this.prepared.set(row, found);
    }
    return found;
  }

  draw(row, source) {
    const { columns, weights, exactRest, sums } = this.row(row);
    source.next();
    const place = drawShares(sums, () => [...wholesOf(weights), exactRest()], source);
    return place < columns.length ? columns[place] : this.#drawBackground(columns, source);
  }

  /** Draw from the background until the report is none of the row's own. */
  #drawBackground(columns, source) {
    for (let k = 0; k < REPEATS; k++) {
      this.shares ??= shares(this.background);
      const report = this.#drawWeights(this.shares, this.background, source);
      if (!isIn(columns, report)) return report;
    }
    const rest = Float64Array.from(this.background);
    for (const k of columns) rest[k] = 0;
    return this.#drawWeights(shares(rest), rest, source);
  }

  #drawWeights(sums, weights, source) {
    source.next();
    return drawShares(sums, () => wholesOf(weights), source);
  }

  /** Return the distribution of a row over all reports. */
  distribution(row) {
    const { columns, weights, rest } = this.row(row);
    const total = sumOf(weights) + rest;
    const result = Float64Array.from(this.background, (weight) => weight / total);
    for (let k = 0; k < columns.length; k++) result[columns[k]] = weights[k] / total;
    return result;
  }

  /** Return [report, probability] of reports that hold at least `level` together: the row's own, where they do. */
  likely(row, level) {
    const { columns, weights, rest } = this.row(row);
    const near = sumOf(weights);
    const total = near + rest;
    if (near >= level * total) return weights.map((weight, k) => [columns[k], weight / total]);
    return Array.from(this.distribution(row), (probability, k) => [k, probability]);
  }
}

/** Tell whether a number stands in an increasing list. */
function isIn(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return sorted[low] === value;
}

/** Read sparse rows over a background, one row per secret. */
export function readLocal(body, file) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  const blocks = Math.ceil(outputs.size / BLOCK);
  const lengths = file.counts(body.lengths, [inputs.size, blocks], "its lengths");
  const numbers = file.counts(body.columns, [null], "its columns");
  const values = file.singles(body.values, [numbers.length], "its weights");
  const background = file.shaped(body.background, [outputs.size], "its background");
  const columns = new Uint32Array(numbers.length);
  const starts = new Float64Array(inputs.size + 1);
  let at = 0;
  for (let cell = 0; cell < lengths.length; cell++) {
    const end = at + Number(lengths[cell]);
    refuse(end > numbers.length, "its rows hold more reports than are stored");
    const block = cell % blocks;
    for (let first = at; at < end; at++) {
      columns[at] = Number(numbers[at]) + BLOCK * block;
      refuse(columns[at] >= outputs.size || (at > first && columns[at] <= columns[at - 1]), "its reports are not in order");
    }
    if (block === blocks - 1) starts[(cell + 1) / blocks] = at;
  }
  refuse(at !== numbers.length, "its rows hold fewer reports than are stored");
  const table = new LocalRows({ starts, columns, values, background });
  for (let row = 0; row < table.rows; row++) refuse(!hasWeight(table, row), "a secret has no report with a weight above 0");
  return { inputs, outputs, table, draw: (code, source) => table.draw(code, source), distribution: (code) => table.distribution(code) };
}

/** Tell whether any report of a row has a weight above 0. */
function hasWeight(table, row) {
  const [start, end] = [table.starts[row], table.starts[row + 1]];
  let hidden = 0;
  for (let at = start; at < end; at++) {
    if (table.values[at] > 0) return true;
    if (table.background[table.columns[at]] > 0) hidden += 1;
  }
  return table.positive > hidden;
}
