/**
 * A stand-in for navigator.geolocation that only ever hands out protected positions.
 *
 * One fresh report is drawn per time window, whatever the app asks and wherever the person is; within the window the
 * same report is given again, so asking often does not average the noise away. Windows and not places: a report that
 * stayed the same as long as the person stays would tell when the person moves. Every window with a report spends
 * epsilon once; after `perDay` reports the last one is repeated until the next day (with its own, old time).
 *
 * A position that the mechanism refuses (a finite one, away from its places) is answered with the same error for the rest of
 * the window: it tells that the person was outside, once in a window, and nothing more.
 *
 * Only the report, its time and the counts are kept (in `storage`); the true position never is, and no error holds it.
 */

import { InvalidInput, optionNumber, refuseOption } from "./errors.js";
import { SHARED } from "./shared.js";

/** What the app is told where there is no report, by the codes of navigator.geolocation: constant, whatever happened. */
const UNAVAILABLE = 2;
const MESSAGES = {
  1: "the position was not allowed",
  [UNAVAILABLE]: "no protected position is available",
  3: "the device took too long to find the position",
};
const failed = (code) => ({ code: code in MESSAGES ? code : UNAVAILABLE, message: MESSAGES[code] ?? MESSAGES[UNAVAILABLE] });

/**
 * What stands in for navigator.geolocation; `spent` says what was handed out today: reports, refusals, the total epsilon, and
 * the radius (metres) that holds 95 % of reports.
 * @typedef {object} ProtectedGeolocation
 * @property {(success: (position: any) => void, failure?: (error: { code: number, message: string }) => void, options?: object) => void} getCurrentPosition
 * @property {(success: (position: any) => void, failure?: (error: { code: number, message: string }) => void, options?: object) => number} watchPosition
 * @property {(id: number) => void} clearWatch
 * @property {() => { reports: number, refused: number, perDay: number, epsilon: number, accuracy: number }} spent
 */

/**
 * Return an object with getCurrentPosition, watchPosition and clearWatch, and `spent()` for what was used today.
 *
 * A mechanism on finitely many places refuses a position that is none of them (nor within `snap` kilometres, or whatever its
 * unit is). With `clamp` it is put on the nearest place instead, however far that is, a public rule that is the same for
 * everybody; no answer tells inside from outside then. The promise is that of the places: two positions are as hard to tell
 * apart as the places they are put on, and `accuracy` is about that place too.
 * @param {import("./mechanism.js").Mechanism} mechanism
 * @param {{ geolocation?: { getCurrentPosition: Function }, storage?: { getItem(name: string): string | null,
 *   setItem(name: string, value: string): void }, everySeconds?: number, perDay?: number, snap?: number, clamp?: boolean,
 *   now?: () => number }} [options]
 * @returns {ProtectedGeolocation}
 */
export function protectGeolocation(
  mechanism,
  {
    geolocation = globalThis.navigator?.geolocation, storage = localStorageOrMemory(), everySeconds = 1800, perDay = 24, snap = 0,
    clamp = false, now = Date.now,
  } = {},
) {
  if (mechanism.earthUnit === null) {
    throw new InvalidInput("positions need a mechanism on (latitude, longitude), such as laplace(Haversine()).");
  }
  refuseOption(typeof geolocation?.getCurrentPosition !== "function", "`geolocation` must be that of a device.");
  refuseOption(optionNumber(everySeconds, "everySeconds") === 0, "`everySeconds` must be positive.");
  optionNumber(perDay, "perDay", 1);
  mechanism.slack(snap); // refuses a snap that means nothing here
  const name = `metricdp:${mechanism.sha256}`;
  const accuracy = Number(SHARED.metres[mechanism.earthUnit]) * (mechanism.accuracy(0.95) + snap); // metres, the same wherever the person is
  const watches = new Map();
  let asking = null;

  const read = () => {
    const today = new Date(now()).toISOString().slice(0, 10);
    const { day, spent, refused, at, point } = remembered(storage.getItem(name));
    return day === today ? { day, spent, refused, at, point } : { day: today, spent: 0, refused: 0, at, point };
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

  /** Return the report of this window, drawing it where there is none yet; at most one question is under way. */
  const current = (options) => {
    const kept = read();
    const fresh = kept.at !== null && windowOf(kept.at) === windowOf(now());
    if (fresh || kept.spent + kept.refused >= perDay) {
      return kept.point === null ? Promise.reject(failed(UNAVAILABLE)) : Promise.resolve(kept);
    }
    asking ??= new Promise((resolve, reject) => {
      geolocation.getCurrentPosition(
        ({ coords }) => {
          try {
            const point = reportOf(coords);
            const refused = kept.refused + (point === null ? 1 : 0);
            const next = { day: kept.day, spent: kept.spent + 1 - (refused - kept.refused), refused, at: now(), point };
            storage.setItem(name, JSON.stringify(next));
            if (point === null) reject(failed(UNAVAILABLE));
            else resolve(next);
          } catch {
            reject(failed(UNAVAILABLE)); // nothing that could be said about it is worth the risk
          }
        },
        (error) => reject(failed(error?.code)),
        options,
      );
    }).finally(() => (asking = null));
    return asking;
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
    getCurrentPosition(success, failure = () => {}, options = {}) {
      current(options).then((kept) => success(position(kept)), failure);
    },
    watchPosition(success, failure = () => {}, options = {}) {
      const id = (last += 1);
      let told = null;
      const look = () =>
        current(options).then((kept) => {
          if (watches.has(id) && kept.at !== told) {
            told = kept.at;
            success(position(kept));
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
    /** What was handed out today: reports, the total epsilon, and the radius that holds 95 % of reports (metres). */
    spent() {
      const { spent, refused } = read();
      return { reports: spent, refused, perDay, epsilon: spent * mechanism.guarantee.epsilon, accuracy };
    },
  };
}

/** Where nothing can be kept (some private windows), remember for as long as the page is open. */
function localStorageOrMemory() {
  try {
    if (globalThis.localStorage) return globalThis.localStorage;
  } catch {
    // refused: fall through
  }
  const kept = new Map();
  return { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value) };
}

/** Return what was kept, or a fresh start where it is not what this module writes. */
function remembered(text) {
  const whole = (value) => Number.isSafeInteger(value) && value >= 0;
  try {
    const { day, spent, refused = 0, at, point } = JSON.parse(text);
    const placed = point === null || (Array.isArray(point) && point.length === 2 && point.every(Number.isFinite));
    if (typeof day === "string" && whole(spent) && whole(refused) && Number.isFinite(at) && placed) {
      return { day, spent, refused, at, point };
    }
  } catch {
    // nothing was kept, or something else
  }
  return { day: "", spent: 0, refused: 0, at: null, point: null };
}
