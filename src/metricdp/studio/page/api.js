/** Questions to this machine; every refusal is a sentence. What is asked carries the token of this tab, in a header. */

const KEY = "metricdp-studio";
/** The name of this page until it is closed or reloaded. */
export const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

export class Refused extends Error {}

const headers = (more = {}) => ({ ...more, authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` });

async function answered(response) {
  if (response.ok) return response;
  const text = await response.text();
  let sentence = text;
  try {
    sentence = JSON.parse(text).message ?? text;
  } catch {
    // plain text already
  }
  throw new Refused(sentence || `${response.status}`);
}

const ask = async (path, { headers: more, ...options } = {}) => answered(await fetch(path, { ...options, headers: headers(more) }));

/**
 * Take the code out of the address and exchange it for the token, which stays in this tab. Returns whether this tab has one;
 * a code that was used already is refused with its sentence.
 */
export async function enter() {
  const code = /^#open=([\w-]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname); // before anything is asked
    const answer = await answered(await fetch("/open", { method: "POST", body: JSON.stringify({ code }) }));
    sessionStorage.setItem(KEY, (await answer.json()).token);
  }
  return sessionStorage.getItem(KEY) !== null;
}

/** Say that this page is there and, as it is closed, that it goes: with its last page Studio ends and removes what it keeps. */
export async function stay() {
  const told = (path) => ({ method: "POST", headers: headers({ "content-type": "application/json" }), body: JSON.stringify({ page: PAGE }), keepalive: path === "/studio/gone" });
  const tell = (path) => fetch(path, told(path));
  addEventListener("pagehide", () => tell("/studio/gone").catch(() => {}));
  addEventListener("pageshow", (event) => event.persisted && tell("/studio/here").catch(() => {}));
  await answered(await tell("/studio/here"));
}

export const get = async (path, options = {}) => (await ask(path, options)).json();

export const post = (path, body, options = {}) =>
  get(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), ...options });

/** Send a file as it is; its name goes along in the address. */
export const send = (path, file, options = {}) =>
  get(`${path}?name=${encodeURIComponent(file.name)}&page=${PAGE}`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file, ...options });

export const remove = (path) => get(path, { method: "DELETE" });

/** Ask with bytes, and return the answer as it is. */
export const exchange = (path, body) => ask(path, { method: "POST", headers: { "content-type": "application/octet-stream" }, body });

export const blob = async (path) => (await ask(path)).blob();

export const bytes = async (path) => (await ask(path)).arrayBuffer();

/**
 * Follow the events of a job, and ask again where the answer ends early. An EventSource would do the same, but sends no
 * headers. Returns what ends it.
 */
export function follow(path, listeners) {
  const stop = new AbortController();
  let last = "";
  const take = (block) => {
    const fields = Object.fromEntries(block.split("\n").map((line) => /^(\w+): ?(.*)$/.exec(line)).filter(Boolean).map(([, name, value]) => [name, value]));
    last = fields.id ?? last;
    if (fields.data !== undefined) listeners[fields.event]?.(JSON.parse(fields.data));
  };
  const read = async () => {
    const answer = await ask(path, { signal: stop.signal, headers: last ? { "last-event-id": last } : {} });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const blocks = (waiting + part.value).split("\n\n");
      waiting = blocks.pop();
      for (const block of blocks) if (!stop.signal.aborted) take(block);
    }
  };
  (async () => {
    while (!stop.signal.aborted) {
      try {
        await read();
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error instanceof Refused) return listeners.failed?.({ message: error.message });
      }
      if (!stop.signal.aborted) await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  })();
  return () => stop.abort();
}
