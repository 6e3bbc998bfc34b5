/** Reading the mechanism of a file: a reader each for the kinds that it can hold. */

import { Unsupported, refuse } from "./errors.js";
import { readProduct } from "./product.js";
import { READERS } from "./readers.js";

function readPart(kind, body, file, guarantee) {
  if (!Object.hasOwn(READERS, kind)) throw new Unsupported("this module does not draw from a mechanism of this kind.");
  const made = READERS[kind](body, file, guarantee);
  const metric = file.manifest.metrics.findIndex((_, k) => file.metric(k) === made.inputs.metric);
  refuse(!file.same(metric, guarantee.metric), "the guarantee is in another metric than the secrets");
  checkUnit(guarantee, file);
  return made;
}

function checkUnit(guarantee, file) {
  refuse(guarantee.unit !== file.metric(guarantee.metric).unit, "its units are not those of its distances");
}

/** Rebuild the mechanism of a file. */
export function readMechanism(file) {
  file.build();
  const { kind, body, guarantee, units } = file.manifest;
  checkUnit(guarantee, file);
  refuse(units !== guarantee.unit, "its units are not those of its distances");
  const made =
    kind === "product"
      ? readProduct(body, file, guarantee, (name, own, stated) => readPart(name, own, file, stated))
      : readPart(kind, body, file, guarantee);
  file.refuseLeftovers();
  return made;
}
