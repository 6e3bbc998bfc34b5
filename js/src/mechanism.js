/** A mechanism as its file holds it: what it guarantees, and reports drawn from it. */

import { concentratedHead, concentratedMeanings, concentratedNumbers, concentratedShort } from "./approximate.js";
import { auditMatrix } from "./audit.js";
import { ConcentratedGuarantee, notPure } from "./concentrated.js";
import { InvalidInput, MetricdpError, Unsupported, optionNumber, refuseOption } from "./errors.js";
import { readMechanism } from "./kinds.js";
import { guaranteeKind } from "./manifest.js";
import { Trace } from "./predictive.js";
import { reportOf } from "./product.js";
import { prunedParts } from "./prune.js";
import { system } from "./randomness.js";
import { largestFactor, meaningHead, meanings, guaranteeNumbers, reachOf, shortOfParts, shortWords, tableLines } from "./messages.js";

/**
 * A code, coordinates (such as [latitude, longitude]) or a word; for a product a list with one of them per part.
 * @typedef {number | ArrayLike<number> | ArrayLike<string> | string | Secret[]} Secret
 */
/**
 * What was drawn: the code where reports are finitely many, and its coordinates or word; for a product `parts` has the
 * reports part by part.
 * @typedef {{ code: number | null, point: (number | string)[], parts?: Report[] }} Report
 */
/**
 * ln Pr[y | x] - ln Pr[y | x'] <= epsilon d(x, x') + slack, for secrets at most `radius` apart where there is one.
 * @typedef {Readonly<{ epsilon: number, unit: string, slack: number, radius: number | null,
 *   basis: "theorem" | "certificate" | "none", metric: string }>} Guarantee
 */
/**
 * What was certified, as the file states it: the loss (the expected one, or with the objective "worst" that of the unluckiest
 * secret), a bound for all mechanisms with this guarantee and these reports, the audited epsilon (where the guarantee has one) and the pair
 * that it comes from. The loss is null after pruning.
 * @typedef {Readonly<{ loss: number | null, lower_bound: number, epsilon?: number, method: string, note?: string, seconds: number,
 *   verified_pairs: number, worst_pair: readonly number[], objective?: "expected" | "worst" }>} Certificate
 */
/**
 * `snap` puts coordinates on the nearest secret up to this distance, at a slack (see `slack`). `clamp` puts all of them there,
 * or on the edge of a box, however far they are: then the guarantee is that of the place they were put on.
 * @typedef {{ snap?: number, clamp?: boolean }} Placing
 */

export class Mechanism {
  #parts;

  #facts;

