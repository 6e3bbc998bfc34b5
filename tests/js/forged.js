/**
 * Put files before the JavaScript reader and say what became of each.
 *
 *     node tests/js/forged.js FOLDER [--seconds 10] [--asleep 60] [--draws 20] [--module js/dist/metricdp.js]
 *
 * Prints one JSON line per file of the folder: {"file", "outcome", "error", "message", "milliseconds"}, the outcome being
 *
 *     opened    it was opened, explained and drawn from; every report was one
 *     refused   an error of ours (`error` is its class), at the opening or at every draw
 *     foreign   an exception that is not ours
 *     report    a report, a factor, a law or a sentence that holds NaN or nothing
 *     hang      no answer within `seconds` of processor time, or within `asleep` seconds with nothing to do;
 *               waiting for a processor on a busy machine is neither
 *     memory    no memory left
 *
 * The exit status is 0 where every file was opened or refused, else 1.
 */

import { readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

const MEMORY_MB = 1536;
const LOOK_MS = 100; // between two looks at a worker that owes an answer

/** Secrets of every form, so that one of them fits whatever a file holds. */
const SECRETS = [
  0, 1, [0], [0.5], [0, 0], [0, 0.1], [1, 0.25], [41.15, -8.61], [1.5, 2.25], [3, 4], [0, 0, 0], [1, 2, 3], [0, 0, 0, 0, 0], "cat", ["cat"], [0.6, 0, 0, 0.8],
  [[41, 2], 5, [1, 2]], [[0, 0], 0, 0], [90, 180], [1e9, -1e9], [1e308, -1e308], [5e-324, -0], [0.1, 0.2, -0.3, 0.4, 0.5, 0.6],
];

function isGood(value) {
  if (Array.isArray(value) || value instanceof Float64Array) return value.length > 0 && Array.from(value).every(isGood);
  return typeof value === "string" || Number.isFinite(value);
}

class BadReport extends Error {}

function expect(good, what) {
  if (!good) throw new BadReport(what);
}

/** Call and give the value; an error of ours gives undefined. */
function attempt(MetricdpError, call) {
  try {
    return call();
  } catch (error) {
    if (error instanceof MetricdpError) return undefined;
    throw error;
  }
}

/** Ask a mechanism everything that can be asked. */
function examine(mechanism, MetricdpError, draws) {
  const { short, lines } = mechanism.explain();
  for (const text of [short, ...lines]) expect(typeof text === "string" && !/NaN|undefined|\[object/.test(text), `it explains: ${text}`);
  const factor = attempt(MetricdpError, () => mechanism.factor(0.1));
  expect(factor === undefined || factor >= 1, `a factor is ${factor}`);
  const reach = attempt(MetricdpError, () => mechanism.reach(2));
  expect(reach === undefined || (reach >= 0 && reach < Infinity), `a reach is ${reach}`);
  let drawn = 0;
  for (const secret of SECRETS) {
    for (const clamp of [false, true]) {
      const law = attempt(MetricdpError, () => mechanism.law(secret, { clamp }));
      if (law !== undefined) {
        const total = law.reduce((a, b) => a + b, 0);
        expect(isGood(law) && Math.abs(total - 1) < 1e-6, `a law sums to ${total}`);
      }
      for (let k = 0; k < draws; k++) {
        const report = attempt(MetricdpError, () => mechanism.sample(secret, { clamp }));
        if (report === undefined) break;
        expect(isGood(report.point), "a report is no report");
        expect(report.code === null || (Number.isInteger(report.code) && report.code < mechanism.reports), "a code is none");
        drawn += 1;
      }
    }
  }
  return drawn;
}

async function serve({ module, draws }) {
  const { open, MetricdpError } = await import(pathToFileURL(module).href);
  parentPort.on("message", async (path) => {
    const answer = { outcome: "opened", error: null, message: "" };
    try {
      const mechanism = await open(readFileSync(path));
      answer.message = `${examine(mechanism, MetricdpError, draws)} reports`;
    } catch (error) {
      const ours = error instanceof MetricdpError;
      answer.outcome = ours ? "refused" : error instanceof BadReport ? "report" : "foreign";
      answer.error = error?.name ?? String(error);
      answer.message = String(ours || error instanceof BadReport ? error.message : error?.stack).slice(0, 500);
    }
    parentPort.postMessage(answer);
  });
}

/** Seconds of processor that all threads of this process used. */
function spent() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Seconds in which a worker had nothing to do. */
function idle(worker) {
  return worker.performance.eventLoopUtilization().idle / 1000;
}

/** One worker that is replaced whenever it hangs or runs out of memory. */
class Watched {
  constructor(options) {
    this.options = options;
    this.worker = null;
  }

  ask(path) {
    this.worker ??= new Worker(new URL(import.meta.url), {
      workerData: this.options, resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB }, stdout: false, stderr: false,
    });
    const { worker } = this;
    const { seconds, asleep } = this.options;
    const start = { spent: spent(), idle: idle(worker) };
    return new Promise((done) => {
      const end = (answer, alive) => {
        clearInterval(clock);
        worker.off("message", answered);
        worker.off("error", failed);
        if (!alive) {
          worker.on("error", () => {});
          worker.terminate();
          this.worker = null;
        }
        done(answer);
      };
      const answered = (answer) => end(answer, true);
      const failed = (error) => {
        const outcome = error.code === "ERR_WORKER_OUT_OF_MEMORY" ? "memory" : "foreign";
        end({ outcome, error: error.name, message: String(error.stack).slice(0, 500) }, false);
      };
      const hangs = (message) => end({ outcome: "hang", error: null, message }, false);
      const clock = setInterval(() => {
        if (spent() - start.spent > seconds) hangs(`no answer in ${seconds} s of processor time`);
        else if (idle(worker) - start.idle > asleep) hangs(`asleep for ${asleep} s without an answer`);
      }, LOOK_MS);
      worker.on("message", answered);
      worker.on("error", failed);
      worker.postMessage(path);
    });
  }
}

async function main() {
  const given = process.argv.slice(2);
  const option = (name, otherwise) => (given.includes(`--${name}`) ? given[given.indexOf(`--${name}`) + 1] : otherwise);
  const folder = resolve(given[0]);
  const module = resolve(option("module", join(import.meta.dirname, "..", "..", "js", "dist", "metricdp.js")));
  const limits = { seconds: Number(option("seconds", 10)), asleep: Number(option("asleep", 60)) };
  const watched = new Watched({ module, draws: Number(option("draws", 20)), ...limits });
  for (const file of readdirSync(folder).sort()) {
    const start = performance.now();
    const answer = await watched.ask(join(folder, file));
    const milliseconds = Math.round(performance.now() - start);
    console.log(JSON.stringify({ file, ...answer, milliseconds }));
    if (answer.outcome !== "opened" && answer.outcome !== "refused") process.exitCode = 1;
  }
  await watched.worker?.terminate();
}

if (isMainThread) await main();
else await serve(workerData);
