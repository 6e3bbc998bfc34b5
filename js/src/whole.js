/** Whole numbers of any length: where doubles cannot decide a draw, these do. */

import { untilDecided } from "./randomness.js";

/** The relative rounding of a double. */
export const ULP = 2 ** -52;

const BITS = new DataView(new ArrayBuffer(8));

/** Return the double as a whole multiple of 2^-1074. */
export function toWhole(value) {
  BITS.setFloat64(0, value);
  const bits = BITS.getBigUint64(0);
  const exponent = (bits >> 52n) & 0x7ffn;
  const mantissa = (bits & 0xfffffffffffffn) | (exponent > 0n ? 0x10000000000000n : 0n);
  const size = mantissa << (exponent > 0n ? exponent - 1n : 0n);
  return bits >> 63n ? -size : size;
}

/** Return the least double that is not below a whole multiple of 2^-places. */
export function doubleAbove(value, places) {
  const shift = BigInt(Math.max(0, value.toString(2).length - 53));
  const first = value >> shift;
  return Number(first << shift === value ? first : first + 1n) * 2 ** (Number(shift) - places);
}

/** Return doubles as whole multiples of 2^-1074. */
export const wholesOf = (weights) => Array.from(weights, toWhole);

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
    log += ((2n * (value - power)) << bits) / (value + power);
    if (log < 0n) log = 0n;
  }
  return log;
}

/** A word followed by as many further random bits as are asked for. */
export class Bits {
  constructor(high, low, source) {
    this.word = (BigInt(high) << 32n) | BigInt(low);
    this.count = 64n;
    this.source = source;
  }

  more() {
    this.source.next();
    this.word = (this.word << 64n) | (BigInt(this.source.high) << 32n) | BigInt(this.source.low);
    this.count += 64n;
  }
}

/**
 * Decide U < theta exactly, U being the word followed by as many further bits as needed, and theta the share of the far
 * anchor at position top / bottom: (e^(L t) - 1) / (e^a - 1) with L = 2 ln((1 + e^a) / 2), mirrored beyond the middle.
 */
export function exactFlip(top, bottom, ratio, high, low, source) {
  const bits = new Bits(high, low, source);
  return untilDecided((attempt) => {
    if (attempt > 0) bits.more();
    const places = bits.count + 192n;
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
    const scale = places - bits.count;
    if (share - error >= (bits.word + 1n) << scale) return true;
    if (share + error <= bits.word << scale) return false;
    return undefined;
  });
}

/** Decide one draw from whole numbers: the word, then as many further bits as it takes. */
export function exactPlace(whole, high, low, source) {
  const total = whole.reduce((a, b) => a + b, 0n);
  const bits = new Bits(high, low, source);
  return untilDecided((attempt) => {
    if (attempt > 0) bits.more();
    let running = 0n;
    for (let k = 0; k < whole.length; k++) {
      running += whole[k];
      const edge = running << bits.count;
      if (bits.word * total < edge) return (bits.word + 1n) * total <= edge ? k : undefined;
    }
    return undefined;
  });
}

/** Round to the nearest whole number, halves to even, as Python does. */
export function rint(value) {
  const floor = Math.floor(value);
  const above = value - floor;
  if (above < 0.5) return floor;
  if (above > 0.5) return floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}
