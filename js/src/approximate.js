/** Sentences about concentrated promises, which are approximate: each says so, at what distance, and with what delta. */

import { WORDING } from "./shared.js";
import { along, distanceWords, factorWords, fill, numberWords, outside, shareWords, stepsAround, things } from "./words.js";

/** The delta that sentences are said with where nobody named another. */
export const USUAL_DELTA = WORDING.concentrated.delta;

const DIGITS = WORDING.concentrated.digits + 2;
const perSquare = (unit) => fill(WORDING.concentrated.per[unit ? "unit" : "none"], { unit });

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
const twiceAsLikely = (promise) => promise.distanceAt(Math.LN2, USUAL_DELTA);

/** Return the promise in numbers: rho 0.35 per km^2 (Haversine), concentrated: approximate and not pure. */
export function concentratedPromised(promise) {
  const { rho, unit, radius, metric, basis } = promise;
  const within = radius === null ? "" : fill(WORDING.promise.within, { radius: distanceWords(radius, unit, "down") });
  return fill(WORDING.concentrated.whole, { rho: numberWords(rho, DIGITS, "up"), per: perSquare(unit), metric, within, basis });
}

/** Return the promise as one sentence without Greek, but for delta. */
export function concentratedShort(promise) {
  return fill(WORDING.concentrated.short, {
    things: things(promise.unit),
    reach: distanceWords(twiceAsLikely(promise), promise.unit, "down"),
    along: along(promise),
    delta: deltaWords(USUAL_DELTA),
    outside: outside(promise),
  });
}

/** Return {distance, factor, words} at round distances around that of a factor of two, with the usual delta. */
export function concentratedMeanings(promise) {
  return stepsAround(twiceAsLikely(promise)).map((apart) => {
    const distance = distanceWords(apart, promise.unit);
    if (promise.radius !== null && apart > promise.radius) return { distance, factor: "any", words: WORDING.outside };
    const sure = shareWords(0.5 + 0.5 * promise.deltaAt(apart, 0)); // the advantage of the best test is delta at 0
    const factor = factorWords(Math.exp(promise.epsilonAt(apart, USUAL_DELTA)));
    return { distance, factor, words: `a guess is right at most ${sure} of the time` };
  });
}

/** Return the line above the table that explains a concentrated promise. */
export function concentratedHead(promise) {
  return fill(WORDING.concentrated.head, { delta: deltaWords(USUAL_DELTA), things: things(promise.unit) });
}

/** Return what so many reports of one person keep together. */
export function concentratedTogether(promise, times) {
  const all = promise.composed(times);
  return fill(WORDING.concentrated.together, {
    rows: times.toLocaleString("en-US"),
    rho: numberWords(promise.rho, DIGITS, "up"),
    total: numberWords(all.rho, DIGITS, "up"),
    per: perSquare(promise.unit),
    things: things(promise.unit),
    reach: distanceWords(twiceAsLikely(all), promise.unit, "down"),
    along: along(promise),
    delta: deltaWords(USUAL_DELTA),
  });
}
