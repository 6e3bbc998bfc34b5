/**
 * Trees of areas: places in areas in larger areas, with a mechanism file for every level. Everybody chooses how precise reports are and
 * which areas they avoid, on the device; `metricdp tree` writes such folders.
 */

import { CorruptFile, refuse, refuseOption } from "./errors.js";
import { bytesOf, isLocalFile, open } from "./open.js";
import { list, record, text, whole } from "./schema.js";

const LARGEST_TREE = 64 * 2 ** 20; // bytes of a tree.json
const MOST_LEVELS = 31;
const LONGEST = 1000; // letters of a name
const MOST_PLACES = 2 ** 24;
const NO_AREA = "an area to avoid does not belong to its level.";

const named = (value, where) => {
  refuse(value === "", `${where} is empty`);
  return text(LONGEST)(value, where);
};

const anyValue = (value) => value;

/** What a tree.json may say; what depends on other values is checked level by level. */
const checkTree = record({
  format: text(), version: whole(), places: whole(1, MOST_PLACES),
  levels: list(record({ name: named, file: named, sha256: text(64), areas: anyValue }, { of: anyValue, middles: anyValue }), 1, MOST_LEVELS),
});

/** Return the checked level after those that are finer. */
function levelOf({ name, file, sha256, areas, of, middles }, places, finer) {
  const first = finer.length === 0;
  const size = first ? places : areas?.length ?? 0;
  refuse(!/^[^/\\:]+$/.test(file) || file.startsWith(".") || finer.some((one) => one.name === name), "a file of the tree lies in another folder, or two levels have the same name");
  refuse(!/^[0-9a-f]{64}$/.test(sha256), "a checksum of the tree does not have 64 digits");
  if (!first || areas !== null) list(named, size, size)(areas, "areas");
  refuse(areas !== null && new Set(areas).size !== areas.length, "two areas of a level have the same name");
  if (first) {
    refuse(of !== undefined || middles !== undefined, "the finest level of the tree has `of` or `middles`, which only areas have");
    return { name, file, sha256, areas, of: Array.from({ length: places }, (_, place) => place), size };
  }
  list(whole(0, size - 1), places, places)(of, "of");
  list(whole(0, places - 1), size, size)(middles, "middles");
  refuse(middles.some((place, area) => of[place] !== area), "the place that stands for an area of the tree lies outside the area");
  const around = new Map(); // the area of this level in which one of the level below lies
  finer[finer.length - 1].of.forEach((area, place) => {
    refuse(around.has(area) && around.get(area) !== of[place], "an area of the tree lies in several of the next level");
    around.set(area, of[place]);
  });
  return { name, file, sha256, areas, of, size };
}

/**
 * A tree of areas, as `openTree` gives it: the levels, the finest first, and mechanisms that report areas of a level and avoid others.
 */
export class LocationTree {
  #levels;
  #opened;

  /** Trees come from `openTree`. @private */
  constructor(levels, opened) {
    this.#levels = levels;
    this.#opened = opened;
    /**
     * The levels, the finest first; `areas` are the names of its areas, null where places have none.
     * @type {readonly { readonly name: string, readonly size: number, readonly areas: readonly string[] | null }[]}
     */
    this.levels = Object.freeze(
      levels.map(({ name, size, areas }) => Object.freeze({ name, size, areas: areas === null ? null : Object.freeze([...areas]) })),
    );
    Object.freeze(this);
  }

