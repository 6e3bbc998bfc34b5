/** Questions to this machine; every refusal is a sentence. */

export class Refused extends Error {}

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

export const get = async (path, options = {}) => (await answered(await fetch(path, options))).json();

export const post = (path, body, options = {}) =>
  get(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), ...options });

/** Send a file as it is; its name goes along in the address. */
export const send = (path, file, options = {}) =>
  get(`${path}?name=${encodeURIComponent(file.name)}`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file, ...options });

export const remove = (path) => get(path, { method: "DELETE" });

export const bytes = async (path) => (await answered(await fetch(path))).arrayBuffer();

/** Follow the events of a job; returns what ends it. */
export function follow(path, listeners) {
  const events = new EventSource(path);
  for (const [name, listener] of Object.entries(listeners)) {
    events.addEventListener(name, (event) => listener(JSON.parse(event.data)));
  }
  return () => events.close();
}
