/**
 * A stand-in for navigator.geolocation that only ever hands out protected positions.
 *
 * One fresh report is drawn per time window, whatever the app asks and wherever the person is; within the window the
 * same report is given again, so asking often does not average the noise away. Windows and not places: a report that
 * stayed the same as long as the person stays would tell when the person moves. Every window with a report spends
 * epsilon (or rho) once; after `perDay` reports the last one is repeated until the next day (with its own, old time). A clock that is
 * set back refreshes nothing: the report and the counts stay until the clock has caught up. Pages of one origin that are open
 * side by side take turns where the browser has locks, so that a window has one report for all of them. The same where something is
 * pruned within a window: its report stays, since another one for the same window would tell what was pruned.
 *
 * A position that the mechanism refuses (a finite one, away from its places) is answered with the same error for the rest of
 * the window: it tells that the person was outside, once in a window, and nothing more.
 *
 * Only the report, its time and the counts are stored (in `storage`); the true position never is, and no error holds it.
 */

import { rhoWords } from "./approximate.js";
import { InvalidInput, optionNumber, refuseOption } from "./errors.js";
import { CONSTANTS } from "./constants.js";

/** What the app is told where there is no report, by the codes of navigator.geolocation: constant, whatever happened. */
const UNAVAILABLE = 2;
const POSITION_ERRORS = {
  1: "this page has no permission for the position",
  [UNAVAILABLE]: "no protected position is available",
  3: "the device took too long to find the position",
};
const failed = (code) => ({ code: code in POSITION_ERRORS ? code : UNAVAILABLE, message: POSITION_ERRORS[code] ?? POSITION_ERRORS[UNAVAILABLE] });
const NO_DEVICE =
  "there is no navigator.geolocation here (Node, a worker, or a page that is not served over https): pass `geolocation`, an object with getCurrentPosition.";

/** The slack up to which snapping is taken without asking: two positions, however near, differ by a factor of two at most. */
const HARMLESS_SLACK = Math.LN2;

/**
 * A position as apps know it, with a report in the place of the true one.
 * @typedef {object} ProtectedPosition
 * @property {{ latitude: number, longitude: number, accuracy: number, altitude: null, altitudeAccuracy: null, heading: null,
 *   speed: null }} coords
 * @property {number} timestamp
 */

/**
 * What navigator.geolocation says where it has no position.
 * @typedef {{ code: number, message: string }} PositionFailure
 */

/**
 * Where positions come from: navigator.geolocation, or anything with its getCurrentPosition.
 * @typedef {object} PositionSource
 * @property {(success: (position: { coords: { latitude: number, longitude: number } }) => void,
 *   failure: (error: PositionFailure) => void, options?: PositionOptions) => void} getCurrentPosition
 */

/**
 * What was handed out today: reports, refusals (each tells "outside" once), how many of both a day has, and the guarantee for all
 * reports of the day together: somebody who sees them all tells two positions at distance d apart by a factor of
 * exp(epsilon d + slack) at most. A concentrated guarantee is spent in `rho`, which adds up as well, and has neither epsilon nor slack.
 * `accuracy` is the radius (metres) that holds 95 % of reports.
 * @typedef {{ reports: number, refused: number, perDay: number, left: number, epsilon?: number, slack?: number, rho?: number,
 *   accuracy: number }} Spent
 */

/**
 * What stands in for navigator.geolocation; `spent` says what was handed out today.
 * @typedef {object} ProtectedGeolocation
 * @property {(success: (position: ProtectedPosition) => void, failure?: (error: PositionFailure) => void,
 *   options?: PositionOptions) => void} getCurrentPosition
 * @property {(success: (position: ProtectedPosition) => void, failure?: (error: PositionFailure) => void,
 *   options?: PositionOptions) => number} watchPosition
 * @property {(id: number) => void} clearWatch
 * @property {() => Spent} spent
 */

/**
 * How a day's budget is spent: `everySeconds` and `perDay` are options of protectGeolocation, the rest says what they cost.
 * @typedef {{ everySeconds: number, perDay: number, epsilon?: number, slack?: number, rho?: number, accuracy: number,
 *   sentence: string }} DayPlan
 */

/**
 * Return how to spread a day's `budget` (an epsilon in the mechanism's unit, or a rho in its square where the guarantee is
 * concentrated) over the `hours` in which reports are asked for.
 *
 * As many reports as the budget pays for, in windows of whole minutes that begin at public times and are as short as the number
 * of reports allows; reports of a day add up, so its guarantee is `perDay` times that of one report. Give the answer to
 * protectGeolocation: `protectGeolocation(mechanism, planDay(mechanism, { budget: 40 }))`.
 * @param {import("./mechanism.js").Mechanism} mechanism
 * @param {{ budget: number, hours?: number, snap?: number }} options
 * @returns {DayPlan}
 */
