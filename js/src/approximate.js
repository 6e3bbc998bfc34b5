/** Sentences about concentrated guarantees, which are approximate: each says so, at what distance, and with what delta. */

import { MESSAGES } from "./constants.js";
import { along, distanceWords, factorWords, fill, numberWords, outside, shareWords, stepsAround, things } from "./messages.js";

/** The delta that sentences are said with where nobody named another. */
export const USUAL_DELTA = MESSAGES.concentrated.delta;

const DIGITS = MESSAGES.concentrated.digits + 2;
const perSquare = (unit) => fill(MESSAGES.concentrated.per[unit ? "unit" : "none"], { unit });

/** Return a delta, rounded up: 1e-6 below a thousandth. */
function deltaWords(value) {
  if (!(value > 0 && value < 1e-3)) return numberWords(value, 3, "up");
  const power = Math.floor(Math.log10(value) + 1e-9);
  const head = numberWords(value / 10 ** power, 3, "up");
  return head === "10" ? `1e${power + 1}` : `${head}e${power}`;
}

/** Return a rho with its unit, rounded up. */
export const rhoWords = (rho, unit) => numberWords(rho, DIGITS, "up") + perSquare(unit);

/** Return the distance up to which a factor of two holds, but for the usual delta. */
const twiceAsLikely = (guarantee) => guarantee.distanceAt(Math.LN2, USUAL_DELTA);

/** Return the guarantee in numbers: rho 0.35 per km^2 (Haversine), concentrated: approximate and not pure. */
export function concentratedNumbers(guarantee) {
  const { rho, unit, radius, metric, basis } = guarantee;
  const within = radius === null ? "" : fill(MESSAGES.promise.within, { radius: distanceWords(radius, unit, "down") });
  return fill(MESSAGES.concentrated.whole, { rho: numberWords(rho, DIGITS, "up"), per: perSquare(unit), metric, within, basis });
}

/** Return the guarantee as one sentence without Greek, but for delta. */
export function concentratedShort(guarantee) {
  return fill(MESSAGES.concentrated.short, {
    things: things(guarantee.unit),
    reach: distanceWords(twiceAsLikely(guarantee), guarantee.unit, "down"),
    along: along(guarantee),
    delta: deltaWords(USUAL_DELTA),
    outside: outside(guarantee),
  });
}

/** Return {distance, factor, words} at round distances around that of a factor of two, with the usual delta. */
export function concentratedMeanings(guarantee) {
  return stepsAround(twiceAsLikely(guarantee)).map((apart) => {
    const distance = distanceWords(apart, guarantee.unit);
    if (guarantee.radius !== null && apart > guarantee.radius) return { distance, factor: "any", words: MESSAGES.outside };
    const sure = shareWords(0.5 + 0.5 * guarantee.deltaAt(apart, 0)); // the advantage of the best test is delta at 0
    const factor = factorWords(Math.exp(guarantee.epsilonAt(apart, USUAL_DELTA)));
    return { distance, factor, words: `a guess is right at most ${sure} of the time` };
  });
}

/** Return the line above the table that explains a concentrated guarantee. */
export function concentratedHead(guarantee) {
  return fill(MESSAGES.concentrated.head, { delta: deltaWords(USUAL_DELTA), things: things(guarantee.unit) });
}

/** Return the guarantee of `times` reports of one person together, as a sentence. */
export function concentratedTogether(guarantee, times) {
  const all = guarantee.composed(times);
  return fill(MESSAGES.concentrated.together, {
    rows: times.toLocaleString("en-US"),
    rho: numberWords(guarantee.rho, DIGITS, "up"),
    total: numberWords(all.rho, DIGITS, "up"),
    per: perSquare(guarantee.unit),
    things: things(guarantee.unit),
    reach: distanceWords(twiceAsLikely(all), guarantee.unit, "down"),
    along: along(guarantee),
    delta: deltaWords(USUAL_DELTA),
  });
}
