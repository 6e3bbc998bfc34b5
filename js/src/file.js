/** The bytes of a mechanism file, taken apart: header, tensors, and the metrics and spaces that they make. */

import { CorruptFile, refuse } from "./errors.js";
import { checkVersion, checkedManifest } from "./manifest.js";
import { readMetric } from "./metrics.js";
import { list, oneOf, record, tuple, whole } from "./schema.js";
import { CONSTANTS } from "./constants.js";
import { Points, readSpace } from "./spaces.js";

const TYPES = {
  F64: Float64Array, F32: Float32Array, I64: BigInt64Array, U8: Uint8Array, U16: Uint16Array, U32: Uint32Array, U64: BigUint64Array,
};
const TYPES_OF = { 1: ["F64", "I64", "U8"], 2: Object.keys(TYPES) };
const UNSIGNED = [Uint8Array, Uint16Array, Uint32Array, BigUint64Array];
const ARRAYS = { // by declaration
  float: [Float64Array], single: [Float32Array], whole: [BigInt64Array], narrow: UNSIGNED, points: [Float64Array, BigInt64Array, Array],
};
const MOST_CODES = 65536; // kinds of numbers that a table holds
const DECODER_OPTIONS = { fatal: true, ignoreBOM: true };

const offset = whole();
const tensorEntry = (types) =>
  record({ dtype: oneOf(types), shape: list(whole(1), 1, 8), data_offsets: tuple(offset, offset) });

function parsed(text, what) {
  try {
    const value = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  } catch {
    // said below
  }
  throw new CorruptFile(`the file was refused: it is not a mechanism file, or its ${what} is damaged.`);
}

function decoded(bytes, what) {
  try {
    return new TextDecoder("utf-8", DECODER_OPTIONS).decode(bytes);
  } catch {
    throw new CorruptFile(`the file was refused: its ${what} is not text.`);
  }
}

export class MechanismFile {
  /** Take apart the bytes (an ArrayBuffer that nobody else writes to); `verified` and `build` come next. */
  constructor(buffer) {
    refuse(buffer.byteLength < 8, "it is not a mechanism file");
    const size = new DataView(buffer).getBigUint64(0, true);
    refuse(size < 2n || size > BigInt(CONSTANTS.header_limit), "it is not a mechanism file, or its first bytes are damaged");
    this.start = 8 + Number(size);
    refuse(this.start > buffer.byteLength, "it is cut off");
    this.bytes = new Uint8Array(buffer);
    const header = parsed(decoded(this.bytes.subarray(8, this.start), "header"), "header");
    const { __metadata__: metadata, ...entries } = header;
    refuse(typeof metadata?.metricdp !== "string", "it is a safetensors file, but metricdp did not write it");
    this.manifest = parsed(metadata.metricdp, "manifest");
    checkVersion(this.manifest);
    this.layOut(entries);
    this.used = new Set();
    this.read = new Map();
    this.metrics = [];
    this.spaces = [];
  }

  /** Check that the tensors fill the rest of the file from end to end, each as long as its shape says. */
  layOut(entries) {
    const check = tensorEntry(TYPES_OF[this.manifest.version]);
    this.entries = new Map(Object.entries(entries).map(([name, entry]) => [name, check(entry, "a tensor")]));
    let end = 0;
    for (const { dtype, shape, data_offsets: span } of [...this.entries.values()].sort((a, b) => a.data_offsets[0] - b.data_offsets[0])) {
      const length = shape.reduce((a, b) => a * b, TYPES[dtype].BYTES_PER_ELEMENT);
      refuse(span[0] !== end || span[1] - span[0] !== length, "its tensors overlap or have gaps");
      end = span[1];
    }
    const size = this.bytes.length - this.start;
    refuse(end !== size, end > size ? "it is cut off" : "it is too long");
  }

  /** Check the manifest and rebuild metrics and spaces in the order they were stored; each refers to earlier ones only. */
  build() {
    this.manifest = checkedManifest(this);
    for (const entry of this.manifest.metrics) this.metrics.push(readMetric(entry, this));
    for (const entry of this.manifest.spaces) this.spaces.push(readSpace(entry, this));
  }

  refuseLeftovers() {
    for (const name of this.entries.keys()) refuse(!this.used.has(name), "it holds a tensor that nothing refers to");
  }

  /** Return a metric by its number, which the manifest was checked for. */
  metric(number) {
    return this.metrics[number];
  }

  /** Return a space by its number; it is of the kind that its field declares. */
  space(number) {
    return this.spaces[number];
  }

