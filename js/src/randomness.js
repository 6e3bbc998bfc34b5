/** Randomness, from crypto.getRandomValues only. */

import { MetricdpError } from "./errors.js";

const TRIES = 10_000; // the probability that an honest source needs more is below 2^-1000

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
