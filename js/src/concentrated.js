/** The concentrated guarantee: Renyi divergences that grow with the square of the distance. It is never a pure one. */

import { deltaOf, epsilonOf, muOf } from "./conversions.js";
import { NotPure, optionNumber, refuseOption } from "./errors.js";
import { doubleAbove, toWhole } from "./whole.js";

const NOT_PURE = "it is approximate, and no factor holds for every report. Ask for `rho`, or for `epsilonAt(distance, delta)`.";

/** Refuse to say something pure about a concentrated guarantee. */
export function notPure(name) {
  throw new NotPure(`a concentrated guarantee has no \`${name}\`: ${NOT_PURE}`);
}

/**
 * D_a(M(x) || M(x')) <= a rho d(x, x')^2 for every order a > 1 (Renyi): how likely a large ratio is, never how large one can be. It has no
 * epsilon per unit, and asking for one is an error (`NotPure`); at a distance and with a delta it has one. Rho is per squared unit, and
 * rho adds up: many reports of one person keep the sum.
 */
export class ConcentratedGuarantee {
  /** Guarantees come with their mechanisms. @private */
  constructor({ rho, form, radius, unit, basis, metric }) {
    /** @type {number} */
    this.rho = rho;
    /** @type {"gaussian" | "renyi"} */
    this.form = form;
    /** @type {number | null} */
    this.radius = radius;
    /** The unit of the distances. @type {string} */
    this.unit = unit;
    /** @type {"theorem" | "certificate"} */
    this.basis = basis;
    /** @type {string} */
    this.metric = metric;
    Object.freeze(this);
  }

  /** There is none: reading it is an error. @type {never} */
  get epsilon() {
    return notPure("epsilon");
  }

  /** There is none: reading it is an error. @type {never} */
  get slack() {
    return notPure("slack");
  }

  /** Return mu, rounded up: the distance in standard deviations of the noise. */
  #apart(distance) {
    optionNumber(distance, "distance");
    refuseOption(this.radius !== null && distance > this.radius, "this distance is beyond the radius of the guarantee: there is no guarantee there.");
    return distance * Math.sqrt(2 * this.rho) * (1 + 2 ** -50);
  }

  /**
   * Return an epsilon with which Pr[M(x) in S] <= e^epsilon Pr[M(x') in S] + delta is proven, for all sets S of reports and secrets up to
   * this far apart; rounded up.
   * @param {number} distance
   * @param {number} delta
   * @returns {number}
   */
  epsilonAt(distance, delta) {
    return epsilonOf(this.#apart(distance), delta, this.form);
  }

  /**
   * Return a delta that is proven for this epsilon and secrets up to this far apart; rounded up.
   * @param {number} distance
   * @param {number} epsilon
   * @returns {number}
   */
  deltaAt(distance, epsilon) {
    return deltaOf(this.#apart(distance), optionNumber(epsilon, "epsilon"), this.form);
  }

  /**
   * Return a distance up to which (epsilon, delta) is proven; rounded down.
   * @param {number} epsilon
   * @param {number} delta
   * @returns {number}
   */
  distanceAt(epsilon, delta) {
    const found = (muOf(optionNumber(epsilon, "epsilon"), delta, this.form) / Math.sqrt(2 * this.rho)) * (1 - 1e-12);
    return this.radius === null ? found : Math.min(found, this.radius);
  }

  /**
   * Return the guarantee of `times` reports of one person together: rho adds up.
   * @param {number} times
   * @returns {ConcentratedGuarantee}
   */
  composed(times) {
    refuseOption(!Number.isSafeInteger(times) || times < 1, "`times` must be a whole number of at least 1.");
    return new ConcentratedGuarantee({ ...this, rho: doubleAbove(toWhole(this.rho) * BigInt(times), 1074) });
  }
}
