/**
 * From a concentrated guarantee to (epsilon, delta) at a distance, and back: upper bounds that are proven, computed in balls. Two secrets
 * are `mu` apart in units of the noise, mu = d sqrt(2 rho); what is known of a mechanism there is its form (docs/explanation/composition.md):
 *
 *     gaussian   delta(epsilon) = Phi(-a) - e^epsilon Phi(-b),  a = epsilon / mu - mu / 2,  b = epsilon / mu + mu / 2
 *     renyi      delta(epsilon) = e^((q - 1) (q mu^2 / 2 - epsilon)) / (q - 1) (1 - 1 / q)^q  at any order q > 1
 *
 * With Mills' ratio R(x) = Phi(-x) / phi(x) and e^epsilon phi(b) = phi(a) the first is phi(a) (R(a) - R(b)), and for negative a it is
 * 1 - phi(a) (R(-a) + R(b)): nothing overflows.
 */

import { Balls } from "./balls.js";
import { refuseOption } from "./errors.js";
import { doubleAbove } from "./whole.js";

const FARTHEST_MU = 1e6; // there epsilon is some 1e12 and protects nothing
const NEAREST_MU = 1e-9;
const SMALLEST_DELTA = 1e-300;
const NO_DELTA = 1e-308; // what is below is said as this
const FARTHEST_A = 37.8; // Phi(-37.7) is below NO_DELTA
const STEPS = 200; // of bisection: more than a double has bits
const DEPTH = 128; // of the continued fraction: from x = 8 on it is known to more than 200 bits
const ORDERS = [1 + 1e-9, 1e15];

/** Return Mills' ratio of a ball of at least 0: 1 / (2 phi(x)) - (x + x^3 / 3 + x^5 / 15 + ...), beyond 8 a continued fraction. */
function millsRatio(balls, x) {
  const square = balls.multiply(x, x);
  if (x.m > 8n << balls.places) {
    let ends = [x, balls.add(x, balls.divide(balls.fraction(BigInt(DEPTH), 1n), x))]; // between them lies what is left out
    for (let k = DEPTH - 1; k >= 0; k--) ends = ends.map((end) => balls.divide(balls.fraction(BigInt(k || 1), 1n), end)).map((one) => (k ? balls.add(x, one) : one));
    const [one, other] = ends;
    const apart = one.m > other.m ? one.m - other.m : other.m - one.m;
    return { m: (one.m + other.m) >> 1n, r: (apart >> 1n) + (one.r > other.r ? one.r : other.r) + 2n };
  }
  let [term, sum] = [x, x];
  for (let k = 3n; term.m + term.r > 4n || square.m > k << (balls.places - 1n); k += 2n) {
    term = balls.multiply(term, square);
    term = { m: term.m / k, r: term.r / k + 1n };
    sum = balls.add(sum, term);
  }
  sum = { m: sum.m, r: sum.r + term.m + term.r + 4n }; // the rest is smaller than the last term
  return balls.subtract(balls.divide(balls.fraction(1n, 2n), density(balls, x)), sum);
}

/** Return the normal density. */
function density(balls, x) {
  const half = balls.multiply(balls.multiply(x, x), balls.fraction(-1n, 2n));
  return balls.divide(balls.exp(half), balls.root(balls.times(balls.pi, 2n)));
}

/** Return a double that no number in a ball exceeds. */
function upperEnd(balls, { m, r }) {
  const top = m + r;
  return top <= 0n ? 0 : Math.max(NO_DELTA, doubleAbove(top, Number(balls.places)));
}

const bitsAbove = (value) => Math.max(0, Math.ceil(Math.log2(value)));

function gaussianDelta(mu, epsilon) {
  const near = epsilon / mu - mu / 2;
  if (near > FARTHEST_A) return NO_DELTA;
  let places = 256 + 4 * (bitsAbove(epsilon) + bitsAbove(mu) + bitsAbove(1 / mu)) + Math.ceil(near > 0 ? 0.73 * near * near : 0);
  for (let tries = 0; tries < 4; tries++, places *= 2) {
    const balls = new Balls(BigInt(places));
    const [half, away] = [balls.multiply(balls.double(mu), balls.fraction(1n, 2n)), balls.divide(balls.double(epsilon), balls.double(mu))];
    const [a, b] = [balls.subtract(away, half), balls.add(away, half)];
    const below = a.m < 0n;
    const size = { m: below ? -a.m : a.m, r: a.r };
    const [one, other] = [millsRatio(balls, size), millsRatio(balls, b)];
    const part = balls.multiply(density(balls, size), below ? balls.add(one, other) : balls.subtract(one, other));
    const found = below ? balls.subtract(balls.one, part) : part;
    if (found.m > 0n && found.r * 10n ** 13n <= found.m) return Math.min(1, upperEnd(balls, found));
  }
  return 1; // always true
}