  /** Tell whether two metrics are the same one. */
  same(one, two) {
    const { metrics } = this.manifest;
    return one === two || JSON.stringify(spelled(metrics[one])) === JSON.stringify(spelled(metrics[two]));
  }

  /** Return {data, shape} of a tensor; text comes as a list of strings. */
  tensor(name) {
    if (!this.read.has(name)) this.read.set(name, this.entries.has(`${name}.bytes`) ? this.texts(name) : this.numbers(name));
    return this.read.get(name);
  }

  numbers(name) {
    const entry = this.entries.get(name);
    refuse(entry === undefined, "it refers to a tensor that it does not hold");
    this.used.add(name);
    const [from, to] = entry.data_offsets;
    const data = new TYPES[entry.dtype](this.bytes.slice(this.start + from, this.start + to).buffer);
    return { data, shape: entry.shape };
  }

  texts(name) {
    const bytes = this.numbers(`${name}.bytes`).data;
    const { data: ends, shape } = this.numbers(`${name}.ends`);
    refuse(!(bytes instanceof Uint8Array) || !(ends instanceof BigInt64Array), "its words are not text");
    let start = 0n;
    const data = Array.from(ends, (end) => {
      refuse(end < start || end > BigInt(bytes.length), "its words do not end where they should");
      const word = decoded(bytes.subarray(Number(start), Number(end)), "vocabulary");
      start = end;
      return word;
    });
    const full = start === BigInt(bytes.length) || (start === 0n && bytes.length === 1); // a tensor is never empty
    refuse(!full, "its words do not end where they should");
    return { data, shape };
  }

  /** Refuse a tensor that is not of the type, the sides and the range that its field declares; return its name. */
  checkArray(name, { of, sides = 0, least = -Infinity, most = Infinity }, where) {
    refuse(typeof name !== "string", `${where} is not the name of a tensor`);
    const { data, shape } = this.tensor(name);
    const isText = Array.isArray(data);
    const fits = ARRAYS[of].some((Type) => data instanceof Type) && (isText || sides === 0 || shape.length === sides);
    refuse(!fits, `${where} is not a tensor of the right type and shape`);
    if (!isText) for (const value of data) refuse(!(value >= least && value <= most), `${where} holds a number outside its range`);
    return name;
  }

  shape(name) {
    return this.tensor(name).shape;
  }

  /** Return finite doubles of a shape (null: any side; a shape of null: any). */
  floats(name, shape, what) {
    const data = this.shaped(name, shape, what);
    refuse(!(data instanceof Float64Array), `${what} are not doubles`);
    for (const value of data) refuse(!Number.isFinite(value), `${what} are not finite numbers`);
    return data;
  }

  /** Return whole numbers of at least 0 of a shape, of any width. */
  counts(name, shape, what) {
    const data = this.shaped(name, shape, what);
    refuse(!UNSIGNED.some((Type) => data instanceof Type), `${what} are not whole numbers`);
    return data;
  }

  /** Return signed whole numbers of a shape as doubles. */
  wholes(name, shape, what) {
    const data = this.shaped(name, shape, what);
    refuse(!(data instanceof BigInt64Array), `${what} are not whole numbers`);
    return Float64Array.from(data, Number);
  }

  bits(name, shape, what) {
    const data = this.shaped(name, shape, what);
    refuse(!(data instanceof Uint8Array), `${what} are not bytes`);
    return data;
  }

  /** Return single floats of a shape, which may lie in the file as codes and a table that decreases. */
  singles(entry, shape, what) {
    if (typeof entry === "string") return this.shaped(entry, shape, what);
    const table = this.shaped(entry.table, [null], what);
    const decreases = table.every((value, k) => k === 0 || value < table[k - 1]);
    refuse(table.length > MOST_CODES || !decreases, `${what} have a table that is too long or not in decreasing order`);
    return Float32Array.from(this.counts(entry.codes, shape, what), (code) => {
      refuse(code >= table.length, `${what} have a code that is not in their table`);
      return table[Number(code)];
    });
  }

  shaped(name, shape, what) {
    const { data, shape: found } = this.tensor(name);
    const fits = shape === null || (shape.length === found.length && shape.every((side, k) => side === null || side === found[k]));
    refuse(!fits, `${what} have the wrong size`);
    return data;
  }

  points(name) {
    const found = this.tensor(name);
    const good = Array.isArray(found.data) || found.data instanceof Float64Array || found.data instanceof BigInt64Array;
    refuse(!good || found.shape.length < 2, "its points are not rows of numbers or words");
    return new Points(found);
  }
}

/** Return an entry with its keys in order, so that equal ones are spelled alike. */
const spelled = ({ name, parameters }) => [name, Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1))];
