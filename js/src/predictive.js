/**
 * The predictive mechanism on the device (Chatzikokolakis, Palamidessi and Stronati 2014): a report is repeated, or guessed from the
 * reports before, as long as a private test says that it is still good; only where it fails fresh noise is drawn.
 *
 *     near  iff  d(x, prediction) <= threshold + noise of rate `test`;      report = prediction if near, else fresh
 *
 * Either answer leaks at most test * d, a fresh report its epsilon * d. The coin of the test is exact: a uniform is compared with the
 * probability of the true distance, in doubles where they decide, in balls of whole numbers where not (src/metricdp/mobility/prediction.py).
 */

import { settled } from "./balls.js";
import { trueDistances } from "./distances.js";
import { expOf } from "./doubles.js";
import { InvalidInput, Unsupported, optionNumber, refuseOption } from "./errors.js";
import { radiusOf } from "./metrics.js";
import { system } from "./randomness.js";
import { doubleAbove, toWhole } from "./whole.js";

const STEEPEST = 700; // beyond this exponent a probability is no double
const KINDS_OF_NOISE = ["spherical-laplace", "vector-laplace"];
const MOST_DIMENSIONS = 256;
const LAST = 2; // reports that a prediction looks at

/** Return Pr[noise >= u] for noise of rate one: e^-u / 2 above zero, 1 - e^u / 2 below. */
function tailOf(exponent) {
  const size = 0.5 * expOf(-Math.abs(exponent));
  return exponent >= 0 ? size : 1 - size;
}

/** Return the tail of a ball. */
function exactTail(balls, exponent) {
  const half = (ball) => balls.multiply(balls.fraction(1n, 2n), ball);
  if (exponent.m >= exponent.r) return half(balls.exp(balls.negative(exponent)));
  if (exponent.m + exponent.r < 0n) return balls.subtract(balls.one, half(balls.exp(exponent)));
  const size = exponent.m < 0n ? -exponent.m : exponent.m;
  return { m: half(balls.one).m, r: size + exponent.r + 2n }; // the slope of the tail is at most one half
}

/** Answer the test of a place against a prediction: true with exactly the probability of the true distance. */
export function isNear(metric, place, prediction, { test, threshold }, source) {
  const words = [];
  const word = (at) => {
    while (words.length <= at) {
      source.next();
      words.push((BigInt(source.high) << 32n) | BigInt(source.low));
    }
    return words[at];
  };
  const apart = trueDistances({ metric, points: { data: Float64Array.of(...place, ...prediction), width: place.length, size: 2 } });
  const away = apart.measure(0, 1);
  const probability = tailOf(Math.min(Math.max(test * (away - threshold), -STEEPEST), STEEPEST));
  const level = Number(word(0)) * 2 ** -64;
  const margin = 1e-12 * (1 + test * (away + Math.abs(threshold))) + test * (apart.relative * away + apart.absolute);
  if (Math.abs(level - probability) > margin) return level < probability; // not so where `away` is no number
  const extra = BigInt(Math.ceil(Math.log2(2 + test) + Math.log2(2 + Math.abs(threshold)))) + 64n;
  return settled((balls, count) => {
    let digits = 0n;
    for (let at = 0; at < count; at++) digits = (digits << 64n) | word(at);
    const excess = balls.subtract(exactAway(balls, metric, apart), balls.double(threshold));
    return balls.below(balls.uniform(digits, 64n * count), exactTail(balls, balls.multiply(balls.double(test), excess)));
  }, extra);
}

/** Return the distance of two points as a ball; the radius of the Earth is a decimal number. */
function exactAway(balls, metric, apart) {
  if (metric.name !== "Haversine") return apart.ball(balls, 0, 1);
  const [radius, parts] = radiusOf(metric.unit);
  return balls.multiply(apart.angle(balls, 0, 1), balls.fraction(radius, parts));
}

