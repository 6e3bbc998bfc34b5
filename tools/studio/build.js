/**
 * Join what Studio takes from npm into src/metricdp/studio/page/vendor, one module each, and copy our own drawing module.
 *
 *     npm ci && node build.js            write
 *     npm ci && node build.js --check    write nothing, fail where something would change
 *
 * Users need none of this: what is written here is in the repository and in the wheel. Versions are pinned in package-lock.json.
 */

import { build } from "esbuild";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const TARGET = join(HERE, "..", "..", "src", "metricdp", "studio", "page", "vendor");
const check = process.argv.includes("--check");

const MODULES = {
  "lit.js": 'export { html, svg, render, nothing } from "lit"; export { live } from "lit/directives/live.js"; export { repeat } from "lit/directives/repeat.js";',
  "plot.js":
    'export { plot, line, dot, areaY, ruleX, ruleY, barX, axisX, axisY, gridX, gridY, text, tip, pointerX, rectY } from "@observablehq/plot";',
  "pmtiles.js": 'export { PMTiles, FileSource, Protocol } from "pmtiles";',
};
const COPIES = {
  "maplibre-gl.js": join(HERE, "node_modules", "maplibre-gl", "dist", "maplibre-gl.js"),
  "maplibre-gl.css": join(HERE, "node_modules", "maplibre-gl", "dist", "maplibre-gl.css"),
  "metricdp.js": join(HERE, "..", "..", "js", "dist", "metricdp.js"),
};

function put(name, text) {
  const path = join(TARGET, name);
  if (existsSync(path) && readFileSync(path, "utf8") === text) return;
  if (check) {
    console.error(`${name} is not what package-lock.json makes: run npm ci and node build.js in tools/studio`);
    process.exitCode = 1;
  } else writeFileSync(path, text);
}

const inputs = new Set();
for (const [name, contents] of Object.entries(MODULES)) {
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: HERE }, bundle: true, minify: true, format: "esm", target: "es2022", write: false, metafile: true,
    legalComments: "none",
  });
  Object.keys(metafile.inputs).forEach((path) => inputs.add(path));
  put(name, outputFiles[0].text);
}
for (const [name, from] of Object.entries(COPIES)) put(name, readFileSync(from, "utf8").replace(/\n?\/\/# sourceMappingURL=.*\n?/, "\n"));

/** Every package that is part of what was joined, with its licence as it came. */
const packages = new Set(["maplibre-gl"]);
for (const path of inputs) {
  const found = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/);
  if (found) packages.add(found[1]);
}
const licences = [...packages].sort().map((name) => {
  const folder = join(HERE, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file ? readFileSync(join(folder, file), "utf8").trim() : `${license}, without a text of its own.`;
  return `${name} ${version} (${license})\n\n${text}\n`;
});
put("LICENCES.txt", licences.join(`\n${"-".repeat(80)}\n\n`));
