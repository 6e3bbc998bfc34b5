/** The curve along which a distribution moves between two anchors, and exact coin flips on it. */

import { refuse } from "./errors.js";
import { CONSTANTS } from "./constants.js";
import { ULP, exactFlip } from "./whole.js";

/** Read the log-ratios that shape the curves; half of a smaller one is no ordinary double, and the curve would jump. */
export function readRatios(file, name, count) {
  const ratios = file.floats(name, [count], "its ratios");
  for (const ratio of ratios) refuse(!(ratio === 0 || ratio >= CONSTANTS.smallest_ratio), "two distributions cannot have such a ratio");
  return ratios;
}

/** Return the share of the far anchor at `position` in [0, 1/2] from the near one, and the length of the curve. */
export function nearShare(position, ratio) {
  if (!(ratio > 0)) return [position, 0];
  const length =
    ratio < 1 ? 2 * Math.log1p(Math.expm1(ratio) / 2) : 2 * (ratio + Math.log1p(Math.exp(-ratio)) - Math.LN2);
  const travelled = length * position;
  const share = Math.exp(travelled - ratio) * (Math.expm1(-travelled) / Math.expm1(-ratio));
  return [Math.min(share, 0.5), length];
}

/**
 * Flip a coin that comes up with exactly the probability theta; `exactly` gives the position as a fraction. A position of 0 must be
 * 0 exactly; `blur` is what another one may be off by, beyond a rounding of itself.
 */
export function flip(position, ratio, exactly, source, blur = 0) {
  source.next();
  const { high, low } = source;
  if (position <= 0) return false;
  const [share, length] = nearShare(position, ratio);
  const level = (high * 4294967296 + low) * 2 ** -64;
  const band = share * ((32 + 8 * length) * ULP) + 2 ** -62 + 1.01 * blur * steepest(ratio, length);
  if (Math.abs(level - share) > band) return level < share;
  const [top, bottom] = exactly();
  return exactFlip(top, bottom, ratio, high, low, source);
}

/** Return the largest slope of the share of the far anchor, or a little more. */
function steepest(ratio, length) {
  return ratio > 0 ? length * (Math.exp(-ratio) / -Math.expm1(-ratio) + 0.5) * (1 + 64 * ULP) : 1;
}

/** Return the mixture of the distributions of rows with these weights. */
export function mixed(table, corners) {
  const result = new Float64Array(table.reports);
  for (const [row, weight] of corners) table.distribution(row).forEach((value, k) => (result[k] += weight * value));
  return result;
}
