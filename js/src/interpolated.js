/** Mechanisms on a box: distributions at a grid of anchors and a rule for the points between them. */

import { settled } from "./balls.js";
import { flip, mixed, nearShare, readRatios } from "./curves.js";
import { refuse } from "./errors.js";
import { readRows, sumOf } from "./rows.js";
import { Bits, toWhole, wholesOf } from "./whole.js";

const UNSURE = 2 ** -30; // far above the rounding of a geometric mean in doubles
const ABSENT = -1e6; // the logarithm of a probability of 0 in a geometric mean
const DEEP = 1300n; // places of balls, for the smallest doubles

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
  const away = upper ? above : below;
  return [away > 0 ? Math.min(Math.max(away / (axis[cell + 1] - axis[cell]), Number.MIN_VALUE), 0.5) : 0, upper];
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

/** Return the normalised geometric mean of the corners' distributions. */
function geometric(table, corners) {
  const exponents = new Float64Array(table.reports);
  const possible = new Uint8Array(table.reports);
  for (const [row, weight] of corners) {
    table.distribution(row).forEach((value, k) => {
      if (value > 0) possible[k] = 1;
      exponents[k] += weight * Math.max(Math.log(value), ABSENT);
    });
  }
  const largest = exponents.reduce((a, b, k) => (possible[k] ? Math.max(a, b) : a), -Infinity);
  const masses = exponents.map((value, k) => (possible[k] ? Math.exp(value - largest) : 0));
  const total = sumOf(masses);
  return masses.map((mass) => mass / total);
}

/** Draw from the geometric mean at a point, exactly: in doubles where they leave no doubt, in balls elsewhere. */
function drawGeometric({ axes, table, point, masses }, source) {
  source.next();
  const { high, low } = source;
  const level = (high * 4294967296 + low) * 2 ** -64;
  let [sum, found, unsure] = [0, -1, level <= UNSURE];
  for (let k = 0; k < masses.length; k++) {
    sum += masses[k];
    if (Math.abs(sum - level) <= UNSURE) unsure = true;
    if (found < 0 && sum > level) found = k;
  }
  return found < 0 || unsure ? drawMeanExactly({ axes, table, point }, new Bits(high, low, source)) : found;
}

/** Return the anchors around a point that have a share of it, with their multilinear weights as fractions. */
function exactCorners(axes, point) {
  let corners = [[0, 1n, 1n]];
  axes.forEach((axis, l) => {
    const cell = intervalOf(axis, point[l]);
    const [low, high, here] = [toWhole(axis[cell]), toWhole(axis[cell + 1]), toWhole(point[l])];
    const sides = [[cell, high - here], [cell + 1, here - low]].filter(([, part]) => part > 0n);
    corners = corners.flatMap(([at, top, bottom]) => sides.map(([side, part]) => [at * axis.length + side, top * part, bottom * (high - low)]));
  });
  return corners;
}

/** Return one report of the geometric mean in balls of whole numbers: the word, then as many more bits as it takes. */
function drawMeanExactly({ axes, table, point }, bits) {
  const corners = exactCorners(axes, point).map(([row, top, bottom]) => {
    const weights = new Array(table.reports).fill(0n);
    wholesOf(Array.from(table.weights(row), Number)).forEach((weight, k) => (weights[table.report(k)] = weight));
    return { top, bottom, weights, total: weights.reduce((sum, weight) => sum + weight, 0n) };
  });
  const used = [];
  for (let k = 0; k < table.reports; k++) if (isUsed(table, k)) used.push(k);
  return settled((balls, words) => {
    while (bits.count < 64n * words) bits.more();
    const terms = used.map((k) => {
      let sum = { m: 0n, r: 0n };
      for (const { top, bottom, weights, total } of corners) {
        const log = weights[k] > 0n ? balls.log(balls.fraction(weights[k], total)) : balls.double(ABSENT);
        sum = balls.add(sum, balls.multiply(balls.fraction(top, bottom), log));
      }
      return balls.exp(sum);
    });
    const total = terms.reduce((sum, term) => balls.add(sum, term));
    const target = balls.multiply(balls.uniform(bits.word, bits.count), total);
    let running = { m: 0n, r: 0n };
    for (let at = 0; at < used.length - 1; at++) {
      running = balls.add(running, terms[at]);
      if (balls.below(target, running)) return used[at];
    }
    return used[used.length - 1];
  }, DEEP);
}

/** Tell whether any anchor reports something. */
function isUsed(table, report) {
  for (let row = 0; row < table.rows; row++) if (table.distribution(row)[report] > 0) return true;
  return false;
}

function readAxes(names, box, file) {
  refuse(names.length !== box.dimension, "its anchors do not fit its box");
  return names.map((name, l) => {
    const axis = file.floats(name, [null], "its anchors");
    for (let k = 1; k < axis.length; k++) refuse(!(axis[k] > axis[k - 1]), "its anchors are not in increasing order");
    const ends = axis.length >= 2 && axis[0] === box.lower[l] && axis[axis.length - 1] === box.upper[l];
    refuse(!ends, "its anchors do not reach from end to end of its box");
    return axis;
  });
}

/** Read an interpolated mechanism. */
export function readInterpolated(body, file) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  refuse(inputs.metric.name !== "Lp", "the metric of its box is not l_p");
  const axes = readAxes(body.axes, inputs, file);
  refuse(body.ratios.length !== axes.length, "its ratios do not fit its anchors");
  const ratios = body.ratios.map((name, l) => readRatios(file, name, axes[l].length - 1));
  const anchors = axes.reduce((product, axis) => product * axis.length, 1);
  const table = readRows(body.matrix, file, anchors, outputs.size);
  const rounding = body.rule === "exact" || body.rule === "direction";
  const distributionAt = (point) => {
    const corners = cornerWeights(axes, rounding ? ratios : null, point);
    return rounding ? mixed(table, corners) : geometric(table, corners);
  };
  const draw = (point, source) => {
    if (rounding) {
      let row = 0;
      axes.forEach((axis, l) => (row = row * axis.length + rounded(axis, ratios[l], point[l], source)));
      return table.draw(row, source);
    }
    return drawGeometric({ axes, table, point, masses: distributionAt(point) }, source);
  };
  return { inputs, outputs, table, draw, distribution: distributionAt };
}
