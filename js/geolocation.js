/**
 * A stand-in for navigator.geolocation that only ever hands out protected positions.
 *
 * One fresh report is drawn per time window, whatever the app asks and wherever the person is; within the window the
 * same report is given again, so asking often does not average the noise away. Windows and not places: a report that
 * stayed the same as long as the person stays would tell when the person moves. Every window with a report spends
 * epsilon once; after `perDay` reports the last one is repeated until the next day (with its own, old time).
 *
 * Only the report, its time and the count are kept (in `storage`); the true position never is.
 */

import { InvalidInput } from "./metricdp.js";

const DENIED = 1;
const UNAVAILABLE = 2;

/** Return an object with getCurrentPosition, watchPosition and clearWatch, and `spent()` for what was used today. */
export function protectGeolocation(
  mechanism,
  { geolocation = navigator.geolocation, storage = localStorageOrMemory(), everySeconds = 1800, perDay = 24, snap = 0, now = Date.now } = {},
) {
  if (mechanism.guarantee.unit !== "km") {
    throw new InvalidInput("positions need a mechanism in kilometres on (latitude, longitude), such as laplace(Haversine()).");
  }
  if (!(everySeconds > 0) || !(perDay >= 1)) throw new InvalidInput("everySeconds and perDay must be positive.");
  const name = `metricdp:${mechanism.sha256}`;
  const accuracy = 1000 * (mechanism.accuracy(0.95) + snap); // metres, the same wherever the person is
  const watches = new Map();
  let asking = null;

  const read = () => {
    const today = new Date(now()).toISOString().slice(0, 10);
    const kept = parsed(storage.getItem(name));
    return kept?.day === today ? kept : { day: today, spent: 0, at: kept?.at ?? null, point: kept?.point ?? null };
  };
  const windowOf = (time) => Math.floor(time / (1000 * everySeconds));

  /** Return the report of this window, drawing it where there is none yet; at most one question is under way. */
  const current = (options) => {
    const kept = read();
    const fresh = kept.at !== null && windowOf(kept.at) === windowOf(now());
    if (kept.point !== null && (fresh || kept.spent >= perDay)) return Promise.resolve(kept);
    if (kept.spent >= perDay) return Promise.reject({ code: UNAVAILABLE, message: "today's reports are spent" });
    asking ??= new Promise((resolve, reject) => {
      geolocation.getCurrentPosition(
        ({ coords }) => {
          try {
            const { point } = mechanism.sample([coords.latitude, coords.longitude], { snap });
            const next = { day: kept.day, spent: kept.spent + 1, at: now(), point };
            storage.setItem(name, JSON.stringify(next));
            resolve(next);
          } catch (error) {
            reject({ code: UNAVAILABLE, message: error.message });
          }
        },
        (error) => reject({ code: error?.code ?? DENIED, message: error?.message ?? "" }),
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
      const { spent } = read();
      return { reports: spent, perDay, epsilon: spent * mechanism.guarantee.epsilon, accuracy };
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

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
