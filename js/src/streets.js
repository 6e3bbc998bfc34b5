/** Distributions at crossings and cuts of streets, interpolated to every place along them. */

import { flip, mixed, nearShare, readRatios } from "./curves.js";
import { refuse } from "./errors.js";
import { readRows } from "./rows.js";
import { toWhole } from "./whole.js";

const ROUNDINGS = 4 * 2 ** -53; // of a quotient, a product and a difference, for every piece

/** Read a mechanism along streets. */
export function readStreets(body, file) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  const { edges, lengths, nodes } = inputs.network;
  const counts = file.wholes(body.counts, [lengths.length], "its pieces");
  const ratios = readRatios(file, body.ratios, lengths.length);
  const firstCut = new Float64Array(counts.length);
  let next = nodes; // anchors are the crossings, then the inner cuts street by street
  for (let street = 0; street < counts.length; street++) {
    refuse(!(ratios[street] > 0), "a street has no positive ratio");
    firstCut[street] = next;
    next += counts[street] - 1;
  }
  const table = readRows(body.matrix, file, next, outputs.size);
  const anchor = (street, step) => {
    if (step === 0) return edges[2 * street];
    return step === counts[street] ? edges[2 * street + 1] : firstCut[street] + step - 1;
  };
  /** Return the length up to a place in pieces of its street, as a fraction. */
  const exactSteps = ([street, offset]) => [toWhole(offset) * BigInt(counts[street]), toWhole(lengths[street])];
  // Doubles are off by at most ROUNDINGS a piece. A place that may lie on either side of a cut is found exactly, so that the
  // piece is the true one and a position of 0 is the cut itself.
  const positionOf = ([street, offset]) => {
    const steps = (offset / lengths[street]) * counts[street];
    const step = Math.min(Math.floor(steps), counts[street] - 1);
    const along = Math.min(Math.max(steps - step, 0), 1);
    const beyond = along > 0.5;
    const position = beyond ? 1 - along : along;
    if (position > ROUNDINGS * counts[street] || !(offset > 0 && offset < lengths[street])) return { step, position, beyond };
    const [top, bottom] = exactSteps([street, offset]);
    const here = top % bottom;
    const above = 2n * here > bottom;
    const share = Number(((above ? bottom - here : here) << 1000n) / bottom) * 2 ** -1000;
    return { step: Number(top / bottom), position: here === 0n ? 0 : Math.max(share, Number.MIN_VALUE), beyond: above };
  };
  const located = (place) => {
    const { step, position, beyond } = positionOf(place);
    const [lower, upper] = [anchor(place[0], step), anchor(place[0], step + 1)];
    return beyond ? [upper, lower, position] : [lower, upper, position];
  };
  const draw = (place, source) => {
    const [near, far, position] = located(place);
    const exactly = () => {
      const [top, bottom] = exactSteps(place);
      const { step, beyond } = positionOf(place);
      const along = top - BigInt(step) * bottom;
      return [beyond ? bottom - along : along, bottom];
    };
    const blur = ROUNDINGS * counts[place[0]];
    return table.draw(flip(position, ratios[place[0]], exactly, source, blur) ? far : near, source);
  };
  const distribution = (place) => {
    const [near, far, position] = located(place);
    const share = nearShare(position, ratios[place[0]])[0];
    return mixed(table, [[near, 1 - share], [far, share]]);
  };
  return { inputs, outputs, table, draw, distribution };
}
