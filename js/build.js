/**
 * Build dist/ from src/: one file to copy, without dependencies.
 *
 *     node build.js            write src/constants.js, src/declared.js, src/readers.js, dist/metricdp.js and dist/geolocation.js
 *     node build.js --check    write nothing, fail where something would change
 *     node build.js --types    also write dist/*.d.ts from the JSDoc (needs `npm install`, for TypeScript)
 *
 * Modules are joined in the order in which they need each other, their imports and exports taken out. That is sound because
 * no two modules declare the same name at their top level and nothing is renamed on import; both are checked here.
 */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const PYTHON = join(HERE, "..", "src", "metricdp");
const IMPORT = /^import \{([^}]*)\} from "\.\/([\w-]+)\.js";\n/gm;
const DECLARED = /^(?:export )?(?:async )?(?:function|class|const|let) (\w+)/gm;
const SAID = [
  "digits", "largest_factor", "beyond_largest", "lengths", "plural", "counted", "things", "shares", "scale", "outside", "per", "promise", "short", "meaning", "concentrated",
];
const check = process.argv.includes("--check");
const FIELDS = readFileSync(join(HERE, "fields.json"), "utf8").trim();
const KINDS = Object.keys(JSON.parse(FIELDS).mechanism);

const source = (name) => readFileSync(join(HERE, "src", `${name}.js`), "utf8");

/** What both languages share, as a module: all constants, and of the sentences those that are said here. */
function constantsModule() {
  const read = (name) => JSON.parse(readFileSync(join(PYTHON, name), "utf8"));
  const spelled = (value) => JSON.stringify(value, null, 2);
  const said = Object.fromEntries(Object.entries(read("messages.json")).filter(([name]) => SAID.includes(name)));
  return (
    "/** What both languages share: written by build.js from src/metricdp/constants.json and messages.json; change those. */\n\n" +
    `export const CONSTANTS = ${spelled(read("constants.json"))};\n\nexport const MESSAGES = ${spelled(said)};\n`
  );
}

/** What the declarations of metrics, spaces and mechanisms say about the fields of a file, one line each. */
function declaredModule() {
  return (
    "/** The fields of a mechanism file: written by build.js from fields.json, which tools/pages.py writes from the declarations. */\n\n" +
    `/** @typedef {${KINDS.map((kind) => `"${kind}"`).join(" | ")}} Kind */\n\n` +
    `export const DECLARED = ${FIELDS};\n`
  );
}

/**
 * The readers of the kinds: `readVectorLaplace(body, file, guarantee)` reads a "vector-laplace", in whichever module it stands. A product
 * is made of other kinds, see kinds.js; a kind without a reader is not drawn from here.
 */
function readersModule() {
  const named = (kind) => `read${kind.replace(/(^|-)(\w)/g, (_, __, letter) => letter.toUpperCase())}`;
  const homes = readdirSync(join(HERE, "src")).map((name) => [name, source(name.replace(/\.js$/, ""))]);
  const found = KINDS.filter((kind) => kind !== "product").flatMap((kind) => {
    const home = homes.find(([, text]) => text.includes(`export function ${named(kind)}(`));
    return home ? [[kind, named(kind), home[0]]] : [];
  });
  const files = [...new Set(found.map(([, , home]) => home))].sort();
  const imports = files.map((file) => {
    const names = found.filter(([, , home]) => home === file).map(([, name]) => name);
    return `import { ${names.sort().join(", ")} } from "./${file}";\n`;
  });
  return (
    "/** The readers of the kinds of mechanism: written by build.js, which finds them by their names. */\n\n" +
    `${imports.join("")}
/**
 * A reader takes a body, the file and the guarantee, and gives \`inputs\`, \`outputs\`, \`draw(value, source)\`, where value is what
 * \`inputs.encode\` gives, and where there is one the \`table\`, the \`distribution(value)\`, and for the accuracy in a plane either the \`rate\` of Laplace
 * noise and the \`reach\` of a cell or \`within(level)\`.
 */
export const READERS = {\n${found.map(([kind, name]) => `  "${kind}": ${name},\n`).join("")}};\n`
  );
}

