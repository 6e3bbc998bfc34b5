/**
 * What a manifest may say: every value in it is checked before anything is built. Which fields there are and what is possible
 * in them comes from the declarations of metrics, spaces and mechanisms (`declared.js`); nothing of that is repeated here.
 */

import { DECLARED } from "./declared.js";
import { CorruptFile, Unsupported, refuse } from "./errors.js";
import { choose, list, number, oneOf, orNull, record, text, tuple, whole } from "./schema.js";
import { CONSTANTS } from "./constants.js";

const FIELDS = ["body", "certificate", "format", "guarantee", "kind", "metrics", "sha256", "spaces", "units", "version"];
const FIELDS_OF = { 1: FIELDS, 2: [...FIELDS, "licence", "signature"] };

const NAMED = "this file names its vectors instead of holding them: write it again with its vectors (`metricdp export`).";

const anything = (value) => value;
const tensor = text();
const side = whole(1, CONSTANTS.largest_matrix);
const STORAGES = {
  sparse: { shape: tuple(side, side), columns: tensor, values: tensor, present: orNull(tensor) },
  quantised: { shape: tuple(side, side), columns: tensor, counts: tensor, bits: whole(CONSTANTS.fewest_bits, CONSTANTS.most_bits) },
};

const table = (version) =>
  choose((value, where) => {
    if (typeof value === "string") return tensor;
    refuse(version === 1, "it has a part that its version does not have");
    const storage = oneOf(Object.keys(STORAGES))(value?.storage, `${where}.storage`);
    return record({ storage: text(), ...STORAGES[storage] });
  });

/** The check of a field, by the type of its declaration; `reading` is the manifest as far as it has been checked. */
const CHECKS = {
  number: (kind) => number(kind),
  whole: ({ least, most }) => whole(least, most),
  text: ({ choices, longest }) => (choices === undefined ? text(longest) : oneOf(choices)),
  maybe: ({ of }, reading) => orNull(checkOf(of, reading)),
  many: ({ of, least, most }, reading) => list(checkOf(of, reading), least, most),
  group: ({ of }, reading) => tuple(...of.map((kind) => checkOf(kind, reading))),
  part: (kind, reading) => (value, where) => reading.part(kind, value, where),
  array: (kind, reading) => (value, where) => {
    if (kind.of === "points" && Array.isArray(value?.files)) throw new Unsupported(NAMED);
    return kind.coded && typeof value === "object" ? coded(kind, reading)(value, where) : reading.file.checkArray(value, kind, where);
  },
  table: (_, reading) => table(reading.version),
};

/** Codes, and a table of the numbers that they stand for. */
const coded = (kind, { file }) =>
  record({
    codes: (value, where) => file.checkArray(value, { of: "narrow", sides: kind.sides }, where),
    table: (value, where) => file.checkArray(value, { ...kind, sides: 1 }, where),
  });

const checkOf = (kind, reading) => CHECKS[kind.type](kind, reading);

/** Return the guarantee of a kind of mechanism: a pure one has an epsilon, a concentrated one a rho and no epsilon. */
export const guaranteeKind = (kind) => DECLARED.mechanism[kind].promise ?? "pure";

/** A manifest while it is checked, in the order in which it is built: nothing refers to what comes later. */
class Reading {
  constructor(file, version) {
    this.file = file;
    this.version = version;
    this.names = { metric: [], space: [] };
    this.sizes = []; // of every metric: how deep it is nested, how many it is made of
    this.open = [1, 1];
    this.inside = false;
  }

  /** Return the check of an entry with these fields; what the first files did not say yet may be absent. */
  record(fields) {
    const checks = Object.entries(fields).map(([name, kind]) => [name, checkOf(kind, this)]);
    const isLater = ([name]) => Object.hasOwn(DECLARED.later, name);
    const check = record(Object.fromEntries(checks.filter((entry) => !isLater(entry))), Object.fromEntries(checks.filter(isLater)));
    const defaults = Object.fromEntries(checks.filter(isLater).map(([name]) => [name, DECLARED.later[name]]));
    return (value, where) => ({ ...defaults, ...check(value, where) });
  }

  /** Return the declared fields of a metric, a space or a mechanism. */
  fields(sort, name, where) {
    refuse(typeof name !== "string", `${where} has no name`);
    if (!Object.hasOwn(DECLARED[sort], name)) throw new Unsupported(`a ${sort} of this file is not known here: update metricdp.`);
    const { since, fields } = DECLARED[sort][name];
    refuse(since > this.version, "it has a part that its version does not have");
    return fields;
  }

