/** Every sentence about a guarantee, from the same templates as Python's, rounded so that each stays true. */

import { DECLARED } from "./declared.js";
import { MESSAGES } from "./constants.js";
import { toWhole } from "./whole.js";

const NOISE = 10n ** 12n; // doubles carry an error of their own: 2.0000000000000004 is shown as 2, not as 2.01
const ONE = 1n << 1074n;

/** Put values into a template: {name} becomes the value of that name. */
export function fill(template, values = {}) {
  return template.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** Return a number with `digits` significant digits, without trailing zeros; rounded "nearest", "up" or "down". */
export function numberWords(value, digits, rounding = "nearest") {
  if (!Number.isFinite(value)) return value > 0 ? "infinitely much" : Number.isNaN(value) ? "not a number" : "minus infinity";
  if (value === 0) return "0";
  const size = toWhole(Math.abs(value));
  let power = decimalPower(size) - digits + 1; // the last digit shown stands for 10^power
  const noise = rounding === "nearest" ? 0n : (rounding === "up") === value > 0 ? -1n : 1n;
  const top = size * (NOISE + noise) * (power < 0 ? 10n ** BigInt(-power) : 1n);
  const bottom = ONE * NOISE * (power > 0 ? 10n ** BigInt(power) : 1n);
  let rounded = top / bottom;
  const rest = top % bottom;
  const away = (rounding === "up") === value > 0;
  if (rounding === "nearest") {
    if (2n * rest > bottom || (2n * rest === bottom && rounded % 2n === 1n)) rounded += 1n;
  } else if (away && rest > 0n) rounded += 1n;
  if (rounded === 0n) return "0";
  let text = rounded.toString();
  while (text.endsWith("0")) {
    text = text.slice(0, -1);
    power += 1;
  }
  return (value < 0 ? "-" : "") + placed(text, power);
}

/** Return floor(log10(size / 2^1074)) for a positive whole number. */
function decimalPower(size) {
  let power = Math.floor((size.toString(2).length - 1075) * Math.log10(2));
  const above = (exponent) =>
    exponent >= 0 ? size >= ONE * 10n ** BigInt(exponent) : size * 10n ** BigInt(-exponent) >= ONE;
  while (above(power + 1)) power += 1;
  while (!above(power)) power -= 1;
  return power;
}

/** Return digits times 10^power, with an exponent below 1e-6 and from 1e21 on. */
function placed(digits, power) {
  const exponent = digits.length - 1 + power;
  if (exponent < -6 || exponent >= 21) {
    return `${digits[0]}${digits.length > 1 ? `.${digits.slice(1)}` : ""}e${exponent}`;
  }
  if (power >= 0) return digits + "0".repeat(power);
  if (exponent >= 0) return `${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
  return `0.${"0".repeat(-exponent - 1)}${digits}`;
}

/** Return a distance as people say it: 0.2 km is 200 m. */
export function distanceWords(value, unit, rounding = "nearest") {
  const { digits } = MESSAGES;
  if (unit === "km" && value > 0 && value < 1) return `${numberWords(1000 * value, digits.metres, rounding)} m`;
  const many = value !== 1 && Object.hasOwn(MESSAGES.plural, unit) ? MESSAGES.plural[unit] : unit;
  return `${numberWords(value, digits.distance, rounding)} ${many}`.trimEnd();
}

/**
 * Return a distance for people: 0.2 km is 200 m.
 * @param {number} distance
 * @param {string} unit
 * @returns {string}
 */
export function showDistance(distance, unit) {
  return distanceWords(distance, unit);
}

/** Return a factor that something is at most. */
export function factorWords(value) {
  return value > MESSAGES.largest_factor ? MESSAGES.beyond_largest : numberWords(value, MESSAGES.digits.factor, "up");
}

export const shareWords = (value) => `${numberWords(100 * value, value < 0.985 ? 2 : 3, "up")} %`;
export const things = (unit) => MESSAGES.things[MESSAGES.lengths.includes(unit) ? "length" : "other"];
const declaredMetric = (name) => (Object.hasOwn(DECLARED.metric, name) ? DECLARED.metric[name] : {});
export const along = ({ metric, unit }) => {
  const [lengths, others] = declaredMetric(metric).along ?? ["", ""];
  return MESSAGES.lengths.includes(unit) ? lengths : others;
};

/** Return the distance up to which reports differ by at most a factor: (ln(ratio) - slack) / epsilon, within the radius. */
export function reachOf({ epsilon, slack, radius }, ratio = 2) {
  const near = Math.max(0, Math.log(ratio) - slack) / epsilon;
  return radius === null ? near : Math.min(near, radius);
}

/** Return exp(epsilon * d + slack), infinite beyond the radius of a guarantee. */
export function largestFactor({ epsilon, slack, radius }, apart) {
  if (radius !== null && apart > radius) return Infinity;
  const exponent = epsilon * apart + slack;
  return exponent < 700 ? Math.exp(exponent) : Infinity;
}

// across the parts of a policy graph nothing is hidden: the name of the words that say so
const inPart = (metric, words) => (declaredMetric(metric).policy ? `${words}_part` : words);

/** Return what is not protected because of the radius of a guarantee. */
export function outside({ radius, unit, metric }) {
  if (radius === null) return "";
  return fill(MESSAGES.short[inPart(metric, "outside")], { things: things(unit), radius: distanceWords(radius, unit, "down") });
}

/** Return the guarantee in numbers: epsilon 10 per km (Haversine), by theorem. */
export function guaranteeNumbers(guarantee) {
  const { digits, promise: words, per } = MESSAGES;
  const { epsilon, slack, unit, radius, metric, basis } = guarantee;
  return fill(words.whole, {
    epsilon: numberWords(epsilon, digits.epsilon, "up"),
    per: fill(per[unit ? "unit" : "none"], { unit }),
    metric,
    slack: slack ? fill(words.slack, { slack: numberWords(slack, digits.slack, "up") }) : "",
    within: radius === null ? "" : fill(words[inPart(metric, "within")], { radius: distanceWords(radius, unit, "down") }),
    basis,
  });
}

/** Return the guarantee as one sentence without Greek. */
export function shortWords(guarantee) {
  const { short: words } = MESSAGES;
  if (guarantee.basis === "none") return words.nothing;
  const near = reachOf(guarantee);
  const kind = near <= 0 ? "slack" : isCounted(guarantee.unit) ? "counted" : "reach";
  return fill(words[kind], {
    things: things(guarantee.unit),
    reach: distanceWords(near, guarantee.unit, "down"),
    factor: factorWords(largestFactor(guarantee, kind === "slack" ? 0 : 1)),
    along: along(guarantee),
    outside: outside(guarantee),
  });
}

/** Return the guarantee of a product: a sentence for every part. */
export function shortOfParts(guarantees) {
  return guarantees.map((part, k) => fill(MESSAGES.short.part, { number: k, sentence: shortWords(part) })).join(" ");
}

/** Return what a factor means for somebody who has to guess between two secrets at even odds: f / (1 + f). */
export function meaning(ratio) {
  const step = MESSAGES.scale.find(({ below }) => below === null || ratio < below);
  return fill(step.words, { sure: shareWords(ratio / (1 + ratio)) });
}

const isCounted = (unit) => Object.hasOwn(MESSAGES.counted, unit);

/** Return {distance, factor, words} at round distances around the one where reports may differ by a factor of two. */
export function meanings(guarantee) {
  return distancesOf(guarantee).map((apart) => {
    const ratio = largestFactor(guarantee, apart);
    const beyond = guarantee.radius !== null && apart > guarantee.radius;
    return {
      distance: distanceWords(apart, guarantee.unit),
      factor: beyond ? "any" : factorWords(ratio),
      words: beyond ? MESSAGES.outside : meaning(ratio),
    };
  });
}

function distancesOf({ epsilon, unit, radius }) {
  if (isCounted(unit)) return MESSAGES.counted[unit].filter((steps) => radius === null || steps <= radius);
  return stepsAround(Math.LN2 / epsilon);
}

/** Return round distances around one. */
export function stepsAround(distance) {
  const power = 10 ** Math.floor(Math.log10(distance));
  const scale = Math.max(...[1, 2, 5].map((step) => step * power).filter((step) => step <= distance * (1 + 1e-12)));
  return MESSAGES.shares.map((part) => Number((part * scale).toPrecision(12)));
}

/** Return the line above the table that explains a guarantee. */
export const meaningHead = (guarantee) => fill(MESSAGES.meaning.head, { things: things(guarantee.unit) });

/** Return the table that explains a guarantee, one line a distance. */
export const meaningLines = (guarantee) => tableLines(meaningHead(guarantee), meanings(guarantee));

/** Return a table of meanings as lines, below its head. */
export function tableLines(head, rows) {
  const line = ({ distance, factor, words }) =>
    fill(MESSAGES.meaning.row, { distance: distance.padStart(10), factor: factor.padStart(8), words });
  return [head, ...rows.map(line)];
}
