/**
 * Reports that somebody does not want to give, left out on the device: a pruned report becomes one that is kept, always the same, found
 * by public numbers alone. That is post-processing of the draw, so the guarantee stays as it is, exactly, whatever is pruned.
 */

import { Unsupported, refuseOption } from "./errors.js";
import { argmin } from "./spaces.js";

const ALIKE =
  "give one list of codes for all secrets. Reports show which codes never occur, so a list that depends on the secret would reveal it.";
const NOT_HERE =
  "renormalising is not post-processing, and only Python can prove its guarantee: take the rule \"cheapest\" or \"nearest\".";

/** Return which reports are pruned: one list for all secrets, of codes that are there. The sentences name none of them. */
function goneOf(codes, size, before) {
  refuseOption(!Array.isArray(codes) && !(ArrayBuffer.isView(codes) && !(codes instanceof DataView)), ALIKE);
  const gone = Uint8Array.from(before);
  for (const code of codes) {
    refuseOption(Array.isArray(code), ALIKE);
    refuseOption(!Number.isInteger(code) || code < 0 || code >= size, "a pruned code must be a whole number from 0 to one below the number of reports.");
    gone[code] = 1;
  }
  refuseOption(codes.length === 0 || gone.every(Boolean), "prune at least one report and keep at least one.");
  return gone;
}

/** Return the nearest kept report of a pruned one, where reports are measured. */
function byNearest({ outputs }, left, kept) {
  const { coordinates, points, metric, ground } = outputs;
  const [places, away] = coordinates.text ? [points, metric] : [coordinates, ground];
  return left.map((code) => kept[argmin(kept.length, (k) => away.measure(places.row(code), places.row(kept[k])))]);
}

function measured(metric, one, other) {
  try {
    return metric.measure(one, other);
  } catch (error) {
    if (error instanceof Unsupported) throw new Unsupported('distances of this metric are not computed here: take the rule "nearest".');
    throw error;
  }
}

/** Return the kept report that costs least in the place of a pruned one: argmin over t of sum_x z_xk d(x, t), all secrets alike. */
function byCost({ inputs, outputs, table }, left, kept) {
  const rows = inputs.size;
  const probabilities = left.map(() => new Float64Array(rows));
  for (let x = 0; x < rows; x++) {
    const distribution = table.distribution(x);
    left.forEach((code, at) => (probabilities[at][x] = distribution[code]));
  }
  const [least, best] = [new Float64Array(left.length).fill(Infinity), new Array(left.length).fill(kept[0])];
  for (const code of kept) {
    const goal = outputs.points.row(code);
    const away = Float64Array.from({ length: rows }, (_, x) => measured(inputs.metric, goal, inputs.points.row(x)));
    probabilities.forEach((probability, at) => {
      let cost = 0;
      for (let x = 0; x < rows; x++) cost += probability[x] * away[x];
      if (cost < least[at]) [least[at], best[at]] = [cost, code];
    });
  }
  return best;
}

/** Return which report stands for every code, and which are pruned. */
function mapped(parts, kind, codes, rule) {
  const { outputs } = parts;
  if (outputs.size === undefined) throw new Unsupported(`a ${kind} mechanism has no list of reports to prune from.`);
  const gone = goneOf(codes, outputs.size, parts.gone ?? new Uint8Array(outputs.size));
  const all = Array.from({ length: outputs.size }, (_, code) => code);
  const [left, kept] = [all.filter((code) => gone[code]), all.filter((code) => !gone[code])];
  if (rule === "renormalise") throw new Unsupported(NOT_HERE);
  refuseOption(rule !== "cheapest" && rule !== "nearest", '`rule` must be "cheapest" or "nearest".');
  if (rule === "cheapest" && kind !== "matrix") throw new Unsupported('the cost of a report is computed from a matrix: take the rule "nearest" here.');
  const goals = rule === "cheapest" ? byCost(parts, left, kept) : byNearest(parts, left, kept);
  const map = Uint32Array.from(all);
  left.forEach((code, at) => (map[code] = goals[at]));
  return { map, gone };
}

/** Rows after the map. */
class PrunedRows {
  constructor(table, map) {
    Object.assign(this, { table, map });
    this.rows = table.rows;
    this.reports = table.reports;
    this.storage = table.storage;
    this.bits = table.bits;
  }

  distribution(row) {
    return moved(this.table.distribution(row), this.map);
  }
}

/** Return a distribution after the map: what is pruned has probability 0. */
function moved(distribution, map) {
  const result = new Float64Array(distribution.length);
  distribution.forEach((probability, code) => (result[map[code]] += probability));
  return result;
}

/** Return the parts of a mechanism that never gives some reports; `whole` keeps the table before it, for what is said to apps. */
export function prunedParts(parts, kind, codes, rule) {
  const { map, gone } = mapped(parts, kind, codes, rule);
  const { draw, distribution, table, whole = table } = parts;
  return {
    ...parts,
    gone,
    whole,
    draw: (value, source) => map[draw(value, source)],
    ...(distribution ? { distribution: (value) => moved(distribution(value), map) } : {}),
    ...(table ? { table: new PrunedRows(table, map) } : {}),
  };
}
