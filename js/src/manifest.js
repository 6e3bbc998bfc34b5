/** What a manifest may say: the types, ranges, references and sizes of everything in it, checked before anything is built. */

import { CorruptFile, Unsupported, refuse } from "./errors.js";
import { choose, list, number, oneOf, orNull, record, text, tuple, whole } from "./schema.js";
import { SHARED } from "./shared.js";

const FIELDS = ["body", "certificate", "format", "guarantee", "kind", "metrics", "sha256", "spaces", "units", "version"];
const FIELDS_OF = { 1: FIELDS, 2: [...FIELDS, "licence", "signature"] };
const NEW_IN_2 = ["streets", "product"];

const reference = whole(0, SHARED.largest_count - 1);
const tensor = text(200);
const unit = text(100);
const rate = number({ least: 1 / SHARED.largest_rate, most: SHARED.largest_rate });
const coordinate = number({ least: -SHARED.largest_coordinate, most: SHARED.largest_coordinate });

const PARAMETERS = {
  Lp: { p: number({ least: 1, infinite: true }), unit },
  Haversine: { unit },
  Mahalanobis: { covariance: tensor, unit },
  Precomputed: { distances: tensor, unit },
  ShortestPath: {
    edges: tensor, lengths: tensor, nodes: whole(1, SHARED.largest_nodes), one_way: oneOf(["open", "longer"]), unit,
  },
  StreetPath: { network: reference },
  Temporal: { period: orNull(rate), unit },
  Hamming: { unit },
  Levenshtein: { unit },
  Angular: { unit: oneOf(["rad", "deg"]) },
  Hyperbolic: { unit },
  Weighted: {
    parts: list(tuple(reference, list(whole(0, SHARED.largest_dimension - 1), 1, SHARED.largest_dimension), rate), 1, SHARED.largest_count),
    unit,
  },
  Wasserstein: { ground: tensor, unit },
  WordMovers: { vectors: tensor, ground: reference, unit },
  Frechet: { ground: reference, dimension: whole(1, SHARED.largest_dimension), unit },
};

const metric = (value, where) => {
  const { name, parameters } = record({ name: text(100), parameters: (given) => given }, {})(value, where);
  if (!Object.hasOwn(PARAMETERS, name)) throw new Unsupported("a metric of this file is not known here: update metricdp.");
  return { name, parameters: record(PARAMETERS[name])(parameters, `${where}.parameters`) };
};

const SPACE_FIELDS = {
  finite: { metric: reference, points: tensor, coordinates: tensor, ground: reference, columns: list(text(1000), 0, SHARED.largest_dimension) },
  box: { metric: reference, lower: list(coordinate, 1, SHARED.largest_dimension), upper: list(coordinate, 1, SHARED.largest_dimension) },
  unbounded: { metric: reference, dimension: whole(1, SHARED.largest_dimension) },
  streets: { metric: reference },
};

const space = choose((value, where) => {
  const kind = oneOf(Object.keys(SPACE_FIELDS))(value?.kind, `${where}.kind`);
  return record({ kind: text(), ...SPACE_FIELDS[kind] });
});

const side = whole(1, SHARED.largest_matrix);
const STORAGE_FIELDS = {
  sparse: { shape: tuple(side, side), columns: tensor, values: tensor, present: orNull(tensor) },
  quantised: { shape: tuple(side, side), columns: tensor, counts: tensor, bits: whole(SHARED.fewest_bits, SHARED.most_bits) },
};

const matrix = choose((value, where) => {
  if (typeof value === "string") return tensor;
  const storage = oneOf(Object.keys(STORAGE_FIELDS))(value?.storage, `${where}.storage`);
  return record({ storage: text(), ...STORAGE_FIELDS[storage] });
});

const guarantee = record({
  epsilon: rate,
  slack: number({ least: 0 }),
  radius: orNull(number({ above: 0 })),
  unit,
  basis: oneOf(SHARED.bases),
  metric: reference,
});

const certificateFields = record(
  {
    loss: number(), lower_bound: number(), epsilon: number({ least: 0, infinite: true }), method: text(),
    seconds: number({ least: 0 }), verified_pairs: whole(), worst_pair: list(whole(), 0, 3),
  },
  { note: text(), objective: oneOf(["expected", "worst"]) },
);

/** What a certificate states; nothing that is drawn depends on it. */
const certificate = (value, where) => {
  const stated = certificateFields(value, where);
  refuse(stated.lower_bound > stated.loss, `${where} states a bound above its loss`);
  refuse(![0, 3].includes(stated.worst_pair.length), `${where} names no pair and report`);
  return stated;
};

const names = list(tensor, 1, 64);
const BODIES = {
  matrix: { inputs: reference, outputs: reference, matrix },
  interpolated: { inputs: reference, outputs: reference, matrix, axes: names, ratios: names, rule: oneOf(SHARED.rules) },
  streets: { inputs: reference, outputs: reference, matrix, counts: tensor, ratios: tensor },
  "spherical-laplace": { inputs: reference, epsilon: rate, pitch: rate },
  "vector-laplace": { inputs: reference, epsilon: rate, pitch: rate },
  nearest: { inputs: reference, outputs: reference, epsilon: rate },
};

const kindOf = (value) => {
  const known = typeof value === "string" && (value === "product" || Object.hasOwn(BODIES, value));
  if (!known) throw new Unsupported("a mechanism of this kind is not read here: update metricdp.");
  return value;
};

const part = (value, where) => {
  refuse(typeof value !== "object" || value === null || value.kind === "product", `${where} is not a part of a product`);
  const body = record(BODIES[kindOf(value.kind)]);
  return record({ kind: text(), body, guarantee, certificate })(value, where);
};

BODIES.product = { parts: list(part, 2, SHARED.largest_parts) };

/** Refuse what is no manifest of a version that is read here; checksum and signature are verified next. */
export function checkVersion(given) {
  refuse(given.format !== SHARED.format, "it is a safetensors file, but not one of metricdp");
  const { version } = given;
  refuse(!Number.isSafeInteger(version) || version < 1, "its version is none");
  if (version > SHARED.version) {
    throw new CorruptFile(
      `the file was refused: it has format version ${version}, this module reads up to ${SHARED.version}. Update metricdp.`,
    );
  }
  const wanted = [...FIELDS_OF[version]].sort().join();
  refuse(Object.keys(given).sort().join() !== wanted, "its manifest does not hold what its version asks for");
  refuse(typeof given.sha256 !== "string", "its checksum is missing");
}

/** Return a manifest, whose every byte is as it was written by now, as checked values. */
export function checkedManifest(given) {
  const { version } = given;
  const kind = kindOf(given.kind);
  const checks = {
    format: text(), version: whole(), kind: text(), sha256: text(), units: unit, guarantee, certificate,
    metrics: list(metric, 1, SHARED.largest_count),
    spaces: list(space, 1, SHARED.largest_count),
    body: record(BODIES[kind]),
  };
  if (version > 1) Object.assign(checks, { licence: text(SHARED.licence_limit), signature: (value) => value });
  const manifest = record(checks)(given, "its manifest");
  const old = version === 1 && (NEW_IN_2.includes(kind) || typeof (manifest.body.matrix ?? "") !== "string");
  refuse(old, "it holds what its version does not know");
  return manifest;
}
