/** Laws at crossings and cuts of streets, interpolated to every place along them. */

import { flip, mixed, nearShare, readRatios } from "./curves.js";
import { refuse } from "./errors.js";
import { readRows } from "./rows.js";
import { toWhole } from "./whole.js";

/** Read a mechanism along streets. */
export function readStreets(body, file) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  const { edges, lengths, nodes } = inputs.network;
  const counts = file.wholes(body.counts, [lengths.length], "its pieces");
  const ratios = readRatios(file, body.ratios, lengths.length);
  const firstCut = new Float64Array(counts.length);
  let next = nodes; // anchors are the crossings, then the inner cuts street by street
  for (let street = 0; street < counts.length; street++) {
    refuse(!(ratios[street] > 0), "a street has no ratio");
    firstCut[street] = next;
    next += counts[street] - 1;
  }
  const table = readRows(body.matrix, file, next, outputs.size);
  const anchor = (street, step) => {
    if (step === 0) return edges[2 * street];
    return step === counts[street] ? edges[2 * street + 1] : firstCut[street] + step - 1;
  };
  const located = ([street, offset]) => {
    const steps = (offset / lengths[street]) * counts[street];
    const step = Math.min(Math.floor(steps), counts[street] - 1);
    const along = Math.min(Math.max(steps - step, 0), 1);
    const [lower, upper] = [anchor(street, step), anchor(street, step + 1)];
    return along > 0.5 ? [upper, lower, 1 - along] : [lower, upper, along];
  };
  const draw = (place, source) => {
    const [street, offset] = place;
    const [near, far, position] = located(place);
    const exactly = () => {
      const bottom = toWhole(lengths[street]);
      const top = (toWhole(offset) * BigInt(counts[street])) % bottom;
      return 2n * top < bottom ? [top, bottom] : [bottom - top, bottom];
    };
    return table.draw(flip(position, ratios[street], exactly, source) ? far : near, source);
  };
  const law = (place) => {
    const [near, far, position] = located(place);
    const share = nearShare(position, ratios[place[0]])[0];
    return mixed(table, [[near, 1 - share], [far, share]]);
  };
  return { inputs, outputs, table, draw, law };
}