  metric(value, where) {
    const { name, parameters } = record({ name: anything, parameters: anything })(value, where);
    this.open = [1, 1];
    const checked = this.record(this.fields("metric", name, where))(parameters, `${where}.parameters`);
    this.names.metric.push(name);
    this.sizes.push(this.open);
    return { name, parameters: checked };
  }

  space(value, where) {
    const fields = this.fields("space", value?.kind, where);
    const { kind, ...entry } = value;
    this.names.space.push(kind);
    return { kind, ...this.record(fields)(entry, where) };
  }

  /** Return the checks of what describes a mechanism. */
  mechanism(kind, where) {
    const body = this.record(this.fields("mechanism", kind, where));
    return { kind: text(), guarantee: this.record(DECLARED[guaranteeKind(kind)]), certificate: this.record(DECLARED.certificate), body };
  }

  part({ of, named = [] }, value, where) {
    if (of === "mechanism") return this.inner(value, where);
    const names = this.names[of];
    refuse(!Number.isSafeInteger(value) || value < 0 || value >= names.length, `${where} refers to something that is not in the file`);
    refuse(named.length > 0 && !named.includes(names[value]), `${where} must be a ${of} of the kind ${named.join(" or ")}`);
    if (of === "metric") this.nest(value, where);
    return value;
  }

  /** Count what a metric is made of: a few words could otherwise say a metric that takes years to measure. */
  nest(value, where) {
    const [depth, terms] = this.sizes[value];
    this.open = [Math.max(this.open[0], depth + 1), this.open[1] + terms];
    const deep = this.open[0] > CONSTANTS.deepest_metric || this.open[1] > CONSTANTS.largest_metric_terms;
    refuse(deep, `${where} is nested too deep`);
  }

  inner(value, where) {
    refuse(this.inside, "one of its parts has parts of its own");
    this.inside = true;
    const checked = stated(record(this.mechanism(value?.kind, where))(value, where), where);
    refuse(guaranteeKind(checked.kind) !== "pure", "one of its parts has a guarantee of another kind");
    this.inside = false;
    return checked;
  }
}

/** Refuse a certificate whose values do not go together; nothing that is drawn depends on it. */
function stated(mechanism, where) {
  const { guarantee, certificate } = mechanism;
  const pure = guaranteeKind(mechanism.kind) === "pure";
  refuse(!pure && certificate.epsilon !== Infinity, `${where} states an epsilon, and its guarantee has none`);
  const bound = guarantee.basis !== "none" && certificate.lower_bound > certificate.loss;
  refuse(bound, `${where} states a bound above its loss`); // where nothing is guaranteed, bounds of private mechanisms do not bind
  refuse(![0, 3].includes(certificate.worst_pair.length), `${where} has neither three codes nor none`);
  const worst = /^(constopt|optimal \(worst)/.test(certificate.method); // how the first files say it
  certificate.objective ??= worst ? "worst" : "expected";
  return mechanism;
}

/** Refuse what is no manifest of a version that is read here; checksum and signature are verified next. */
export function checkVersion(given) {
  refuse(given.format !== CONSTANTS.format, "it is a safetensors file, but metricdp did not write it");
  const { version } = given;
  refuse(!Number.isSafeInteger(version) || version < 1, "its version is not a positive whole number");
  if (version > CONSTANTS.version) {
    throw new CorruptFile(
      `the file was refused: it has format version ${version}, this module reads up to ${CONSTANTS.version}. Update metricdp.`,
    );
  }
  const wanted = [...FIELDS_OF[version]].sort().join();
  refuse(Object.keys(given).sort().join() !== wanted, "its manifest has a missing or unknown field");
  refuse(typeof given.sha256 !== "string", "its checksum is missing");
}

/** Return the manifest of a file, whose every byte is as it was written by now, as checked values. */
export function checkedManifest(file) {
  const given = file.manifest;
  const reading = new Reading(file, given.version);
  const checks = {
    format: text(), version: whole(), sha256: text(), units: text(CONSTANTS.licence_limit),
    metrics: list((value, where) => reading.metric(value, where), 1, CONSTANTS.largest_count),
    spaces: list((value, where) => reading.space(value, where), 1, CONSTANTS.largest_count),
    ...reading.mechanism(given.kind, "it"),
  };
  if (given.version > 1) Object.assign(checks, { licence: text(CONSTANTS.licence_limit), signature: anything });
  return stated(record(checks)(given, "its manifest"), "its certificate");
}
