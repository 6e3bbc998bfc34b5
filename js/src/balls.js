/**
 * Balls of whole numbers: a number known to lie in [m - r, m + r] 2^-places, and what can be computed from such numbers. Every
 * function here gives a ball that holds the true result; functions of fixed numbers are computed with 64 places more.
 */

import { untilDecided } from "./randomness.js";
import { toWhole } from "./whole.js";

const GUARD = 64n;

/** The bits read so far leave more than one answer. */
export const UNDECIDED = Symbol("undecided");

const sizeOf = (value) => (value < 0n ? -value : value);
const bitsOf = (value) => {
  const hexadecimal = value.toString(16);
  return BigInt(4 * (hexadecimal.length - 1) + 32 - Math.clz32(parseInt(hexadecimal[0], 16)));
};

/** Return the whole part of a square root. */
function wholeRoot(value) {
  if (value < 2n) return value;
  let guess = 1n << ((bitsOf(value) + 1n) / 2n + 1n);
  for (;;) {
    const next = (guess + value / guess) >> 1n;
    if (next >= guess) return guess;
    guess = next;
  }
}

/** Return atan(1/n) or artanh(1/n) in units of 2^-places. */
function inverseSeries(n, places, sign) {
  let power = (1n << places) / n;
  let sum = power;
  for (let k = 3n; power !== 0n; k += 2n) {
    power = (sign * power) / (n * n);
    sum += power / k;
  }
  return sum;
}

/** Arithmetic of balls with a given number of binary places. */
export class Balls {
  constructor(places) {
    this.places = places;
    this.inner = places + GUARD;
    this.piInner = 4n * (4n * inverseSeries(5n, this.inner, -1n) - inverseSeries(239n, this.inner, -1n));
    this.logTwoInner = 2n * inverseSeries(3n, this.inner, 1n);
    this.pi = this.outer(this.piInner);
    this.one = { m: 1n << places, r: 0n };
  }

  outer(value) {
    return { m: value >> GUARD, r: 4n };
  }

  /** Return the ball of a fraction. */
  fraction(top, bottom) {
    return { m: (top << this.places) / bottom, r: 1n };
  }

  /** Return the ball of a double. */
  double(value) {
    return this.fraction(toWhole(value), 1n << 1074n);
  }

  /** Return the uniforms whose first bits are these. */
  uniform(digits, bits) {
    return { m: (2n * digits + 1n) << (this.places - bits - 1n), r: 1n << (this.places - bits - 1n) };
  }

  add(a, b) {
    return { m: a.m + b.m, r: a.r + b.r };
  }

  subtract(a, b) {
    return { m: a.m - b.m, r: a.r + b.r };
  }

  negative(a) {
    return { m: -a.m, r: a.r };
  }

  multiply(a, b) {
    return { m: (a.m * b.m) >> this.places, r: ((sizeOf(a.m) * b.r + sizeOf(b.m) * a.r + a.r * b.r) >> this.places) + 2n };
  }

  times(a, whole) {
    return { m: a.m * whole, r: a.r * sizeOf(whole) };
  }

  divide(a, b) {
    const least = sizeOf(b.m) - b.r;
    if (least <= 0n) throw UNDECIDED;
    const wrong = ((sizeOf(a.m) * b.r + sizeOf(b.m) * a.r) << this.places) / (sizeOf(b.m) * least);
    return { m: (a.m << this.places) / b.m, r: wrong + 2n };
  }

  root(a) {
    if (a.m + a.r < 0n) throw UNDECIDED;
    const low = wholeRoot((a.m > a.r ? a.m - a.r : 0n) << this.places);
    const high = wholeRoot((a.m + a.r) << this.places) + 1n;
    return { m: (low + high) >> 1n, r: ((high - low) >> 1n) + 1n };
  }

  log(a) {
    if (a.m <= a.r) throw UNDECIDED;
    const shift = bitsOf(a.m) - this.places;
    const value = shift > 0n ? (a.m << GUARD) >> shift : (a.m << GUARD) << -shift; // from 1/2 to 1
    const one = 1n << this.inner;
    const s = ((value - one) << this.inner) / (value + one);
    const square = (s * s) >> this.inner;
    let power = s;
    let sum = s;
    for (let k = 3n; power !== 0n && power !== -1n; k += 2n) {
      power = (power * square) >> this.inner;
      sum += power / k;
    }
    const { m } = this.outer(2n * sum + shift * this.logTwoInner);
    return { m, r: (a.r << this.places) / (a.m - a.r) + 8n };
  }