/** Return c with Pr[Gamma(n) <= c] = level, by bisection. */
function gammaQuantile(n, level) {
  const within = (x) => {
    let [term, sum] = [Math.exp(-x), 0];
    for (let k = 0; k < n; k++) {
      sum += term;
      term *= x / (k + 1);
    }
    return 1 - sum;
  };
  let [low, high] = [0, 4 * n + 700];
  for (let k = 0; k < 200; k++) {
    const middle = 0.5 * (low + high);
    if (within(middle) < level) low = middle;
    else high = middle;
  }
  return high;
}

const PREDICTIONS = {
  parrot: (reports) => reports[reports.length - 1],
  linear: (reports) => {
    const [last, before] = [reports[reports.length - 1], reports[reports.length - 2]];
    return before === undefined ? last : last.map((x, k) => 2 * x - before[k]);
  },
};

/** Return a prediction as a report could be; on the Earth a line that leaves it goes on at the pole or around it. */
function tidied({ metric }, point) {
  if (metric.name !== "Haversine") return point;
  const [north, east] = point;
  const turned = (east + 180) % 360;
  return [Math.min(90, Math.max(-90, north)), east >= -180 && east <= 180 ? east : (turned < 0 ? turned + 360 : turned) - 180];
}

/** Return what a test costs and how wide it is, as `FixedUtility` of Python has it. */
function stepOf(dimension, epsilon, { confidence, caution, slope, test, threshold }) {
  refuseOption((test === undefined) !== (threshold === undefined), "give `test` and `threshold` together, or neither.");
  if (test !== undefined) {
    refuseOption(!(optionNumber(test, "test") > 0), "`test` must be positive.");
    refuseOption(typeof threshold !== "number" || !Number.isFinite(threshold), "`threshold` must be a finite number.");
    return { test, threshold };
  }
  refuseOption(typeof confidence !== "number" || !(confidence > 0.5 && confidence < 1), "`confidence` must lie between 0.5 and 1.");
  refuseOption(!(optionNumber(caution, "caution") > 0 && optionNumber(slope, "slope") > 0), "`caution` and `slope` must be positive.");
  const wide = -Math.log(2 * (1 - confidence));
  const share = ((caution * wide) / gammaQuantile(dimension, confidence)) * (1 + 1 / slope);
  return { test: share * epsilon, threshold: wide / (slope * share * epsilon) };
}

/**
 * A trace that is being released step by step. For two traces whose places are at most d apart at every step, all that was given out is
 * at most exp(`spent` d) times likelier from one than from the other; with a `total`, no run can spend more.
 */
export class Trace {
  #mechanism;
  #inputs;
  #predict;
  #reports = [];
  #spent = 0n;
  #resting = 0;

  /** Traces come from `mechanism.trace`. @private */
  constructor(mechanism, inputs, options) {
    const { from = null, total = null, rest = 0, prediction = "parrot", confidence = 0.9, caution = 0.5, slope = 0.8, test, threshold } = options;
    if (!KINDS_OF_NOISE.includes(mechanism.kind) || inputs.dimension > MOST_DIMENSIONS || !["Haversine", "Lp"].includes(inputs.metric.name)) {
      throw new Unsupported("a trace needs Laplace noise for points anywhere, on the Earth or under l_p: open such a file.");
    }
    if (mechanism.guarantee.basis === "none" || mechanism.guarantee.slack > 0) {
      throw new InvalidInput("a trace needs noise whose guarantee has no slack.");
    }
    refuseOption(typeof prediction !== "string" || !Object.hasOwn(PREDICTIONS, prediction), "`prediction` must be \"parrot\" or \"linear\".");
    refuseOption(!Number.isSafeInteger(rest) || rest < 0, "`rest` must be a whole number of at least 0.");
    const { epsilon } = mechanism.guarantee;
    refuseOption(total !== null && !(optionNumber(total, "total") >= epsilon), "`total` must be at least the cost of one report.");
    this.#mechanism = mechanism;
    this.#inputs = inputs;
    this.#predict = PREDICTIONS[prediction];
    /** What all steps together may cost, per unit of distance. @type {number | null} */
    this.total = total;
    /** How many steps after a fresh report repeat the prediction without a test, for nothing. @type {number} */
    this.rest = rest;
    const step = stepOf(inputs.dimension, epsilon, { confidence, caution, slope, test, threshold });
    /** What one test costs, per unit of distance. @type {number} */
    this.test = step.test;
    /** How far a prediction may be off, before the noise of the test. @type {number} */
    this.threshold = step.threshold;
    if (from !== null) this.#resume(from);
    Object.freeze(this);
  }