/** Return the modules below `name`, each after those it needs. */
function inOrder(name, seen = new Map(), path = []) {
  if (path.includes(name)) throw new Error(`modules need each other in a circle: ${[...path, name].join(", ")}`);
  if (seen.has(name)) return seen;
  const text = source(name);
  for (const [, , needed] of text.matchAll(/^(?:import|export) \{([^}]*)\} from "\.\/([\w-]+)\.js";$/gm)) {
    inOrder(needed, seen, [...path, name]);
  }
  return seen.set(name, text);
}

/** Join the modules into one, exporting what `index.js` names. */
function bundle() {
  const modules = inOrder("index");
  const declared = new Map();
  const clashes = [];
  const [opening] = modules.get("index").match(/^\/\*\*[\s\S]*?\*\//);
  const parts = [`${opening}\n\n// Built from src/ by build.js: change the modules there, not this file.`];
  const exported = [];
  for (const [name, text] of modules) {
    if (name === "index") {
      for (const [, names] of text.matchAll(/^export \{([^}]*)\} from/gm)) exported.push(...names.split(",").map((word) => word.trim()));
      continue;
    }
    for (const [, names] of text.matchAll(IMPORT)) if (/\bas\b/.test(names)) throw new Error(`${name}.js renames an import`);
    for (const [, word] of text.matchAll(DECLARED)) {
      if (declared.has(word)) clashes.push(`${word} is declared in ${declared.get(word)}.js and in ${name}.js`);
      declared.set(word, name);
    }
    const body = text.replace(IMPORT, "").replace(/^export (?=async |function|class|const|let)/gm, "");
    if (/^(?:import|export)\b/m.test(body)) throw new Error(`${name}.js imports or exports in a way build.js does not know`);
    parts.push(`// ${"-".repeat(100)} ${name}.js\n\n${body.replaceAll(/import\("\.\/[\w-]+\.js"\)\./g, "").trim()}`);
  }
  if (clashes.length > 0) throw new Error(clashes.join("; "));
  return `${parts.join("\n\n")}\n\nexport { ${exported.join(", ")} };\n`;
}

/** Write a file, or say that it is not up to date. */
function put(path, text) {
  const full = join(HERE, path);
  if (existsSync(full) && readFileSync(full, "utf8") === text) return;
  if (check) {
    console.error(`js/${path} is not what js/src makes: run node js/build.js`);
    process.exitCode = 1;
  } else writeFileSync(full, text);
}

/** Return the SHA-256 of what types are made of: every comment of JSDoc and the line below it. */
function fingerprint(text) {
  const documented = text.match(/^ *\/\*\*[\s\S]*?\*\/\n.*$/gm).join("\n");
  return createHash("sha256").update(documented).digest("hex");
}

put("src/constants.js", constantsModule());
put("src/declared.js", declaredModule());
put("src/readers.js", readersModule());
const module = bundle();
put("dist/metricdp.js", module);
put("dist/geolocation.js", 'export { planDay, protectGeolocation } from "./metricdp.js";\n');
for (const name of readdirSync(join(HERE, "src"))) {
  if (!inOrder("index").has(name.replace(/\.js$/, ""))) throw new Error(`src/${name} is part of nothing`);
}

const stamp = `// Written by build.js --types from the comments of metricdp.js, SHA-256 ${fingerprint(module)}.\n`;
if (process.argv.includes("--types")) {
  execFileSync(join(HERE, "node_modules", ".bin", "tsc"), ["--project", join(HERE, "tsconfig.json")], { stdio: "inherit" });
  const made = readFileSync(join(HERE, "dist", "metricdp.d.ts"), "utf8");
  put("dist/metricdp.d.ts", stamp + made);
  put("dist/geolocation.d.ts", 'export { planDay, protectGeolocation } from "./metricdp.js";\n');
} else if (!readFileSync(join(HERE, "dist", "metricdp.d.ts"), "utf8").startsWith(stamp)) {
  console.error("js/dist/metricdp.d.ts was made from other comments: run npm ci and node build.js --types in js/");
  if (check) process.exitCode = 1;
}
