/** Mechanisms on a box: laws at a grid of anchors and a rule for the points between them. */

import { flip, mixed, nearShare, readRatios } from "./curves.js";
import { refuse } from "./errors.js";
import { drawShares, readRows, shares, sumOf } from "./rows.js";
import { toWhole, wholesOf } from "./whole.js";

function intervalOf(axis, x) {
  let low = 0;
  let high = axis.length - 2; // the last anchor belongs to the last interval
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (axis[middle] <= x) low = middle;
    else high = middle - 1;
  }
  return low;
}

function positionIn(axis, cell, x) {
  const [below, above] = [x - axis[cell], axis[cell + 1] - x];
  const upper = above < below;
  return [Math.min((upper ? above : below) / (axis[cell + 1] - axis[cell]), 0.5), upper];
}

/** Return one of the two anchors around a coordinate, the far one with probability theta. */
function rounded(axis, ratios, x, source) {
  const cell = intervalOf(axis, x);
  const [position, upper] = positionIn(axis, cell, x);
  const exactly = () => {
    const [low, high, here] = [toWhole(axis[cell]), toWhole(axis[cell + 1]), toWhole(x)];
    return [upper ? high - here : here - low, high - low];
  };
  const far = flip(position, ratios[cell], exactly, source);
  return cell + (upper !== far ? 1 : 0);
}

/** Return [anchor, weight] for the corners of the cell of a point; multilinear, in theta where `ratios` is given. */
function cornerWeights(axes, ratios, point) {
  let corners = [[0, 1]];
  axes.forEach((axis, l) => {
    const cell = intervalOf(axis, point[l]);
    const [position, upper] = positionIn(axis, cell, point[l]);
    const near = ratios === null ? position : nearShare(position, ratios[l][cell])[0];
    const [lower, higher] = upper ? [near, 1 - near] : [1 - near, near];
    corners = corners.flatMap(([anchor, weight]) => [
      [anchor * axis.length + cell, weight * lower],
      [anchor * axis.length + cell + 1, weight * higher],
    ]);
  });
  return corners;
}

/** Return the normalised geometric mean of the corners' laws. */
function geometric(table, corners) {
  const exponents = new Float64Array(table.reports);
  const possible = new Uint8Array(table.reports);
  for (const [row, weight] of corners) {
    table.law(row).forEach((value, k) => {
      if (value > 0) possible[k] = 1;
      exponents[k] += weight * Math.max(Math.log(value), -1e6);
    });
  }
  const largest = exponents.reduce((a, b, k) => (possible[k] ? Math.max(a, b) : a), -Infinity);
  const masses = exponents.map((value, k) => (possible[k] ? Math.exp(value - largest) : 0));
  const total = sumOf(masses);
  return masses.map((mass) => mass / total);
}

function readAxes(names, box, file) {
  refuse(names.length !== box.dimension, "its anchors do not fit its box");
  return names.map((name, l) => {
    const axis = file.floats(name, [null], "its anchors");
    for (let k = 1; k < axis.length; k++) refuse(!(axis[k] > axis[k - 1]), "its anchors do not grow");
    const ends = axis.length >= 2 && axis[0] === box.lower[l] && axis[axis.length - 1] === box.upper[l];
    refuse(!ends, "its anchors do not reach from end to end of its box");
    return axis;
  });
}

/** Read an interpolated mechanism. */
export function readInterpolated(body, file) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  refuse(inputs.metric.name !== "Lp", "its box is measured in another metric than l_p");
  const axes = readAxes(body.axes, inputs, file);
  refuse(body.ratios.length !== axes.length, "its ratios do not fit its anchors");
  const ratios = body.ratios.map((name, l) => readRatios(file, name, axes[l].length - 1));
  const anchors = axes.reduce((product, axis) => product * axis.length, 1);
  const table = readRows(body.matrix, file, anchors, outputs.size);
  const rounding = body.rule === "exact" || body.rule === "direction";
  const lawAt = (point) => {
    const corners = cornerWeights(axes, rounding ? ratios : null, point);
    return rounding ? mixed(table, corners) : geometric(table, corners);
  };
  const draw = (point, source) => {
    if (rounding) {
      let row = 0;
      axes.forEach((axis, l) => (row = row * axis.length + rounded(axis, ratios[l], point[l], source)));
      return table.draw(row, source);
    }
    const masses = lawAt(point);
    source.next();
    return drawShares(shares(masses), () => wholesOf(masses), source);
  };
  return { inputs, outputs, table, draw, law: lawAt };
}
