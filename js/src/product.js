/** Mechanisms of several parts: every part of a secret is drawn with its own mechanism. */

import { refuse, refuseSecret } from "./errors.js";

/** Say a report as callers get it: the code where reports are finitely many, and its coordinates or word. */
export function reportOf({ outputs }, drawn) {
  return typeof drawn === "number" ? { code: drawn, point: [...outputs.coordinates.row(drawn)] } : { code: null, point: drawn };
}

/** A space of lists with one value per part. */
class ProductSpace {
  constructor(parts) {
    this.parts = parts;
    this.metric = null;
  }

  encode(secret, options) {
    refuseSecret(!Array.isArray(secret) || secret.length !== this.parts.length, "parts");
    return this.parts.map((part, k) => part.inputs.encode(secret[k], options)); // refuse wrong values before anything is drawn
  }
}

/** Read a product with `readPart(kind, body, guarantee)`; its guarantee must be the sum of those of its parts. */
export function readProduct(body, file, guarantee, readPart) {
  const parts = body.parts.map((entry) => {
    refuse(entry.guarantee.basis === "none", "one of its parts has no guarantee");
    return { ...readPart(entry.kind, entry.body, entry.guarantee), guarantee: entry.guarantee };
  });
  checkSum(body.parts, parts, file, guarantee);
  const draw = (values, source) => parts.map((part, k) => reportOf(part, part.draw(values[k], source)));
  return { inputs: new ProductSpace(parts), outputs: {}, draw, parts };
}

/** The metric of a product is the sum of those of its parts, each times its epsilon: the joint epsilon is 1 in it. */
function checkSum(entries, parts, file, guarantee) {
  const { name, parameters } = file.metric(guarantee.metric);
  refuse(name !== "Weighted" || parameters.parts.length !== parts.length || guarantee.radius !== null, "its guarantee is not that of its parts");
  let column = 0;
  let slack = 0;
  parts.forEach((part, k) => {
    const [metric, columns, weight] = parameters.parts[k];
    const { epsilon, slack: own, radius } = entries[k].guarantee;
    const width = part.inputs.points?.width ?? part.inputs.dimension ?? 2;
    const fits = file.same(metric, entries[k].guarantee.metric) && weight === epsilon && columns.length === width;
    refuse(!fits || radius !== null || columns.some((found, at) => found !== column + at), "its guarantee is not that of its parts");
    column += width;
    slack += own;
  });
  refuse(!(guarantee.epsilon >= 1 && guarantee.slack >= slack * (1 - 1e-12)), "its guarantee is not that of its parts");
}