  /** Mechanisms come from `open` and `prune`. @private */
  constructor(parts, facts) {
    this.#parts = parts;
    this.#facts = facts;
    const { kind, version, sha256, bytes, guarantee, certificate, licence, signedBy, signature } = facts;
    /** @type {import("./declared.js").Kind} */
    this.kind = kind;
    /** @type {number} */
    this.version = version;
    /** @type {number} */
    this.bytes = bytes;
    /** @type {string} */
    this.sha256 = sha256;
    /** @type {"dense" | "sparse" | "quantised"} */
    this.storage = this.#parts.table?.storage ?? "dense";
    /** @type {number | null} */
    this.bits = this.#parts.table?.bits ?? null;
    /** Whether the guarantee is pure: epsilon times the distance for every report. Else it is concentrated. @type {boolean} */
    this.isPure = guaranteeKind(kind) === "pure";
    /**
     * What is guaranteed: with an epsilon where `isPure`, else with a rho, and then reading its `epsilon` is an error.
     * @type {Guarantee | ConcentratedGuarantee}
     */
    this.guarantee = guarantee;
    /** @type {Certificate} */
    this.certificate = certificate;
    /** @type {string} */
    this.licence = licence;
    /** The key that signed the file, 64 digits. @type {string | null} */
    this.signedBy = signedBy;
    /**
     * "good": the key in the file made it. "trusted": and you named that key. "unchecked": this browser cannot tell.
     * @type {"none" | "good" | "trusted" | "unchecked"}
     */
    this.signature = signature;
    /** @type {readonly string[]} */
    this.columns = Object.freeze([...(this.#parts.inputs.columns ?? [])]);
    const ground = this.#parts.inputs.ground ?? this.#parts.inputs.metric;
    /** The unit in which coordinates are measured where they are (latitude, longitude) in degrees. @type {string | null} */
    this.earthUnit = ground?.name === "Haversine" ? ground.unit : null;
    Object.freeze(this);
  }

  /**
   * Return a mechanism that never gives some reports, with the same guarantee, exactly: a pruned report becomes one that is kept, always
   * the same. By the rule "cheapest" (the usual one, of a matrix) that is the one with the least expected distance from the secret, all
   * secrets being equally likely; by "nearest" (the usual one elsewhere) the nearest. Nothing of it leaves the device: the map is made
   * here, of public numbers; errors name no code, and `accuracy` stays that of the mechanism before it.
   *
   * `codes` is one list for all secrets, and must be a standing wish ("never my street"): one that depends on where somebody is would
   * give that away, since reports show what never comes. Secrets at pruned places are protected as before.
   * @param {ArrayLike<number>} codes
   * @param {{ rule?: "cheapest" | "nearest" }} [options]
   * @returns {Mechanism}
   */
  prune(codes, { rule = this.kind === "matrix" ? "cheapest" : "nearest" } = {}) {
    const parts = prunedParts(this.#parts, this.kind, codes, rule);
    const { method, note } = this.certificate;
    const certificate = Object.freeze({
      ...this.certificate, loss: null, worst_pair: Object.freeze([]), method: `${method}, reports pruned on the device`,
      note: `${note ? `${note}; ` : ""}the loss after pruning is not computed here`,
    }); // prettier-ignore
    return new Mechanism(parts, { ...this.#facts, certificate });
  }

  /** The number of secrets, where they are finitely many. @returns {number | null} */
  get secrets() {
    return this.#parts.inputs.size ?? null;
  }

  /** The number of reports, where they are finitely many. @returns {number | null} */
  get reports() {
    return this.#parts.outputs.size ?? null;
  }

  /**
   * Draw one report for a secret. A value that is no secret is an error, never passed through; the error says nothing about the value.
   * `words` replaces the random source, for tests only.
   * @param {Secret} secret
   * @param {Placing & { words?: import("./randomness.js").Words }} [options]
   * @returns {Report}
   */
  sample(secret, { snap = 0, clamp = false, words = system } = {}) {
    if (this.guarantee.basis === "none") {
      throw new InvalidInput("this mechanism has no guarantee: it is for comparisons only. Do not release its reports.");
    }
    const drawn = this.#parts.draw(this.#encoded(secret, { snap, clamp }), words);
    const report = this.#parts.parts
      ? { code: null, point: drawn.map(({ point }) => point), parts: drawn }
      : reportOf(this.#parts, drawn);
    if (!isReport(report.point)) throw new MetricdpError("the mechanism drew a value that is not a report: do not use its file.");
    return report;
  }

  #encoded(secret, placing) {
    this.#checkPlacing(placing);
    return this.#parts.inputs.encode(secret, placing);
  }

  #checkPlacing({ snap, clamp }) {
    optionNumber(snap, "snap");
    refuseOption(typeof clamp !== "boolean", "`clamp` must be true or false.");
    if (snap === 0) return;
    const finite = (this.#parts.parts ?? [this.#parts]).filter(({ inputs }) => inputs.size !== undefined).length;
    refuseOption(finite === 0, "`snap` is for mechanisms on finitely many points; this one takes every value as it is.");
    refuseOption(finite > 1, "`snap` does not say which part of this product it is for: put the values on the points first.");
  }

  /**
   * Release a trace step by step by the predictive mechanism: `trace.next(place)` repeats or guesses a report as long as a private test
   * says that it is still good, and draws fresh noise where not. Fresh reports are those of this mechanism; a test costs less, and
   * somebody who does not move spends little more than one report. It is for Laplace noise for points anywhere, on the Earth or under l_p.
   *
   * `total` is what the whole trace may cost (an epsilon per unit), `rest` how many steps after a fresh report repeat the prediction for
   * nothing, `prediction` how the next place is guessed from the reports alone. `confidence`, `caution` and `slope` are those of Python's
   * `mdp.mobility.FixedUtility`, or give `test` and `threshold` themselves.
   * Keep `JSON.stringify(trace)` where the app may end, and go on with `from`.
   * @param {{ from?: object | null, total?: number | null, rest?: number, prediction?: "parrot" | "linear", confidence?: number, caution?: number, slope?: number,
   *   test?: number, threshold?: number }} [options]
   * @returns {Trace}
   */
  trace(options = {}) {
    return new Trace(this, this.#parts.inputs, options);
  }

  /**
   * Return the probabilities of all reports for a secret, where there are finitely many.
   * @param {Secret} secret
   * @param {Placing} [options]
   * @returns {Float64Array}
   */
  distribution(secret, { snap = 0, clamp = false } = {}) {
    if (!this.#parts.distribution) throw new Unsupported(`a ${this.kind} mechanism has no table of probabilities.`);
    return this.#parts.distribution(this.#encoded(secret, { snap, clamp }));
  }

  /**
   * The old name of `distribution`.
   * @deprecated
   * @param {Secret} secret
   * @param {Placing} [options]
   * @returns {Float64Array}
   */
  law(secret, options) {
    return this.distribution(secret, options);
  }

  /**
   * Return the coordinates of a secret by its code.
   * @param {number} code
   * @returns {(number | string)[]}
   */
  secretAt(code) {
    const { inputs } = this.#parts;
    if (!inputs.coordinates) throw new Unsupported("this mechanism has no list of secrets: it takes any point.");
    refuseOption(typeof code !== "number", "`code` must be the number of a secret.");
    return [...inputs.coordinates.row(inputs.encode(code))];
  }

  /**
   * Return the slack of the guarantee when values are snapped: with the distances of the guarantee themselves 2 * epsilon * snap
   * more, d being the distance between the values; where coordinates are measured otherwise (roads) epsilon times the
   * largest distance between two secrets that can be reached from one place, d being the distance from the secret that
   * one value is put on to any secret that the other can reach. Concentrated guarantees have none (`NotPure`).
   * @param {number} [snap]
   * @returns {number}
   */
  slack(snap = 0) {
    this.#checkPlacing({ snap, clamp: false });
    if (!this.isPure) notPure("slack");
    const { epsilon, slack } = this.guarantee;
    if (snap === 0) return slack;
    const part = (this.#parts.parts ?? [{ ...this.#parts, guarantee: { epsilon } }]).find(({ inputs }) => inputs.size !== undefined);
    return slack + part.guarantee.epsilon * part.inputs.charge(snap);
  }

  #guaranteeAt(snap) {
    return { ...this.guarantee, slack: this.slack(snap) };
  }

  /**
   * Return the largest factor between the probabilities of any report from two secrets at this distance; infinite
   * beyond the radius of the guarantee, where there is one. A concentrated guarantee has one with a `delta` only: no set of reports is more
   * than that factor likelier from one of the two, plus delta.
   * @param {number} distance
   * @param {{ snap?: number, delta?: number }} [options]
   * @returns {number}
   */
  factor(distance, { snap = 0, delta = 0 } = {}) {
    optionNumber(distance, "distance");
    if (this.isPure) return largestFactor(this.#guaranteeAt(snap), distance);
    this.#checkPlacing({ snap, clamp: false });
    if (delta === 0) notPure("factor");
    return this.guarantee.radius !== null && distance > this.guarantee.radius ? Infinity : Math.exp(this.guarantee.epsilonAt(distance, delta));
  }

  /**
   * Return the distance up to which one report shifts the odds between two secrets by at most `factor`; for a concentrated guarantee
   * with a `delta`, up to which no set of reports is more than that factor likelier, plus delta.
   * @param {number} [factor]
   * @param {{ snap?: number, delta?: number }} [options]
   * @returns {number}
   */
  reach(factor = 2, { snap = 0, delta = 0 } = {}) {
    optionNumber(factor, "factor", 1);
    if (this.isPure) return reachOf(this.#guaranteeAt(snap), factor);
    this.#checkPlacing({ snap, clamp: false });
    if (delta === 0) notPure("reach");
    return this.guarantee.distanceAt(Math.log(factor) * (1 - 2 ** -50), delta);
  }

  /**
   * Return a radius, in the unit of the distances, that holds a report with at least this probability whatever the
   * secret: the same for all secrets, so it tells nothing about them.
   * @param {number} [level]
   * @returns {number}
   */
  accuracy(level = 0.95) {
    refuseOption(typeof level !== "number" || !(level > 0 && level < 1), "`level` must be a probability between 0 and 1.");
    const { inputs, outputs, rate, reach, within, table, whole = table } = this.#parts;
    if (within) return within(level);
    if (rate !== undefined && inputs.dimension === 2) return gammaTwoQuantile(level) / rate + (reach ?? 0); // by the lattice
    if (!["matrix", "local"].includes(this.kind)) throw new Unsupported(`the accuracy of a ${this.kind} mechanism is not computed here.`);
    return farthest(inputs, outputs, whole, level);
  }

  /**
   * Audit every pair of secrets again in doubles: the smallest epsilon of a matrix, good to `tolerance` (relative). It holds
   * only where a finite epsilon over at least one pair is at most the claim. The proof itself is Python's (`mdp.load`,
   * `metricdp audit`); this finds a forged table without it.
   * @returns {{ epsilon: number, claimed: number, tolerance: number, pairs: number, holds: boolean,
   *   verdict: "holds" | "violated" | "cannot judge" }}
   */
  audit() {
    if (this.kind !== "matrix") throw new Unsupported("only matrices are audited here; use `metricdp audit`.");
    return auditMatrix(this.#parts, this.guarantee);
  }

  /**
   * Explain the guarantee to a person: `short` is one sentence, `lines` more of it, `meanings` the rows of its table.
   * @param {{ snap?: number }} [options]
   * @returns {{ short: string, lines: string[], meanings: { distance: string, factor: string, words: string }[] }}
   */
  explain({ snap = 0 } = {}) {
    const { short, head, rows, whole } = this.isPure ? this.#pureWords(snap) : this.#concentratedWords(snap);
    return {
      short,
      meanings: rows,
      lines: [
        short,
        ...(rows.length > 0 ? tableLines(head, rows) : []),
        `${whole}.`,
        `Licence of the data: ${this.licence || "not stated"}.`,
        `Signature: ${this.signature}${this.signedBy ? ` (ed25519 ${this.signedBy})` : ""}.`,
      ],
    };
  }

  #pureWords(snap) {
    const all = this.#guaranteeAt(snap);
    const { parts } = this.#parts;
    const named = ({ guarantee, inputs }) => {
      const slack = guarantee.slack + (inputs.size === undefined ? 0 : guarantee.epsilon * inputs.charge(snap));
      return { ...guarantee, slack, metric: inputs.metric.name };
    };
    const short = parts && all.basis !== "none" ? shortOfParts(parts.map(named)) : shortWords(all);
    const scaled = all.basis !== "none" && !parts; // a product has a scale for every part
    return { short, head: meaningHead(all), rows: scaled ? meanings(all) : [], whole: guaranteeNumbers(all) };
  }

  #concentratedWords(snap) {
    this.#checkPlacing({ snap, clamp: false });
    const { guarantee } = this;
    const [head, rows] = [concentratedHead(guarantee), concentratedMeanings(guarantee)];
    return { short: concentratedShort(guarantee), head, rows, whole: concentratedNumbers(guarantee) };
  }
}

/** Rebuild the mechanism of a file that was verified. */
export function mechanismOf(file, { signedBy, verified, trusted, bytes }) {
  const parts = readMechanism(file);
  const { kind, version, sha256, licence = "", ...manifest } = file.manifest;
  const guarantee = { ...manifest.guarantee, metric: file.metric(manifest.guarantee.metric).name };
  const { epsilon, ...stated } = manifest.certificate;
  const isPure = guaranteeKind(kind) === "pure";
  return new Mechanism(parts, {
    kind, version, sha256, bytes, licence, signedBy,
    guarantee: isPure ? Object.freeze(guarantee) : new ConcentratedGuarantee(guarantee),
    certificate: Object.freeze(isPure ? { ...stated, epsilon } : stated),
    signature: signedBy === null ? "none" : !verified ? "unchecked" : trusted ? "trusted" : "good",
  }); // prettier-ignore
}

/** Tell whether every number of a report is finite. */
function isReport(point) {
  return point.every((value) => (Array.isArray(value) ? isReport(value) : typeof value === "string" || Number.isFinite(value)));
}

/** Return the largest distance, over secrets, that holds a report with this probability. */
function farthest({ ground, coordinates }, outputs, table, level) {
  let largest = 0;
  for (let row = 0; row < table.rows; row++) {
    const here = coordinates.row(row);
    const away = table.likely(row, level).map(([k, probability]) => [ground.measure(here, outputs.coordinates.row(k)), probability]);
    const inside = away.reduce((sum, [far, probability]) => (far <= largest ? sum + probability : sum), 0);
    if (inside >= level) continue;
    away.sort((a, b) => a[0] - b[0]);
    let mass = 0;
    const reached = away.find(([, probability]) => (mass += probability) >= level - 1e-12) ?? away[away.length - 1];
    largest = Math.max(largest, reached[0]);
  }
  return largest;
}

/** Return r with P(Gamma(2, 1) <= r) = level: 1 - (1 + r) exp(-r), by bisection. */
function gammaTwoQuantile(level) {
  let [low, high] = [0, 800];
  for (let k = 0; k < 100; k++) {
    const middle = (low + high) / 2;
    if (1 - (1 + middle) * Math.exp(-middle) < level) low = middle;
    else high = middle;
  }
  return high;
}
