/** Noise for rows of several vectors: bags, whose order is not told, and curves, of which only the outline is. */

import { refuse } from "./errors.js";
import { hyperbolicNoise } from "./hyperbolic.js";
import { checkGuarantee } from "./lattice.js";
import { sphericalNoise, vectorNoise } from "./laplace.js";

const NOISE_OF = { Lp: vectorNoise, Mahalanobis: vectorNoise, Haversine: sphericalNoise, Hyperbolic: hyperbolicNoise };

/** Order rows by their first coordinate, those with equal ones by the second, and so on. */
function byCoordinates(one, other) {
  const k = one.findIndex((value, at) => value !== other[at]);
  return k < 0 ? 0 : one[k] - other[k];
}

/** Return the vectors of a row, `size` coordinates each. */
const vectorsOf = (row, size) => Array.from({ length: row.length / size }, (_, k) => Array.from(row.slice(k * size, (k + 1) * size)));

/** Read noise for bags of vectors: every vector gets noise of its own, and the reports come in lexicographic order. */
export function readBagLaplace(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const { name, ground, dimension: size } = inputs.metric;
  const belongs = name === "Bags" && Object.hasOwn(NOISE_OF, ground.name) && inputs.dimension % size === 0;
  refuse(!belongs, "its noise does not belong to its metric");
  const one = NOISE_OF[ground.name]({ metric: ground, dimension: size }, body.epsilon, body.pitch);
  checkGuarantee(guarantee, body.epsilon);
  const draw = (row, source) =>
    vectorsOf(row, size)
      .map((vector, k) => one(vector, source.row?.(k) ?? source)) // a test chooses the words of every vector
      .sort(byCoordinates)
      .flat();
  return { inputs, outputs: inputs, draw };
}

/**
 * Read noise for curves under the discrete Frechet distance: on the start, the end, the least and the largest number of every
 * coordinate, none of which moves by more than that distance; so noise under the largest gap of them keeps the guarantee.
 */
export function readOutlineLaplace(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const { name, ground, dimension: size } = inputs.metric;
  refuse(name !== "Frechet" || ground.name !== "Lp" || inputs.dimension % size !== 0, "its noise does not belong to its metric");
  const gap = { name: "Lp", unit: inputs.metric.unit, parameters: { p: Infinity }, legal: () => null };
  const outputs = { metric: gap, dimension: 4 * size };
  const noise = vectorNoise(outputs, body.epsilon, body.pitch);
  checkGuarantee(guarantee, body.epsilon);
  const draw = (row, source) => {
    const vertices = vectorsOf(row, size);
    const along = (pick) => vertices[0].map((_, k) => vertices.reduce((found, vertex) => pick(found, vertex[k]), vertices[0][k]));
    return noise([...vertices[0], ...vertices[vertices.length - 1], ...along(Math.min), ...along(Math.max)], source);
  };
  return { inputs, outputs, draw };
}