  /** Go on from what `toJSON` gave; what it does not fit is refused, so that nothing that was spent is forgotten. */
  #resume(from) {
    const { sha256, reports, spent, resting } = typeof from === "object" && from !== null ? from : {};
    const { dimension } = this.#inputs;
    const isPoint = (point) => Array.isArray(point) && point.length === dimension && point.every(Number.isFinite);
    const good =
      sha256 === this.#mechanism.sha256 && Array.isArray(reports) && reports.length <= LAST && reports.every(isPoint) &&
      typeof spent === "string" && /^0x[0-9a-f]{1,1000}$/.test(spent) && Number.isSafeInteger(resting) && resting >= 0; // prettier-ignore
    refuseOption(!good, "`from` must be what `toJSON` of a trace of the same mechanism gave.");
    this.#reports = reports.map((point) => [...point]);
    this.#spent = BigInt(spent);
    this.#resting = resting;
  }

  /**
   * Return what a later page needs to go on, for `mechanism.trace({ from })`: the last reports, what was spent and the name of the file. All of
   * it was given out; nothing is a place.
   * @returns {{ sha256: string, reports: number[][], spent: string, resting: number }}
   */
  toJSON() {
    const reports = this.#reports.slice(-LAST).map((point) => [...point]);
    return { sha256: this.#mechanism.sha256, reports, spent: `0x${this.#spent.toString(16)}`, resting: this.#resting };
  }

  /** The reports so far (of a trace that was resumed, the last two before): what was given out, and nothing else. @returns {number[][]} */
  get reports() {
    return this.#reports.map((point) => [...point]);
  }

  /** Tests and fresh noise together, an epsilon per unit of distance, rounded up. @returns {number} */
  get spent() {
    return doubleAbove(this.#spent, 1074);
  }

  /**
   * Take one more step: the report for a place, and whether it is fresh. Null where the total does not pay for another step; that and
   * which reports are fresh is part of what is released. `words` replaces the random source, for tests only.
   * @param {ArrayLike<number>} place
   * @param {{ words?: import("./randomness.js").Words }} [options]
   * @returns {{ point: number[], fresh: boolean } | null}
   */
  next(place, { words = system } = {}) {
    const secret = this.#inputs.encode(place);
    const first = this.#reports.length === 0;
    const prediction = first ? null : tidied(this.#inputs, this.#predict(this.#reports));
    if (this.#resting > 0 && this.#resting <= this.rest) return this.#given(prediction, false);
    const [test, noise] = [first ? 0n : toWhole(this.test), toWhole(this.#mechanism.guarantee.epsilon)];
    if (this.total !== null && this.#spent + test + noise > toWhole(this.total)) return null;
    this.#spent += test; // counted before anybody is told, also where the noise refuses the place
    const near = !first && isNear(this.#inputs.metric, secret, prediction, this, words);
    if (!near) this.#spent += noise;
    return this.#given(near ? prediction : this.#mechanism.sample(secret, { words }).point, !near);
  }

  #given(point, fresh) {
    this.#resting = fresh ? 1 : this.#resting + (this.#resting > 0 ? 1 : 0);
    this.#reports.push(point);
    return { point: [...point], fresh };
  }
}