/** Return an order near the best one, in doubles: where the derivative of ln delta vanishes. */
function bestOrder(mu, epsilon) {
  const slope = (order) => (2 * order - 1) * (0.5 * mu * mu) - epsilon + Math.log1p(-1 / order);
  let [low, high] = [1, 2];
  while (slope(high) < 0 && high < ORDERS[1]) [low, high] = [high, 2 * high];
  for (let k = 0; k < STEPS; k++) {
    const middle = 0.5 * (low + high);
    if (!(low < middle && middle < high)) break;
    [low, high] = slope(middle) < 0 ? [middle, high] : [low, middle];
  }
  return high;
}

function renyiDelta(mu, epsilon) {
  const order = bestOrder(mu, epsilon);
  if (order <= ORDERS[0]) return 1;
  const balls = new Balls(BigInt(1280 + 4 * (bitsAbove(order) + bitsAbove(epsilon) + bitsAbove(mu) + bitsAbove(1 / mu))));
  const [q, m] = [balls.double(order), balls.double(mu)];
  const less = balls.subtract(q, balls.one);
  const rho = balls.multiply(balls.multiply(m, m), balls.fraction(1n, 2n));
  const lost = balls.subtract(balls.multiply(q, rho), balls.double(epsilon));
  const rest = balls.log(balls.subtract(balls.one, balls.divide(balls.one, q)));
  const exponent = balls.subtract(balls.multiply(less, balls.add(lost, rest)), balls.log(q));
  if (exponent.m + exponent.r > 0n) return 1;
  if (exponent.m < -709n << balls.places) return NO_DELTA;
  return Math.min(1, upperEnd(balls, balls.exp(exponent)));
}

function checkAsked(mu, epsilon) {
  refuseOption(!(mu >= 0 && mu <= FARTHEST_MU), "this distance is more than a million times the standard deviation of the noise: give a smaller distance.");
  refuseOption(!(epsilon >= 0 && epsilon < Infinity), "`epsilon` must be a finite number of at least 0.");
}

/** Return a delta that is proven for this epsilon. */
export function deltaOf(mu, epsilon, form) {
  checkAsked(mu, epsilon);
  if (mu === 0) return 0;
  return form === "gaussian" ? gaussianDelta(mu, epsilon) : renyiDelta(mu, epsilon);
}

function checkDelta(delta) {
  const good = typeof delta === "number" && delta >= SMALLEST_DELTA && delta < 1;
  refuseOption(!good, "`delta` must lie between 1e-300 and 1, such as 1e-6: this guarantee needs a delta.");
}

/** Return an epsilon at which this delta is proven: the least, up to the last digits. */
export function epsilonOf(mu, delta, form) {
  checkDelta(delta);
  checkAsked(mu, 0);
  if (mu === 0 || deltaOf(mu, 0, form) <= delta) return 0;
  // enough for either form: r + 2 sqrt(r ln(1 / delta)) with r = mu^2 / 2 (Bun and Steinke 2016, Proposition 1.3)
  let [low, high] = [0, (0.5 * mu * mu + mu * Math.sqrt(-2 * Math.log(delta))) * (1 + 1e-9)];
  for (let k = 0; k < STEPS; k++) {
    const middle = 0.5 * (low + high);
    if (!(low < middle && middle < high) || high - low <= 1e-13 * high) break;
    [low, high] = deltaOf(mu, middle, form) <= delta ? [low, middle] : [middle, high];
  }
  while (deltaOf(mu, high, form) > delta) high *= 1 + 1e-12; // the first guess is proven too, like every other
  return high;
}

/** Return the largest mu found at which (epsilon, delta) is proven. */
export function muOf(epsilon, delta, form) {
  checkAsked(0, epsilon);
  checkDelta(delta);
  let [low, high] = [0, 1];
  while (deltaOf(high, epsilon, form) <= delta) {
    [low, high] = [high, 2 * high];
    if (high > FARTHEST_MU) return low;
  }
  for (let k = 0; k < STEPS; k++) {
    const middle = 0.5 * (low + high);
    if (!(low < middle && middle < high) || high - low <= 1e-13 * high || high < NEAREST_MU) break;
    [low, high] = deltaOf(middle, epsilon, form) <= delta ? [middle, high] : [low, middle];
  }
  refuseOption(low === 0, "no noise keeps this epsilon and delta: both are too close to 0.");
  return low;
}
