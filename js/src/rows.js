/** Rows of probabilities, and exact draws from them. */

import { refuse } from "./errors.js";
import { CONSTANTS } from "./constants.js";
import { ULP, exactPlace, wholesOf } from "./whole.js";

const CACHED_ROWS = 4096; // running sums are cached for at most this many rows
const LARGEST_SUM_ERROR = 1e-3;

/**
 * Rows of probabilities in any storage. A draw is exact with respect to row / sum(row) of the stored numbers: a 64-bit
 * word is compared with running sums in doubles whose error is bounded, and a word within that bound of a boundary
 * (about one in a billion) is decided with whole numbers of any length and further random bits.
 */
export class Rows {
  /** `columns` are the reports in use, or null where all are stored; `bits` belongs to whole numbers, `present` to zeros. */
  constructor({ rows, reports, columns, values, storage, bits = null, present = null }) {
    this.rows = rows;
    this.reports = reports;
    this.columns = columns;
    this.values = values;
    this.storage = storage;
    this.bits = bits;
    this.present = present;
    this.width = columns === null ? reports : columns.length;
    this.cache = new Map();
    if (present !== null) this.starts = startsOf(present, rows, this.width);
  }

  /** Return the numbers of a row, one for every stored report. */
  weights(row) {
    const used = this.width;
    if (this.present === null) return this.values.subarray(row * used, (row + 1) * used);
    const result = new Float64Array(used);
    let at = this.starts[row];
    for (let k = 0; k < used; k++) if (bitAt(this.present, row * used + k)) result[k] = this.values[at++];
    return result;
  }

  /** Return the distribution of a row over all reports. */
  distribution(row) {
    const weights = this.weights(row);
    const total = this.bits === null ? sumOf(weights) : 2 ** this.bits;
    const result = new Float64Array(this.reports);
    for (let k = 0; k < weights.length; k++) result[this.report(k)] = Number(weights[k]) / total;
    return result;
  }

  /** Return [report, probability] of reports that hold at least `level` together: all of them. */
  likely(row) {
    return Array.from(this.distribution(row), (probability, k) => [k, probability]);
  }

  report(k) {
    return this.columns === null ? k : Number(this.columns[k]);
  }

  running(row) {
    let sums = this.cache.get(row);
    if (sums === undefined) {
      if (this.cache.size >= CACHED_ROWS) this.cache.clear();
      sums = this.bits === null ? shares(this.weights(row)) : counted(this.weights(row));
      this.cache.set(row, sums);
    }
    return sums;
  }

  draw(row, source) {
    source.next();
    const sums = this.running(row);
    if (this.bits === null) return this.report(drawShares(sums, () => wholesOf(this.weights(row)), source));
    // The leading bits of the word are a uniform whole number below 2^bits; counts and their sums are exact.
    const { high, low } = source;
    const { bits } = this;
    const place = bits <= 32 ? high >>> (32 - bits) : high * 2 ** (bits - 32) + (low >>> (64 - bits));
    return this.report(firstAbove(sums, place));
  }
}

/** Return whether a bit is set, the first one being the lowest of the first byte. */
const bitAt = (bytes, bit) => (bytes[Math.floor(bit / 8)] >> (bit % 8)) & 1;

function startsOf(present, rows, width) {
  const starts = new Float64Array(rows + 1);
  for (let row = 0; row < rows; row++) {
    let count = 0;
    for (let bit = row * width; bit < (row + 1) * width; bit++) count += bitAt(present, bit);
    starts[row + 1] = starts[row] + count;
  }
  return starts;
}

export function sumOf(weights) {
  let total = 0;
  for (const weight of weights) total += weight;
  return total;
}

/** Return running sums divided by the total. */
export function shares(weights) {
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

/** Return the place that the word in `source` falls into; `wholes` gives the weights exactly, where doubles cannot tell. */
export function drawShares(sums, wholes, source) {
  const { high, low } = source;
  const level = (high * 4294967296 + low) * 2 ** -64;
  const k = firstAbove(sums, level);
  const band = (sums.length + 16) * ULP; // rounding of the running sum, of the division and of the level
  const unsure = sums[k] - level <= band || (k > 0 && level - sums[k - 1] <= band) || level >= 1 - band;
  return unsure ? exactPlace(wholes(), high, low, source) : k;
}

/** Read the probabilities of a body with the given numbers of rows and reports, or the file is refused before anything is built. */
export function readRows(entry, file, rows, reports) {
  refuse(rows * reports > CONSTANTS.largest_matrix, "its matrix is too large");
  if (typeof entry === "string") {
    const values = file.floats(entry, [rows, reports], "its matrix");
    return checkedRows(new Rows({ rows, reports, columns: null, values, storage: "dense" }));
  }
  refuse(entry.shape[0] !== rows || entry.shape[1] !== reports, "its matrix does not fit its spaces");
  const columns = file.counts(entry.columns, [null], "its columns");
  for (let k = 0; k < columns.length; k++) {
    refuse(Number(columns[k]) >= reports || (k > 0 && columns[k] <= columns[k - 1]), "its reports are not in order");
  }
  const table = { rows, reports, columns, storage: entry.storage };
  return entry.storage === "sparse" ? sparse(entry, file, table) : quantised(entry, file, table);
}

function sparse(entry, file, table) {
  const values = file.floats(entry.values, [null], "its probabilities");
  const cells = table.rows * table.columns.length;
  let present = null;
  let expected = cells;
  if (entry.present !== null) {
    present = file.bits(entry.present, [Math.ceil(cells / 8)], "its bits");
    expected = 0;
    for (let bit = 0; bit < 8 * present.length; bit++) {
      refuse(bit >= cells && bitAt(present, bit), "its bits do not fit its probabilities");
      expected += bitAt(present, bit);
    }
  }
  refuse(expected !== values.length, "its bits do not fit its probabilities");
  for (const value of values) refuse(!(value > 0), "a stored probability is not positive");
  return checkedRows(new Rows({ ...table, values, present }));
}

function quantised(entry, file, table) {
  const values = file.counts(entry.counts, [table.rows, table.columns.length], "its counts");
  const rows = new Rows({ ...table, values, bits: entry.bits });
  for (let row = 0; row < rows.rows; row++) {
    let total = 0; // counts are at most 2^64 and a few of them reach 2^53: then the sum is no longer 2^bits either
    for (const count of rows.weights(row)) total += Number(count);
    refuse(total !== 2 ** entry.bits, `a row of counts does not sum to 2^${entry.bits}`);
  }
  return rows;
}

function checkedRows(table) {
  for (let row = 0; row < table.rows; row++) {
    let total = 0;
    for (const value of table.weights(row)) {
      refuse(!(value >= 0), "a stored probability is negative or not a number");
      total += value;
    }
    refuse(!(Math.abs(total - 1) <= LARGEST_SUM_ERROR), "a row of probabilities does not sum to 1");
  }
  return table;
}

/** Read a table of probabilities with one row per secret. */
export function readMatrix(body, file) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  const table = readRows(body.matrix, file, inputs.size, outputs.size);
  return { inputs, outputs, table, draw: (code, source) => table.draw(code, source), distribution: (code) => table.distribution(code) };
}
