/** What exact noise is made of: uniforms with as many bits as are asked for, and cells that are sure. */

import { UNIT, logOf, middleOf, root } from "./doubles.js";

/** The uniforms of one draw: binary fractions of as many words as anybody asks for, each word drawn once. */
export class Uniforms {
  constructor(source) {
    this.source = source;
    this.known = new Map();
  }

  word(attempt, k, limb) {
    if (this.source.limb) return this.source.limb(attempt, k, limb); // chosen by a test
    const place = `${attempt} ${k} ${limb}`;
    let found = this.known.get(place);
    if (found === undefined) {
      this.source.next();
      found = [this.source.high, this.source.low];
      this.known.set(place, found);
    }
    return found;
  }

  middle(attempt, k) {
    const [high, low] = this.word(attempt, k, 0);
    return middleOf(high, low);
  }

  /** Return the sign of the first bit and the middle of the uniform of the others. */
  signed(attempt, k) {
    const [high, low] = this.word(attempt, k, 0);
    return [high >>> 31 ? -1 : 1, middleOf(((high << 1) | (low >>> 31)) >>> 0, (low << 1) >>> 0)];
  }

  /** Return the first words as one whole number. */
  digits(attempt, k, words) {
    let value = 0n;
    for (let limb = 0; limb < words; limb++) {
      const [high, low] = this.word(attempt, k, limb);
      value = (value << 64n) | (BigInt(high) << 32n) | BigInt(low);
    }
    return value;
  }
}

/** Return what an uncertain uniform adds to its logarithm; infinite where that is not small. */
export const unlikely = (unsure) => (unsure < 0.001 ? 1.1 * unsure : Infinity);

/** Return the cell of a centre moved by a number of cells, or undefined where the error leaves more than one. */
export function sureCell([whole, rest], moved, error) {
  const total = rest + moved;
  const step = Math.round(total);
  return Math.abs(total - step) + (error + 4 * UNIT * (1 + Math.abs(moved))) < 0.5 ? whole + step : undefined;
}

/** Return -ln of a uniform given by its middle, and a bound of its error. */
export function exponentialOf(share) {
  const total = -logOf(share);
  return [total, 8 * UNIT * total + unlikely(UNIT / share)];
}

/** Return sqrt(-2 ln U), the size of a pair of normal numbers, and a bound of its error and of 17 roundings of it. */
export function normalSize(share) {
  const [energy, ofEnergy] = exponentialOf(share);
  const size = root(2 * energy);
  return [size, (ofEnergy < 0.1 * energy ? (1.1 * ofEnergy) / size : Infinity) + 17 * UNIT * size];
}
