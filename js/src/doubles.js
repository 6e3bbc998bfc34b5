/**
 * Elementary functions of doubles with proven error bounds: + - * / and square roots only, line for line those of
 * src/metricdp/mechanisms/noise/functions.py, where the bounds stand (docs/explanation/exact_noise.md proves them). UNIT is 2^-53.
 */

import { rint } from "./whole.js";

export const UNIT = 2 ** -53;

const VIEW = new DataView(new ArrayBuffer(8));
const LOG_TWO_HIGH = 0.6931471803691238;
const LOG_TWO_LOW = 1.9082149292705877e-10;
const HALF_PI = Math.PI / 2;
const HALF_PI_LOW = 6.123233995736766e-17;
const PI_LOW = 1.2246467991473532e-16;
const SPLITTER = 134217729;
const ARCS = [
  0, 0.12435499454676144, 0.24497866312686414, 0.35877067027057225, 0.4636476090008061, 0.5585993153435624, 0.6435011087932844,
  0.7188299996216245, 0.7853981633974483,
];

/** Return a square root within 2 UNIT of itself: the language guarantees nothing, so it is checked. */
export function root(value) {
  const found = Math.sqrt(value);
  if (!(Math.abs(found * found - value) <= 4 * UNIT * value)) throw new Error("this engine computes no square roots");
  return found;
}

/** Return the middle of what the first 52 bits of a word stand for: exact, and UNIT from either end. */
export function middleOf(high, low) {
  return (high * 1048576 + (low >>> 12)) * 2 ** -52 + UNIT;
}

/** Return ln of a positive ordinary double, within 8 UNIT of itself. */
export function logOf(value) {
  VIEW.setFloat64(0, value);
  let top = VIEW.getUint32(0) + (0x3ff00000 - 0x3fe6a09e);
  const exponent = (top >>> 20) - 1023;
  top = (top & 0xfffff) + 0x3fe6a09e;
  VIEW.setUint32(0, top);
  const away = VIEW.getFloat64(0) - 1;
  const s = away / (2 + away);
  const z = s * s;
  let tail = 1 / 17 + z * (1 / 19);
  tail = 1 / 13 + z * (1 / 15 + z * tail);
  tail = 1 / 7 + z * (1 / 9 + z * (1 / 11 + z * tail));
  const near = s * (2 + (z + z) * (1 / 3 + z * (1 / 5 + z * tail)));
  return exponent * LOG_TWO_HIGH + (exponent * LOG_TWO_LOW + near);
}

/** Return e to a power from -700 to 700 (below, as at -700), within 4 UNIT of itself. */
export function expOf(value) {
  const power = Math.max(value, -700);
  const doublings = Math.round(power * (1 / 0.6931471805599453));
  const x = power - doublings * LOG_TWO_HIGH - doublings * LOG_TWO_LOW;
  let tail = 1 / 39916800 + x * (1 / 479001600 + x * (1 / 6227020800));
  tail = 1 / 40320 + x * (1 / 362880 + x * (1 / 3628800 + x * tail));
  tail = 1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040 + x * tail)));
  const near = 1 + (x + x * x * (0.5 + x * (1 / 6 + x * tail)));
  const half = Math.trunc(doublings / 2); // both powers of two are ordinary doubles
  return near * 2 ** half * 2 ** (doublings - half);
}

function smallSine(x) {
  const z = x * x;
  let tail = -1 / 39916800 + z * (1 / 6227020800 - z * (1 / 1307674368000));
  tail = z * (-1 / 6 + z * (1 / 120 + z * (-1 / 5040 + z * (1 / 362880 + z * tail))));
  return x + x * tail;
}

function smallCosine(x) {
  const z = x * x;
  let tail = 1 / 479001600 + z * (-1 / 87178291200 + z * (1 / 20922789888000));
  tail = z * (1 / 24 + z * (-1 / 720 + z * (1 / 40320 + z * (-1 / 3628800 + z * tail))));
  return 1 + z * (tail - 0.5);
}

function turned(quarters, rest) {
  const [sine, cosine] = [smallSine(rest), smallCosine(rest)];
  return [[sine, cosine], [cosine, -sine], [-sine, -cosine], [-cosine, sine]][quarters & 3];
}

/** Return sine and cosine of 2 pi times a number in [0, 1), each within 6 UNIT of itself. */
export function circle(fraction) {
  const quarters = Math.round(4 * fraction);
  return turned(quarters, (4 * fraction - quarters) * HALF_PI);
}

/** Return sine and cosine of an angle in [0, 3.2], within 6 UNIT, and the sine below pi/4 within 6 UNIT of itself. */
export function sineAndCosine(angle) {
  const quarters = rint(angle * (1 / HALF_PI));
  return turned(quarters, angle - quarters * HALF_PI - quarters * HALF_PI_LOW);
}

/** Return sine and cosine of a latitude in degrees, each within 6 UNIT of itself. */
export function ofLatitude(degrees) {
  const size = Math.abs(degrees);
  const steep = size > 45;
  const angle = (steep ? 90 - size : size) * (Math.PI / 180);
  const [sine, cosine] = [smallSine(angle), smallCosine(angle)];
  const up = steep ? cosine : sine;
  return [degrees < 0 ? -up : up, steep ? sine : cosine];
}

/** Return the angle of the vector (x, y), within 12 UNIT of itself. */
export function arctangent(y, x) {
  const [height, width] = [Math.abs(y), Math.abs(x)];
  const steep = height > width;
  const [less, more] = steep ? [width, height] : [height, width];
  const eighths = rint(8 * (less / more));
  const ratio = 0.125 * eighths;
  const rest = (less - ratio * more) / (more + ratio * less);
  const z = rest * rest;
  let tail = 1 / 9 + z * (-1 / 11 + z * (1 / 13));
  tail = z * (-1 / 3 + z * (1 / 5 + z * (-1 / 7 + z * tail)));
  let angle = ARCS[eighths] + (rest + rest * tail);
  if (steep) angle = HALF_PI - (angle - HALF_PI_LOW);
  if (x < 0) angle = Math.PI - (angle - PI_LOW);
  return y < 0 ? -angle : angle;
}

function productOf(a, b) {
  const whole = a * b;
  let part = SPLITTER * a;
  const aHigh = part - (part - a);
  const aLow = a - aHigh;
  part = SPLITTER * b;
  const bHigh = part - (part - b);
  const bLow = b - bHigh;
  return [whole, aHigh * bHigh - whole + aHigh * bLow + aLow * bHigh + aLow * bLow];
}

/** Return value * top / bottom as a whole number and a rest, which is within 4 UNIT; for results up to 2^51. */
export function centreOf(value, top, bottom) {
  const [scaled, lost] = productOf(value, top);
  const cells = scaled / bottom;
  const [back, rest] = productOf(cells, bottom);
  const whole = Math.round(cells);
  return [whole, cells - whole + (scaled - back - rest + lost) / bottom];
}

/** Return 1 - |x|^2 and a bound of its error, for coordinates below 1: the squares are summed in twice the precision. */
export function roomOf(row) {
  let [high, low] = [0, 0];
  for (const x of row) {
    const [square, lost] = productOf(x, x);
    const total = high + square;
    const part = total - high;
    low += lost + (high - (total - part) + (square - part)); // what rounding took off, exactly
    high = total;
  }
  const room = 1 - high - low;
  return [room, 4 * UNIT * Math.abs(room) + (4 * row.length ** 2 + 4) * UNIT * UNIT];
}