export function planDay(mechanism, { budget, hours = 16, snap = 0 }) {
  const unit = unitOf(mechanism);
  optionNumber(budget, "budget");
  refuseOption(!(optionNumber(hours, "hours") > 0 && hours <= 24), "`hours` must be above 0 and at most 24.");
  const { isPure, guarantee } = mechanism;
  const cost = isPure ? guarantee.epsilon : guarantee.rho;
  const perDay = Math.floor((budget / cost) * (1 + 2 ** -50)); // 40 / 0.1 is 400, whatever its last bit
  const smaller = isPure ? `${cost} per ${unit}: use a mechanism with a smaller epsilon` : `a rho of ${cost} per ${unit}^2: use a mechanism with a smaller rho`;
  refuseOption(perDay < 1, `a budget of ${budget} a day does not pay for one report, which costs ${smaller}.`);
  const minutes = Math.max(1, Math.ceil((hours * 60) / perDay));
  const accuracy = radius(mechanism, snap);
  const sentence =
    `One report in every ${minutes === 1 ? "minute" : `${minutes} minutes`}, at most ${perDay} a day; 95 % of them lie within ${Math.ceil(accuracy)} m. ` +
    `All reports of a day together guarantee `;
  const whole = { everySeconds: 60 * minutes, perDay, accuracy };
  if (!isPure) {
    const { rho } = guarantee.composed(perDay);
    return { ...whole, rho, sentence: `${sentence}a rho of ${rhoWords(rho, unit)}, concentrated: approximate and not pure.` };
  }
  const [epsilon, slack] = [perDay * cost, perDay * mechanism.slack(snap)];
  const beside = slack > 0 ? ` with a slack of ${Number(slack.toPrecision(6))}.` : ".";
  return { ...whole, epsilon, slack, sentence: `${sentence}an epsilon of ${Number(epsilon.toPrecision(6))} per ${unit}${beside}` };
}

/**
 * Return an object with getCurrentPosition, watchPosition and clearWatch, and `spent()` for what was used today.
 *
 * A mechanism on finitely many places refuses a position that is none of them (nor within `snap` kilometres, or whatever its
 * unit is). With `clamp` it is put on the nearest place instead, however far that is, a public rule that is the same for
 * everybody; no answer tells inside from outside then. The guarantee is that of the places: two positions are as hard to tell
 * apart as the places they are put on, and `accuracy` is about that place too.
 *
 * Snapping costs slack, which no distance makes smaller. Where it costs more than ln 2 (on roads a few metres are enough) it is
 * refused, unless `confirmSlack` says that this is known. Without a device that knows positions (Node, a worker) every question is answered
 * with a sentence that says so.
 * @param {import("./mechanism.js").Mechanism} mechanism
 * @param {{ geolocation?: PositionSource, storage?: { getItem(name: string): string | null,
 *   setItem(name: string, value: string): void }, everySeconds?: number, perDay?: number, snap?: number, clamp?: boolean,
 *   confirmSlack?: boolean, now?: () => number }} [options]
 * @returns {ProtectedGeolocation}
 */
