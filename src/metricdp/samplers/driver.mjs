/**
 * Draws from a JavaScript module for the auditor: a line of JSON in, a line of JSON out, until the input ends.
 * node driver.mjs MODULE FUNCTION [MECHANISM FILE]
 */

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [place, name, file] = process.argv.slice(2);
const answer = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
for (const word of ["log", "info", "debug"]) console[word] = console.error; // the output holds answers only

/** Return the function that draws one report: that of a mechanism file, or the one the module exports. */
async function sampler() {
  const module = await import(pathToFileURL(place));
  if (file !== undefined) {
    if (typeof module.open !== "function") throw new Error("the module does not export `open`, which reads mechanism files");
    const mechanism = await module.open(file);
    return (secret) => mechanism.sample(secret).point;
  }
  const found = module[name] ?? module.default?.[name] ?? (typeof module.default === "function" ? module.default : undefined);
  if (typeof found !== "function") {
    const names = Object.keys(module).join(", ") || "nothing";
    throw new Error(`the module exports no function \`${name}\` and no default function; it exports ${names}`);
  }
  return found;
}

/** Numbers that JSON cannot write become null, which is read as no number. */
const written = (report) => (ArrayBuffer.isView(report) ? Array.from(report) : report);

try {
  const sample = await sampler();
  answer({ ready: true });
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const { secrets } = JSON.parse(line);
    const reports = [];
    for (const secret of secrets) {
      const report = await sample(Array.isArray(secret) ? [...secret] : secret);
      if (report === undefined) throw new Error("the function returned nothing");
      reports.push(written(report));
    }
    answer({ reports });
  }
} catch (error) {
  answer({ error: String(error?.message ?? error) });
  process.exitCode = 1;
}
