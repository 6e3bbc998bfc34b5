/** The readers of the kinds of mechanism: written by build.js, which finds them by their names. */

import { readBagLaplace, readOutlineLaplace } from "./bags.js";
import { readGaussianNoise, readSphericalGaussian } from "./gaussian.js";
import { readHyperbolicLaplace } from "./hyperbolic.js";
import { readInterpolated } from "./interpolated.js";
import { readKernel } from "./kernel.js";
import { readDirectionNoise, readProjectedLaplace, readSphericalLaplace, readVectorLaplace } from "./laplace.js";
import { readLocal } from "./local.js";
import { readNearest } from "./nearest.js";
import { readMatrix } from "./rows.js";
import { readStreets } from "./streets.js";

/**
 * A reader takes a body, the file and the guarantee, and gives `inputs`, `outputs`, `draw(value, source)`, where value is what
 * `inputs.encode` gives, and where there is one the `table`, the `distribution(value)`, and for the accuracy in a plane either the `rate` of Laplace
 * noise and the `reach` of a cell or `within(level)`.
 */
export const READERS = {
  "bag-laplace": readBagLaplace,
  "direction-noise": readDirectionNoise,
  "gaussian-noise": readGaussianNoise,
  "hyperbolic-laplace": readHyperbolicLaplace,
  "interpolated": readInterpolated,
  "local": readLocal,
  "kernel": readKernel,
  "vector-laplace": readVectorLaplace,
  "matrix": readMatrix,
  "nearest": readNearest,
  "outline-laplace": readOutlineLaplace,
  "projected-laplace": readProjectedLaplace,
  "spherical-laplace": readSphericalLaplace,
  "spherical-gaussian": readSphericalGaussian,
  "streets": readStreets,
};