export function protectGeolocation(
  mechanism,
  {
    geolocation = globalThis.navigator?.geolocation, storage = localStorageOrMemory(), everySeconds = 1800, perDay = 24, snap = 0,
    clamp = false, confirmSlack = false, now = Date.now,
  } = {},
) {
  unitOf(mechanism);
  const absent = geolocation === undefined || geolocation === null;
  refuseOption(!absent && typeof geolocation.getCurrentPosition !== "function", "`geolocation` must have a function getCurrentPosition.");
  refuseOption(optionNumber(everySeconds, "everySeconds") === 0, "`everySeconds` must be positive.");
  optionNumber(perDay, "perDay", 1);
  const { isPure, guarantee } = mechanism;
  const slack = isPure || snap !== 0 ? mechanism.slack(snap) : 0; // of one report; refuses a snap that means nothing here
  const added = isPure ? slack - mechanism.slack(0) : 0;
  refuseOption(
    added > HARMLESS_SLACK && confirmSlack !== true,
    `a \`snap\` of ${snap} adds ${Number(added.toPrecision(3))} to the slack of every report: the probabilities of a report may differ between two positions, even near ones, by a factor of ` +
      `${Number(Math.exp(added).toPrecision(3))} more. Take a smaller \`snap\` or \`clamp: true\`, or accept it with \`confirmSlack: true\`.`,
  );
  const name = `metricdp:${mechanism.sha256}`;
  const accuracy = radius(mechanism, snap);
  const watches = new Map();
  let asking = null;

  const read = () => {
    const today = new Date(now()).toISOString().slice(0, 10);
    const { day, spent, refused, at, point } = remembered(storage.getItem(name));
    return day >= today ? { day, spent, refused, at, point } : { day: today, spent: 0, refused: 0, at, point };
  };
  const reportOf = ({ latitude, longitude }) => {
    try {
      return mechanism.sample([latitude, longitude], { snap, clamp }).point;
    } catch (error) {
      if (error instanceof InvalidInput) return null; // not one of its places
      throw error;
    }
  };
  const windowOf = (time) => Math.floor(time / (1000 * everySeconds));

  /** Return what is stored where no new report is due, else null. */
  const standing = () => {
    const stored = read();
    const fresh = stored.at !== null && windowOf(stored.at) >= windowOf(now()); // later: the clock was set back
    return fresh || stored.spent + stored.refused >= perDay ? stored : null;
  };
  /** Ask the device and draw; stored before anybody gets it. */
  const draw = (options) =>
    new Promise((resolve, reject) => {
      geolocation.getCurrentPosition(
        ({ coords }) => {
          try {
            const stored = read();
            const point = reportOf(coords);
            const [reports, refusals] = point === null ? [0, 1] : [1, 0];
            const next = { day: stored.day, spent: stored.spent + reports, refused: stored.refused + refusals, at: now(), point };
            storage.setItem(name, JSON.stringify(next));
            resolve(next);
          } catch {
            reject(failed(UNAVAILABLE)); // nothing that could be said about it is worth the risk
          }
        },
        (error) => reject(failed(error?.code)),
        options,
      );
    });
  /** Return the report of this window, drawing it where there is none yet; at most one question is under way. */
  const current = async (options) => {
    if (absent) throw { code: UNAVAILABLE, message: NO_DEVICE };
    const turn = () => standing() ?? draw(options); // looked at again: another page may have drawn meanwhile
    const stored = standing() ?? (await (asking ??= takingTurns(name, storage, turn).finally(() => (asking = null))));
    if (stored.point === null) throw failed(UNAVAILABLE);
    return stored;
  };

  /** A position as apps know it: what is not protected (altitude, speed, heading) is not there. */
  const position = ({ at, point }) => ({
    coords: {
      latitude: point[0], longitude: point[1], accuracy,
      altitude: null, altitudeAccuracy: null, heading: null, speed: null,
    },
    timestamp: at,
  });

  let last = 0;
  return {
    getCurrentPosition(success, failure = silent, options = {}) {
      current(options).then((stored) => success(position(stored)), failure);
    },
    watchPosition(success, failure = silent, options = {}) {
      const id = (last += 1);
      let told = null;
      const look = () =>
        current(options).then((stored) => {
          if (watches.has(id) && stored.at !== told) {
            told = stored.at;
            success(position(stored));
          }
        }, failure);
      watches.set(id, setInterval(look, Math.min(60, everySeconds) * 1000));
      look();
      return id;
    },
    clearWatch(id) {
      clearInterval(watches.get(id));
      watches.delete(id);
    },
    spent() {
      const { spent, refused } = read();
      const left = Math.max(0, perDay - spent - refused);
      const all = { reports: spent, refused, perDay, left, accuracy };
      if (!isPure) return { ...all, rho: spent === 0 ? 0 : guarantee.composed(spent).rho };
      return { ...all, epsilon: spent * guarantee.epsilon, slack: spent * slack };
    },
  };
}

/** An app that does not listen to failures: only what it did wrong itself is said, where developers look. */
function silent({ message }) {
  if (message === NO_DEVICE) globalThis.console?.warn(message);
}

/** Return the unit of a mechanism on the Earth, or refuse it. */
function unitOf(mechanism) {
  if (mechanism.earthUnit === null) {
    throw new InvalidInput("positions need a mechanism on (latitude, longitude), such as laplace(Haversine()).");
  }
  return mechanism.earthUnit;
}

/** Return the radius in metres that holds 95 % of reports, the same wherever the person is. */
function radius(mechanism, snap) {
  return Number(CONSTANTS.metres[mechanism.earthUnit]) * (mechanism.accuracy(0.95) + snap);
}

/** Do the work while no other page with the same storage does work of this name, where the browser can tell. */
async function takingTurns(name, storage, work) {
  const locks = storage === sharedStorage() ? globalThis.navigator?.locks : undefined;
  return locks ? locks.request(name, work) : work();
}

/** Return what all pages of this origin share, where the browser allows it. */
function sharedStorage() {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null; // refused, as in some private windows
  }
}

/** Where nothing can be stored (some private windows), remember for as long as the page is open. */
function localStorageOrMemory() {
  const shared = sharedStorage();
  if (shared) return shared;
  const stored = new Map();
  return { getItem: (name) => stored.get(name) ?? null, setItem: (name, value) => stored.set(name, value) };
}

/** Return what was stored, or a fresh start where it is not what this module writes. */
function remembered(text) {
  const whole = (value) => Number.isSafeInteger(value) && value >= 0;
  try {
    const { day, spent, refused = 0, at, point } = JSON.parse(text);
    const placed = point === null || (Array.isArray(point) && point.length === 2 && point.every(Number.isFinite));
    if (typeof day === "string" && whole(spent) && whole(refused) && Number.isFinite(at) && placed) {
      return { day, spent, refused, at, point };
    }
  } catch {
    // nothing was stored, or something else
  }
  return { day: "", spent: 0, refused: 0, at: null, point: null };
}
