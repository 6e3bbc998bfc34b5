/** A client of the metricdp service: written by tools/service_client.py from the OpenAPI file; change the service instead. */

/** The service gave nothing: `status` and `error` are for programs, the message is its sentence. */
export class ServiceError extends Error {
  constructor(message, status, error, details) {
    super(message);
    this.name = "ServiceError";
    this.status = status;
    this.error = error;
    this.details = details;
  }
}

/** A new request id, for one release: the same one again gives the stored report and costs nothing. */
export function requestId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

/**
 * A service at an address, asked with a key. A request that got no answer, or found the service busy, is sent again as
 * it was: with its request id, so that nothing is charged twice.
 */
export class ServiceClient {
  #url;
  #token;
  #options;

  constructor(url, token, options = {}) {
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#options = { tries: 5, seconds: 30, fetch: globalThis.fetch.bind(globalThis), ...options };
  }

  /** Draw a report, charge the person, commit both, answer. The same request id again gives the stored report. */
  release(body) {
    return this.#json("POST", `/v1/release`, body);
  }

  /** Tell what is left to a person under the policy, and how many releases of a mechanism that is. */
  budget(body) {
    return this.#json("POST", `/v1/budget`, body);
  }

  /** List the mechanisms with their guarantees and certificates. */
  mechanisms() {
    return this.#json("GET", `/v1/mechanisms`);
  }

  /** Draw one report for every row; all rows of a person are one charge, committed before the answer leaves. */
  releaseBatch(body) {
    return this.#json("POST", `/v1/release/batch`, body);
  }

  /** Say what a mechanism really leaks: exactly for a matrix, by evidence for samples. */
  audit(body) {
    return this.#json("POST", `/v1/audit`, body);
  }

  /** Begin to design a mechanism on points; what is asked for is checked now, the search runs as a job. */
  design(body) {
    return this.#json("POST", `/v1/design`, body);
  }

  /** Tell how a job stands: its bounds so far, and its certificate when it is done. */
  designState(job) {
    return this.#json("GET", `/v1/design/${encodeURIComponent(job)}`);
  }

  /** End a job that runs; forget one that has ended, its file included. */
  designCancel(job) {
    return this.#json("DELETE", `/v1/design/${encodeURIComponent(job)}`);
  }

  /** Send what happens as server-sent events until the job ends; Last-Event-ID goes on where one left off. */
  designEvents(job) {
    return this.#events("GET", `/v1/design/${encodeURIComponent(job)}/events`);
  }

  /** Give the mechanism file of a design that is done. */
  designResult(job) {
    return this.#bytes("GET", `/v1/design/${encodeURIComponent(job)}/result`);
  }

  /** Answer as long as the process runs; no key is needed and nothing else is said. */
  health() {
    return this.#json("GET", `/health`);
  }

  /** Tell whether releases can be made: the ledger answers and the service does not stop. */
  ready() {
    return this.#json("GET", `/ready`);
  }

  /** Give counts and times in the text form of Prometheus; no person, key, secret or report is in them. */
  metrics() {
    return this.#text("GET", `/metrics`);
  }

  async #json(method, path, body) {
    return (await this.#answer(method, path, body)).json();
  }

  async #text(method, path) {
    return (await this.#answer(method, path)).text();
  }

  async #bytes(method, path) {
    return new Uint8Array(await (await this.#answer(method, path)).arrayBuffer());
  }

  async *#events(method, path) {
    let last = "0";
    for (let attempt = 0; attempt < this.#options.tries; attempt += 1) {
      try {
        const answer = await this.#answer(method, path, undefined, { "last-event-id": last });
        let rest = "";
        for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
          const blocks = (rest + part).split("\n\n");
          rest = blocks.pop();
          for (const block of blocks) {
            const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s, 2)));
            if (fields.data === undefined) continue;
            last = fields.id;
            attempt = 0;
            yield { id: fields.id, event: fields.event, data: JSON.parse(fields.data) };
            if (["done", "failed", "cancelled"].includes(fields.event)) return;
          }
        }
      } catch (error) {
        if (error instanceof ServiceError && error.error !== "unreachable") throw error;
      }
      await pause(0.2);
    }
    throw new ServiceError("the events of the design broke off.", 0, "unreachable", {});
  }

  async #answer(method, path, body, more = {}) {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const headers = { authorization: `Bearer ${this.#token}`, ...more };
    if (sent !== undefined) headers["content-type"] = "application/json";
    const again = path !== "/v1/design";
    for (let attempt = 1; ; attempt += 1) {
      const last = attempt >= (again ? this.#options.tries : 1);
      let answer;
      try {
        const lasting = path.endsWith("/events");
        const signal = lasting ? undefined : AbortSignal.timeout(1000 * this.#options.seconds);
        answer = await this.#options.fetch(this.#url + path, { method, headers, body: sent, signal });
      } catch {
        if (last) {
          const sentence = "the service does not answer. Asking again with the same request id is safe.";
          throw new ServiceError(sentence, 0, "unreachable", {});
        }
        await pause(Math.min(5, 0.1 * 2 ** attempt));
        continue;
      }
      if (answer.ok) return answer;
      if (last || (answer.status !== 429 && answer.status !== 503)) {
        const { message, error, ...details } = await answer.json().catch(() => ({}));
        throw new ServiceError(message ?? `the service answered ${answer.status}.`, answer.status, error ?? "", details);
      }
      await answer.arrayBuffer();
      await pause(Math.min(5, Number(answer.headers.get("retry-after") ?? 1)));
    }
  }
}