  exp(a) {
    if (a.r >= this.one.m) throw UNDECIDED;
    const value = a.m << GUARD;
    let doublings = value / this.logTwoInner;
    if (value < 0n) doublings -= 1n;
    if (doublings > 1n << 20n) throw UNDECIDED;
    const x = value - doublings * this.logTwoInner; // from 0 to ln 2
    let term = 1n << this.inner;
    let sum = term;
    for (let k = 1n; term !== 0n; k += 1n) {
      term = ((term * x) >> this.inner) / k;
      sum += term;
    }
    const shift = GUARD - doublings;
    const m = shift > 0n ? sum >> shift : sum << -shift;
    return { m, r: ((2n * m * a.r) >> this.places) + 8n + (doublings > 0n ? 1n << doublings : 0n) };
  }

  /** Return sine and cosine. */
  circle(a) {
    const turn = 2n * this.piInner;
    let x = (a.m << GUARD) % turn;
    if (x > this.piInner) x -= turn;
    if (x < -this.piInner) x += turn;
    const square = (x * x) >> this.inner;
    const sums = [];
    for (const start of [1n, 0n]) {
      let term = start ? x : 1n << this.inner;
      let sum = term;
      for (let k = start + 1n; sizeOf(term) > 1n; k += 2n) {
        term = -((term * square) >> this.inner) / (k * (k + 1n));
        sum += term;
      }
      sums.push({ m: sum >> GUARD, r: a.r + 8n });
    }
    return sums;
  }

  /** Return the angle of the vector (x, y), up to whole turns. */
  angle(y, x) {
    const [height, width] = [sizeOf(y.m), sizeOf(x.m)];
    const length = wholeRoot(height * height + width * width);
    const moved = x.r + y.r;
    if (length <= 2n * moved + 2n) throw UNDECIDED;
    const [less, more] = height > width ? [width, height] : [height, width];
    const one = 1n << this.inner;
    let q = (less << this.inner) / more;
    for (let k = 0; k < 3; k++) q = (q << this.inner) / (one + wholeRoot((one << this.inner) + q * q)); // half the angle
    const square = (q * q) >> this.inner;
    let power = q;
    let sum = q;
    for (let k = 3n; power !== 0n && power !== -1n; k += 2n) {
      power = -((power * square) >> this.inner);
      sum += power / k;
    }
    let angle = 8n * sum;
    if (height > width) angle = this.piInner / 2n - angle;
    if (x.m < 0n) angle = this.piInner - angle;
    const { m } = this.outer(y.m < 0n ? -angle : angle);
    return { m, r: ((height * x.r + width * y.r) << this.places) / (length * (length - moved)) + 8n };
  }

  below(a, b) {
    if (a.m + a.r < b.m - b.r) return true;
    if (a.m - a.r > b.m + b.r) return false;
    throw UNDECIDED;
  }

  /** Return the nearest whole number of all numbers in a ball. */
  cell(a) {
    const half = 1n << (this.places - 1n);
    const low = (a.m - a.r + half) >> this.places;
    if (low !== (a.m + a.r + half) >> this.places) throw UNDECIDED;
    return low;
  }
}

/** Return a whole number over 2^places as a double, within UNIT of itself. */
export function nearest(value, places) {
  const bits = value.toString(2).length;
  const shift = Math.max(0, bits - 64); // the first 64 bits are enough
  return Number(value >> BigInt(shift)) * 2 ** (shift - places);
}

/** Return what the fewest words of every uniform decide: `attempt(balls, words)` until it does not throw UNDECIDED. */
export function settled(attempt, extra) {
  return untilDecided((tries) => {
    const words = BigInt(tries + 1);
    if (words > 64n) return undefined;
    try {
      return attempt(new Balls(64n * words + 96n + extra), words);
    } catch (error) {
      if (error !== UNDECIDED) throw error;
      return undefined;
    }
  });
}
