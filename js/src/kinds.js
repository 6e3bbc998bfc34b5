/** The kinds of mechanism a file can hold: one reader each. */

import { readBags, readOutlines } from "./bags.js";
import { Unsupported, refuse } from "./errors.js";
import { readGaussian, readSphericalGaussian } from "./gaussian.js";
import { readHyperbolic } from "./hyperbolic.js";
import { readInterpolated } from "./interpolated.js";
import { readKernel } from "./kernel.js";
import { readDirection, readProjected, readSpherical, readVector } from "./laplace.js";
import { readLocal } from "./local.js";
import { readNearest } from "./nearest.js";
import { readProduct } from "./product.js";
import { readRows } from "./rows.js";
import { readStreets } from "./streets.js";

/** Read a table of probabilities with one row per secret. */
function readMatrix(body, file) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  const table = readRows(body.matrix, file, inputs.size, outputs.size);
  return { inputs, outputs, table, draw: (code, source) => table.draw(code, source), law: (code) => table.law(code) };
}

/**
 * A reader takes a body, the file and the promise, and gives `inputs`, `outputs`, `draw(value, source)`, where value is what
 * `inputs.encode` gives, and where there is one the `table`, the `law(value)`, and for the accuracy in a plane either the `rate` of Laplace
 * noise and the `reach` of a cell or `within(level)`.
 */
const KINDS = {
  matrix: readMatrix,
  local: readLocal,
  kernel: readKernel,
  interpolated: readInterpolated,
  streets: readStreets,
  "spherical-laplace": readSpherical,
  "vector-laplace": readVector,
  "direction-noise": readDirection,
  "projected-laplace": readProjected,
  "gaussian-noise": readGaussian,
  "spherical-gaussian": readSphericalGaussian,
  "hyperbolic-laplace": readHyperbolic,
  "bag-laplace": readBags,
  "outline-laplace": readOutlines,
  nearest: readNearest,
};

function readPart(kind, body, file, promise) {
  if (!Object.hasOwn(KINDS, kind)) throw new Unsupported("a mechanism of this kind is not drawn from here.");
  const made = KINDS[kind](body, file, promise);
  const metric = file.manifest.metrics.findIndex((_, k) => file.metric(k) === made.inputs.metric);
  refuse(!file.same(metric, promise.metric), "the promise is in another metric than the secrets");
  checkUnit(promise, file);
  return made;
}

function checkUnit(promise, file) {
  refuse(promise.unit !== file.metric(promise.metric).unit, "its units are not those of its distances");
}

/** Rebuild the mechanism of a file. */
export function readMechanism(file) {
  file.build();
  const { kind, body, guarantee, units } = file.manifest;
  checkUnit(guarantee, file);
  refuse(units !== guarantee.unit, "its units are not those of its distances");
  const made =
    kind === "product"
      ? readProduct(body, file, guarantee, (name, own, promise) => readPart(name, own, file, promise))
      : readPart(kind, body, file, guarantee);
  file.refuseLeftovers();
  return made;
}
