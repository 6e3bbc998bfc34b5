/** The public lattice on which noise is released, and what a file of noise must keep before anything is drawn from it. */

import { refuse, refuseSecret } from "./errors.js";
import { norm } from "./metrics.js";
import { CONSTANTS } from "./constants.js";
import { rint } from "./whole.js";

/** The multiples of a pitch, in every coordinate. */
export class Lattice {
  constructor(pitch) {
    this.pitch = pitch;
    const inverse = rint(1 / pitch);
    this.perUnit = inverse >= 1 && 1 / inverse === pitch ? inverse : 0;
  }

  /** How many cells make a unit, as a fraction of doubles. */
  get ratio() {
    return this.perUnit ? [this.perUnit, 1] : [1, this.pitch];
  }

  cell(value) {
    return rint(this.perUnit ? value * this.perUnit : value / this.pitch);
  }

  value(cell) {
    return (this.perUnit ? cell / this.perUnit : cell * this.pitch) + 0;
  }

  /** Refuse coordinates whose cells doubles do not hold. */
  refuseFar(point) {
    refuseSecret(point.some((x) => !(Math.abs(this.cell(x)) <= CONSTANTS.largest_cell)), "lattice");
  }
}

/** Refuse a guarantee that the noise does not satisfy: a smaller epsilon than its rate. */
export function checkGuarantee(guarantee, rate) {
  const holds = guarantee.basis === "none" || rate <= guarantee.epsilon;
  refuse(!holds, "its noise does not satisfy its guarantee");
}

/** Refuse a lattice on which doubles would leave too many draws undecided. */
export function checkPitch(undecided) {
  refuse(!(undecided <= CONSTANTS.largest_drawing_error), "its lattice is too fine for doubles");
}

/** Refuse a lattice of degrees that misses the poles. */
export function checkPoles(pitch) {
  refuse(!(pitch <= 90 && Math.abs(rint(90 / pitch) * pitch - 90) <= CONSTANTS.rounding), "its lattice misses the poles");
}

/** Refuse vectors that a metric of vectors cannot measure. */
export function checkVectors({ metric, dimension }) {
  refuse(metric.name !== "Lp" && metric.name !== "Mahalanobis", "its noise does not belong to its metric");
  refuse(metric.legal(new Array(dimension).fill(0)) !== null, "its noise does not fit its metric");
}

/** Return the most that noise of length one is stretched to: the root of the trace of a covariance. */
export const widestOf = (metric) => (metric.name === "Mahalanobis" ? norm(Array.from(metric.factor), 2) : 1);

/** Return how far the corner (1, 1, ...) or (1, -1, 1, ...) of a cell lies from its centre: in a plane these are all. */
export function cellReach({ metric, dimension }, pitch) {
  const corners = [1, -1].map((sign) => Array.from({ length: dimension }, (_, k) => (k % 2 ? sign : 1) * (pitch / 2)));
  const zero = new Array(dimension).fill(0);
  return Math.max(...corners.map((corner) => metric.measure(corner, zero)));
}
