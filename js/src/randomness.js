/** Randomness, from crypto.getRandomValues only, and the distributions made of it. */

import { MetricdpError } from "./errors.js";

const TRIES = 10_000; // the chance that an honest source needs more is below 2^-1000

/**
 * Uniform 64-bit words: `next` puts one into `high` and `low`, 32 bits each.
 * @typedef {{ high: number, low: number, next(): void }} Words
 */

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

export const system = new SystemSource();

/** Call `attempt` until it gives something; a source that repeats itself ends in an error, not in a loop. */
export function untilDecided(attempt) {
  for (let k = 0; k < TRIES; k++) {
    const found = attempt(k);
    if (found !== undefined) return found;
  }
  throw new MetricdpError("the random source repeats itself: nothing was drawn.");
}

/** Return a uniform number in (0, 1), right to 2^-52 of itself: 64 random bits, and 64 more below 2^-12. */
export function openUniform(source) {
  source.next();
  const { high, low } = source;
  const word = high * 4294967296 + low;
  if (high < 2 ** 20) {
    source.next();
    const deeper = (source.high * 4294967296 + source.low) * 2 ** -64;
    return (word + deeper + 2 ** -65) * 2 ** -64;
  }
  return Math.min((word + 0.5) * 2 ** -64, 1 - 2 ** -53);
}

/** Return a Gamma(shape, 1) variate for a whole-number shape: minus the log of a product of uniforms. */
export function erlang(shape, source) {
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

/**
 * Return G^(1/p) for G ~ Gamma(1/p, 1), p > 1. Marsaglia and Tsang (2000) give G = d v U^p with their boost for small
 * shapes; its p-th root is (d v)^(1/p) U, which does not underflow however large p is.
 */
function gammaRoot(p, source) {
  const d = 1 / p + 1 - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  return untilDecided(() => {
    const x = normal(source);
    const v = (1 + c * x) ** 3;
    if (!(v > 0 && Math.log(openUniform(source)) < 0.5 * x * x + d - d * v + d * Math.log(v))) return undefined;
    return (d * v) ** (1 / p) * openUniform(source);
  });
}

/** Return s G^(1/p) with G ~ Gamma(1/p) and a fair sign s: the direction law of the l_p Laplace. */
export function signedRoot(p, source) {
  if (p === 2) return normal(source);
  const uniform = openUniform(source);
  if (p === Infinity) return 2 * uniform - 1;
  const size = p === 1 ? -Math.log(openUniform(source)) : gammaRoot(p, source);
  return uniform >= 0.5 ? size : -size;
}
