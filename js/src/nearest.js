/** Noise on the vector of a secret, after which the nearest vector is reported: words with some noise. */

import { refuse } from "./errors.js";
import { hyperbolicNoise, isInside } from "./hyperbolic.js";
import { checkGuarantee, checkVectors } from "./lattice.js";
import { distributionOf } from "./laplace.js";
import { Uniforms } from "./noise.js";
import { argmin } from "./spaces.js";
import { stretched, unitNoise } from "./vectors.js";

/** Return the largest of 1, 2 or 5 times a power of ten that is not above `limit`. */
function tidyPitch(limit) {
  const power = Math.floor(Math.log10(limit));
  for (const exponent of [power + 1, power, power - 1]) {
    for (const digit of [5, 2, 1]) {
      const pitch = exponent >= 0 ? digit * Number(`1e${exponent}`) : 1 / (Number(`1e${-exponent}`) / digit);
      if (pitch <= limit) return pitch;
    }
  }
  return limit;
}

/** Return a vector with noise, `noisy(row, source)`; in the Poincare ball on a lattice, elsewhere as it comes. */
function noiseBeforeNearest(plane, epsilon) {
  if (plane.metric.name === "Hyperbolic") return hyperbolicNoise(plane, epsilon, tidyPitch(0.01 / epsilon));
  checkVectors(plane);
  const distribution = distributionOf(plane, [1, 1], epsilon);
  return (row, source) => {
    const noise = stretched(distribution.factor, unitNoise(distribution.p, plane.dimension, new Uniforms(source)));
    return row.map((x, k) => x + noise[k][0] / epsilon);
  };
}

/** Read noise on the vector of a secret, after which the nearest vector is reported. */
export function readNearest(body, file, guarantee) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  const plane = { metric: inputs.metric, dimension: inputs.points.width };
  const noisy = noiseBeforeNearest(plane, body.epsilon);
  refuse(outputs.points.text || outputs.points.width !== plane.dimension, "its reports do not fit its secrets");
  checkGuarantee(guarantee, body.epsilon);
  const hyperbolic = plane.metric.name === "Hyperbolic";
  for (let code = 0; hyperbolic && code < inputs.size; code++) refuse(!isInside(inputs.points.row(code)), "one of its secrets lies at the border of the ball");
  const rows = Array.from({ length: outputs.size }, (_, code) => outputs.points.row(code));
  refuse(rows.some((row) => plane.metric.legal(row) !== null), "its reports do not fit its secrets");
  const draw = (code, source) => {
    const place = noisy(inputs.points.row(code), source);
    return argmin(outputs.size, (k) => plane.metric.measure(place, rows[k]));
  };
  return { inputs, outputs, draw };
}