  #number(name) {
    const found = this.#levels.findIndex((level) => level.name === name);
    refuseOption(found < 0, `the tree has no such level: its levels are ${this.#levels.map((level) => level.name).join(", ")}.`);
    return found;
  }

  /**
   * Return the reports of the file of a level that lie in some areas, by name (places without names by number), of a level that is
   * no finer.
   * @param {string} level
   * @param {ArrayLike<string | number>} areas
   * @param {{ of?: string }} [options] `of`: whose reports, the places unless said
   * @returns {number[]}
   */
  codes(level, areas, { of = this.#levels[0].name } = {}) {
    const [chosen, reported] = [this.#number(level), this.#number(of)];
    refuseOption(chosen < reported, "the avoided level is finer than the reported one: take the mechanism of the avoided level.");
    refuseOption(!Array.isArray(areas), "give the areas to avoid as one list of names, the same for every secret.");
    const { areas: names, of: inside, size } = this.#levels[chosen];
    const known = names === null ? null : new Map(names.map((name, area) => [name, area]));
    const wanted = new Set(
      areas.map((area) => {
        const code = known === null ? area : known.get(area);
        refuseOption(!Number.isInteger(code) || code < 0 || code >= size, NO_AREA);
        return code;
      }),
    );
    const found = new Set();
    this.#levels[reported].of.forEach((report, place) => {
      if (wanted.has(inside[place])) found.add(report);
    });
    return [...found].sort((a, b) => a - b);
  }

  /**
   * Open the mechanism of a level, and leave out reports from the areas that are avoided: `{ district: ["Bonfim"] }`, by the names of
   * levels. Which areas these are stays on the device; that a file was fetched tells which level somebody chose.
   * @param {string} level
   * @param {{ avoid?: Record<string, (string | number)[]>, rule?: "cheapest" | "nearest" }} [options]
   * @returns {Promise<import("./mechanism.js").Mechanism>}
   */
  async open(level, { avoid = {}, rule } = {}) {
    refuseOption(typeof avoid !== "object" || avoid === null || Array.isArray(avoid), "`avoid` must name areas by their level, such as { district: [\"Bonfim\"] }.");
    const number = this.#number(level);
    const codes = new Set(Object.entries(avoid).flatMap(([name, areas]) => this.codes(name, areas, { of: level })));
    const mechanism = await this.#opened(this.#levels[number]);
    refuse(mechanism.sha256 !== this.#levels[number].sha256, "its checksum is not the one in the tree");
    const fits = mechanism.secrets === this.#levels[0].size && mechanism.reports === this.#levels[number].size;
    refuse(!fits, "its places or areas are not those of the tree");
    return codes.size === 0 ? mechanism : mechanism.prune([...codes], rule === undefined ? {} : { rule });
  }
}

/** Return what a tree.json says, checked. */
function treeLevels(buffer) {
  let given;
  try {
    given = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(buffer));
  } catch {
    throw new CorruptFile("the file was refused: it is not a tree of metricdp.");
  }
  refuse(given?.format !== "metricdp-tree", "it is not a tree of metricdp");
  refuse(given.version !== 1, "it was written by a later metricdp");
  const { places, levels } = checkTree(given, "the tree");
  return levels.reduce((finer, level) => [...finer, levelOf(level, places, finer)], []);
}

/** Return where a file beside another lies: by address, in Node also by path. */
function besideFile(source, name) {
  if (isLocalFile(String(source)) && !/^file:/i.test(source)) return `${String(source).replace(/[^/\\]*$/, "")}${name}`;
  return new URL(encodeURIComponent(name), new URL(source, globalThis.location?.href));
}

/**
 * Open a tree of areas: `tree.json` by its address (or path), or its bytes together with `read`, which says where the file of a level is.
 * The mechanism files are opened when they are asked for, and must be those whose checksums the tree names; `trusted` and `largest` are
 * those of `open`. A tree is not signed itself: what is trusted are the signatures of its mechanism files.
 * @param {ArrayBuffer | ArrayBufferView | string | URL} source
 * @param {{ trusted?: string | string[] | null, largest?: number,
 *   read?: (name: string) => ArrayBuffer | ArrayBufferView | string | URL }} [options]
 * @returns {Promise<LocationTree>}
 */
export async function openTree(source, { read = null, ...options } = {}) {
  const byName = typeof source === "string" || source instanceof URL;
  refuseOption(!byName && typeof read !== "function", "bytes have no folder: give `read`, a function that returns a file of a level by its name.");
  refuseOption(read !== null && typeof read !== "function", "`read` must be a function of the name of a file.");
  const levels = treeLevels(await bytesOf(source, LARGEST_TREE));
  return new LocationTree(levels, ({ file }) => open(read === null ? besideFile(source, file) : read(file), options));
}
