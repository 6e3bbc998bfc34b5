/** What the tests ask a JavaScript engine to do; the same in Chromium and in Node. */

import { open, openTree, protectGeolocation } from "./metricdp.js";
import { exactFlip } from "./src/whole.js";

/** Words given by the test, to compare draw by draw with Python. */
class GivenWords {
  constructor(words) {
    this.words = words;
    this.at = 0;
    this.high = this.low = 0;
  }

  next() {
    if (this.at >= this.words.length) throw new Error("the test gave too few words");
    [this.high, this.low] = this.words[this.at++];
  }
}

/** Words of uniforms given by the test: by attempt, uniform and number, sixteen hexadecimal digits each. */
class GivenUniforms {
  constructor(words) {
    this.words = words;
  }

  limb(attempt, uniform, number) {
    const word = this.words[attempt][uniform][number];
    return [parseInt(word.slice(0, 8), 16), parseInt(word.slice(8), 16)];
  }

  /** The words of one vector of a bag. */
  row(vector) {
    return typeof this.words[0][0][0] === "string" ? null : new GivenUniforms(this.words[vector]);
  }
}

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

export const checks = {
  /** Open a file and say what it is; or the error. */
  async open({ file, data, trusted = null }) {
    try {
      const m = await open(file ?? bytes(data).buffer, { trusted });
      const { kind, version, storage, bits, signature, signedBy, licence, secrets, reports, guarantee } = m;
      return { kind, version, storage, bits, signature, signedBy, licence, secrets, reports, guarantee, explain: m.explain() };
    } catch (error) {
      return { error: error.name, message: error.message };
    }
  },

  /** Alter a file in many ways and return those that were not refused, and the names of the errors. */
  async alter({ file, flips, cuts }) {
    const data = new Uint8Array(await (await fetch(file)).arrayBuffer());
    const accepted = [];
    const names = {};
    const attempt = async (changed, what) => {
      try {
        await open(changed);
        accepted.push(what);
      } catch (error) {
        names[error.name] = (names[error.name] ?? 0) + 1;
      }
    };
    for (const [position, mask] of flips) {
      const changed = data.slice();
      changed[position % data.length] ^= mask;
      await attempt(changed, ["flip", position, mask]);
    }
    for (const share of cuts) await attempt(data.slice(0, Math.floor(share * data.length)), ["cut", share]);
    await attempt(new Uint8Array([...data, 0]), ["longer"]);
    return { accepted, names };
  },

  /** Count reports per secret. */
  async counts({ file, secrets, count, snap = 0 }) {
    const m = await open(file);
    return secrets.map((secret) => {
      const result = new Array(m.reports).fill(0);
      for (let i = 0; i < count; i++) result[m.sample(secret, { snap }).code] += 1;
      return result;
    });
  },

  /** Return reports themselves. */
  async reports({ file, secrets, count }) {
    const m = await open(file);
    return secrets.map((secret) => Array.from({ length: count }, () => m.sample(secret).point));
  },

  async laws({ file, secrets }) {
    const m = await open(file);
    return secrets.map((secret) => Array.from(m.distribution(secret)));
  },

  /** Open a level of a tree and avoid areas of it: what it says, its laws and a count of its reports. */
  async tree({ file, level, avoid, secrets, count }) {
    const m = await (await openTree(file)).open(level, { avoid });
    const counts = new Array(m.reports).fill(0);
    for (let i = 0; i < count; i++) counts[m.sample(secrets[0], { clamp: true }).code] += 1;
    return { lines: m.explain().lines, laws: secrets.map((secret) => Array.from(m.distribution(secret, { clamp: true }))), counts };
  },

  /** Draw with given words: one list of words per draw. */
  async replay({ file, draws }) {
    const m = await open(file);
    return draws.map(({ secret, words }) => {
      const { code, point } = m.sample(secret, { words: new GivenWords(words) });
      return code ?? point;
    });
  },

  /** Draw with given uniforms. */
  async uniforms({ file, draws }) {
    const m = await open(file);
    return draws.map(({ secret, words }) => m.sample(secret, { words: new GivenUniforms(words) }).point);
  },

  async flips({ cases }) {
    return cases.map(({ top, bottom, ratio, words }) => {
      const source = new GivenWords(words.slice(1));
      return exactFlip(BigInt(top), BigInt(bottom), ratio, words[0][0], words[0][1], source);
    });
  },

  /** Return microseconds per draw, over many different secrets. */
  async speed({ file, secrets, count }) {
    const m = await open(file);
    for (let i = 0; i < 2000; i++) m.sample(secrets[i % secrets.length]);
    const start = performance.now();
    for (let i = 0; i < count; i++) m.sample(secrets[i % secrets.length]);
    return (1000 * (performance.now() - start)) / count;
  },

  async opening({ file }) {
    const data = await (await fetch(file)).arrayBuffer();
    const start = performance.now();
    await open(data);
    return performance.now() - start;
  },

  async error({ file, secret, snap = 0 }) {
    const m = await open(file);
    try {
      return { report: m.sample(secret, { snap }) };
    } catch (error) {
      return { error: error.name, message: error.message };
    }
  },

  /** Everything that errors say about secrets that are refused. */
  async strangers({ file, secrets, snap = 0 }) {
    const m = await open(file);
    const said = (secret) => {
      try {
        return { report: m.sample(secret, { snap }) };
      } catch (error) {
        const { name, message, cause = null, stack } = error;
        return { name, message, all: [String(error), stack, String(cause), JSON.stringify(error)].join("\n") };
      }
    };
    return secrets.map(said);
  },

  /** A wrapped geolocation where the device stands at these places, one per question; what the app gets for each. */
  async standing({ file, places, failures = [], pause = 600, perDay = 24 }) {
    const mechanism = await open(file);
    let asked = 0;
    let clock = Date.UTC(2030, 0, 1, 12);
    const real = {
      getCurrentPosition(success, failure) {
        asked += 1;
        if (failures.length > 0) failure(failures.shift());
        else success({ coords: { latitude: places[0][0], longitude: places[0][1] } });
      },
    };
    const kept = new Map();
    const storage = { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v) };
    const wrapped = protectGeolocation(mechanism, { geolocation: real, storage, everySeconds: 600, perDay, now: () => clock });
    const answers = [];
    while (places.length > 0) {
      answers.push(await new Promise((resolve) => wrapped.getCurrentPosition(({ coords }) => resolve({ coords }), (error) => resolve({ error }))));
      places.shift();
      clock += 1000 * pause;
    }
    return { answers, asked, kept: [...kept.values()], spent: wrapped.spent() };
  },

  async audit({ file }) {
    return (await open(file)).audit();
  },

  async accuracy({ file }) {
    const m = await open(file);
    return [m.accuracy(0.95), m.reach(2), m.factor(0.2)];
  },

  /** A wrapped geolocation, asked `times` times in each of the given windows. */
  async geolocation({ file, windows, times, perDay }) {
    const mechanism = await open(file);
    let asked = 0;
    let clock = Date.UTC(2030, 0, 1, 12);
    const real = {
      getCurrentPosition(success) {
        asked += 1;
        setTimeout(() => success({ coords: { latitude: 41.15, longitude: -8.61, accuracy: 5, altitude: 80, speed: 2 } }), 0);
      },
    };
    const kept = new Map();
    const storage = { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v) };
    const wrapped = protectGeolocation(mechanism, { geolocation: real, storage, everySeconds: 600, perDay, now: () => clock });
    const ask = () => new Promise((resolve, reject) => wrapped.getCurrentPosition(resolve, reject));
    const seen = [];
    for (let w = 0; w < windows; w++) {
      const answers = await Promise.all(Array.from({ length: times }, ask));
      for (let k = 0; k < times; k++) answers.push(await ask());
      seen.push(answers);
      clock += 600_000;
    }
    const watched = await new Promise((resolve) => {
      const id = wrapped.watchPosition((position) => {
        wrapped.clearWatch(id);
        resolve(position);
      });
    });
    return { seen, asked, watched, spent: wrapped.spent(), kept: [...kept.values()] };
  },
};

/** Take work from the server until it says stop. */
export async function serve(base = "") {
  for (;;) {
    const { id, check, parameters, stop } = await (await fetch(`${base}/work`)).json();
    if (stop) return;
    let answer;
    try {
      if ("file" in parameters) parameters.file = `${base}${parameters.file}`;
      answer = { value: await checks[check](parameters) };
    } catch (error) {
      answer = { failure: `${error.name}: ${error.message}\n${error.stack}` };
    }
    await fetch(`${base}/answer/${id}`, { method: "POST", body: JSON.stringify(answer) });
  }
}
