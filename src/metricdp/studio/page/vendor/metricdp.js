/**
 * Read a mechanism file of metricdp and draw reports from it, in a browser, on a phone or in Node. No dependencies.
 *
 * The format is described in docs/format.md of the project. What is drawn has the same distribution as in Python, and
 * for tables of probabilities exactly the stored one. Randomness comes from crypto.getRandomValues only.
 */

// Built from src/ by build.js: change the modules there, not this file.

// ---------------------------------------------------------------------------------------------------- errors.js

/** Every error this module raises on purpose; the message says what was expected, what came and what to do. */
class MetricdpError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}
/** The file is damaged, altered, foreign, newer, or not signed by a key that is trusted. */
class CorruptFile extends MetricdpError {}
/** An argument is not what was asked for. */
class InvalidInput extends MetricdpError {}
/** A value is not one of the secrets; it is never passed through. */
class OutOfDomain extends InvalidInput {}
/** Something pure was asked of a guarantee that is only approximate. */
class NotPure extends InvalidInput {}
/** This module, or this browser, cannot do it; Python can. */
class Unsupported extends MetricdpError {}

/** Refuse a file: the reason names parts of the file, never long pieces of its contents. */
function refuse(condition, reason) {
  if (condition) throw new CorruptFile(`the file was refused: ${reason}. Take a fresh copy from its maker.`);
}

/**
 * Everything that is ever said about a secret that is refused. An error goes to the app and to its logs, so the sentences
 * are constant: no value, no distance, no nearest secret. That one was raised still tells outside from inside.
 */
const STRANGER = {
  form: [InvalidInput, "a secret must be a code, coordinates or a word, and a list of them for a product."],
  code: [OutOfDomain, "a code must be a whole number from 0 to one below the number of secrets."],
  count: [InvalidInput, "a secret must have as many coordinates as the mechanism has columns."],
  number: [InvalidInput, "the coordinates of a secret must be finite numbers."],
  degrees: [InvalidInput, "latitude must lie in [-90, 90] and longitude in [-360, 360], in degrees."],
  word: [OutOfDomain, "this is not a word of the vocabulary, so it has no report: it is never passed through."],
  far: [
    OutOfDomain,
    "this is not a secret of the mechanism: `snap` puts values on the nearest secret up to a distance (and adds slack to " +
      "the guarantee), `clamp` puts all values there.",
  ],
  box: [OutOfDomain, "this lies outside the box of the mechanism: `clamp` puts such values on its edge."],
  unit: [OutOfDomain, "a secret must be a unit vector: divide it by its length first."],
  direction: [OutOfDomain, "a secret must not be the zero vector: it has no direction."],
  ball: [OutOfDomain, "a secret must lie inside the unit ball: scale vectors to a length below one first."],
  border: [OutOfDomain, "a secret must not lie so close to the border of the ball that doubles cannot separate neighbours: shorten it a little."],
  street: [OutOfDomain, "this is not a point on a street: give a street number and an offset along the street."],
  lattice: [OutOfDomain, "this is too far from zero for the lattice of the mechanism: subtract an origin."],
  parts: [InvalidInput, "a secret of a product is a list with one value for every part."],
};

/** Refuse a secret: the only place where an error about one is made. */
function refuseSecret(condition, why) {
  if (!condition) return;
  const [Kind, sentence] = STRANGER[why];
  throw new Kind(sentence);
}

/** Refuse an option of a call; options are the app's own, not secrets. */
function refuseOption(condition, sentence) {
  if (condition) throw new InvalidInput(sentence);
}

/** Return a finite number of at least `least`, or refuse the option. */
function optionNumber(value, name, least = 0) {
  refuseOption(typeof value !== "number" || !(value >= least && value < Infinity), `\`${name}\` must be a finite number of at least ${least}.`);
  return value;
}

// ---------------------------------------------------------------------------------------------------- randomness.js

/** Randomness, from crypto.getRandomValues only. */


const TRIES = 10_000; // the probability that an honest source needs more is below 2^-1000

/**
 * Uniform 64-bit words: `next` puts one into `high` and `low`, 32 bits each.
 * @typedef {{ high: number, low: number, next(): void }} Words
 */

/** Uniform 64-bit words of the system's cryptographic generator, as two halves `high` and `low`. */
class SystemSource {
  constructor() {
    this.high = 0;
    this.low = 0;
    this.words = new Uint32Array(4096);
    this.at = this.words.length;
  }

  next() {
    if (this.at >= this.words.length) {
      globalThis.crypto.getRandomValues(this.words);
      this.at = 0;
    }
    this.high = this.words[this.at];
    this.low = this.words[this.at + 1];
    this.words[this.at] = this.words[this.at + 1] = 0; // what was used is forgotten
    this.at += 2;
  }
}

const system = new SystemSource();

/** Call `attempt` until it gives something; a source that repeats itself ends in an error, not in a loop. */
function untilDecided(attempt) {
  for (let k = 0; k < TRIES; k++) {
    const found = attempt(k);
    if (found !== undefined) return found;
  }
  throw new MetricdpError("the random source repeats itself: nothing was drawn.");
}

// ---------------------------------------------------------------------------------------------------- whole.js

/** Whole numbers of any length: where doubles cannot decide a draw, these do. */


/** The relative rounding of a double. */
const ULP = 2 ** -52;

const BITS = new DataView(new ArrayBuffer(8));

/** Return the double as a whole multiple of 2^-1074. */
function toWhole(value) {
  BITS.setFloat64(0, value);
  const bits = BITS.getBigUint64(0);
  const exponent = (bits >> 52n) & 0x7ffn;
  const mantissa = (bits & 0xfffffffffffffn) | (exponent > 0n ? 0x10000000000000n : 0n);
  const size = mantissa << (exponent > 0n ? exponent - 1n : 0n);
  return bits >> 63n ? -size : size;
}

/** Return the least double that is not below a whole multiple of 2^-places. */
function doubleAbove(value, places) {
  const shift = BigInt(Math.max(0, value.toString(2).length - 53));
  const first = value >> shift;
  return Number(first << shift === value ? first : first + 1n) * 2 ** (Number(shift) - places);
}

/** Return doubles as whole multiples of 2^-1074. */
const wholesOf = (weights) => Array.from(weights, toWhole);

/** Return e^x for x = value / 2^bits, as a multiple of 2^-bits; good to bits - 40 places for 0 <= x <= 2^20. */
function fixedExp(value, bits) {
  let halvings = 8n;
  for (let rest = value >> bits; rest > 0n; rest >>= 1n) halvings += 1n;
  const small = value >> halvings;
  let term = 1n << bits;
  let sum = term;
  for (let k = 1n; term > 0n; k += 1n) {
    term = ((term * small) >> bits) / k;
    sum += term;
  }
  for (let k = 0n; k < halvings; k += 1n) sum = (sum * sum) >> bits;
  return sum;
}

/** Return ln(y) for y = value / 2^bits > 1, as a multiple of 2^-bits: Halley's steps from the double nearby. */
function fixedLog(value, bits) {
  const shift = BigInt(value.toString(2).length) - bits;
  const rest = shift > 0n ? value >> shift : value; // y = rest * 2^shift with rest about 1
  const guess = Math.log(Number(rest >> (bits - 60n)) * 2 ** -60) + Number(shift > 0n ? shift : 0n) * Math.LN2;
  let log = BigInt(Math.max(0, Math.round(guess * 2 ** 40))) << (bits - 40n);
  for (let good = 30n; good < 2n * bits; good *= 3n) {
    const power = fixedExp(log, bits);
    log += ((2n * (value - power)) << bits) / (value + power);
    if (log < 0n) log = 0n;
  }
  return log;
}

/** A word followed by as many further random bits as are asked for. */
class Bits {
  constructor(high, low, source) {
    this.word = (BigInt(high) << 32n) | BigInt(low);
    this.count = 64n;
    this.source = source;
  }

  more() {
    this.source.next();
    this.word = (this.word << 64n) | (BigInt(this.source.high) << 32n) | BigInt(this.source.low);
    this.count += 64n;
  }
}

/**
 * Decide U < theta exactly, U being the word followed by as many further bits as needed, and theta the share of the far
 * anchor at position top / bottom: (e^(L t) - 1) / (e^a - 1) with L = 2 ln((1 + e^a) / 2), mirrored beyond the middle.
 */
function exactFlip(top, bottom, ratio, high, low, source) {
  const bits = new Bits(high, low, source);
  return untilDecided((attempt) => {
    if (attempt > 0) bits.more();
    const places = bits.count + 192n;
    const one = 1n << places;
    const error = 1n << 96n; // of theta in units of 2^-places: the functions above lose far fewer than 96 places
    const beyond = 2n * top > bottom;
    const near = ((beyond ? bottom - top : top) << places) / bottom;
    let share = near;
    if (ratio > 0) {
      const a = (toWhole(ratio) << places) >> 1074n;
      const power = fixedExp(a, places);
      const length = 2n * fixedLog((one + power) / 2n, places);
      share = ((fixedExp((length * near) >> places, places) - one) << places) / (power - one);
    }
    if (beyond) share = one - share;
    const scale = places - bits.count;
    if (share - error >= (bits.word + 1n) << scale) return true;
    if (share + error <= bits.word << scale) return false;
    return undefined;
  });
}

/** Decide one draw from whole numbers: the word, then as many further bits as it takes. */
function exactPlace(whole, high, low, source) {
  const total = whole.reduce((a, b) => a + b, 0n);
  const bits = new Bits(high, low, source);
  return untilDecided((attempt) => {
    if (attempt > 0) bits.more();
    let running = 0n;
    for (let k = 0; k < whole.length; k++) {
      running += whole[k];
      const edge = running << bits.count;
      if (bits.word * total < edge) return (bits.word + 1n) * total <= edge ? k : undefined;
    }
    return undefined;
  });
}

/** Round to the nearest whole number, halves to even, as Python does. */
function rint(value) {
  const floor = Math.floor(value);
  const above = value - floor;
  if (above < 0.5) return floor;
  if (above > 0.5) return floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

// ---------------------------------------------------------------------------------------------------- balls.js

/**
 * Balls of whole numbers: a number known to lie in [m - r, m + r] 2^-places, and what can be computed from such numbers. Every
 * function here gives a ball that holds the true result; functions of fixed numbers are computed with 64 places more.
 */


const GUARD = 64n;

/** The bits read so far leave more than one answer. */
const UNDECIDED = Symbol("undecided");

const sizeOf = (value) => (value < 0n ? -value : value);
const bitsOf = (value) => {
  const hexadecimal = value.toString(16);
  return BigInt(4 * (hexadecimal.length - 1) + 32 - Math.clz32(parseInt(hexadecimal[0], 16)));
};

/** Return the whole part of a square root. */
function wholeRoot(value) {
  if (value < 2n) return value;
  let guess = 1n << ((bitsOf(value) + 1n) / 2n + 1n);
  for (;;) {
    const next = (guess + value / guess) >> 1n;
    if (next >= guess) return guess;
    guess = next;
  }
}

/** Return atan(1/n) or artanh(1/n) in units of 2^-places. */
function inverseSeries(n, places, sign) {
  let power = (1n << places) / n;
  let sum = power;
  for (let k = 3n; power !== 0n; k += 2n) {
    power = (sign * power) / (n * n);
    sum += power / k;
  }
  return sum;
}

/** Arithmetic of balls with a given number of binary places. */
class Balls {
  constructor(places) {
    this.places = places;
    this.inner = places + GUARD;
    this.piInner = 4n * (4n * inverseSeries(5n, this.inner, -1n) - inverseSeries(239n, this.inner, -1n));
    this.logTwoInner = 2n * inverseSeries(3n, this.inner, 1n);
    this.pi = this.outer(this.piInner);
    this.one = { m: 1n << places, r: 0n };
  }

  outer(value) {
    return { m: value >> GUARD, r: 4n };
  }

  /** Return the ball of a fraction. */
  fraction(top, bottom) {
    return { m: (top << this.places) / bottom, r: 1n };
  }

  /** Return the ball of a double. */
  double(value) {
    return this.fraction(toWhole(value), 1n << 1074n);
  }

  /** Return the uniforms whose first bits are these. */
  uniform(digits, bits) {
    return { m: (2n * digits + 1n) << (this.places - bits - 1n), r: 1n << (this.places - bits - 1n) };
  }

  add(a, b) {
    return { m: a.m + b.m, r: a.r + b.r };
  }

  subtract(a, b) {
    return { m: a.m - b.m, r: a.r + b.r };
  }

  negative(a) {
    return { m: -a.m, r: a.r };
  }

  multiply(a, b) {
    return { m: (a.m * b.m) >> this.places, r: ((sizeOf(a.m) * b.r + sizeOf(b.m) * a.r + a.r * b.r) >> this.places) + 2n };
  }

  times(a, whole) {
    return { m: a.m * whole, r: a.r * sizeOf(whole) };
  }

  divide(a, b) {
    const least = sizeOf(b.m) - b.r;
    if (least <= 0n) throw UNDECIDED;
    const wrong = ((sizeOf(a.m) * b.r + sizeOf(b.m) * a.r) << this.places) / (sizeOf(b.m) * least);
    return { m: (a.m << this.places) / b.m, r: wrong + 2n };
  }

  root(a) {
    if (a.m + a.r < 0n) throw UNDECIDED;
    const low = wholeRoot((a.m > a.r ? a.m - a.r : 0n) << this.places);
    const high = wholeRoot((a.m + a.r) << this.places) + 1n;
    return { m: (low + high) >> 1n, r: ((high - low) >> 1n) + 1n };
  }

  log(a) {
    if (a.m <= a.r) throw UNDECIDED;
    const shift = bitsOf(a.m) - this.places;
    const value = shift > 0n ? (a.m << GUARD) >> shift : (a.m << GUARD) << -shift; // from 1/2 to 1
    const one = 1n << this.inner;
    const s = ((value - one) << this.inner) / (value + one);
    const square = (s * s) >> this.inner;
    let power = s;
    let sum = s;
    for (let k = 3n; power !== 0n && power !== -1n; k += 2n) {
      power = (power * square) >> this.inner;
      sum += power / k;
    }
    const { m } = this.outer(2n * sum + shift * this.logTwoInner);
    return { m, r: (a.r << this.places) / (a.m - a.r) + 8n };
  }

  exp(a) {
    if (a.r >= this.one.m) throw UNDECIDED;
    const value = a.m << GUARD;
    let doublings = value / this.logTwoInner;
    if (value < 0n) doublings -= 1n;
    if (doublings > 1n << 20n) throw UNDECIDED;
    const x = value - doublings * this.logTwoInner; // from 0 to ln 2
    let term = 1n << this.inner;
    let sum = term;
    for (let k = 1n; term !== 0n; k += 1n) {
      term = ((term * x) >> this.inner) / k;
      sum += term;
    }
    const shift = GUARD - doublings;
    const m = shift > 0n ? sum >> shift : sum << -shift;
    return { m, r: ((2n * m * a.r) >> this.places) + 8n + (doublings > 0n ? 1n << doublings : 0n) };
  }

  /** Return sine and cosine. */
  circle(a) {
    const turn = 2n * this.piInner;
    let x = (a.m << GUARD) % turn;
    if (x > this.piInner) x -= turn;
    if (x < -this.piInner) x += turn;
    const square = (x * x) >> this.inner;
    const sums = [];
    for (const start of [1n, 0n]) {
      let term = start ? x : 1n << this.inner;
      let sum = term;
      for (let k = start + 1n; sizeOf(term) > 1n; k += 2n) {
        term = -((term * square) >> this.inner) / (k * (k + 1n));
        sum += term;
      }
      sums.push({ m: sum >> GUARD, r: a.r + 8n });
    }
    return sums;
  }

  /** Return the angle of the vector (x, y), up to whole turns. */
  angle(y, x) {
    const [height, width] = [sizeOf(y.m), sizeOf(x.m)];
    const length = wholeRoot(height * height + width * width);
    const moved = x.r + y.r;
    if (length <= 2n * moved + 2n) throw UNDECIDED;
    const [less, more] = height > width ? [width, height] : [height, width];
    const one = 1n << this.inner;
    let q = (less << this.inner) / more;
    for (let k = 0; k < 3; k++) q = (q << this.inner) / (one + wholeRoot((one << this.inner) + q * q)); // half the angle
    const square = (q * q) >> this.inner;
    let power = q;
    let sum = q;
    for (let k = 3n; power !== 0n && power !== -1n; k += 2n) {
      power = -((power * square) >> this.inner);
      sum += power / k;
    }
    let angle = 8n * sum;
    if (height > width) angle = this.piInner / 2n - angle;
    if (x.m < 0n) angle = this.piInner - angle;
    const { m } = this.outer(y.m < 0n ? -angle : angle);
    return { m, r: ((height * x.r + width * y.r) << this.places) / (length * (length - moved)) + 8n };
  }

  below(a, b) {
    if (a.m + a.r < b.m - b.r) return true;
    if (a.m - a.r > b.m + b.r) return false;
    throw UNDECIDED;
  }

  /** Return the nearest whole number of all numbers in a ball. */
  cell(a) {
    const half = 1n << (this.places - 1n);
    const low = (a.m - a.r + half) >> this.places;
    if (low !== (a.m + a.r + half) >> this.places) throw UNDECIDED;
    return low;
  }
}

/** Return a whole number over 2^places as a double, within UNIT of itself. */
function nearest(value, places) {
  const bits = value.toString(2).length;
  const shift = Math.max(0, bits - 64); // the first 64 bits are enough
  return Number(value >> BigInt(shift)) * 2 ** (shift - places);
}

/** Return what the fewest words of every uniform decide: `attempt(balls, words)` until it does not throw UNDECIDED. */
function settled(attempt, extra) {
  return untilDecided((tries) => {
    const words = BigInt(tries + 1);
    if (words > 64n) return undefined;
    try {
      return attempt(new Balls(64n * words + 96n + extra), words);
    } catch (error) {
      if (error !== UNDECIDED) throw error;
      return undefined;
    }
  });
}

// ---------------------------------------------------------------------------------------------------- conversions.js

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
function deltaOf(mu, epsilon, form) {
  checkAsked(mu, epsilon);
  if (mu === 0) return 0;
  return form === "gaussian" ? gaussianDelta(mu, epsilon) : renyiDelta(mu, epsilon);
}

function checkDelta(delta) {
  const good = typeof delta === "number" && delta >= SMALLEST_DELTA && delta < 1;
  refuseOption(!good, "`delta` must lie between 1e-300 and 1, such as 1e-6: this guarantee needs a delta.");
}

/** Return an epsilon at which this delta is proven: the least, up to the last digits. */
function epsilonOf(mu, delta, form) {
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
function muOf(epsilon, delta, form) {
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

// ---------------------------------------------------------------------------------------------------- concentrated.js

/** The concentrated guarantee: Renyi divergences that grow with the square of the distance. It is never a pure one. */


const NOT_PURE = "it is approximate, and no factor holds for every report. Ask for `rho`, or for `epsilonAt(distance, delta)`.";

/** Refuse to say something pure about a concentrated guarantee. */
function notPure(name) {
  throw new NotPure(`a concentrated guarantee has no \`${name}\`: ${NOT_PURE}`);
}

/**
 * D_a(M(x) || M(x')) <= a rho d(x, x')^2 for every order a > 1 (Renyi): how likely a large ratio is, never how large one can be. It has no
 * epsilon per unit, and asking for one is an error (`NotPure`); at a distance and with a delta it has one. Rho is per squared unit, and
 * rho adds up: many reports of one person keep the sum.
 */
class ConcentratedGuarantee {
  /** Guarantees come with their mechanisms. @private */
  constructor({ rho, form, radius, unit, basis, metric }) {
    /** @type {number} */
    this.rho = rho;
    /** @type {"gaussian" | "renyi"} */
    this.form = form;
    /** @type {number | null} */
    this.radius = radius;
    /** The unit of the distances. @type {string} */
    this.unit = unit;
    /** @type {"theorem" | "certificate"} */
    this.basis = basis;
    /** @type {string} */
    this.metric = metric;
    Object.freeze(this);
  }

  /** There is none: reading it is an error. @type {never} */
  get epsilon() {
    return notPure("epsilon");
  }

  /** There is none: reading it is an error. @type {never} */
  get slack() {
    return notPure("slack");
  }

  /** Return mu, rounded up: the distance in standard deviations of the noise. */
  #apart(distance) {
    optionNumber(distance, "distance");
    refuseOption(this.radius !== null && distance > this.radius, "this distance is beyond the radius of the guarantee: there is no guarantee there.");
    return distance * Math.sqrt(2 * this.rho) * (1 + 2 ** -50);
  }

  /**
   * Return an epsilon with which Pr[M(x) in S] <= e^epsilon Pr[M(x') in S] + delta is proven, for all sets S of reports and secrets up to
   * this far apart; rounded up.
   * @param {number} distance
   * @param {number} delta
   * @returns {number}
   */
  epsilonAt(distance, delta) {
    return epsilonOf(this.#apart(distance), delta, this.form);
  }

  /**
   * Return a delta that is proven for this epsilon and secrets up to this far apart; rounded up.
   * @param {number} distance
   * @param {number} epsilon
   * @returns {number}
   */
  deltaAt(distance, epsilon) {
    return deltaOf(this.#apart(distance), optionNumber(epsilon, "epsilon"), this.form);
  }

  /**
   * Return a distance up to which (epsilon, delta) is proven; rounded down.
   * @param {number} epsilon
   * @param {number} delta
   * @returns {number}
   */
  distanceAt(epsilon, delta) {
    const found = (muOf(optionNumber(epsilon, "epsilon"), delta, this.form) / Math.sqrt(2 * this.rho)) * (1 - 1e-12);
    return this.radius === null ? found : Math.min(found, this.radius);
  }

  /**
   * Return the guarantee of `times` reports of one person together: rho adds up.
   * @param {number} times
   * @returns {ConcentratedGuarantee}
   */
  composed(times) {
    refuseOption(!Number.isSafeInteger(times) || times < 1, "`times` must be a whole number of at least 1.");
    return new ConcentratedGuarantee({ ...this, rho: doubleAbove(toWhole(this.rho) * BigInt(times), 1074) });
  }
}

// ---------------------------------------------------------------------------------------------------- constants.js

/** What both languages share: written by build.js from src/metricdp/constants.json and messages.json; change those. */

const CONSTANTS = {
  "format": "metricdp-mechanism",
  "version": 2,
  "signature_purpose": "metricdp-mechanism-signature-1",
  "header_limit": 4194304,
  "licence_limit": 10000,
  "storages": [
    "dense",
    "sparse",
    "quantised"
  ],
  "fewest_bits": 8,
  "most_bits": 52,
  "largest_matrix": 536870912,
  "largest_count": 1024,
  "largest_parts": 64,
  "largest_metric_terms": 1024,
  "deepest_metric": 16,
  "largest_dimension": 65536,
  "largest_nodes": 4194304,
  "largest_coordinate": 1e+300,
  "largest_rate": 1e+100,
  "largest_ratio": 1000000,
  "smallest_ratio": 1e-290,
  "largest_cell": 2251799813685248,
  "largest_drawing_error": 0.01,
  "rounding": 1e-9,
  "earth_radius_km": 6371.009,
  "metres": {
    "m": "1",
    "km": "1000",
    "mi": "1609.344",
    "ft": "0.3048"
  },
  "weak_keys": [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"
  ]
};

const MESSAGES = {
  "digits": {
    "metres": 3,
    "distance": 4,
    "epsilon": 6,
    "audited": 9,
    "slack": 4,
    "factor": 3,
    "loss": 4
  },
  "largest_factor": 1000000,
  "beyond_largest": "more than a million",
  "lengths": [
    "m",
    "km",
    "mi",
    "ft"
  ],
  "things": {
    "length": "places",
    "other": "secrets"
  },
  "plural": {
    "hop": "hops",
    "level": "levels"
  },
  "counted": {
    "hop": [
      1,
      2,
      3,
      5,
      10
    ]
  },
  "shares": [
    0.1,
    0.5,
    1,
    2,
    5,
    10
  ],
  "scale": [
    {
      "below": 1.13,
      "words": "hardly better than a coin toss: a guess is right at most {sure} of the time"
    },
    {
      "below": 9,
      "words": "a guess is right at most {sure} of the time"
    },
    {
      "below": 65,
      "words": "a guess may be right {sure} of the time: little protection"
    },
    {
      "below": null,
      "words": "may be told apart: by design"
    }
  ],
  "outside": "not protected: beyond the reach of the guarantee",
  "per": {
    "unit": " per {unit}",
    "none": " per unit of distance"
  },
  "promise": {
    "whole": "epsilon {epsilon}{per} ({metric}){slack}{within}, by {basis}",
    "slack": ", plus a slack of {slack}",
    "within": ", only between secrets within {radius}",
    "within_part": ", only between secrets of one part of the policy (up to {radius} apart): reports may reveal the part"
  },
  "short": {
    "reach": "One report shifts the odds between two {things} up to {reach} apart{along} by at most a factor of two. Every further report adds to that.{outside}",
    "counted": "One report shifts the odds between two neighbours{along} by at most a factor of {factor}, and between {things} farther apart by at most that factor for every step on the way. Every further report adds to that.{outside}",
    "slack": "The slack alone allows a factor of {factor} between two {things} side by side: little protection.{outside}",
    "outside": " Two {things} farther apart than {radius} are not protected from each other.",
    "outside_part": " Two {things} in different parts of the policy, or farther apart than {radius}, are not protected from each other. This is by design: a report may reveal the part of a secret.",
    "nothing": "This gives no guarantee: it is for comparisons and must not protect data.",
    "part": "Part {number}, while the others stay the same: {sentence}"
  },
  "meaning": {
    "head": "What epsilon means: any report is at most this many times likelier from one of two {things} than from the other. Someone who must guess between them, at even odds, is right at most this often.",
    "row": "  {distance} apart: factor {factor}   {words}"
  },
  "concentrated": {
    "delta": 0.000001,
    "digits": 4,
    "per": {
      "unit": " per {unit}^2",
      "none": " per squared unit of distance"
    },
    "whole": "rho {rho}{per} ({metric}){within}, concentrated: approximate and not pure, by {basis}",
    "short": "Approximate, not pure: for two {things} up to {reach} apart{along}, any set of reports is at most twice as likely from one as from the other, plus a probability of {delta} (delta) with which a report may reveal more. Every further report adds to that.{outside}",
    "head": "What rho means: at delta {delta}, any set of reports is at most this many times likelier from one of two {things} than from the other, plus delta. Someone who must guess between them, at even odds, is right at most this often, on average over the reports.",
    "row": "  {distance} apart: factor {factor}   a guess is right at most {sure} of the time",
    "beyond": "  {distance} apart: not protected: beyond the reach of the guarantee",
    "together": "Rho adds up: {rows} x {rho} = {total}{per}. With all of them, for {things} up to {reach} apart{along}, no set of reports is more than twice as likely from one as from the other, plus delta {delta}.",
    "person": "{count} persons by {column}; the one with the most has {rows} rows. {together}",
    "twice": "A second release of this file costs every row as much again. {together}",
    "wish": "Requested: {things} {distance} apart{along} differ by at most a factor of {asked}, except for delta {delta}. Guaranteed: a factor of {kept} there, except for that delta; approximate, not pure."
  }
};

// ---------------------------------------------------------------------------------------------------- declared.js

/** The fields of a mechanism file: written by build.js from fields.json, which tools/pages.py writes from the declarations. */

/** @typedef {"bag-laplace" | "direction-noise" | "gaussian-noise" | "hyperbolic-laplace" | "interpolated" | "local" | "kernel" | "vector-laplace" | "matrix" | "nearest" | "outline-laplace" | "product" | "projected-laplace" | "spherical-laplace" | "spherical-gaussian" | "streets"} Kind */

const DECLARED = {
  "metric": {
    "Lp": {"since": 1, "fields": {"p": {"type": "number", "least": 1, "infinite": true}, "unit": {"type": "text", "longest": 100}}},
    "Mahalanobis": {"since": 1, "fields": {"covariance": {"type": "array", "sides": 2, "of": "float"}, "unit": {"type": "text", "longest": 100}}},
    "Haversine": {"since": 1, "fields": {"unit": {"type": "text", "choices": ["m", "km", "mi", "ft"], "longest": 10000}}},
    "ShortestPath": {"since": 1, "along": [" along the roads", " in the graph"], "fields": {"edges": {"type": "array", "sides": 2, "of": "whole"}, "lengths": {"type": "array", "sides": 1, "of": "float"}, "nodes": {"type": "whole", "least": 1, "most": 4194304}, "one_way": {"type": "text", "choices": ["open", "longer"], "longest": 10000}, "unit": {"type": "text", "longest": 100}}},
    "StreetPath": {"since": 1, "along": [" along the streets", " along the streets"], "fields": {"network": {"type": "part", "named": ["ShortestPath"], "of": "metric"}}},
    "PolicyGraph": {"since": 2, "along": [" along the edges of the policy", " in the policy"], "policy": true, "fields": {"network": {"type": "part", "named": ["ShortestPath"], "of": "metric"}, "apart": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "Precomputed": {"since": 1, "fields": {"distances": {"type": "array", "sides": 2, "of": "float"}, "unit": {"type": "text", "longest": 100}}},
    "Hamming": {"since": 1, "fields": {"unit": {"type": "text", "longest": 100}}},
    "Levenshtein": {"since": 1, "fields": {"unit": {"type": "text", "longest": 100}}},
    "Angular": {"since": 1, "fields": {"unit": {"type": "text", "choices": ["rad", "deg"], "longest": 10000}}},
    "Hyperbolic": {"since": 1, "fields": {"unit": {"type": "text", "longest": 100}}},
    "Temporal": {"since": 1, "fields": {"period": {"type": "maybe", "of": {"type": "number", "least": 1e-100, "most": 1e+100}}, "unit": {"type": "text", "longest": 100}}},
    "Weighted": {"since": 1, "fields": {"parts": {"type": "many", "least": 1, "most": 1024, "of": {"type": "group", "of": [{"type": "part", "of": "metric"}, {"type": "many", "least": 1, "most": 65536, "of": {"type": "whole", "least": 0, "most": 65535}}, {"type": "number", "least": 1e-100, "most": 1e+100}]}}, "unit": {"type": "text", "longest": 100}}},
    "Wasserstein": {"since": 1, "fields": {"ground": {"type": "array", "sides": 0, "of": "float"}, "unit": {"type": "text", "longest": 100}}},
    "WordMovers": {"since": 1, "fields": {"vectors": {"type": "array", "sides": 2, "of": "float"}, "ground": {"type": "part", "of": "metric"}, "unit": {"type": "text", "longest": 100}}},
    "Frechet": {"since": 1, "fields": {"ground": {"type": "part", "of": "metric"}, "dimension": {"type": "whole", "least": 1, "most": 65536}, "unit": {"type": "text", "longest": 100}}},
    "Bags": {"since": 2, "fields": {"ground": {"type": "part", "of": "metric"}, "dimension": {"type": "whole", "least": 1, "most": 65536}, "unit": {"type": "text", "longest": 100}}}
  },
  "space": {
    "finite": {"since": 1, "fields": {"metric": {"type": "part", "of": "metric"}, "points": {"type": "array", "sides": 0, "least": -1e+300, "most": 1e+300, "of": "points"}, "coordinates": {"type": "array", "sides": 0, "least": -1e+300, "most": 1e+300, "of": "points"}, "ground": {"type": "part", "of": "metric"}, "columns": {"type": "many", "least": 0, "most": 65536, "of": {"type": "text", "longest": 1000}}}},
    "box": {"since": 1, "fields": {"metric": {"type": "part", "of": "metric"}, "lower": {"type": "many", "least": 1, "most": 65536, "of": {"type": "number", "least": -1e+300, "most": 1e+300}}, "upper": {"type": "many", "least": 1, "most": 65536, "of": {"type": "number", "least": -1e+300, "most": 1e+300}}}},
    "unbounded": {"since": 1, "fields": {"metric": {"type": "part", "of": "metric"}, "dimension": {"type": "whole", "least": 1, "most": 65536}}},
    "sphere": {"since": 2, "fields": {"metric": {"type": "part", "of": "metric"}, "dimension": {"type": "whole", "least": 2, "most": 65536}, "lengths": {"type": "text", "choices": ["unit", "any"], "longest": 10000}}},
    "streets": {"since": 1, "fields": {"metric": {"type": "part", "named": ["StreetPath"], "of": "metric"}}}
  },
  "mechanism": {
    "bag-laplace": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "direction-noise": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["sphere"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "gaussian-noise": {"since": 2, "promise": "concentrated", "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "sigma": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "hyperbolic-laplace": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "interpolated": {"since": 1, "fields": {"inputs": {"type": "part", "named": ["box"], "of": "space"}, "outputs": {"type": "part", "named": ["finite"], "of": "space"}, "axes": {"type": "many", "least": 1, "most": 8, "of": {"type": "array", "sides": 1, "of": "float"}}, "ratios": {"type": "many", "least": 1, "most": 8, "of": {"type": "array", "sides": 1, "least": 0, "most": 1000000.0, "of": "float"}}, "matrix": {"type": "table"}, "rule": {"type": "text", "choices": ["exact", "direction", "log", "relaxed"], "longest": 10000}}},
    "local": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["finite"], "of": "space"}, "outputs": {"type": "part", "named": ["finite"], "of": "space"}, "lengths": {"type": "array", "sides": 2, "most": 65536, "of": "narrow"}, "columns": {"type": "array", "sides": 1, "most": 65535, "of": "narrow"}, "values": {"type": "array", "sides": 1, "least": 0, "most": 3.4028234663852886e+38, "coded": true, "of": "single"}, "background": {"type": "array", "sides": 1, "least": 0, "most": 3.4028234663852886e+38, "of": "single"}}},
    "kernel": {"since": 2, "fields": {"space": {"type": "part", "named": ["finite"], "of": "space"}, "inner": {"type": "number", "least": 1e-100, "most": 1e+100}, "cap": {"type": "maybe", "of": {"type": "number", "least": 1e-100, "most": 1e+300}}, "log_weights": {"type": "maybe", "of": {"type": "array", "sides": 1, "least": -1000000.0, "most": 1000000.0, "of": "float"}}, "log_normalisers": {"type": "array", "sides": 1, "least": -1000000.0, "most": 1000000.0, "of": "float"}, "nearest": {"type": "maybe", "of": {"type": "array", "sides": 1, "least": 0, "most": 1e+300, "of": "float"}}}},
    "vector-laplace": {"since": 1, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "matrix": {"since": 1, "fields": {"inputs": {"type": "part", "named": ["finite"], "of": "space"}, "outputs": {"type": "part", "named": ["finite"], "of": "space"}, "matrix": {"type": "table"}}},
    "nearest": {"since": 1, "fields": {"inputs": {"type": "part", "named": ["finite"], "of": "space"}, "outputs": {"type": "part", "named": ["finite"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "outline-laplace": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "product": {"since": 2, "fields": {"parts": {"type": "many", "least": 2, "most": 64, "of": {"type": "part", "of": "mechanism"}}}},
    "projected-laplace": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}, "matrix": {"type": "array", "sides": 2, "least": -1e+300, "most": 1e+300, "of": "float"}}},
    "spherical-laplace": {"since": 1, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "spherical-gaussian": {"since": 2, "promise": "concentrated", "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "sigma": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "streets": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["streets"], "of": "space"}, "outputs": {"type": "part", "named": ["finite"], "of": "space"}, "counts": {"type": "array", "sides": 1, "least": 1, "most": 536870912, "of": "whole"}, "ratios": {"type": "array", "sides": 1, "least": 0, "most": 1000000.0, "of": "float"}, "matrix": {"type": "table"}}}
  },
  "pure": {
    "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100},
    "slack": {"type": "number", "least": 0},
    "radius": {"type": "maybe", "of": {"type": "number", "above": 0}},
    "unit": {"type": "text", "longest": 100},
    "basis": {"type": "text", "choices": ["theorem", "certificate", "none"], "longest": 10000},
    "metric": {"type": "part", "of": "metric"}
  },
  "concentrated": {
    "rho": {"type": "number", "least": 1e-100, "most": 1e+100},
    "form": {"type": "text", "choices": ["gaussian", "renyi"], "longest": 10000},
    "radius": {"type": "maybe", "of": {"type": "number", "above": 0}},
    "unit": {"type": "text", "longest": 100},
    "basis": {"type": "text", "choices": ["theorem", "certificate"], "longest": 10000},
    "metric": {"type": "part", "of": "metric"}
  },
  "certificate": {
    "loss": {"type": "number"},
    "lower_bound": {"type": "number"},
    "worst_pair": {"type": "many", "least": 0, "most": 3, "of": {"type": "whole", "least": 0, "most": 9007199254740991}},
    "verified_pairs": {"type": "whole", "least": 0, "most": 9007199254740991},
    "method": {"type": "text", "longest": 10000},
    "seconds": {"type": "number", "least": 0},
    "epsilon": {"type": "number", "least": 0, "infinite": true},
    "note": {"type": "text", "longest": 10000},
    "objective": {"type": "text", "choices": ["expected", "worst"], "longest": 10000}
  },
  "later": {
    "radius": null,
    "note": "",
    "objective": null
  }
};

// ---------------------------------------------------------------------------------------------------- messages.js

/** Every sentence about a guarantee, from the same templates as Python's, rounded so that each stays true. */


const NOISE = 10n ** 12n; // doubles carry an error of their own: 2.0000000000000004 is shown as 2, not as 2.01
const ONE = 1n << 1074n;

/** Put values into a template: {name} becomes the value of that name. */
function fill(template, values = {}) {
  return template.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** Return a number with `digits` significant digits, without trailing zeros; rounded "nearest", "up" or "down". */
function numberWords(value, digits, rounding = "nearest") {
  if (!Number.isFinite(value)) return value > 0 ? "infinitely much" : Number.isNaN(value) ? "not a number" : "minus infinity";
  if (value === 0) return "0";
  const size = toWhole(Math.abs(value));
  let power = decimalPower(size) - digits + 1; // the last digit shown stands for 10^power
  const noise = rounding === "nearest" ? 0n : (rounding === "up") === value > 0 ? -1n : 1n;
  const top = size * (NOISE + noise) * (power < 0 ? 10n ** BigInt(-power) : 1n);
  const bottom = ONE * NOISE * (power > 0 ? 10n ** BigInt(power) : 1n);
  let rounded = top / bottom;
  const rest = top % bottom;
  const away = (rounding === "up") === value > 0;
  if (rounding === "nearest") {
    if (2n * rest > bottom || (2n * rest === bottom && rounded % 2n === 1n)) rounded += 1n;
  } else if (away && rest > 0n) rounded += 1n;
  if (rounded === 0n) return "0";
  let text = rounded.toString();
  while (text.endsWith("0")) {
    text = text.slice(0, -1);
    power += 1;
  }
  return (value < 0 ? "-" : "") + placed(text, power);
}

/** Return floor(log10(size / 2^1074)) for a positive whole number. */
function decimalPower(size) {
  let power = Math.floor((size.toString(2).length - 1075) * Math.log10(2));
  const above = (exponent) =>
    exponent >= 0 ? size >= ONE * 10n ** BigInt(exponent) : size * 10n ** BigInt(-exponent) >= ONE;
  while (above(power + 1)) power += 1;
  while (!above(power)) power -= 1;
  return power;
}

/** Return digits times 10^power, with an exponent below 1e-6 and from 1e21 on. */
function placed(digits, power) {
  const exponent = digits.length - 1 + power;
  if (exponent < -6 || exponent >= 21) {
    return `${digits[0]}${digits.length > 1 ? `.${digits.slice(1)}` : ""}e${exponent}`;
  }
  if (power >= 0) return digits + "0".repeat(power);
  if (exponent >= 0) return `${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
  return `0.${"0".repeat(-exponent - 1)}${digits}`;
}

/** Return a distance as people say it: 0.2 km is 200 m. */
function distanceWords(value, unit, rounding = "nearest") {
  const { digits } = MESSAGES;
  if (unit === "km" && value > 0 && value < 1) return `${numberWords(1000 * value, digits.metres, rounding)} m`;
  const many = value !== 1 && Object.hasOwn(MESSAGES.plural, unit) ? MESSAGES.plural[unit] : unit;
  return `${numberWords(value, digits.distance, rounding)} ${many}`.trimEnd();
}

/**
 * Return a distance for people: 0.2 km is 200 m.
 * @param {number} distance
 * @param {string} unit
 * @returns {string}
 */
function showDistance(distance, unit) {
  return distanceWords(distance, unit);
}

/** Return a factor that something is at most. */
function factorWords(value) {
  return value > MESSAGES.largest_factor ? MESSAGES.beyond_largest : numberWords(value, MESSAGES.digits.factor, "up");
}

const shareWords = (value) => `${numberWords(100 * value, value < 0.985 ? 2 : 3, "up")} %`;
const things = (unit) => MESSAGES.things[MESSAGES.lengths.includes(unit) ? "length" : "other"];
const declaredMetric = (name) => (Object.hasOwn(DECLARED.metric, name) ? DECLARED.metric[name] : {});
const along = ({ metric, unit }) => {
  const [lengths, others] = declaredMetric(metric).along ?? ["", ""];
  return MESSAGES.lengths.includes(unit) ? lengths : others;
};

/** Return the distance up to which reports differ by at most a factor: (ln(ratio) - slack) / epsilon, within the radius. */
function reachOf({ epsilon, slack, radius }, ratio = 2) {
  const near = Math.max(0, Math.log(ratio) - slack) / epsilon;
  return radius === null ? near : Math.min(near, radius);
}

/** Return exp(epsilon * d + slack), infinite beyond the radius of a guarantee. */
function largestFactor({ epsilon, slack, radius }, apart) {
  if (radius !== null && apart > radius) return Infinity;
  const exponent = epsilon * apart + slack;
  return exponent < 700 ? Math.exp(exponent) : Infinity;
}

// across the parts of a policy graph nothing is hidden: the name of the words that say so
const inPart = (metric, words) => (declaredMetric(metric).policy ? `${words}_part` : words);

/** Return what is not protected because of the radius of a guarantee. */
function outside({ radius, unit, metric }) {
  if (radius === null) return "";
  return fill(MESSAGES.short[inPart(metric, "outside")], { things: things(unit), radius: distanceWords(radius, unit, "down") });
}

/** Return the guarantee in numbers: epsilon 10 per km (Haversine), by theorem. */
function guaranteeNumbers(guarantee) {
  const { digits, promise: words, per } = MESSAGES;
  const { epsilon, slack, unit, radius, metric, basis } = guarantee;
  return fill(words.whole, {
    epsilon: numberWords(epsilon, digits.epsilon, "up"),
    per: fill(per[unit ? "unit" : "none"], { unit }),
    metric,
    slack: slack ? fill(words.slack, { slack: numberWords(slack, digits.slack, "up") }) : "",
    within: radius === null ? "" : fill(words[inPart(metric, "within")], { radius: distanceWords(radius, unit, "down") }),
    basis,
  });
}

/** Return the guarantee as one sentence without Greek. */
function shortWords(guarantee) {
  const { short: words } = MESSAGES;
  if (guarantee.basis === "none") return words.nothing;
  const near = reachOf(guarantee);
  const kind = near <= 0 ? "slack" : isCounted(guarantee.unit) ? "counted" : "reach";
  return fill(words[kind], {
    things: things(guarantee.unit),
    reach: distanceWords(near, guarantee.unit, "down"),
    factor: factorWords(largestFactor(guarantee, kind === "slack" ? 0 : 1)),
    along: along(guarantee),
    outside: outside(guarantee),
  });
}

/** Return the guarantee of a product: a sentence for every part. */
function shortOfParts(guarantees) {
  return guarantees.map((part, k) => fill(MESSAGES.short.part, { number: k, sentence: shortWords(part) })).join(" ");
}

/** Return what a factor means for somebody who has to guess between two secrets at even odds: f / (1 + f). */
function meaning(ratio) {
  const step = MESSAGES.scale.find(({ below }) => below === null || ratio < below);
  return fill(step.words, { sure: shareWords(ratio / (1 + ratio)) });
}

const isCounted = (unit) => Object.hasOwn(MESSAGES.counted, unit);

/** Return {distance, factor, words} at round distances around the one where reports may differ by a factor of two. */
function meanings(guarantee) {
  return distancesOf(guarantee).map((apart) => {
    const ratio = largestFactor(guarantee, apart);
    const beyond = guarantee.radius !== null && apart > guarantee.radius;
    return {
      distance: distanceWords(apart, guarantee.unit),
      factor: beyond ? "any" : factorWords(ratio),
      words: beyond ? MESSAGES.outside : meaning(ratio),
    };
  });
}

function distancesOf({ epsilon, unit, radius }) {
  if (isCounted(unit)) return MESSAGES.counted[unit].filter((steps) => radius === null || steps <= radius);
  return stepsAround(Math.LN2 / epsilon);
}

/** Return round distances around one. */
function stepsAround(distance) {
  const power = 10 ** Math.floor(Math.log10(distance));
  const scale = Math.max(...[1, 2, 5].map((step) => step * power).filter((step) => step <= distance * (1 + 1e-12)));
  return MESSAGES.shares.map((part) => Number((part * scale).toPrecision(12)));
}

/** Return the line above the table that explains a guarantee. */
const meaningHead = (guarantee) => fill(MESSAGES.meaning.head, { things: things(guarantee.unit) });

/** Return the table that explains a guarantee, one line a distance. */
const meaningLines = (guarantee) => tableLines(meaningHead(guarantee), meanings(guarantee));

/** Return a table of meanings as lines, below its head. */
function tableLines(head, rows) {
  const line = ({ distance, factor, words }) =>
    fill(MESSAGES.meaning.row, { distance: distance.padStart(10), factor: factor.padStart(8), words });
  return [head, ...rows.map(line)];
}

// ---------------------------------------------------------------------------------------------------- approximate.js

/** Sentences about concentrated guarantees, which are approximate: each says so, at what distance, and with what delta. */


/** The delta that sentences are said with where nobody named another. */
const USUAL_DELTA = MESSAGES.concentrated.delta;

const DIGITS = MESSAGES.concentrated.digits + 2;
const perSquare = (unit) => fill(MESSAGES.concentrated.per[unit ? "unit" : "none"], { unit });

/** Return a delta, rounded up: 1e-6 below a thousandth. */
function deltaWords(value) {
  if (!(value > 0 && value < 1e-3)) return numberWords(value, 3, "up");
  const power = Math.floor(Math.log10(value) + 1e-9);
  const head = numberWords(value / 10 ** power, 3, "up");
  return head === "10" ? `1e${power + 1}` : `${head}e${power}`;
}

/** Return a rho with its unit, rounded up. */
const rhoWords = (rho, unit) => numberWords(rho, DIGITS, "up") + perSquare(unit);

/** Return the distance up to which a factor of two holds, but for the usual delta. */
const twiceAsLikely = (guarantee) => guarantee.distanceAt(Math.LN2, USUAL_DELTA);

/** Return the guarantee in numbers: rho 0.35 per km^2 (Haversine), concentrated: approximate and not pure. */
function concentratedNumbers(guarantee) {
  const { rho, unit, radius, metric, basis } = guarantee;
  const within = radius === null ? "" : fill(MESSAGES.promise.within, { radius: distanceWords(radius, unit, "down") });
  return fill(MESSAGES.concentrated.whole, { rho: numberWords(rho, DIGITS, "up"), per: perSquare(unit), metric, within, basis });
}

/** Return the guarantee as one sentence without Greek, but for delta. */
function concentratedShort(guarantee) {
  return fill(MESSAGES.concentrated.short, {
    things: things(guarantee.unit),
    reach: distanceWords(twiceAsLikely(guarantee), guarantee.unit, "down"),
    along: along(guarantee),
    delta: deltaWords(USUAL_DELTA),
    outside: outside(guarantee),
  });
}

/** Return {distance, factor, words} at round distances around that of a factor of two, with the usual delta. */
function concentratedMeanings(guarantee) {
  return stepsAround(twiceAsLikely(guarantee)).map((apart) => {
    const distance = distanceWords(apart, guarantee.unit);
    if (guarantee.radius !== null && apart > guarantee.radius) return { distance, factor: "any", words: MESSAGES.outside };
    const sure = shareWords(0.5 + 0.5 * guarantee.deltaAt(apart, 0)); // the advantage of the best test is delta at 0
    const factor = factorWords(Math.exp(guarantee.epsilonAt(apart, USUAL_DELTA)));
    return { distance, factor, words: `a guess is right at most ${sure} of the time` };
  });
}

/** Return the line above the table that explains a concentrated guarantee. */
function concentratedHead(guarantee) {
  return fill(MESSAGES.concentrated.head, { delta: deltaWords(USUAL_DELTA), things: things(guarantee.unit) });
}

/** Return the guarantee of `times` reports of one person together, as a sentence. */
function concentratedTogether(guarantee, times) {
  const all = guarantee.composed(times);
  return fill(MESSAGES.concentrated.together, {
    rows: times.toLocaleString("en-US"),
    rho: numberWords(guarantee.rho, DIGITS, "up"),
    total: numberWords(all.rho, DIGITS, "up"),
    per: perSquare(guarantee.unit),
    things: things(guarantee.unit),
    reach: distanceWords(twiceAsLikely(all), guarantee.unit, "down"),
    along: along(guarantee),
    delta: deltaWords(USUAL_DELTA),
  });
}

// ---------------------------------------------------------------------------------------------------- geolocation.js

/**
 * A stand-in for navigator.geolocation that only ever hands out protected positions.
 *
 * One fresh report is drawn per time window, whatever the app asks and wherever the person is; within the window the
 * same report is given again, so asking often does not average the noise away. Windows and not places: a report that
 * stayed the same as long as the person stays would tell when the person moves. Every window with a report spends
 * epsilon (or rho) once; after `perDay` reports the last one is repeated until the next day (with its own, old time). A clock that is
 * set back refreshes nothing: the report and the counts stay until the clock has caught up. Pages of one origin that are open
 * side by side take turns where the browser has locks, so that a window has one report for all of them. The same where something is
 * pruned within a window: its report stays, since another one for the same window would tell what was pruned.
 *
 * A position that the mechanism refuses (a finite one, away from its places) is answered with the same error for the rest of
 * the window: it tells that the person was outside, once in a window, and nothing more.
 *
 * Only the report, its time and the counts are stored (in `storage`); the true position never is, and no error holds it.
 */


/** What the app is told where there is no report, by the codes of navigator.geolocation: constant, whatever happened. */
const UNAVAILABLE = 2;
const POSITION_ERRORS = {
  1: "this page has no permission for the position",
  [UNAVAILABLE]: "no protected position is available",
  3: "the device took too long to find the position",
};
const failed = (code) => ({ code: code in POSITION_ERRORS ? code : UNAVAILABLE, message: POSITION_ERRORS[code] ?? POSITION_ERRORS[UNAVAILABLE] });
const NO_DEVICE =
  "there is no navigator.geolocation here (Node, a worker, or a page that is not served over https): pass `geolocation`, an object with getCurrentPosition.";

/** The slack up to which snapping is taken without asking: two positions, however near, differ by a factor of two at most. */
const HARMLESS_SLACK = Math.LN2;

/**
 * A position as apps know it, with a report in the place of the true one.
 * @typedef {object} ProtectedPosition
 * @property {{ latitude: number, longitude: number, accuracy: number, altitude: null, altitudeAccuracy: null, heading: null,
 *   speed: null }} coords
 * @property {number} timestamp
 */

/**
 * What navigator.geolocation says where it has no position.
 * @typedef {{ code: number, message: string }} PositionFailure
 */

/**
 * Where positions come from: navigator.geolocation, or anything with its getCurrentPosition.
 * @typedef {object} PositionSource
 * @property {(success: (position: { coords: { latitude: number, longitude: number } }) => void,
 *   failure: (error: PositionFailure) => void, options?: PositionOptions) => void} getCurrentPosition
 */

/**
 * What was handed out today: reports, refusals (each tells "outside" once), how many of both a day has, and the guarantee for all
 * reports of the day together: somebody who sees them all tells two positions at distance d apart by a factor of
 * exp(epsilon d + slack) at most. A concentrated guarantee is spent in `rho`, which adds up as well, and has neither epsilon nor slack.
 * `accuracy` is the radius (metres) that holds 95 % of reports.
 * @typedef {{ reports: number, refused: number, perDay: number, left: number, epsilon?: number, slack?: number, rho?: number,
 *   accuracy: number }} Spent
 */

/**
 * What stands in for navigator.geolocation; `spent` says what was handed out today.
 * @typedef {object} ProtectedGeolocation
 * @property {(success: (position: ProtectedPosition) => void, failure?: (error: PositionFailure) => void,
 *   options?: PositionOptions) => void} getCurrentPosition
 * @property {(success: (position: ProtectedPosition) => void, failure?: (error: PositionFailure) => void,
 *   options?: PositionOptions) => number} watchPosition
 * @property {(id: number) => void} clearWatch
 * @property {() => Spent} spent
 */

/**
 * How a day's budget is spent: `everySeconds` and `perDay` are options of protectGeolocation, the rest says what they cost.
 * @typedef {{ everySeconds: number, perDay: number, epsilon?: number, slack?: number, rho?: number, accuracy: number,
 *   sentence: string }} DayPlan
 */

/**
 * Return how to spread a day's `budget` (an epsilon in the mechanism's unit, or a rho in its square where the guarantee is
 * concentrated) over the `hours` in which reports are asked for.
 *
 * As many reports as the budget pays for, in windows of whole minutes that begin at public times and are as short as the number
 * of reports allows; reports of a day add up, so its guarantee is `perDay` times that of one report. Give the answer to
 * protectGeolocation: `protectGeolocation(mechanism, planDay(mechanism, { budget: 40 }))`.
 * @param {Mechanism} mechanism
 * @param {{ budget: number, hours?: number, snap?: number }} options
 * @returns {DayPlan}
 */
function planDay(mechanism, { budget, hours = 16, snap = 0 }) {
  const unit = unitOf(mechanism);
  optionNumber(budget, "budget");
  refuseOption(!(optionNumber(hours, "hours") > 0 && hours <= 24), "`hours` must be above 0 and at most 24.");
  const { isPure, guarantee } = mechanism;
  const cost = isPure ? guarantee.epsilon : guarantee.rho;
  const perDay = Math.floor((budget / cost) * (1 + 2 ** -50)); // 40 / 0.1 is 400, whatever its last bit
  const smaller = isPure ? `${cost} per ${unit}: use a mechanism with a smaller epsilon` : `a rho of ${cost} per ${unit}^2: use a mechanism with a smaller rho`;
  refuseOption(perDay < 1, `a budget of ${budget} a day does not pay for one report, which costs ${smaller}.`);
  const minutes = Math.max(1, Math.ceil((hours * 60) / perDay));
  const accuracy = radius(mechanism, snap);
  const sentence =
    `One report in every ${minutes === 1 ? "minute" : `${minutes} minutes`}, at most ${perDay} a day; 95 % of them lie within ${Math.ceil(accuracy)} m. ` +
    `All reports of a day together guarantee `;
  const whole = { everySeconds: 60 * minutes, perDay, accuracy };
  if (!isPure) {
    const { rho } = guarantee.composed(perDay);
    return { ...whole, rho, sentence: `${sentence}a rho of ${rhoWords(rho, unit)}, concentrated: approximate and not pure.` };
  }
  const [epsilon, slack] = [perDay * cost, perDay * mechanism.slack(snap)];
  const beside = slack > 0 ? ` with a slack of ${Number(slack.toPrecision(6))}.` : ".";
  return { ...whole, epsilon, slack, sentence: `${sentence}an epsilon of ${Number(epsilon.toPrecision(6))} per ${unit}${beside}` };
}

/**
 * Return an object with getCurrentPosition, watchPosition and clearWatch, and `spent()` for what was used today.
 *
 * A mechanism on finitely many places refuses a position that is none of them (nor within `snap` kilometres, or whatever its
 * unit is). With `clamp` it is put on the nearest place instead, however far that is, a public rule that is the same for
 * everybody; no answer tells inside from outside then. The guarantee is that of the places: two positions are as hard to tell
 * apart as the places they are put on, and `accuracy` is about that place too.
 *
 * Snapping costs slack, which no distance makes smaller. Where it costs more than ln 2 (on roads a few metres are enough) it is
 * refused, unless `confirmSlack` says that this is known. Without a device that knows positions (Node, a worker) every question is answered
 * with a sentence that says so.
 * @param {Mechanism} mechanism
 * @param {{ geolocation?: PositionSource, storage?: { getItem(name: string): string | null,
 *   setItem(name: string, value: string): void }, everySeconds?: number, perDay?: number, snap?: number, clamp?: boolean,
 *   confirmSlack?: boolean, now?: () => number }} [options]
 * @returns {ProtectedGeolocation}
 */
function protectGeolocation(
  mechanism,
  {
    geolocation = globalThis.navigator?.geolocation, storage = localStorageOrMemory(), everySeconds = 1800, perDay = 24, snap = 0,
    clamp = false, confirmSlack = false, now = Date.now,
  } = {},
) {
  unitOf(mechanism);
  const absent = geolocation === undefined || geolocation === null;
  refuseOption(!absent && typeof geolocation.getCurrentPosition !== "function", "`geolocation` must have a function getCurrentPosition.");
  refuseOption(optionNumber(everySeconds, "everySeconds") === 0, "`everySeconds` must be positive.");
  optionNumber(perDay, "perDay", 1);
  const { isPure, guarantee } = mechanism;
  const slack = isPure || snap !== 0 ? mechanism.slack(snap) : 0; // of one report; refuses a snap that means nothing here
  const added = isPure ? slack - mechanism.slack(0) : 0;
  refuseOption(
    added > HARMLESS_SLACK && confirmSlack !== true,
    `a \`snap\` of ${snap} adds ${Number(added.toPrecision(3))} to the slack of every report: the probabilities of a report may differ between two positions, even near ones, by a factor of ` +
      `${Number(Math.exp(added).toPrecision(3))} more. Take a smaller \`snap\` or \`clamp: true\`, or accept it with \`confirmSlack: true\`.`,
  );
  const name = `metricdp:${mechanism.sha256}`;
  const accuracy = radius(mechanism, snap);
  const watches = new Map();
  let asking = null;

  const read = () => {
    const today = new Date(now()).toISOString().slice(0, 10);
    const { day, spent, refused, at, point } = remembered(storage.getItem(name));
    return day >= today ? { day, spent, refused, at, point } : { day: today, spent: 0, refused: 0, at, point };
  };
  const reportOf = ({ latitude, longitude }) => {
    try {
      return mechanism.sample([latitude, longitude], { snap, clamp }).point;
    } catch (error) {
      if (error instanceof InvalidInput) return null; // not one of its places
      throw error;
    }
  };
  const windowOf = (time) => Math.floor(time / (1000 * everySeconds));

  /** Return what is stored where no new report is due, else null. */
  const standing = () => {
    const stored = read();
    const fresh = stored.at !== null && windowOf(stored.at) >= windowOf(now()); // later: the clock was set back
    return fresh || stored.spent + stored.refused >= perDay ? stored : null;
  };
  /** Ask the device and draw; stored before anybody gets it. */
  const draw = (options) =>
    new Promise((resolve, reject) => {
      geolocation.getCurrentPosition(
        ({ coords }) => {
          try {
            const stored = read();
            const point = reportOf(coords);
            const [reports, refusals] = point === null ? [0, 1] : [1, 0];
            const next = { day: stored.day, spent: stored.spent + reports, refused: stored.refused + refusals, at: now(), point };
            storage.setItem(name, JSON.stringify(next));
            resolve(next);
          } catch {
            reject(failed(UNAVAILABLE)); // nothing that could be said about it is worth the risk
          }
        },
        (error) => reject(failed(error?.code)),
        options,
      );
    });
  /** Return the report of this window, drawing it where there is none yet; at most one question is under way. */
  const current = async (options) => {
    if (absent) throw { code: UNAVAILABLE, message: NO_DEVICE };
    const turn = () => standing() ?? draw(options); // looked at again: another page may have drawn meanwhile
    const stored = standing() ?? (await (asking ??= takingTurns(name, storage, turn).finally(() => (asking = null))));
    if (stored.point === null) throw failed(UNAVAILABLE);
    return stored;
  };

  /** A position as apps know it: what is not protected (altitude, speed, heading) is not there. */
  const position = ({ at, point }) => ({
    coords: {
      latitude: point[0], longitude: point[1], accuracy,
      altitude: null, altitudeAccuracy: null, heading: null, speed: null,
    },
    timestamp: at,
  });

  let last = 0;
  return {
    getCurrentPosition(success, failure = silent, options = {}) {
      current(options).then((stored) => success(position(stored)), failure);
    },
    watchPosition(success, failure = silent, options = {}) {
      const id = (last += 1);
      let told = null;
      const look = () =>
        current(options).then((stored) => {
          if (watches.has(id) && stored.at !== told) {
            told = stored.at;
            success(position(stored));
          }
        }, failure);
      watches.set(id, setInterval(look, Math.min(60, everySeconds) * 1000));
      look();
      return id;
    },
    clearWatch(id) {
      clearInterval(watches.get(id));
      watches.delete(id);
    },
    spent() {
      const { spent, refused } = read();
      const left = Math.max(0, perDay - spent - refused);
      const all = { reports: spent, refused, perDay, left, accuracy };
      if (!isPure) return { ...all, rho: spent === 0 ? 0 : guarantee.composed(spent).rho };
      return { ...all, epsilon: spent * guarantee.epsilon, slack: spent * slack };
    },
  };
}

/** An app that does not listen to failures: only what it did wrong itself is said, where developers look. */
function silent({ message }) {
  if (message === NO_DEVICE) globalThis.console?.warn(message);
}

/** Return the unit of a mechanism on the Earth, or refuse it. */
function unitOf(mechanism) {
  if (mechanism.earthUnit === null) {
    throw new InvalidInput("positions need a mechanism on (latitude, longitude), such as laplace(Haversine()).");
  }
  return mechanism.earthUnit;
}

/** Return the radius in metres that holds 95 % of reports, the same wherever the person is. */
function radius(mechanism, snap) {
  return Number(CONSTANTS.metres[mechanism.earthUnit]) * (mechanism.accuracy(0.95) + snap);
}

/** Do the work while no other page with the same storage does work of this name, where the browser can tell. */
async function takingTurns(name, storage, work) {
  const locks = storage === sharedStorage() ? globalThis.navigator?.locks : undefined;
  return locks ? locks.request(name, work) : work();
}

/** Return what all pages of this origin share, where the browser allows it. */
function sharedStorage() {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null; // refused, as in some private windows
  }
}

/** Where nothing can be stored (some private windows), remember for as long as the page is open. */
function localStorageOrMemory() {
  const shared = sharedStorage();
  if (shared) return shared;
  const stored = new Map();
  return { getItem: (name) => stored.get(name) ?? null, setItem: (name, value) => stored.set(name, value) };
}

/** Return what was stored, or a fresh start where it is not what this module writes. */
function remembered(text) {
  const whole = (value) => Number.isSafeInteger(value) && value >= 0;
  try {
    const { day, spent, refused = 0, at, point } = JSON.parse(text);
    const placed = point === null || (Array.isArray(point) && point.length === 2 && point.every(Number.isFinite));
    if (typeof day === "string" && whole(spent) && whole(refused) && Number.isFinite(at) && placed) {
      return { day, spent, refused, at, point };
    }
  } catch {
    // nothing was stored, or something else
  }
  return { day: "", spent: 0, refused: 0, at: null, point: null };
}

// ---------------------------------------------------------------------------------------------------- audit.js

/** A second opinion on a matrix, in doubles. */

const TOLERANCE = 1e-9;

/** Return the smallest epsilon of a matrix over all pairs of secrets, and whether the guarantee holds by it. */
function auditMatrix({ inputs, table }, { epsilon: claimed, slack, radius }) {
  const logs = Array.from({ length: table.rows }, (_, row) => table.distribution(row).map(Math.log));
  const points = Array.from({ length: table.rows }, (_, row) => inputs.points.row(row));
  let worst = 0;
  let pairs = 0;
  for (let i = 0; i < table.rows; i++) {
    for (let j = i + 1; j < table.rows; j++) {
      const apart = inputs.metric.measure(points[i], points[j]);
      if (radius !== null && apart > radius) continue;
      pairs += 1;
      let spread = 0;
      for (let k = 0; k < table.reports; k++) {
        const [a, b] = [logs[i][k], logs[j][k]];
        if (a !== b) spread = Math.max(spread, Math.abs(a - b));
      }
      if (spread > slack) worst = Math.max(worst, apart < Infinity ? (spread - slack) / apart : NaN);
    }
  }
  const decidable = pairs > 0 && Number.isFinite(claimed);
  const holds = decidable && worst <= claimed * (1 + TOLERANCE); // not so where `worst` is no number
  const verdict = holds ? "holds" : decidable && worst > claimed ? "violated" : "cannot judge";
  return { epsilon: worst, claimed, tolerance: TOLERANCE, pairs, holds, verdict };
}

// ---------------------------------------------------------------------------------------------------- product.js

/** Mechanisms of several parts: every part of a secret is drawn with its own mechanism. */


/** Say a report as callers get it: the code where reports are finitely many, and its coordinates or word. */
function reportOf({ outputs }, drawn) {
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
function readProduct(body, file, guarantee, readPart) {
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

// ---------------------------------------------------------------------------------------------------- doubles.js

/**
 * Elementary functions of doubles with proven error bounds: + - * / and square roots only, line for line those of
 * src/metricdp/mechanisms/noise/functions.py, where the bounds stand (docs/explanation/exact_noise.md proves them). UNIT is 2^-53.
 */


const UNIT = 2 ** -53;

const VIEW = new DataView(new ArrayBuffer(8));
const LOG_TWO_HIGH = 0.6931471803691238;
const LOG_TWO_LOW = 1.9082149292705877e-10;
const HALF_PI = Math.PI / 2;
const HALF_PI_LOW = 6.123233995736766e-17;
const PI_LOW = 1.2246467991473532e-16;
const SPLITTER = 134217729;
const ARCS = [
  0, 0.12435499454676144, 0.24497866312686414, 0.35877067027057225, 0.4636476090008061, 0.5585993153435624, 0.6435011087932844,
  0.7188299996216245, 0.7853981633974483,
];

/** Return a square root within 2 UNIT of itself: the language guarantees nothing, so it is checked. */
function root(value) {
  const found = Math.sqrt(value);
  if (!(Math.abs(found * found - value) <= 4 * UNIT * value)) throw new Error("this engine computes no square roots");
  return found;
}

/** Return the middle of what the first 52 bits of a word stand for: exact, and UNIT from either end. */
function middleOf(high, low) {
  return (high * 1048576 + (low >>> 12)) * 2 ** -52 + UNIT;
}

/** Return ln of a positive ordinary double, within 8 UNIT of itself. */
function logOf(value) {
  VIEW.setFloat64(0, value);
  let top = VIEW.getUint32(0) + (0x3ff00000 - 0x3fe6a09e);
  const exponent = (top >>> 20) - 1023;
  top = (top & 0xfffff) + 0x3fe6a09e;
  VIEW.setUint32(0, top);
  const away = VIEW.getFloat64(0) - 1;
  const s = away / (2 + away);
  const z = s * s;
  let tail = 1 / 17 + z * (1 / 19);
  tail = 1 / 13 + z * (1 / 15 + z * tail);
  tail = 1 / 7 + z * (1 / 9 + z * (1 / 11 + z * tail));
  const near = s * (2 + (z + z) * (1 / 3 + z * (1 / 5 + z * tail)));
  return exponent * LOG_TWO_HIGH + (exponent * LOG_TWO_LOW + near);
}

/** Return e to a power from -700 to 700 (below, as at -700), within 4 UNIT of itself. */
function expOf(value) {
  const power = Math.max(value, -700);
  const doublings = Math.round(power * (1 / 0.6931471805599453));
  const x = power - doublings * LOG_TWO_HIGH - doublings * LOG_TWO_LOW;
  let tail = 1 / 39916800 + x * (1 / 479001600 + x * (1 / 6227020800));
  tail = 1 / 40320 + x * (1 / 362880 + x * (1 / 3628800 + x * tail));
  tail = 1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040 + x * tail)));
  const near = 1 + (x + x * x * (0.5 + x * (1 / 6 + x * tail)));
  const half = Math.trunc(doublings / 2); // both powers of two are ordinary doubles
  return near * 2 ** half * 2 ** (doublings - half);
}

function smallSine(x) {
  const z = x * x;
  let tail = -1 / 39916800 + z * (1 / 6227020800 - z * (1 / 1307674368000));
  tail = z * (-1 / 6 + z * (1 / 120 + z * (-1 / 5040 + z * (1 / 362880 + z * tail))));
  return x + x * tail;
}

function smallCosine(x) {
  const z = x * x;
  let tail = 1 / 479001600 + z * (-1 / 87178291200 + z * (1 / 20922789888000));
  tail = z * (1 / 24 + z * (-1 / 720 + z * (1 / 40320 + z * (-1 / 3628800 + z * tail))));
  return 1 + z * (tail - 0.5);
}

function turned(quarters, rest) {
  const [sine, cosine] = [smallSine(rest), smallCosine(rest)];
  return [[sine, cosine], [cosine, -sine], [-sine, -cosine], [-cosine, sine]][quarters & 3];
}

/** Return sine and cosine of 2 pi times a number in [0, 1), each within 6 UNIT of itself. */
function circle(fraction) {
  const quarters = Math.round(4 * fraction);
  return turned(quarters, (4 * fraction - quarters) * HALF_PI);
}

/** Return sine and cosine of an angle in [0, 3.2], within 6 UNIT, and the sine below pi/4 within 6 UNIT of itself. */
function sineAndCosine(angle) {
  const quarters = rint(angle * (1 / HALF_PI));
  return turned(quarters, angle - quarters * HALF_PI - quarters * HALF_PI_LOW);
}

/** Return sine and cosine of a latitude in degrees, each within 6 UNIT of itself. */
function ofLatitude(degrees) {
  const size = Math.abs(degrees);
  const steep = size > 45;
  const angle = (steep ? 90 - size : size) * (Math.PI / 180);
  const [sine, cosine] = [smallSine(angle), smallCosine(angle)];
  const up = steep ? cosine : sine;
  return [degrees < 0 ? -up : up, steep ? sine : cosine];
}

/** Return the angle of the vector (x, y), within 12 UNIT of itself. */
function arctangent(y, x) {
  const [height, width] = [Math.abs(y), Math.abs(x)];
  const steep = height > width;
  const [less, more] = steep ? [width, height] : [height, width];
  const eighths = rint(8 * (less / more));
  const ratio = 0.125 * eighths;
  const rest = (less - ratio * more) / (more + ratio * less);
  const z = rest * rest;
  let tail = 1 / 9 + z * (-1 / 11 + z * (1 / 13));
  tail = z * (-1 / 3 + z * (1 / 5 + z * (-1 / 7 + z * tail)));
  let angle = ARCS[eighths] + (rest + rest * tail);
  if (steep) angle = HALF_PI - (angle - HALF_PI_LOW);
  if (x < 0) angle = Math.PI - (angle - PI_LOW);
  return y < 0 ? -angle : angle;
}

function productOf(a, b) {
  const whole = a * b;
  let part = SPLITTER * a;
  const aHigh = part - (part - a);
  const aLow = a - aHigh;
  part = SPLITTER * b;
  const bHigh = part - (part - b);
  const bLow = b - bHigh;
  return [whole, aHigh * bHigh - whole + aHigh * bLow + aLow * bHigh + aLow * bLow];
}

/** Return value * top / bottom as a whole number and a rest, which is within 4 UNIT; for results up to 2^51. */
function centreOf(value, top, bottom) {
  const [scaled, lost] = productOf(value, top);
  const cells = scaled / bottom;
  const [back, rest] = productOf(cells, bottom);
  const whole = Math.round(cells);
  return [whole, cells - whole + (scaled - back - rest + lost) / bottom];
}

/** Return 1 - |x|^2 and a bound of its error, for coordinates below 1: the squares are summed in twice the precision. */
function roomOf(row) {
  let [high, low] = [0, 0];
  for (const x of row) {
    const [square, lost] = productOf(x, x);
    const total = high + square;
    const part = total - high;
    low += lost + (high - (total - part) + (square - part)); // what rounding took off, exactly
    high = total;
  }
  const room = 1 - high - low;
  return [room, 4 * UNIT * Math.abs(room) + (4 * row.length ** 2 + 4) * UNIT * UNIT];
}

// ---------------------------------------------------------------------------------------------------- roads.js

/** Shortest ways along a network of roads, by Dijkstra's algorithm. */

/** Return the length of the shortest way between two nodes; the ways from the last start are cached. */
function pathMeasure(roads) {
  let [start, ways, there, back] = [-1, null, null, null];
  return (a, b) => {
    if (there === null) {
      there = neighbours(roads, false);
      back = roads.oneWay === "open" ? null : neighbours(roads, true);
    }
    if (start !== a[0]) {
      ways = waysFrom(a[0], there, roads.nodes);
      // The longer of there and back: a metric, which one-way streets alone are not.
      if (back !== null) waysFrom(a[0], back, roads.nodes).forEach((way, node) => (ways[node] = Math.max(ways[node], way)));
      start = a[0];
    }
    return ways[b[0]];
  };
}

/** Return the streets out of every node: those of node k stand from `starts[k]` to `starts[k + 1]`. */
function neighbours({ edges, lengths, nodes, oneWay }, reversed) {
  const open = oneWay === "open";
  const starts = new Uint32Array(nodes + 1);
  const ends = (street) => (reversed ? [edges[2 * street + 1], edges[2 * street]] : [edges[2 * street], edges[2 * street + 1]]);
  for (let street = 0; street < lengths.length; street++) {
    const [from, to] = ends(street);
    starts[from + 1] += 1;
    if (open) starts[to + 1] += 1;
  }
  for (let node = 0; node < nodes; node++) starts[node + 1] += starts[node];
  const [targets, steps] = [new Uint32Array(starts[nodes]), new Float64Array(starts[nodes])];
  const free = starts.slice();
  const put = (from, to, street) => {
    targets[free[from]] = to;
    steps[free[from]++] = lengths[street];
  };
  for (let street = 0; street < lengths.length; street++) {
    const [from, to] = ends(street);
    put(from, to, street);
    if (open) put(to, from, street);
  }
  return { starts, targets, steps };
}

function waysFrom(start, { starts, targets, steps }, nodes) {
  const ways = new Float64Array(nodes).fill(Infinity);
  ways[start] = 0;
  const heap = [[0, start]]; // [way, node], the shortest way on top
  while (heap.length > 0) {
    const [way, node] = popLeast(heap);
    if (way > ways[node]) continue; // a shorter way was found meanwhile
    for (let k = starts[node]; k < starts[node + 1]; k++) {
      const longer = way + steps[k];
      if (longer < ways[targets[k]]) {
        ways[targets[k]] = longer;
        pushOn(heap, [longer, targets[k]]);
      }
    }
  }
  return ways;
}

function pushOn(heap, item) {
  let at = heap.push(item) - 1;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (heap[parent][0] <= item[0]) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = item;
}

function popLeast(heap) {
  const least = heap[0];
  const item = heap.pop();
  if (heap.length === 0) return least;
  let at = 0;
  for (let child = 1; child < heap.length; child = 2 * at + 1) {
    if (child + 1 < heap.length && heap[child + 1][0] < heap[child][0]) child += 1;
    if (heap[child][0] >= item[0]) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = item;
  return least;
}

// ---------------------------------------------------------------------------------------------------- metrics.js

/** Metrics: how far two secrets are apart. Those not measured here can be stored, and their secrets drawn by code. */


const EARTH_RADIUS_KM = CONSTANTS.earth_radius_km;

const radians = (degrees) => degrees * (Math.PI / 180);
const degrees = (angle) => angle * (180 / Math.PI);
const mod = (value, period) => value - Math.floor(value / period) * period;

/** Return how many of a unit of length make a kilometre. */
function perKilometre(unit) {
  if (!Object.hasOwn(CONSTANTS.metres, unit)) throw new Unsupported("this module does not know this unit for distances on the Earth.");
  return Number(CONSTANTS.metres.km) / Number(CONSTANTS.metres[unit]);
}

/** Return a decimal number as a fraction of whole numbers. */
function fractionOf(decimal) {
  const [whole, rest = ""] = decimal.split(".");
  return [BigInt(whole + rest), 10n ** BigInt(rest.length)];
}

/** Return the radius of the Earth in a unit of length as a fraction: it is a decimal number. */
function radiusOf(unit) {
  const [radius, parts] = fractionOf(String(EARTH_RADIUS_KM));
  const [metres, pieces] = fractionOf(CONSTANTS.metres[unit]);
  return [radius * 1000n * pieces, parts * metres];
}

/** Return half the diagonal of a cell with a side in degrees, at the equator, where it is longest. */
const earthReach = (unit, pitch) => radians(EARTH_RADIUS_KM) * perKilometre(unit) * pitch * Math.SQRT1_2;

function parallel(latitude) {
  return Math.sin(radians(90 - Math.abs(latitude))); // by the distance to the pole, which is exact near it and zero at it
}

/** Return the difference of two longitudes, taken the short way round, as one rounding of the exact one. */
function around(east, other) {
  const gap = east - other;
  if (!(Math.abs(gap) > 180)) return gap;
  const part = gap - east;
  const lost = east - (gap - part) - (other + part); // what rounding the difference took off, exactly
  return gap - 360 * Math.round(gap / 360) + lost;
}

/**
 * Return the great-circle distance in kilometres between (latitude, longitude) in degrees.
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 * @returns {number}
 */
function haversine(a, b) {
  const east = around(a[1], b[1]);
  const half =
    Math.sin(radians(a[0] - b[0]) / 2) ** 2 + parallel(a[0]) * parallel(b[0]) * Math.sin(radians(east) / 2) ** 2;
  return 2 * EARTH_RADIUS_KM * Math.atan2(Math.sqrt(half), Math.sqrt(Math.max(0, 1 - half)));
}

/** Return the l_p norm, scaled by the largest gap, so that powers neither overflow nor underflow. */
function norm(gaps, p) {
  let largest = 0;
  let total = 0;
  for (const gap of gaps) {
    largest = Math.max(largest, Math.abs(gap));
    total += Math.abs(gap);
  }
  if (p === 1) return total;
  if (p === Infinity || largest === 0) return largest;
  let sum = 0;
  for (const gap of gaps) sum += (Math.abs(gap) / largest) ** p;
  return largest * sum ** (1 / p);
}

function gapsOf(a, b) {
  const gaps = new Array(a.length);
  for (let k = 0; k < a.length; k++) gaps[k] = a[k] - b[k];
  return gaps;
}

/** Return the Cholesky factor of a symmetric matrix, of which the lower half is read; null where it has none. */
function factorOf(matrix, size) {
  const factor = new Float64Array(size * size);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = matrix[i * size + j];
      for (let k = 0; k < j; k++) sum -= factor[i * size + k] * factor[j * size + k];
      if (i === j && !(sum > 0)) return null;
      factor[i * size + j] = i === j ? Math.sqrt(sum) : sum / factor[j * size + j];
    }
  }
  return factor;
}

/** Tell whether a symmetric matrix is positive definite, in doubles. */
const isPositiveDefinite = (matrix, size) => factorOf(matrix, size) !== null;

function cholesky(matrix, size) {
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < i; j++) {
      const [here, there] = [matrix[i * size + j], matrix[j * size + i]];
      refuse(Math.abs(here - there) > 1e-12 + 1e-9 * Math.abs(there), "a covariance is not symmetric");
    }
  }
  const factor = factorOf(matrix, size);
  refuse(factor === null, "a covariance is not positive definite");
  return factor;
}

/** Return L^-1 x: the coordinates in which a Mahalanobis metric is Euclidean. */
function whiten(factor, vector) {
  const size = vector.length;
  const result = new Array(size);
  for (let i = 0; i < size; i++) {
    let sum = vector[i];
    for (let k = 0; k < i; k++) sum -= factor[i * size + k] * result[k];
    result[i] = sum / factor[i * size + i];
  }
  return result;
}

/** Return the least number of insertions, deletions and substitutions that turn one word into another, by code points. */
function edits(one, other) {
  const [left, right] = [Array.from(one), Array.from(other)];
  const row = Uint32Array.from({ length: right.length + 1 }, (_, k) => k);
  left.forEach((letter, i) => {
    let diagonal = row[0];
    row[0] = i + 1;
    for (let k = 0; k < right.length; k++) {
      const above = row[k + 1];
      row[k + 1] = Math.min(diagonal + (letter === right[k] ? 0 : 1), above + 1, row[k] + 1);
      diagonal = above;
    }
  });
  return row[right.length];
}

const isCode = (value, size) => Number.isSafeInteger(value) && value >= 0 && value < size;
const notMeasured = (name) => () => {
  throw new Unsupported(`distances of the metric ${name} are not computed here: give secrets by their codes.`);
};
const measuredInPython = (name) => () => ({ measure: notMeasured(name) });

/**
 * What each metric is made of: `measure(a, b)`, and where it is not every row of finite numbers, `legal(row)`: null, or why
 * a row cannot be measured (a name in `errors.js`). `text` says that it measures words. Every metric has checked
 * parameters by now (`manifest.js`); what depends on tensors or on other metrics is checked here.
 */
const METRICS = {
  Haversine: ({ unit }) => {
    const scale = perKilometre(unit);
    return {
      measure: (a, b) => scale * haversine(a, b),
      legal: (row) =>
        row.length !== 2 ? "count" : Math.abs(row[0]) <= 90 && Math.abs(row[1]) <= 360 ? null : "degrees",
    };
  },
  Lp: ({ p }) => ({ measure: (a, b) => norm(gapsOf(a, b), p) }),
  Mahalanobis: ({ covariance }, file) => {
    const [size] = file.shape(covariance);
    const entries = file.floats(covariance, [size, size], "a covariance");
    const factor = cholesky(entries, size);
    return {
      measure: (a, b) => norm(whiten(factor, gapsOf(a, b)), 2),
      legal: (row) => (row.length === size ? null : "count"),
      factor,
      covariance: entries,
    };
  },
  Temporal: ({ period }) => ({
    measure: (a, b) => {
      const gap = Math.abs(a[0] - b[0]);
      return period === null ? gap : Math.min(mod(gap, period), period - mod(gap, period));
    },
    legal: (row) => (row.length === 1 ? null : "count"),
  }),
  Hamming: () => ({ measure: (a, b) => Array.from(a).filter((value, k) => value !== b[k]).length, text: "either" }),
  Precomputed: ({ distances }, file) => {
    const [size] = file.shape(distances);
    const data = file.floats(distances, [size, size], "its distances");
    checkDistances(data, size);
    return {
      measure: (a, b) => data[a[0] * size + b[0]],
      legal: (row) => (isCode(row[0], size) ? null : "far"),
    };
  },
  Angular: ({ unit }) => ({
    measure: (a, b) => {
      const [one, two] = [norm(a, 2), norm(b, 2)];
      const [left, right] = [Array.from(a, (x) => x / one), Array.from(b, (x) => x / two)];
      const angle = 2 * Math.atan2(norm(gapsOf(left, right), 2), norm(left.map((x, k) => x + right[k]), 2));
      return unit === "deg" ? degrees(angle) : angle;
    },
    legal: (row) => (norm(row, 2) > 0 ? null : "far"),
  }),
  Hyperbolic: () => ({
    measure: (a, b) => 2 * Math.asinh(norm(gapsOf(a, b), 2) / Math.sqrt(roomOf(a)[0] * roomOf(b)[0])),
    legal: (row) => (row.every((x) => Math.abs(x) < 1) && roomOf(row)[0] > 0 ? null : "ball"),
  }),
  Weighted: ({ parts }, file) => {
    const groups = parts.map(([number, columns, weight]) => [file.metric(number), columns, weight]);
    const used = new Set(groups.flatMap(([, columns]) => columns));
    refuse(groups.some(([metric]) => metric.text === true), "a part of a weighted metric is a metric of words");
    const taken = (row, columns) => columns.map((column) => row[column]);
    return {
      measure: (a, b) =>
        groups.reduce((sum, [metric, columns, weight]) => sum + weight * metric.measure(taken(a, columns), taken(b, columns)), 0),
      legal: (row) => {
        if (used.size !== row.length || !row.every((_, column) => used.has(column))) return "count";
        for (const [metric, columns] of groups) {
          const why = metric.legal(taken(row, columns));
          if (why !== null) return why;
        }
        return null;
      },
    };
  },
  ShortestPath: (parameters, file) => {
    const { nodes, one_way: oneWay } = parameters;
    const count = file.shape(parameters.edges)[0];
    const edges = file.wholes(parameters.edges, [count, 2], "its streets");
    const lengths = file.floats(parameters.lengths, [count], "its streets");
    for (let k = 0; k < count; k++) {
      const [from, to] = [edges[2 * k], edges[2 * k + 1]];
      refuse(!isCode(from, nodes) || !isCode(to, nodes) || from === to || !(lengths[k] > 0), "a street has no length, or an end that is not a crossing");
    }
    return {
      measure: pathMeasure({ edges, lengths, nodes, oneWay }),
      legal: (row) => (isCode(row[0], nodes) ? null : "far"),
      edges,
      lengths,
      nodes,
    };
  },
  StreetPath: ({ network }, file) => {
    const roads = file.metric(network);
    return { measure: notMeasured("StreetPath"), network: roads, unit: roads.unit };
  },
  PolicyGraph: ({ network, apart }, file) => {
    const graph = file.metric(network);
    const longest = graph.lengths.reduce((sum, length) => sum + length, 0);
    refuse(graph.parameters.one_way !== "open", "its policy has one-way streets");
    refuse(!(apart > longest), "the distance between the parts of its policy is too small");
    return { measure: (a, b) => Math.min(graph.measure(a, b), apart), legal: graph.legal, unit: graph.unit, apart };
  },
  Levenshtein: () => ({ measure: (a, b) => edits(a[0], b[0]), text: true, legal: (row) => (row.length === 1 ? null : "count") }),
  Wasserstein: ({ ground }, file) => {
    const [size, ...sides] = file.shape(ground);
    const data = file.floats(ground, sides.length === 0 ? [size] : [size, size], "the ground of a metric");
    if (sides.length > 0) checkDistances(data, size);
    else refuse(data.some((place, k) => k > 0 && !(place > data[k - 1])), "the ground of a metric is not in increasing order");
    return { measure: notMeasured("Wasserstein"), legal: histogram(size) };
  },
  WordMovers: ({ vectors, ground, unit }, file) => {
    const [size, width] = file.shape(vectors);
    const data = file.floats(vectors, [size, width ?? null], "the vectors of a metric");
    const metric = file.metric(ground);
    for (let k = 0; k < size; k++) checkRow(Array.from(data.subarray(k * width, (k + 1) * width)), metric);
    return { measure: notMeasured("WordMovers"), legal: histogram(size), unit: unit || metric.unit };
  },
  Frechet: (parameters, file) => rowsOfVectors("Frechet", parameters, file),
  Bags: (parameters, file) => rowsOfVectors("Bags", parameters, file),
};

/** Rows of several vectors of one metric, one after the other. */
function rowsOfVectors(name, { ground: number, dimension, unit }, file) {
  const ground = file.metric(number);
  const starts = (row) => Array.from({ length: row.length / dimension }, (_, k) => k * dimension);
  return {
    measure: notMeasured(name),
    legal: (row) => {
      if (row.length % dimension !== 0) return "count";
      return starts(row).map((at) => ground.legal(row.slice(at, at + dimension))).find((why) => why !== null) ?? null;
    },
    unit: unit || ground.unit,
    ground,
    dimension,
  };
}

const histogram = (size) => (row) => {
  const total = row.reduce((sum, value) => sum + value, 0);
  return row.length === size && row.every((value) => value >= 0) && Math.abs(total - 1) <= CONSTANTS.rounding ? null : "far";
};

/** Refuse distances that are no metric; that no detour is shorter is left to Python, it takes size^3 steps. */
function checkDistances(data, size) {
  let largest = 1;
  for (const value of data) largest = Math.max(largest, Math.abs(value));
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      const [there, back] = [data[i * size + j], data[j * size + i]];
      refuse(there < 0 || (i === j && there !== 0), "a distance is negative, or a point has a distance to itself");
      refuse(Math.abs(there - back) > CONSTANTS.rounding * largest, "its distances are not symmetric");
    }
  }
}

/** Refuse a row of a file that its metric cannot measure. */
function checkRow(row, metric) {
  const numbers = row.every((value) => typeof value === "string" || Math.abs(value) <= CONSTANTS.largest_coordinate);
  refuse(!numbers || metric.legal(row) !== null, "its metric cannot measure one of its points");
}

/** Rebuild a metric from its checked entry; it may refer to earlier ones. */
function readMetric({ name, parameters }, file) {
  const make = METRICS[name] ?? measuredInPython(name);
  const made = make(parameters, file);
  return { name, unit: parameters.unit ?? "", legal: () => null, text: false, parameters, ...made };
}

// ---------------------------------------------------------------------------------------------------- lattice.js

/** The public lattice on which noise is released, and what a file of noise must keep before anything is drawn from it. */


/** The multiples of a pitch, in every coordinate. */
class Lattice {
  constructor(pitch) {
    this.pitch = pitch;
    const inverse = rint(1 / pitch);
    this.perUnit = inverse >= 1 && 1 / inverse === pitch ? inverse : 0;
  }

  /** How many cells make a unit, as a fraction of doubles. */
  get ratio() {
    return this.perUnit ? [this.perUnit, 1] : [1, this.pitch];
  }

  cell(value) {
    return rint(this.perUnit ? value * this.perUnit : value / this.pitch);
  }

  value(cell) {
    return (this.perUnit ? cell / this.perUnit : cell * this.pitch) + 0;
  }

  /** Refuse coordinates whose cells doubles do not hold. */
  refuseFar(point) {
    refuseSecret(point.some((x) => !(Math.abs(this.cell(x)) <= CONSTANTS.largest_cell)), "lattice");
  }
}

/** Refuse a guarantee that the noise does not satisfy: a smaller epsilon than its rate. */
function checkGuarantee(guarantee, rate) {
  const holds = guarantee.basis === "none" || rate <= guarantee.epsilon;
  refuse(!holds, "its noise does not satisfy its guarantee");
}

/** Refuse a lattice on which doubles would leave too many draws undecided. */
function checkPitch(undecided) {
  refuse(!(undecided <= CONSTANTS.largest_drawing_error), "its lattice is too fine for doubles");
}

/** Refuse a lattice of degrees that misses the poles. */
function checkPoles(pitch) {
  refuse(!(pitch <= 90 && Math.abs(rint(90 / pitch) * pitch - 90) <= CONSTANTS.rounding), "its lattice misses the poles");
}

/** Refuse vectors that a metric of vectors cannot measure. */
function checkVectors({ metric, dimension }) {
  refuse(metric.name !== "Lp" && metric.name !== "Mahalanobis", "its noise does not belong to its metric");
  refuse(metric.legal(new Array(dimension).fill(0)) !== null, "its noise does not fit its metric");
}

/** Return the most that noise of length one is stretched to: the root of the trace of a covariance. */
const widestOf = (metric) => (metric.name === "Mahalanobis" ? norm(Array.from(metric.factor), 2) : 1);

/** Return how far the corner (1, 1, ...) or (1, -1, 1, ...) of a cell lies from its centre: in a plane these are all. */
function cellReach({ metric, dimension }, pitch) {
  const corners = [1, -1].map((sign) => Array.from({ length: dimension }, (_, k) => (k % 2 ? sign : 1) * (pitch / 2)));
  const zero = new Array(dimension).fill(0);
  return Math.max(...corners.map((corner) => metric.measure(corner, zero)));
}

// ---------------------------------------------------------------------------------------------------- noise.js

/** What exact noise is made of: uniforms with as many bits as are asked for, and cells that are sure. */


/** The uniforms of one draw: binary fractions of as many words as anybody asks for, each word drawn once. */
class Uniforms {
  constructor(source) {
    this.source = source;
    this.known = new Map();
  }

  word(attempt, k, limb) {
    if (this.source.limb) return this.source.limb(attempt, k, limb); // chosen by a test
    const place = `${attempt} ${k} ${limb}`;
    let found = this.known.get(place);
    if (found === undefined) {
      this.source.next();
      found = [this.source.high, this.source.low];
      this.known.set(place, found);
    }
    return found;
  }

  middle(attempt, k) {
    const [high, low] = this.word(attempt, k, 0);
    return middleOf(high, low);
  }

  /** Return the sign of the first bit and the middle of the uniform of the others. */
  signed(attempt, k) {
    const [high, low] = this.word(attempt, k, 0);
    return [high >>> 31 ? -1 : 1, middleOf(((high << 1) | (low >>> 31)) >>> 0, (low << 1) >>> 0)];
  }

  /** Return the first words as one whole number. */
  digits(attempt, k, words) {
    let value = 0n;
    for (let limb = 0; limb < words; limb++) {
      const [high, low] = this.word(attempt, k, limb);
      value = (value << 64n) | (BigInt(high) << 32n) | BigInt(low);
    }
    return value;
  }
}

/** Return what an uncertain uniform adds to its logarithm; infinite where that is not small. */
const unlikely = (unsure) => (unsure < 0.001 ? 1.1 * unsure : Infinity);

/** Return the cell of a centre moved by a number of cells, or undefined where the error leaves more than one. */
function sureCell([whole, rest], moved, error) {
  const total = rest + moved;
  const step = Math.round(total);
  return Math.abs(total - step) + (error + 4 * UNIT * (1 + Math.abs(moved))) < 0.5 ? whole + step : undefined;
}

/** Return -ln of a uniform given by its middle, and a bound of its error. */
function exponentialOf(share) {
  const total = -logOf(share);
  return [total, 8 * UNIT * total + unlikely(UNIT / share)];
}

/** Return sqrt(-2 ln U), the size of a pair of normal numbers, and a bound of its error and of 17 roundings of it. */
function normalSize(share) {
  const [energy, ofEnergy] = exponentialOf(share);
  const size = root(2 * energy);
  return [size, (ofEnergy < 0.1 * energy ? (1.1 * ofEnergy) / size : Infinity) + 17 * UNIT * size];
}

// ---------------------------------------------------------------------------------------------------- vectors.js

/**
 * Laplace and normal noise for vectors in whole numbers of cells: in doubles with proven bounds, in balls of whole numbers where those leave more than
 * one cell. The distributions, the words they take and the bounds are those of Python (src/metricdp/mechanisms/noise, docs/explanation/exact_noise.md).
 */


const FACTORS = 8;

/** Return -ln of the product of the first uniforms, and a bound of its error. */
function gammaOf(count, uniforms) {
  let [total, inverses] = [0, 0];
  for (let start = 0; start < count; start += FACTORS) {
    let product = 1;
    for (let k = start; k < Math.min(count, start + FACTORS); k++) {
      const share = uniforms.middle(0, k);
      product *= share;
      inverses += 1 / share;
    }
    total -= logOf(product);
  }
  return [total, (9 + count / FACTORS) * UNIT * total + unlikely(UNIT * (inverses * 1.01 + count))];
}

/** Propose a number with density exp(-|x|^p): [x, error], undefined where it is not kept, an infinite error where unsure. */
function powerProposal(p, [sign, share], probability) {
  const body = share < (p - 1) / p;
  let doubtful = Math.abs(p * share - (p - 1)) < 8 * UNIT * p;
  const rest = body ? 1 : p * (1 - share);
  const beyond = body ? 0 : -logOf(rest);
  const ofBeyond = body ? 0 : 8 * UNIT * Math.abs(beyond) + unlikely((p * UNIT) / rest + 2 * UNIT);
  const x = body ? share : (p - 1 + beyond) / p;
  const ofX = body ? UNIT : ofBeyond / p + 3 * UNIT * x;
  const exponent = p * logOf(x);
  const power = expOf(exponent);
  const relative = (ofX < (0.001 * x) / p ? (p * ofX) / x : Infinity) + 10 * UNIT * Math.abs(exponent);
  const ofPower = 1.1 * power * (relative + 5 * UNIT) + 1e-300;
  const [limit, ofLimit] = exponentialOf(probability);
  const gap = limit + beyond - power;
  const wrong = 1.01 * (ofLimit + ofBeyond + ofPower) + 4 * UNIT * (limit + Math.abs(beyond));
  doubtful ||= !(Math.abs(gap) > wrong);
  if (doubtful) return [sign * x, Infinity];
  return gap > 0 ? [sign * x, ofX] : undefined;
}

function powerVector(p, n, uniforms) {
  const found = Array.from({ length: n }, (_, k) => {
    const at = n + 2 * k;
    return untilDecided((attempt) => powerProposal(p, uniforms.signed(attempt, at), uniforms.middle(attempt, at + 1)));
  });
  const largest = Math.max(...found.map(([x]) => Math.abs(x)));
  let [total, rounding, moved] = [0, 1, 0];
  for (const [x, error] of found) {
    const exponent = p * logOf(Math.max(Math.abs(x) / largest, 1e-300));
    const power = expOf(exponent);
    total += power;
    rounding += power * (1.2 * p + 12 * Math.abs(exponent) + 6);
    moved += error;
  }
  rounding += n * total;
  const length = largest * expOf(logOf(total) / p);
  const relative = (UNIT * ((1.1 * rounding) / total + 10 * logOf(total))) / p + 7 * UNIT;
  return [found, length, 1.01 * moved + length * relative];
}

/** Return normal numbers by pairs (Box and Muller) as [x, error], from the uniforms after `at`. */
function normalsOf(n, at, uniforms) {
  const found = [];
  for (let k = at; found.length < n; k += 2) {
    const [radius, error] = normalSize(uniforms.middle(0, k));
    const [sine, cosine] = circle(uniforms.middle(0, k + 1));
    found.push([radius * cosine, error]);
    if (found.length < n) found.push([radius * sine, error]);
  }
  return found;
}

function normalVector(n, uniforms) {
  const found = normalsOf(n, n, uniforms);
  const length = root(found.reduce((sum, [x]) => sum + x * x, 0));
  const moved = found.reduce((sum, [, error]) => sum + error, 0); // at least their length
  return [found, length, 1.01 * moved + (n + 5) * UNIT * length];
}

/** Return l_p noise of rate one: a list of [coordinate, error]. */
function unitNoise(p, n, uniforms) {
  if (p === 1 || n === 1) {
    return Array.from({ length: n }, (_, k) => {
      const [sign, share] = uniforms.signed(0, k);
      const [total, error] = exponentialOf(share);
      return [sign * total, error];
    });
  }
  if (p === 2 && n === 2) {
    const [radius, error] = gammaOf(2, uniforms);
    const [sine, cosine] = circle(uniforms.middle(0, 2));
    return [cosine, sine].map((x) => [radius * x, error + 14 * UNIT * radius]);
  }
  if (p === Infinity) {
    const [radius, error] = gammaOf(n + 1, uniforms);
    return Array.from({ length: n }, (_, k) => [radius * (2 * uniforms.middle(0, n + 1 + k) - 1), 1.01 * error + 5 * UNIT * radius]);
  }
  if (p > 2 ** 40) return new Array(n).fill([0, Infinity]);
  const [radius, ofRadius] = gammaOf(n, uniforms);
  const [found, length, ofLength] = p === 2 ? normalVector(n, uniforms) : powerVector(p, n, uniforms);
  const factor = radius / length;
  const relative = ofRadius / radius + ofLength / length + 6 * UNIT;
  const sure = ofLength < 0.01 * length && ofRadius < 0.05 * radius;
  return found.map(([x, error]) => [factor * x, sure ? 1.1 * factor * (error + Math.abs(x) * relative) : Infinity]);
}

/** Return the sign and the uniform of a whole number of 64 * words bits. */
function signedBall(balls, digits, words) {
  const bits = 64n * words - 1n;
  return [digits >> bits, balls.uniform(digits & ((1n << bits) - 1n), bits)];
}

/** Return a number with density exp(-|x|^p) as a ball. */
function exactPower(balls, words, exponent, uniforms, at) {
  const less = balls.subtract(exponent, balls.one);
  return untilDecided((attempt) => {
    const [sign, share] = signedBall(balls, uniforms.digits(attempt, at, words), words);
    const limit = balls.negative(balls.log(balls.uniform(uniforms.digits(attempt, at + 1, words), 64n * words)));
    let [x, beyond] = [share, { m: 0n, r: 0n }];
    if (!balls.below(share, balls.divide(less, exponent))) {
      beyond = balls.negative(balls.log(balls.multiply(exponent, balls.subtract(balls.one, share))));
      x = balls.divide(balls.add(less, beyond), exponent);
    }
    const power = balls.exp(balls.multiply(exponent, balls.log(x)));
    if (!balls.below(power, balls.add(beyond, limit))) return undefined;
    return sign ? balls.negative(x) : x;
  });
}

/** Return normal numbers as balls; `share(k)` is the uniform of number k, those after `at` are used. */
function exactNormals(balls, n, at, share) {
  const found = [];
  for (let k = at; found.length < n; k += 2) {
    const radius = balls.root(balls.times(balls.log(share(k)), -2n));
    const [sine, cosine] = fullTurn(balls, share(k + 1));
    found.push(balls.multiply(radius, cosine), balls.multiply(radius, sine));
  }
  return found.slice(0, n);
}

const fullTurn = (balls, share) => balls.circle(balls.times(balls.multiply(balls.pi, share), 2n));

/** Return l_p noise of rate one as balls, from a given number of words of every uniform. */
function exactNoise(balls, words, p, n, uniforms) {
  const share = (k) => balls.uniform(uniforms.digits(0, k, words), 64n * words);
  const product = (count) => Array.from({ length: count }, (_, k) => balls.log(share(k))).reduce((a, b) => balls.add(a, b));
  const gamma = (count) => balls.negative(product(count));
  if (p === 1 || n === 1) {
    return Array.from({ length: n }, (_, k) => {
      const [sign, part] = signedBall(balls, uniforms.digits(0, k, words), words);
      return sign ? balls.log(part) : balls.negative(balls.log(part));
    });
  }
  if (p === 2 && n === 2) {
    const [radius, [sine, cosine]] = [gamma(2), fullTurn(balls, share(2))];
    return [balls.multiply(radius, cosine), balls.multiply(radius, sine)];
  }
  if (p === Infinity) {
    const radius = gamma(n + 1);
    return Array.from({ length: n }, (_, k) =>
      balls.multiply(radius, balls.subtract(balls.times(share(n + 1 + k), 2n), balls.one)),
    );
  }
  let [raw, length] = [[], null];
  if (p === 2) {
    raw = exactNormals(balls, n, n, share);
    length = balls.root(raw.map((x) => balls.multiply(x, x)).reduce((a, b) => balls.add(a, b)));
  } else {
    const exponent = balls.double(p);
    raw = Array.from({ length: n }, (_, k) => exactPower(balls, words, exponent, uniforms, n + 2 * k));
    const sizes = raw.map((x) => (x.m < 0n ? balls.negative(x) : x));
    const largest = sizes.reduce((a, b) => (a.m > b.m ? a : b));
    const total = sizes
      .map((x) => balls.exp(balls.multiply(exponent, balls.log(balls.divide(x, largest)))))
      .reduce((a, b) => balls.add(a, b));
    length = balls.multiply(largest, balls.exp(balls.divide(balls.log(total), exponent)));
  }
  const factor = balls.divide(gamma(n), length);
  return raw.map((x) => balls.multiply(x, factor));
}

/** Return the rows of the Cholesky factor of a covariance as balls. */
function exactFactor(balls, covariance, n) {
  const rows = [];
  for (let i = 0; i < n; i++) {
    const row = [];
    for (let j = 0; j <= i; j++) {
      const other = j < i ? rows[j] : row;
      let rest = balls.double(covariance[i * n + j]);
      for (let k = 0; k < j; k++) rest = balls.subtract(rest, balls.multiply(row[k], other[k]));
      row.push(j < i ? balls.divide(rest, other[j]) : balls.root(rest));
    }
    rows.push(row);
  }
  return rows;
}

/** Return the factor as rows of doubles, each entry within UNIT of a size that is given with it. */
function doubleFactor(covariance, n) {
  return settled((balls) => {
    const rows = exactFactor(balls, covariance, n);
    return rows.map((row, i) =>
      row.map(({ m, r }) => {
        if (r > row[i].m >> 90n) throw UNDECIDED;
        const [x, diagonal] = [m, row[i].m].map((value) => Number(value) * 2 ** -Number(balls.places));
        return [x, Math.abs(x) + diagonal * 2 ** -36];
      }),
    );
  }, 128n);
}

/** Return L z for noise with errors. */
function stretched(factor, noise) {
  if (!factor) return noise;
  return factor.map((row) => {
    let [total, error] = [0, 0];
    row.forEach(([x, size], k) => {
      total += x * noise[k][0];
      error += size * (noise[k][1] + (noise.length + 4) * UNIT * Math.abs(noise[k][0]));
    });
    return [total, 1.01 * error];
  });
}

/**
 * The distribution of noise for vectors: a coordinate x lies at x * top / bottom cells. `covariance` is that of a Mahalanobis metric, whose noise
 * is that of l_2 times the Cholesky factor; points are multiplied with `matrix` first, one row for every coordinate of a report. With
 * `sigma` in the place of `epsilon` the noise is normal, with that standard deviation.
 */
class VectorDistribution {
  constructor({ p = 2, dimension, ratio: [top, bottom], epsilon = null, sigma = null, covariance = null, matrix = null }) {
    Object.assign(this, { p, dimension, top, bottom, covariance, matrix });
    this.normal = sigma !== null;
    // 1 / epsilon or sigma in cells, within 2 UNIT, and as a fraction; doubles are multiples of 2^-1074
    this.scale = this.normal ? (top * sigma) / bottom : top / (bottom * epsilon);
    this.scaleTop = toWhole(top) * (this.normal ? toWhole(sigma) : 1n << 1074n);
    this.scaleBottom = toWhole(bottom) * (this.normal ? 1n << 1074n : toWhole(epsilon));
    this.factor = covariance ? doubleFactor(covariance, dimension) : null;
  }

  cells(point, source) {
    const uniforms = new Uniforms(source);
    return this.inDoubles(point, uniforms) ?? this.exactly(point, uniforms);
  }

  /** Return where a point lies as [coordinate, error]: a sum of n products is off by (n + 2) UNIT of their sizes. */
  places(point) {
    if (this.matrix === null) return point.map((x) => [x, 0]);
    return this.matrix.map((row) => {
      let [sum, sizes] = [0, 0];
      row.forEach((a, k) => {
        sum += a * point[k];
        sizes += Math.abs(a * point[k]);
      });
      return [sum, (row.length + 4) * 1.01 * UNIT * sizes];
    });
  }

  inDoubles(point, uniforms) {
    const { p, dimension: n } = this;
    const noise = stretched(this.factor, this.normal ? normalsOf(n, 0, uniforms) : unitNoise(p, n, uniforms));
    const cells = this.places(point).map(([x, unsure], k) => {
      const [moved, error] = noise[k];
      const wrong = this.scale * (error + 5 * UNIT * Math.abs(moved)) + unsure * (this.top / this.bottom) * 1.01;
      return sureCell(centreOf(x, this.top, this.bottom), this.scale * moved, wrong);
    });
    return cells.includes(undefined) ? undefined : cells;
  }

  /** Return where a point lies as fractions of whole numbers, exactly: [tops, the common bottom]. */
  #fractions(point) {
    const wholes = point.map(toWhole);
    if (this.matrix === null) return [wholes, 1n << 1074n];
    const sum = (row) => row.reduce((total, a, k) => total + toWhole(a) * wholes[k], 0n);
    return [this.matrix.map(sum), 1n << 2148n];
  }

  exactly(point, uniforms) {
    const widest = Math.max(...this.places(point).map(([x]) => Math.abs(x)));
    const extra = BigInt(Math.ceil(Math.log2(2 + this.scale + widest * (this.top / this.bottom)))) + BigInt(this.dimension);
    const [tops, bottom] = this.#fractions(point);
    return settled((balls, words) => {
      const share = (k) => balls.uniform(uniforms.digits(0, k, words), 64n * words);
      let noise = this.normal
        ? exactNormals(balls, this.dimension, 0, share)
        : exactNoise(balls, words, this.p, this.dimension, uniforms);
      if (this.covariance) {
        const zero = { m: 0n, r: 0n };
        const factor = exactFactor(balls, this.covariance, this.dimension);
        noise = factor.map((row) => row.reduce((sum, x, k) => balls.add(sum, balls.multiply(x, noise[k])), zero));
      }
      const scale = balls.fraction(this.scaleTop, this.scaleBottom);
      return tops.map((top, k) => {
        const centre = balls.fraction(top * toWhole(this.top), toWhole(this.bottom) * bottom);
        return Number(balls.cell(balls.add(centre, balls.multiply(scale, noise[k]))));
      });
    }, extra);
  }
}

// ---------------------------------------------------------------------------------------------------- hyperbolic.js

/**
 * Noise in hyperbolic space of any dimension, in the Poincare ball: how far in one sum, which way by normal numbers. In doubles with
 * proven bounds, in balls of whole numbers where those leave more than one cell. Words, lattice and bounds are those of Python
 * (src/metricdp/mechanisms/noise/hyperbolic.py, docs/explanation/exact_noise.md): with x in the ball, B = 1 - |x|^2, a unit vector u and C, S = cosh(r),
 * sinh(r), the report is the point of the hyperboloid whose first coordinates are v = S u + 2 (C + S <x, u>) x / B.
 */


const FARTHEST = 10n ** 300n; // cells: what lies beyond is put there
const LEAST_ROOM = 2 ** -20; // of 1 - |x|^2: nearer to the border doubles do not tell neighbours apart
const LEAST_MARGIN = 0.05; // of epsilon above n - 1
const BORDER = 1 - 2 ** -50; // the longest report

const totalOf = (values) => values.reduce((sum, x) => sum + x, 0);

/** The distribution of hyperbolic noise; a coordinate v of the hyperboloid lies at v * top / bottom cells. */
class HyperbolicDistribution {
  constructor(dimension, epsilon, [top, bottom]) {
    Object.assign(this, { dimension, epsilon, top, bottom });
    this.scale = top / bottom;
    /** The rates of the exponentials that add up to the distance, each within UNIT of itself. */
    this.rates = Array.from({ length: dimension }, (_, k) => epsilon - (dimension - 1 - 2 * k));
  }

  cells(point, source) {
    const uniforms = new Uniforms(source);
    return this.inDoubles(point, uniforms) ?? this.exactly(point, uniforms);
  }

  /** Return the cells, or undefined where doubles do not know. */
  inDoubles(point, uniforms) {
    const { dimension: n, scale } = this;
    let [radius, ofRadius] = [0, 0];
    this.rates.forEach((rate, k) => {
      const [energy, ofEnergy] = exponentialOf(uniforms.middle(0, k));
      radius += energy / rate;
      ofRadius += ofEnergy / rate;
    });
    const places = boosted(point, normalsOf(n, n, uniforms), [radius, 1.01 * ofRadius + (n + 3) * UNIT * radius]);
    const cells = places?.map(([v, error]) => sureCell([0, 0], scale * v, scale * (error + 2 * UNIT * Math.abs(v))));
    return cells === undefined || cells.includes(undefined) ? undefined : cells;
  }

  exactly(point, uniforms) {
    const n = this.dimension;
    const wholes = point.map(toWhole);
    const one = 1n << 2148n;
    const left = wholes.reduce((sum, x) => sum - x * x, one);
    const perUnit = Math.ceil(Math.log2(4 + this.scale)) + 20; // over the room, which is at least 2^-20
    return settled((balls, words) => {
      const share = (k) => balls.uniform(uniforms.digits(0, k, words), 64n * words);
      const zero = { m: 0n, r: 0n };
      const product = (a, b) => a.reduce((sum, x, k) => balls.add(sum, balls.multiply(x, b[k])), zero);
      const away = this.rates.reduce((sum, _, k) => {
        const rate = balls.fraction(toWhole(this.epsilon) - (BigInt(n - 1 - 2 * k) << 1074n), 1n << 1074n);
        return balls.subtract(sum, balls.divide(balls.log(share(k)), rate));
      }, zero);
      const g = exactNormals(balls, n, n, share);
      const length = balls.root(product(g, g));
      if (length.m <= length.r) throw UNDECIDED;
      const [u, x] = [g.map((item) => balls.divide(item, length)), wholes.map((item) => balls.fraction(item, 1n << 1074n))];
      const [large, small] = [balls.exp(away), balls.exp(balls.negative(away))];
      const half = balls.fraction(1n, 2n);
      const [near, far] = [balls.add(large, small), balls.subtract(large, small)].map((sum) => balls.multiply(half, sum));
      const inner = balls.times(balls.add(near, balls.multiply(far, product(x, u))), 2n);
      const pull = balls.divide(inner, balls.fraction(left, one));
      const scale = balls.fraction(toWhole(this.top), toWhole(this.bottom));
      return u.map((item, k) => heldCell(balls, balls.multiply(scale, balls.add(balls.multiply(far, item), balls.multiply(pull, x[k])))));
    }, BigInt(perUnit + 2 * Math.ceil(Math.log2(n + 1)) + 64));
  }
}

/** Return the cell of a ball as a double; beyond `FARTHEST` cells that one. */
function heldCell(balls, value) {
  const most = FARTHEST << balls.places;
  if (value.m - value.r > most) return Number(FARTHEST);
  if (value.m + value.r < -most) return -Number(FARTHEST);
  return Number(balls.cell(value));
}

/**
 * Return where the walk from a row ends as [coordinate of the hyperboloid, error], or undefined where the bounds, which are of first
 * order and 10 % more, do not hold.
 */
function boosted(row, normals, [radius, ofRadius]) {
  const n = row.length;
  const many = (n + 4) * UNIT; // of a sum of n products
  const length = root(totalOf(normals.map(([g]) => g * g)));
  const ofLength = 1.01 * root(totalOf(normals.map(([, error]) => error * error))) + (n + 5) * UNIT * length;
  const [room, ofRoom] = roomOf(row);
  if (!(ofLength < 0.01 * length && ofRadius < 0.001 && radius < 600 && ofRoom < 0.001 * room)) return undefined;
  const unit = normals.map(([g]) => g / length);
  const ofUnit = normals.map(
    ([, error], k) => 1.1 * (error / length + Math.abs(unit[k]) * (ofLength / length)) + 3 * UNIT * Math.abs(unit[k]),
  );
  const small = expOf(-radius);
  const large = 1 / small;
  const relative = 1.1 * ofRadius + 6 * UNIT; // of e^r and e^-r: those of r, and 5 UNIT of the function and the inverse
  const [near, far] = [0.5 * (large + small), 0.5 * (large - small)];
  const ofFar = near * relative + 3 * UNIT * near;
  const along = totalOf(row.map((x, k) => x * unit[k]));
  const ofAlong = totalOf(row.map((x, k) => Math.abs(x) * ofUnit[k])) + many * totalOf(row.map((x, k) => Math.abs(x * unit[k])));
  const inner = near + far * along;
  const ofInner = ofFar * (1 + Math.abs(along)) + far * ofAlong + 4 * UNIT * (near + far * Math.abs(along));
  const pull = (2 * inner) / room;
  const ofPull = 1.05 * ((2 * ofInner) / room + Math.abs(pull) * (ofRoom / room + 3 * UNIT));
  return row.map((x, k) => {
    const [aside, ahead] = [far * unit[k], pull * x];
    const error = far * ofUnit[k] + ofFar * Math.abs(unit[k]) + ofPull * Math.abs(x);
    return [aside + ahead, 1.1 * (error + 4 * UNIT * (Math.abs(aside) + Math.abs(ahead)))];
  });
}

/** Return a point of the hyperboloid, given by its first coordinates, as a point of the ball: the doubles of Python. */
function inTheBall(places) {
  const largest = places.reduce((most, v) => Math.max(most, Math.abs(v)), 1);
  const scaled = places.map((v) => v / largest); // so that squares do not overflow
  const inverse = 1 / largest;
  const size = Math.sqrt(inverse * inverse + totalOf(scaled.map((v) => v * v)));
  const found = scaled.map((v) => v / (inverse + size));
  const length = Math.sqrt(totalOf(found.map((y) => y * y)));
  const factor = BORDER / Math.max(length, BORDER);
  return found.map((y) => y * factor + 0);
}

/** Tell whether a point of the ball is far enough from its border for noise. */
const isInside = (point) => roomOf(point)[0] >= LEAST_ROOM;

/** Return noise in the Poincare ball, `draw(point, source)`. */
function hyperbolicNoise({ metric, dimension: n }, epsilon, pitch) {
  refuse(metric.name !== "Hyperbolic", "its noise does not belong to its metric");
  refuse(!(epsilon >= n - 1 + LEAST_MARGIN), "its epsilon is too small for noise in this space");
  const lattice = new Lattice(pitch);
  const distribution = new HyperbolicDistribution(n, epsilon, lattice.ratio);
  const mean = totalOf(distribution.rates.map((rate) => 1 / rate));
  checkPitch((2 * (6 * n + 80) * Math.sqrt(n) * Math.exp(Math.min(mean, 20)) * UNIT) / pitch);
  return (point, source) => {
    refuseSecret(!isInside(point), "border");
    return inTheBall(distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell)));
  };
}

/** Read Laplace noise in the Poincare ball: density proportional to exp(-epsilon d(x, y)) with respect to its volume. */
function readHyperbolicLaplace(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const draw = hyperbolicNoise(inputs, body.epsilon, body.pitch);
  checkGuarantee(guarantee, body.epsilon);
  return { inputs, outputs: inputs, draw };
}

// ---------------------------------------------------------------------------------------------------- directions.js

/**
 * Noise on the sphere of any dimension in whole numbers of cells: in doubles with proven bounds, in balls of whole numbers where
 * those leave more than one cell. How far: a value proposed below a hat (`hats.js`), kept or not. Which way: a normal vector g less
 * its part along the secret x, w = g - <g, x> x / |x|^2. The report is y = sin(t) w / |w| + cos(t) x / |x|. Words and bounds are
 * those of Python (src/metricdp/mechanisms/noise/directions.py, docs/explanation/exact_noise.md).
 */


const PROPOSALS = 8; // of one attempt
const MOST_AWAY = 3.2;

const lengthIn = (balls, row) => balls.root(row.reduce((sum, x) => balls.add(sum, balls.multiply(x, x)), balls.fraction(0n, 1n)));

/** The distribution of noise on the sphere; a coordinate y lies at y * top / bottom cells. */
class DirectionDistribution {
  constructor(profile, [top, bottom]) {
    Object.assign(this, { profile, top, bottom });
    this.scale = top / bottom;
  }

  cells(point, source) {
    const uniforms = new Uniforms(source);
    return this.inDoubles(point, uniforms) ?? this.exactly(point, uniforms);
  }

  /** Return the cells, or undefined where doubles do not know. */
  inDoubles(point, uniforms) {
    const away = untilDecided((attempt) => {
      for (let k = 0; k < PROPOSALS; k++) {
        const found = this.#proposal(uniforms.middle(attempt, 2 * k), uniforms.middle(attempt, 2 * k + 1));
        if (found !== undefined) return found; // kept, or null: nobody knows
      }
      return undefined;
    });
    if (away === null) return undefined;
    const reached = walked(point, normalsOf(point.length, 2 * PROPOSALS, uniforms), this.#turn(away));
    const cells = reached.map(([y, error]) => sureCell([0, 0], this.scale * y, this.scale * (error + 2 * UNIT * Math.abs(y))));
    return cells.includes(undefined) ? undefined : cells;
  }

  /** Propose how far to go: [value, error], undefined where it is not kept, null where doubles do not know. */
  #proposal(share, probability) {
    const { start, stop, rise, fall, top, area } = this.profile.hat;
    const { rate, power, end } = this.profile;
    const [place, rest] = [area * share, area * (1 - share)]; // from either end; 1 - share is exact
    const [ofPlace, ofRest] = [UNIT * (5 * place + area), UNIT * (5 * rest + area)];
    if (Math.abs(place - rise) <= ofPlace || Math.abs(rest - fall) <= ofRest) return null;
    const left = place < rise;
    const right = !left && rest < fall;
    const unsure = (left ? ofPlace / place : right ? ofRest / rest : 0) + 2 * UNIT;
    const fallen = -logOf(left ? place / rise : right ? rest / fall : 1); // what the hat has lost
    const ofFallen = unlikely(unsure) + 8 * UNIT * fallen;
    const value = left ? start - rise * fallen : right ? stop + fall * fallen : start + (place - rise);
    const between = left || right ? 0 : ofPlace + 2 * UNIT * (place + rise);
    const ofValue = (left ? rise : right ? fall : 0) * (ofFallen + 3 * UNIT * fallen) + between + 2 * UNIT * Math.abs(value);
    if (value < -ofValue || value - end > ofValue + 8 * UNIT) return undefined;
    if (!(value > ofValue && end - value > ofValue + 8 * UNIT)) return null;
    const [inner, ofInner] = this.#grown(value, ofValue);
    let [logarithm, ofLogarithm] = [0, 0];
    if (power !== 0) {
      logarithm = logOf(Math.max(inner, 1e-300));
      ofLogarithm = (inner > 1000 * ofInner ? (1.1 * ofInner) / inner : Infinity) + 8 * UNIT * Math.abs(logarithm);
    }
    const [limit, ofLimit] = exponentialOf(probability);
    const gap = limit - (top - fallen + rate * value - power * logarithm);
    const sizes = Math.abs(top) + fallen + rate * Math.abs(value) + power * Math.abs(logarithm) + limit;
    const wrong = 1.01 * (ofLimit + ofFallen + rate * ofValue + power * ofLogarithm + 16 * UNIT * sizes);
    if (gap > wrong) return [value, ofValue];
    return gap < -wrong ? undefined : null;
  }

  /** Return what the area of the sphere grows by, sin(t) or v (2 - v), and its error. */
  #grown(value, ofValue) {
    if (!this.profile.isAngle) return [value * (2 - value), 2.1 * ofValue + 4 * UNIT * Math.abs(value)];
    return [sineAndCosine(Math.min(value, MOST_AWAY))[0], ofValue + 6 * UNIT * Math.min(1, 2 * value)];
  }

  /** Return sine and cosine of the angle between secret and report, and the errors of both. */
  #turn([value, ofValue]) {
    if (this.profile.isAngle) {
      const [sine, cosine] = sineAndCosine(Math.min(value, MOST_AWAY));
      return [sine, cosine, ofValue + 6 * UNIT * Math.min(1, 2 * value), ofValue + 6 * UNIT];
    }
    const sine = root(Math.max(value * (2 - value), 0));
    const sure = value > 100 * ofValue && 2 - value > 100 * ofValue;
    return [sine, 1 - value, (sure ? (1.1 * ofValue) / sine : Infinity) + 6 * UNIT * sine, ofValue + UNIT];
  }

  exactly(point, uniforms) {
    const { profile } = this;
    const wholes = point.map(toWhole);
    const largest = wholes.reduce((most, x) => (x > most ? x : -x > most ? -x : most), 0n); // only the direction counts
    const bits = (value) => BigInt(Math.ceil(Math.log2(value)));
    const extra = bits(2 * this.scale + 2) + 2n * bits(profile.rate + 2) + 2n * bits(point.length + profile.power + 1) + 64n;
    return settled((balls, words) => {
      const value = this.#exactValue(balls, words, uniforms);
      const two = balls.fraction(2n, 1n);
      const [sine, cosine] = profile.isAngle
        ? balls.circle(value)
        : [balls.root(balls.multiply(value, balls.subtract(two, value))), balls.subtract(balls.one, value)];
      const share = (k) => balls.uniform(uniforms.digits(0, k, words), 64n * words);
      const g = exactNormals(balls, point.length, 2 * PROPOSALS, share);
      const x = wholes.map((whole) => balls.fraction(whole, largest));
      const zero = balls.fraction(0n, 1n);
      const square = x.reduce((sum, one) => balls.add(sum, balls.multiply(one, one)), zero);
      const dot = x.reduce((sum, one, k) => balls.add(sum, balls.multiply(one, g[k])), zero);
      const along = balls.divide(dot, square);
      const w = g.map((one, k) => balls.subtract(one, balls.multiply(along, x[k])));
      const across = lengthIn(balls, w);
      if (across.m <= across.r) throw UNDECIDED;
      const [b, a] = [balls.divide(sine, across), balls.divide(cosine, balls.root(square))];
      const scale = balls.fraction(toWhole(this.top), toWhole(this.bottom));
      return w.map((one, k) => {
        const y = balls.add(balls.multiply(b, one), balls.multiply(a, x[k]));
        return Number(balls.cell(balls.multiply(scale, y)));
      });
    }, extra);
  }

  /** Return how far noise goes as a ball, by the same proposals. */
  #exactValue(balls, words, uniforms) {
    const { hat } = this.profile;
    const [start, stop, rise, fall, top] = [hat.start, hat.stop, hat.rise, hat.fall, hat.top].map((x) => balls.double(x));
    const area = balls.add(balls.add(rise, balls.subtract(stop, start)), fall);
    const zero = { m: 0n, r: 0n };
    const minusLog = (ball) => balls.negative(balls.log(ball));
    return untilDecided((attempt) => {
      for (let k = 0; k < PROPOSALS; k++) {
        const share = balls.uniform(uniforms.digits(attempt, 2 * k, words), 64n * words);
        const [place, rest] = [balls.multiply(area, share), balls.multiply(area, balls.subtract(balls.one, share))];
        let [fallen, value] = [zero, null];
        if (hat.rise > 0 && balls.below(place, rise)) {
          fallen = minusLog(balls.divide(place, rise));
          value = balls.subtract(start, balls.multiply(rise, fallen));
        } else if (hat.fall > 0 && balls.below(rest, fall)) {
          fallen = minusLog(balls.divide(rest, fall));
          value = balls.add(stop, balls.multiply(fall, fallen));
        } else value = balls.add(start, balls.subtract(place, rise));
        if (!balls.below(zero, value) || !balls.below(value, this.profile.exactEnd(balls))) continue;
        const limit = minusLog(balls.uniform(uniforms.digits(attempt, 2 * k + 1, words), 64n * words));
        if (balls.below(balls.subtract(balls.subtract(top, fallen), this.profile.exactLog(balls, value)), limit)) return value;
      }
      return undefined;
    });
  }
}

/** Return the unit vector reached from a row as [coordinate, error], infinite where unsure. */
function walked(row, normals, [sine, cosine, ofSine, ofCosine]) {
  const many = (row.length + 4) * UNIT; // of a sum of n products, in any order
  let [square, dot, total, spread] = [0, 0, 0, 0];
  row.forEach((x, k) => {
    const [g, ofG] = normals[k];
    square += x * x;
    dot += g * x;
    total += g * g;
    spread += ofG * ofG;
  });
  spread = root(spread) * (1 + many);
  const [along, length, size] = [dot / square, root(square), root(total)];
  const ofAlong = (1.05 * (spread + many * size)) / length + 2 * many * Math.abs(along);
  const across = row.map((x, k) => normals[k][0] - along * x);
  const radius = root(across.reduce((sum, w) => sum + w * w, 0));
  const ofRadius = 2.1 * spread + many * (4 * size + radius);
  const [b, a] = [sine / radius, cosine / length];
  const ofB = radius > 100 * ofRadius ? (ofSine + (1.05 * sine * ofRadius) / radius) / radius + 4 * UNIT * b : Infinity;
  const ofA = ofCosine / length + 2 * many * Math.abs(a);
  return row.map((x, k) => {
    const [g, ofG] = normals[k];
    const ofAcross = ofG + ofAlong * Math.abs(x) + 3 * UNIT * (Math.abs(g) + Math.abs(along * x));
    const [ahead, aside] = [a * x, b * across[k]];
    const error = ofB * Math.abs(across[k]) + b * ofAcross + ofA * Math.abs(x);
    return [aside + ahead, 1.1 * (error + 3 * UNIT * (Math.abs(aside) + Math.abs(ahead)))];
  });
}

// ---------------------------------------------------------------------------------------------------- hats.js

/**
 * How far noise on the sphere goes: the density of an angle or of a height, and the hat below which it is proposed. Line for line
 * those of src/metricdp/mechanisms/noise/hats.py, in + - * / and square roots alone: the same doubles in both languages. Python
 * proves each hat that it makes in arbitrary precision.
 */


const ABOVE = 1 + 2 ** -50; // above the roundings of a rate and of its inverse

/** Densities exp(-rate t) sin(t)^h of angles (`form` "angle"), exp(-rate v) (v (2 - v))^h of heights v = 1 - cos(t). */
class Profile {
  constructor(form, dimension, epsilon, perDegree = false) {
    Object.assign(this, { form, dimension, epsilon, perDegree });
    this.isAngle = form === "angle";
    this.power = this.isAngle ? dimension - 2 : (dimension - 3) / 2;
    this.end = this.isAngle ? Math.PI : 2;
    this.rate = perDegree ? epsilon * (180 / Math.PI) : epsilon;
    this.hat = this.power === 0 ? this.#falling() : this.#rising();
    this.hat.area = this.hat.rise + (this.hat.stop - this.hat.start) + this.hat.fall;
  }

  #falling() {
    if (this.rate * this.end < 1) return { start: 0, stop: this.end * ABOVE, rise: 0, fall: 0, top: 0 };
    return { start: 0, stop: 0, rise: 0, fall: (1 / this.rate) * ABOVE, top: 0 };
  }

  #rising() {
    const top = this.#where(0);
    const peak = this.#log(top);
    const [left, right] = [this.#dropped(top, 0, peak), this.#dropped(top, Math.min(this.end, 8 * top), peak)];
    const [rise, fall] = [1 / this.#slope(left), -1 / this.#slope(right)];
    const start = left + rise;
    const stop = Math.max(start, right - fall);
    return { start, stop, rise, fall, top: Math.max(this.#above(0, 0), this.#above(1 / rise, start), this.#above(-1 / fall, stop)) };
  }

  #where(slope) {
    const pull = (slope + this.rate) / this.power;
    return this.isAngle ? arctangent(1, pull) : 2 / (pull + 1 + root(pull * pull + 1));
  }

  #log(value) {
    const inner = this.isAngle ? sineAndCosine(value)[0] : value * (2 - value);
    return -this.rate * value + this.power * logOf(inner);
  }

  #slope(value) {
    if (!this.isAngle) return -this.rate + this.power * (1 / value - 1 / (2 - value));
    const [sine, cosine] = sineAndCosine(value);
    return -this.rate + this.power * (cosine / sine);
  }

  #dropped(top, end, peak) {
    let [near, far] = [top, end];
    for (let k = 0; k < 80; k++) {
      const middle = 0.5 * (near + far);
      [near, far] = this.#log(middle) > peak - 1 ? [middle, far] : [near, middle];
    }
    return near;
  }

  #above(slope, here) {
    const at = this.#where(slope);
    const found = this.#log(at) - slope * (at - here);
    const sizes = 1 + this.rate * at + Math.abs(found) + Math.abs(slope * at) + Math.abs(slope * here) + this.power;
    return found + 2 ** -40 * sizes;
  }

  /** Return the rate as a ball. */
  exactRate(balls) {
    const found = balls.double(this.epsilon);
    return this.perDegree ? balls.divide(balls.times(found, 180n), balls.pi) : found;
  }

  /** Return the largest value as a ball. */
  exactEnd(balls) {
    return this.isAngle ? balls.pi : balls.fraction(2n, 1n);
  }

  /** Return the logarithm of the density of a ball. */
  exactLog(balls, value) {
    const found = balls.negative(balls.multiply(this.exactRate(balls), value));
    if (this.power === 0) return found;
    const inner = this.isAngle ? balls.circle(value)[0] : balls.multiply(value, balls.subtract(balls.fraction(2n, 1n), value));
    return balls.add(found, balls.multiply(balls.double(this.power), balls.log(inner)));
  }
}

// ---------------------------------------------------------------------------------------------------- sphere.js

/** Laplace and normal noise on the Earth in whole numbers of cells, as in `vectors.js`: doubles with proven bounds, then balls. */


/** The distribution of noise on the Earth: [top, bottom] is the rate per radian as a fraction, `quarter` the number of cells in 90 degrees. */
class SphereDistribution {
  constructor([top, bottom], quarter) {
    Object.assign(this, { top, bottom, quarter });
    this.rate = quotientOf(top, bottom);
    this.away = 1 / this.rate; // within 3 UNIT, of which `narrow` counts 3
    this.narrow = top > bottom;
  }

  cells(point, source) {
    const uniforms = new Uniforms(source);
    return this.inDoubles(point, uniforms) ?? this.exactly(point, uniforms);
  }

  /** Return the cells, or undefined where doubles do not know. */
  inDoubles(point, uniforms) {
    const found = untilDecided((attempt) => {
      const [sine, cosine, error, gap, unsure] = this.narrow ? this.#near(attempt, uniforms) : this.#far(attempt, uniforms);
      if (gap > unsure) return undefined; // not kept: the next attempt
      return gap < -unsure ? travelled(point, [sine, cosine, error], uniforms.middle(attempt, 3), this.quarter) : null;
    });
    return found ?? undefined;
  }

  #near(attempt, uniforms) {
    const [one, two] = [uniforms.middle(attempt, 0), uniforms.middle(attempt, 1)];
    const total = -logOf(one * two);
    const ofTotal = 8 * UNIT * total + unlikely(UNIT * (1 / one + 1 / two + 1));
    const angle = this.away * total;
    const error = this.away * (ofTotal + 5 * UNIT * total) + 8 * UNIT * angle;
    const [sine, cosine] = sineAndCosine(Math.min(angle, 3.2));
    return [sine, cosine, error, uniforms.middle(attempt, 2) * angle - sine, 2 * error + 16 * UNIT * angle];
  }

  #far(attempt, uniforms) {
    const share = uniforms.middle(attempt, 0);
    const [sine, cosine] = [2 * root(share * (1 - share)), 1 - 2 * share];
    const angle = arctangent(sine, cosine);
    const error = (2.2 * UNIT) / sine + 20 * UNIT * angle;
    const [limit, ofLimit] = exponentialOf(uniforms.middle(attempt, 2));
    const unsure = sine > 1e-6 ? ofLimit + this.rate * (error + 4 * UNIT * angle) : Infinity;
    return [sine, cosine, error, this.rate * angle - limit, unsure];
  }

  exactly(point, uniforms) {
    return settled(
      (balls, words) => untilDecided((attempt) => this.#proposal(balls, words, point, attempt, uniforms)),
      BigInt(this.quarter.toString(2).length + 16),
    );
  }

  /** Return the cells of one proposal, or undefined where it is not kept. */
  #proposal(balls, words, point, attempt, uniforms) {
    const share = (k) => balls.uniform(uniforms.digits(attempt, k, words), 64n * words);
    const rate = balls.fraction(this.top, this.bottom);
    let [sine, cosine] = [null, null];
    if (this.narrow) {
      const total = balls.negative(balls.add(balls.log(share(0)), balls.log(share(1))));
      const angle = balls.divide(total, rate);
      if (!balls.below(angle, balls.pi)) return undefined;
      [sine, cosine] = balls.circle(angle);
      if (!balls.below(balls.multiply(share(2), angle), sine)) return undefined;
    } else {
      const first = share(0);
      sine = balls.times(balls.root(balls.multiply(first, balls.subtract(balls.one, first))), 2n);
      cosine = balls.subtract(balls.one, balls.times(first, 2n));
      if (!balls.below(balls.multiply(rate, balls.angle(sine, cosine)), balls.negative(balls.log(share(2))))) return undefined;
    }
    return arrived(balls, point, [sine, cosine], share(3), this.quarter);
  }
}

/** The distribution of normal noise in space around a place on the Earth, seen from its centre; top / bottom is sigma in radii of the Earth. */
class SphereGaussianDistribution {
  constructor([top, bottom], quarter) {
    Object.assign(this, { top, bottom, quarter });
    this.reach = quotientOf(top, bottom);
  }

  cells(point, source) {
    const uniforms = new Uniforms(source);
    return this.inDoubles(point, uniforms) ?? this.exactly(point, uniforms);
  }

  /**
   * Return the cells, or undefined where doubles do not know. In the frame of the place the noise has a part along the ground, at a
   * uniform bearing, and a normal one upward, which only changes how far the first is seen to go.
   */
  inDoubles(point, uniforms) {
    const { reach } = this;
    const [size, ofSize] = normalSize(uniforms.middle(0, 0));
    const [height, ofHeight] = normalSize(uniforms.middle(0, 2));
    const [, share] = circle(uniforms.middle(0, 3));
    const [aside, up] = [reach * size, 1 + reach * (height * share)];
    const [ofAside, ofUp] = [reach * ofSize, reach * ofHeight + 3 * UNIT * (1 + reach * height)];
    const length = root(aside * aside + up * up);
    if (!(64 * (ofAside + ofUp) < length)) return undefined;
    // a vector V moved by d turns by at most (|V_x d_y| + |V_y d_x|) / (|V|^2 - |V| |d|)
    const error = (1.1 * (Math.abs(up) * ofAside + aside * ofUp)) / (length * length);
    return travelled(point, [aside / length, up / length, error], uniforms.middle(0, 1), this.quarter) ?? undefined;
  }

  exactly(point, uniforms) {
    const extra = BigInt(this.quarter.toString(2).length + Math.ceil(Math.log2(this.reach + 1)) + 16);
    return settled((balls, words) => {
      const share = (k) => balls.uniform(uniforms.digits(0, k, words), 64n * words);
      const sizeOf = (k) => balls.root(balls.times(balls.log(share(k)), -2n));
      const sigma = balls.fraction(this.top, this.bottom);
      const [, cosine] = balls.circle(balls.times(balls.multiply(balls.pi, share(3)), 2n));
      const ahead = balls.add(balls.one, balls.multiply(sigma, balls.multiply(sizeOf(2), cosine)));
      return arrived(balls, point, [balls.multiply(sigma, sizeOf(0)), ahead], share(1), this.quarter);
    }, extra);
  }
}

/** Return a fraction as a double: a quotient of 200 bits, rounded, so within UNIT of itself and 2^-200 beside. */
const quotientOf = (top, bottom) => Number((top << 200n) / bottom) * 2 ** -200;

/** Walk an angle (sine, cosine and error) from a place at a bearing: the cells, `quarter` of them in 90 degrees, or null where unsure. */
function travelled([north, east], [sine, cosine, error], bearing, quarter) {
  const [sideways, ahead] = circle(bearing);
  const [sinStart, cosStart] = ofLatitude(north);
  const [n, e] = [sine * ahead, sine * sideways];
  const step = error + 24 * UNIT * sine;
  const level = error + 8 * UNIT;
  const out = cosStart * cosine - sinStart * n;
  const up = sinStart * cosine + cosStart * n;
  const ofOut = cosStart * (level + 10 * UNIT) + step + 10 * UNIT * sine;
  const ofUp = Math.abs(sinStart) * (level + 10 * UNIT) + step + 10 * UNIT * sine;
  const axis = root(out * out + e * e);
  const ofAxis = ofOut + step + 4 * UNIT * axis;
  const reach = axis + Math.abs(out);
  const side = out > 0 ? (e * e) / reach : reach;
  const beside = (1.2 * ((2 * Math.abs(e) + step) * step + side * (ofAxis + ofOut))) / reach;
  const ofSide = (out > 0 ? beside : ofAxis + ofOut) + 4 * UNIT * side;
  const [cross, dot] = [up * side, out * axis + up * up];
  const ofCross = ofSide * (Math.abs(up) + ofUp) + side * ofUp + 2 * UNIT * Math.abs(cross);
  const ofDot = 1.1 * (ofOut + ofAxis + 2 * ofUp) + 3 * UNIT;
  const length = n * n + cosine * cosine;
  if (!(axis > 64 * (ofOut + step) && length > 0.001 && ofCross + ofDot < 1e-6)) return null;
  const [rise, bend, turn] = [arctangent(n, cosine), arctangent(cross, dot), arctangent(e, out)];
  const ofRise = (1.1 / length) * (Math.abs(cosine) * step + Math.abs(n) * level);
  const ofBend = (1.1 / length) * (Math.abs(dot) * ofCross + Math.abs(cross) * ofDot);
  const ofTurn = (1.1 * (Math.abs(out) * step + Math.abs(e) * ofOut)) / (axis * axis);
  const scale = quarter * (2 / Math.PI);
  const height = sureCell(
    centreOf(north, quarter, 90), scale * (rise - bend), scale * (ofRise + ofBend + 20 * UNIT * (Math.abs(rise) + Math.abs(bend))),
  ); // prettier-ignore
  if (height === undefined) return null;
  const row = wrappedCell(height, quarter);
  if (Math.abs(row) === quarter) return [row, 0];
  const column = sureCell(centreOf(east, quarter, 90), scale * turn, scale * (ofTurn + 20 * UNIT * Math.abs(turn)));
  return column === undefined ? null : [row, wrappedCell(column, quarter)];
}

/** Return the cell of the same angle in [-180, 180) degrees. */
function wrappedCell(cell, quarter) {
  return cell - 4 * quarter * Math.floor((cell + 2 * quarter) / (4 * quarter));
}

/** Return the cells of the place that lies along a way (aside, ahead) from the centre, at a bearing of `turn`, in balls. */
function arrived(balls, [north, east], [aside, ahead], turn, cellsOfQuarter) {
  const quarter = BigInt(cellsOfQuarter);
  const start = balls.multiply(balls.pi, balls.fraction(toWhole(north), 180n << 1074n));
  const [sinStart, cosStart] = balls.circle(start);
  const [sideways, forward] = balls.circle(balls.times(balls.multiply(balls.pi, turn), 2n));
  const [n, e] = [balls.multiply(aside, forward), balls.multiply(aside, sideways)];
  const out = balls.subtract(balls.multiply(cosStart, ahead), balls.multiply(sinStart, n));
  const up = balls.add(balls.multiply(sinStart, ahead), balls.multiply(cosStart, n));
  const axis = balls.root(balls.add(balls.multiply(out, out), balls.multiply(e, e)));
  const cells = (angle) => balls.divide(balls.times(angle, 2n * quarter), balls.pi);
  const row = balls.cell(cells(balls.angle(up, axis)));
  if (row === quarter || row === -quarter) return [Number(row), 0];
  const centre = balls.fraction(toWhole(east) * quarter, 90n << 1074n);
  return [Number(row), wrappedCell(Number(balls.cell(balls.add(centre, cells(balls.angle(e, out))))), cellsOfQuarter)];
}

// ---------------------------------------------------------------------------------------------------- laplace.js

/** Noise on the Earth, in the plane and in space, for unit vectors and after a projection, released on a public lattice. */


const LARGEST_PRODUCT = 2 ** 31; // operations that opening a projection may take

/** Return Laplace noise on the Earth, `draw(point, source)`: a uniform bearing, then the great circle. */
function sphericalNoise({ metric, dimension }, epsilon, pitch) {
  refuse(metric.name !== "Haversine" || dimension !== 2, "its noise does not belong to its metric");
  const lattice = new Lattice(pitch);
  checkPoles(pitch);
  const perKm = epsilon * perKilometre(metric.unit);
  checkPitch((8.8 * ((6 + 68 * 21) / (perKm * radians(EARTH_RADIUS_KM)) + 8 * 180) * 2 ** -52) / pitch);
  const [radius, parts] = radiusOf(metric.unit);
  const distribution = new SphereDistribution([toWhole(epsilon) * radius, parts << 1074n], rint(90 / pitch));
  return (point, source) => distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
}

/** Read Laplace noise on the Earth. */
function readSphericalLaplace(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const draw = sphericalNoise(inputs, body.epsilon, body.pitch);
  checkGuarantee(guarantee, body.epsilon);
  return { inputs, outputs: inputs, draw, rate: body.epsilon, reach: earthReach(inputs.metric.unit, body.pitch) };
}

/** Return a bound of the share of draws that doubles leave undecided; the reasons stand with VectorLaplace in Python. */
function undecidedShare({ metric, dimension: n }, epsilon, pitch) {
  const p = metric.name === "Lp" ? metric.parameters.p : 2;
  const displaced = (widestOf(metric) * (3 * n + (64 + 2 * n) * (20 + n / 2)) * 2 ** -52) / epsilon;
  return (4.4 * n ** (1 - 1 / p) * displaced) / pitch;
}

/** Return the distribution of the noise of a space on a lattice of `ratio` cells in a unit. */
function distributionOf({ metric, dimension }, ratio, epsilon) {
  const mahalanobis = metric.name === "Mahalanobis";
  return new VectorDistribution({
    p: mahalanobis ? 2 : metric.parameters.p, dimension, ratio, epsilon, covariance: mahalanobis ? metric.covariance : null,
  });
}

/** Return Laplace noise for vectors, `draw(point, source)`: density proportional to exp(-epsilon d(x, y)), in whole cells. */
function vectorNoise(space, epsilon, pitch) {
  checkVectors(space);
  const lattice = new Lattice(pitch);
  checkPitch(undecidedShare(space, epsilon, pitch));
  const distribution = distributionOf(space, lattice.ratio, epsilon);
  return (point, source) => {
    lattice.refuseFar(point);
    return distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  };
}

/** Read Laplace noise for vectors. */
function readVectorLaplace(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const draw = vectorNoise(inputs, body.epsilon, body.pitch);
  checkGuarantee(guarantee, body.epsilon);
  return { inputs, outputs: inputs, draw, rate: body.epsilon, reach: cellReach(inputs, body.pitch) };
}

/** Read noise for unit vectors: density proportional to exp(-epsilon * angle), or to exp(epsilon <x, y>) under l_2. */
function readDirectionNoise(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const { metric, dimension: n } = inputs;
  const isAngle = metric.name === "Angular";
  refuse(!isAngle && !(metric.name === "Lp" && metric.parameters.p === 2 && n >= 3), "its noise does not belong to its metric");
  refuse(body.pitch * Math.sqrt(n) > 1, "its lattice is too coarse for unit vectors");
  checkPitch(((2 * (4 * n + 80) * Math.sqrt(n)) / body.pitch + 2e4 * n) * UNIT);
  checkGuarantee(guarantee, body.epsilon);
  const lattice = new Lattice(body.pitch);
  const distribution = new DirectionDistribution(new Profile(isAngle ? "angle" : "height", n, body.epsilon, metric.unit === "deg"), lattice.ratio);
  const draw = (point, source) => distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  return { inputs, outputs: { metric, dimension: n }, draw };
}

/** Read l_2 noise around A x, which keeps its rate times the norm of A: so (epsilon / rate)^2 - A A^T has no negative direction. */
function readProjectedLaplace(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const { metric, dimension: n } = inputs;
  const [k] = file.shape(body.matrix);
  const data = file.floats(body.matrix, [k, n], "its projection");
  refuse(metric.name !== "Lp" || metric.parameters.p !== 2 || k > n, "its noise does not belong to its metric");
  if (k * k * n > LARGEST_PRODUCT) throw new Unsupported("this module does not draw from a projection of this size.");
  const matrix = Array.from({ length: k }, (_, i) => Array.from(data.subarray(i * n, (i + 1) * n)));
  const allowed = guarantee.epsilon / body.epsilon;
  const room = new Float64Array(k * k);
  for (let i = 0; i < k; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let c = 0; c < n; c++) sum += (matrix[i][c] / allowed) * (matrix[j][c] / allowed);
      room[i * k + j] = (i === j ? 1 + CONSTANTS.rounding : 0) - sum;
    }
  }
  refuse(guarantee.basis !== "none" && !isPositiveDefinite(room, k), "its noise does not satisfy its guarantee");
  const lattice = new Lattice(body.pitch);
  checkPitch(undecidedShare({ metric, dimension: k }, body.epsilon, body.pitch));
  const distribution = new VectorDistribution({ p: 2, dimension: k, ratio: lattice.ratio, epsilon: body.epsilon, matrix });
  const draw = (point, source) => {
    lattice.refuseFar(distribution.places(point).map(([x]) => x));
    return distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  };
  return { inputs, outputs: { metric, dimension: k }, draw };
}

// ---------------------------------------------------------------------------------------------------- bags.js

/** Noise for rows of several vectors: bags, whose order is not told, and curves, of which only the outline is. */


const NOISE_OF = { Lp: vectorNoise, Mahalanobis: vectorNoise, Haversine: sphericalNoise, Hyperbolic: hyperbolicNoise };

/** Order rows by their first coordinate, those with equal ones by the second, and so on. */
function byCoordinates(one, other) {
  const k = one.findIndex((value, at) => value !== other[at]);
  return k < 0 ? 0 : one[k] - other[k];
}

/** Return the vectors of a row, `size` coordinates each. */
const vectorsOf = (row, size) => Array.from({ length: row.length / size }, (_, k) => Array.from(row.slice(k * size, (k + 1) * size)));

/** Read noise for bags of vectors: every vector gets noise of its own, and the reports come in lexicographic order. */
function readBagLaplace(body, file, guarantee) {
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
function readOutlineLaplace(body, file, guarantee) {
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

// ---------------------------------------------------------------------------------------------------- gaussian.js

/** Normal noise, released on a public lattice: a concentrated guarantee, never a pure one. */


const DISPLACED = 40; // times 2^-52 of sigma: the mean error of a normal number in doubles, with room
const UP = 6; // standard deviations that noise upward goes down with a probability below ONE_IN
const ONE_IN = 1e-9;

/** Refuse a guarantee that the noise does not satisfy: 2 rho sigma^2 must be at least one, exactly. */
function checkRho({ rho }, sigma) {
  refuse(2n * toWhole(rho) * toWhole(sigma) ** 2n < 1n << 3222n, "its noise does not satisfy its guarantee");
}

/** Return how far a pair of normal numbers goes with a probability of `level`, in standard deviations. */
const pairWithin = (level) => Math.sqrt(-2 * Math.log1p(-level)) * (1 + 2 ** -48);

/** Read normal noise for vectors: y = x + sigma L z, L L^T the covariance of the metric, or 1. */
function readGaussianNoise(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const { metric, dimension: n } = inputs;
  checkVectors(inputs);
  const mahalanobis = metric.name === "Mahalanobis";
  refuse(!mahalanobis && metric.parameters.p !== 2 && n !== 1, "its noise does not belong to its metric");
  const { sigma, pitch } = body;
  const lattice = new Lattice(pitch);
  checkPitch((4.4 * n * (DISPLACED + n) * 2 ** -52 * sigma * widestOf(metric)) / pitch);
  checkRho(guarantee, sigma);
  const distribution = new VectorDistribution({ dimension: n, ratio: lattice.ratio, sigma, covariance: mahalanobis ? metric.covariance : null });
  const draw = (point, source) => {
    lattice.refuseFar(point);
    return distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  };
  const within = n === 2 ? (level) => sigma * pairWithin(level) + cellReach(inputs, pitch) : null;
  return { inputs, outputs: inputs, draw, within };
}

/** Read normal noise for places on the Earth: added in space, then seen from the centre of the Earth. */
function readSphericalGaussian(body, file, guarantee) {
  const inputs = file.space(body.inputs);
  const { metric, dimension } = inputs;
  const { sigma, pitch } = body;
  refuse(metric.name !== "Haversine" || dimension !== 2, "its noise does not belong to its metric");
  checkPoles(pitch);
  const degree = radians(EARTH_RADIUS_KM) * perKilometre(metric.unit);
  checkPitch((4.4 * 2 * ((4 * DISPLACED * sigma) / degree + 8 * 180) * 2 ** -52) / pitch);
  checkRho(guarantee, sigma);
  const lattice = new Lattice(pitch);
  const [radius, parts] = radiusOf(metric.unit);
  const distribution = new SphereGaussianDistribution([toWhole(sigma) * parts, radius << 1074n], rint(90 / pitch));
  const draw = (point, source) => distribution.cells(Array.from(point), source).map((cell) => lattice.value(cell));
  /**
   * Noise along the ground is seen farther the deeper the other part goes: not below 1 - 6 reach but for a probability of 1e-9. The angle is
   * at most its tangent.
   */
  const within = (level) => {
    const up = 1 - UP * distribution.reach;
    if (!(up > 0.5) || !(level < 1 - ONE_IN)) return 180 * degree; // anywhere on the Earth
    return (sigma * pairWithin(level / (1 - ONE_IN))) / up + earthReach(metric.unit, pitch);
  };
  return { inputs, outputs: inputs, draw, within };
}

// ---------------------------------------------------------------------------------------------------- curves.js

/** The curve along which a distribution moves between two anchors, and exact coin flips on it. */


/** Read the log-ratios that shape the curves; half of a smaller one is no ordinary double, and the curve would jump. */
function readRatios(file, name, count) {
  const ratios = file.floats(name, [count], "its ratios");
  for (const ratio of ratios) refuse(!(ratio === 0 || ratio >= CONSTANTS.smallest_ratio), "two distributions cannot have such a ratio");
  return ratios;
}

/** Return the share of the far anchor at `position` in [0, 1/2] from the near one, and the length of the curve. */
function nearShare(position, ratio) {
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
function flip(position, ratio, exactly, source, blur = 0) {
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
function mixed(table, corners) {
  const result = new Float64Array(table.reports);
  for (const [row, weight] of corners) table.distribution(row).forEach((value, k) => (result[k] += weight * value));
  return result;
}

// ---------------------------------------------------------------------------------------------------- rows.js

/** Rows of probabilities, and exact draws from them. */


const CACHED_ROWS = 4096; // running sums are cached for at most this many rows
const LARGEST_SUM_ERROR = 1e-3;

/**
 * Rows of probabilities in any storage. A draw is exact with respect to row / sum(row) of the stored numbers: a 64-bit
 * word is compared with running sums in doubles whose error is bounded, and a word within that bound of a boundary
 * (about one in a billion) is decided with whole numbers of any length and further random bits.
 */
class Rows {
  /** `columns` are the reports in use, or null where all are stored; `bits` belongs to whole numbers, `present` to zeros. */
  constructor({ rows, reports, columns, values, storage, bits = null, present = null }) {
    this.rows = rows;
    this.reports = reports;
    this.columns = columns;
    this.values = values;
    this.storage = storage;
    this.bits = bits;
    this.present = present;
    this.width = columns === null ? reports : columns.length;
    this.cache = new Map();
    if (present !== null) this.starts = startsOf(present, rows, this.width);
  }

  /** Return the numbers of a row, one for every stored report. */
  weights(row) {
    const used = this.width;
    if (this.present === null) return this.values.subarray(row * used, (row + 1) * used);
    const result = new Float64Array(used);
    let at = this.starts[row];
    for (let k = 0; k < used; k++) if (bitAt(this.present, row * used + k)) result[k] = this.values[at++];
    return result;
  }

  /** Return the distribution of a row over all reports. */
  distribution(row) {
    const weights = this.weights(row);
    const total = this.bits === null ? sumOf(weights) : 2 ** this.bits;
    const result = new Float64Array(this.reports);
    for (let k = 0; k < weights.length; k++) result[this.report(k)] = Number(weights[k]) / total;
    return result;
  }

  /** Return [report, probability] of reports that hold at least `level` together: all of them. */
  likely(row) {
    return Array.from(this.distribution(row), (probability, k) => [k, probability]);
  }

  report(k) {
    return this.columns === null ? k : Number(this.columns[k]);
  }

  running(row) {
    let sums = this.cache.get(row);
    if (sums === undefined) {
      if (this.cache.size >= CACHED_ROWS) this.cache.clear();
      sums = this.bits === null ? shares(this.weights(row)) : counted(this.weights(row));
      this.cache.set(row, sums);
    }
    return sums;
  }

  draw(row, source) {
    source.next();
    const sums = this.running(row);
    if (this.bits === null) return this.report(drawShares(sums, () => wholesOf(this.weights(row)), source));
    // The leading bits of the word are a uniform whole number below 2^bits; counts and their sums are exact.
    const { high, low } = source;
    const { bits } = this;
    const place = bits <= 32 ? high >>> (32 - bits) : high * 2 ** (bits - 32) + (low >>> (64 - bits));
    return this.report(firstAbove(sums, place));
  }
}

/** Return whether a bit is set, the first one being the lowest of the first byte. */
const bitAt = (bytes, bit) => (bytes[Math.floor(bit / 8)] >> (bit % 8)) & 1;

function startsOf(present, rows, width) {
  const starts = new Float64Array(rows + 1);
  for (let row = 0; row < rows; row++) {
    let count = 0;
    for (let bit = row * width; bit < (row + 1) * width; bit++) count += bitAt(present, bit);
    starts[row + 1] = starts[row] + count;
  }
  return starts;
}

function sumOf(weights) {
  let total = 0;
  for (const weight of weights) total += weight;
  return total;
}

/** Return running sums divided by the total. */
function shares(weights) {
  const sums = new Float64Array(weights.length);
  let total = 0;
  for (let k = 0; k < weights.length; k++) sums[k] = total += weights[k];
  for (let k = 0; k < sums.length; k++) sums[k] /= total;
  return sums;
}

function counted(counts) {
  const sums = new Float64Array(counts.length);
  let total = 0; // at most 2^52: exact
  for (let k = 0; k < counts.length; k++) sums[k] = total += Number(counts[k]);
  return sums;
}

/** Return the first place whose running sum is above the value, or the last place. */
function firstAbove(sums, value) {
  let low = 0;
  let high = sums.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sums[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Return the place that the word in `source` falls into; `wholes` gives the weights exactly, where doubles cannot tell. */
function drawShares(sums, wholes, source) {
  const { high, low } = source;
  const level = (high * 4294967296 + low) * 2 ** -64;
  const k = firstAbove(sums, level);
  const band = (sums.length + 16) * ULP; // rounding of the running sum, of the division and of the level
  const unsure = sums[k] - level <= band || (k > 0 && level - sums[k - 1] <= band) || level >= 1 - band;
  return unsure ? exactPlace(wholes(), high, low, source) : k;
}

/** Read the probabilities of a body with the given numbers of rows and reports, or the file is refused before anything is built. */
function readRows(entry, file, rows, reports) {
  refuse(rows * reports > CONSTANTS.largest_matrix, "its matrix is too large");
  if (typeof entry === "string") {
    const values = file.floats(entry, [rows, reports], "its matrix");
    return checkedRows(new Rows({ rows, reports, columns: null, values, storage: "dense" }));
  }
  refuse(entry.shape[0] !== rows || entry.shape[1] !== reports, "its matrix does not fit its spaces");
  const columns = file.counts(entry.columns, [null], "its columns");
  for (let k = 0; k < columns.length; k++) {
    refuse(Number(columns[k]) >= reports || (k > 0 && columns[k] <= columns[k - 1]), "its reports are not in order");
  }
  const table = { rows, reports, columns, storage: entry.storage };
  return entry.storage === "sparse" ? sparse(entry, file, table) : quantised(entry, file, table);
}

function sparse(entry, file, table) {
  const values = file.floats(entry.values, [null], "its probabilities");
  const cells = table.rows * table.columns.length;
  let present = null;
  let expected = cells;
  if (entry.present !== null) {
    present = file.bits(entry.present, [Math.ceil(cells / 8)], "its bits");
    expected = 0;
    for (let bit = 0; bit < 8 * present.length; bit++) {
      refuse(bit >= cells && bitAt(present, bit), "its bits do not fit its probabilities");
      expected += bitAt(present, bit);
    }
  }
  refuse(expected !== values.length, "its bits do not fit its probabilities");
  for (const value of values) refuse(!(value > 0), "a stored probability is not positive");
  return checkedRows(new Rows({ ...table, values, present }));
}

function quantised(entry, file, table) {
  const values = file.counts(entry.counts, [table.rows, table.columns.length], "its counts");
  const rows = new Rows({ ...table, values, bits: entry.bits });
  for (let row = 0; row < rows.rows; row++) {
    let total = 0; // counts are at most 2^64 and a few of them reach 2^53: then the sum is no longer 2^bits either
    for (const count of rows.weights(row)) total += Number(count);
    refuse(total !== 2 ** entry.bits, `a row of counts does not sum to 2^${entry.bits}`);
  }
  return rows;
}

function checkedRows(table) {
  for (let row = 0; row < table.rows; row++) {
    let total = 0;
    for (const value of table.weights(row)) {
      refuse(!(value >= 0), "a stored probability is negative or not a number");
      total += value;
    }
    refuse(!(Math.abs(total - 1) <= LARGEST_SUM_ERROR), "a row of probabilities does not sum to 1");
  }
  return table;
}

/** Read a table of probabilities with one row per secret. */
function readMatrix(body, file) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  const table = readRows(body.matrix, file, inputs.size, outputs.size);
  return { inputs, outputs, table, draw: (code, source) => table.draw(code, source), distribution: (code) => table.distribution(code) };
}

// ---------------------------------------------------------------------------------------------------- interpolated.js

/** Mechanisms on a box: distributions at a grid of anchors and a rule for the points between them. */


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
function readInterpolated(body, file) {
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

// ---------------------------------------------------------------------------------------------------- distances.js

/**
 * True distances of the secrets of a kernel: in doubles within `relative` of themselves and `absolute` beside, NaN where doubles lost
 * something, and as balls of whole numbers. The metrics are those whose distance is a real number (src/metricdp/metrics/balls.py).
 */


const SAFE_SQUARES = [2 ** -900, 2 ** 900]; // sums of squares between these have lost nothing to under- or overflow
const SAFE_GAPS = [2 ** -450, 2 ** 450];

/** Return the length of a vector, NaN where doubles cannot be trusted with its squares. */
function lengthOf(squares) {
  return squares === 0 || (squares > SAFE_SQUARES[0] && squares < SAFE_SQUARES[1]) ? root(squares) : NaN;
}

const doublesOf = ({ data }) => (data instanceof Float64Array ? data : Float64Array.from(data, Number));

const GAPS = {
  1: (a, i, j, n) => {
    let total = 0;
    for (let k = 0; k < n; k++) total += Math.abs(a[i + k] - a[j + k]);
    return total;
  },
  2: (a, i, j, n) => {
    let total = 0;
    let lost = false;
    for (let k = 0; k < n; k++) {
      const gap = a[i + k] - a[j + k];
      total += gap * gap;
      lost ||= gap !== 0 && Math.abs(gap) < 2 ** -450;
    }
    return lost ? NaN : lengthOf(total);
  },
  Infinity: (a, i, j, n) => {
    let largest = 0;
    for (let k = 0; k < n; k++) largest = Math.max(largest, Math.abs(a[i + k] - a[j + k]));
    return largest;
  },
};

/** Vectors under l1, l2 or the largest gap. */
class Lengths {
  constructor(p, points) {
    this.p = p;
    this.data = doublesOf(points);
    this.width = points.width;
    this.relative = (this.width + 12) * UNIT;
    this.absolute = this.width * 2 ** -1021;
    this.between = GAPS[p];
  }

  measure(i, j) {
    return this.between(this.data, i * this.width, j * this.width, this.width);
  }

  ball(balls, i, j) {
    let total = balls.fraction(0n, 1n);
    for (let k = 0; k < this.width; k++) {
      let gap = balls.subtract(balls.double(this.data[i * this.width + k]), balls.double(this.data[j * this.width + k]));
      if (gap.m < 0n) gap = balls.negative(gap);
      if (this.p === 2) total = balls.add(total, balls.multiply(gap, gap));
      else if (this.p === 1) total = balls.add(total, gap);
      else total = { m: gap.m > total.m ? gap.m : total.m, r: gap.r > total.r ? gap.r : total.r };
    }
    return this.p === 2 ? balls.root(total) : total;
  }
}

/** Vectors under another l_p: m (sum (x / m)^p)^(1/p), m the largest gap. */
class Powers {
  constructor(p, points) {
    this.p = p;
    this.data = doublesOf(points);
    this.width = points.width;
    // A power of a ratio is within (10 |exponent| + 2 p + 6) UNIT of itself, and of the sum the p-th root is taken; below e^-60
    // powers no longer count. From 2^40 on the largest gap is within n^(1/p) of the distance.
    this.steep = p >= 2 ** 40;
    this.relative = (14 * this.width + 64) * UNIT + (this.steep ? Math.log(this.width) * 2 ** -39 : 0);
    this.absolute = this.width * 2 ** -1021;
  }

  measure(i, j) {
    const largest = GAPS.Infinity(this.data, i * this.width, j * this.width, this.width);
    if (largest === 0 || this.steep) return largest;
    if (!(largest > SAFE_GAPS[0] && largest < SAFE_GAPS[1])) return NaN;
    let total = 0;
    for (let k = 0; k < this.width; k++) {
      const gap = Math.abs(this.data[i * this.width + k] - this.data[j * this.width + k]) / largest;
      const exponent = gap > 0 ? this.p * logOf(gap) : -Infinity;
      if (exponent > -60) total += expOf(exponent);
    }
    return largest * expOf(logOf(total) / this.p);
  }

  ball(balls, i, j) {
    const gaps = [];
    let largest = balls.fraction(0n, 1n);
    for (let k = 0; k < this.width; k++) {
      const exact = toWhole(this.data[i * this.width + k]) - toWhole(this.data[j * this.width + k]);
      if (exact === 0n) continue;
      const gap = balls.fraction(exact < 0n ? -exact : exact, 1n << 1074n);
      gaps.push(gap);
      if (gap.m > largest.m) largest = gap;
    }
    if (gaps.length === 0) return largest;
    const power = balls.double(this.p);
    const total = gaps
      .map((gap) => balls.exp(balls.multiply(power, balls.log(balls.divide(gap, largest)))))
      .reduce((a, b) => balls.add(a, b));
    return balls.multiply(largest, balls.exp(balls.divide(balls.log(total), power)));
  }
}

/** Vectors under a Mahalanobis metric: the lengths of L^-1 (x - y), L the Cholesky factor of the covariance. */
class Whitened {
  constructor({ covariance }, points) {
    const n = points.width;
    this.data = doublesOf(points);
    this.width = n;
    this.covariance = covariance;
    const inverse = settled((balls) => {
      const rows = inverseOf(balls, exactFactor(balls, covariance, n));
      for (const row of rows) for (const { r } of row) if (r > row[row.length - 1].m >> 90n) throw UNDECIDED;
      return rows.map((row) => row.map(({ m }) => Number(m) * 2 ** -Number(balls.places)));
    }, 256n);
    // Points are put where the first is zero. A coordinate is a sum of n products, each off by 2 UNIT and the sum by n; an entry
    // is known within UNIT of itself and 2^-90 of the diagonal.
    this.units = new Float64Array(this.data.length);
    const widest = new Float64Array(n);
    const size = this.data.length / n;
    for (let i = 0; i < size; i++) {
      for (let k = 0; k < n; k++) widest[k] = Math.max(widest[k], Math.abs(this.data[i * n + k] - this.data[k]));
      for (let c = 0; c < n; c++) {
        let sum = 0;
        for (let k = 0; k <= c; k++) sum += inverse[c][k] * (this.data[i * n + k] - this.data[k]);
        this.units[i * n + c] = sum;
      }
    }
    let squares = 0;
    inverse.forEach((row, c) => {
      let sum = 0;
      row.forEach((x, k) => (sum += (Math.abs(x) + row[c] * 2 ** -36) * widest[k]));
      squares += ((n + 6) * UNIT * sum) ** 2;
    });
    this.relative = (n + 12) * UNIT;
    this.absolute = 2.1 * Math.sqrt(squares) + n * 2 ** -1021;
    this.known = null;
  }

  measure(i, j) {
    return GAPS[2](this.units, i * this.width, j * this.width, this.width);
  }

  ball(balls, i, j) {
    if (this.known?.balls !== balls) this.known = { balls, factor: exactFactor(balls, this.covariance, this.width) };
    const found = [];
    let total = balls.fraction(0n, 1n);
    this.known.factor.forEach((row, c) => {
      let rest = balls.fraction(toWhole(this.data[i * this.width + c]) - toWhole(this.data[j * this.width + c]), 1n << 1074n);
      for (let k = 0; k < c; k++) rest = balls.subtract(rest, balls.multiply(row[k], found[k]));
      found.push(balls.divide(rest, row[c]));
      total = balls.add(total, balls.multiply(found[c], found[c]));
    });
    return balls.root(total);
  }
}

/** Return the inverse of a lower triangle of balls, row by row. */
function inverseOf(balls, factor) {
  const rows = [];
  factor.forEach((row, i) => {
    const made = row.map((_, j) => {
      if (j === i) return balls.divide(balls.one, row[i]);
      let sum = { m: 0n, r: 0n };
      for (let k = j; k < i; k++) sum = balls.add(sum, balls.multiply(row[k], rows[k][j]));
      return balls.negative(balls.divide(sum, row[i]));
    });
    rows.push(made);
  });
  return rows;
}

/** Vectors under the angle between them. */
class Angles {
  constructor(unit, points) {
    this.degrees = unit === "deg";
    this.data = doublesOf(points);
    this.width = points.width;
    const scale = this.degrees ? 180 / Math.PI : 1;
    this.relative = 32 * UNIT;
    this.absolute = (4 * this.width + 64) * UNIT * scale;
    this.units = new Float64Array(this.data.length);
    for (let at = 0; at < this.data.length; at += this.width) {
      let squares = 0;
      for (let k = 0; k < this.width; k++) squares += this.data[at + k] ** 2;
      const length = lengthOf(squares);
      for (let k = 0; k < this.width; k++) this.units[at + k] = this.data[at + k] / length;
    }
  }

  measure(i, j) {
    let [apart, along] = [0, 0];
    for (let k = 0; k < this.width; k++) {
      const [a, b] = [this.units[i * this.width + k], this.units[j * this.width + k]];
      apart += (a - b) ** 2;
      along += (a + b) ** 2;
    }
    if (!(apart + along > 0)) return NaN;
    const angle = 2 * arctangent(root(apart), root(along));
    return this.degrees ? angle * (180 / Math.PI) : angle;
  }

  ball(balls, i, j) {
    const [a, b] = [this.direction(balls, i), this.direction(balls, j)];
    const along = (combine) =>
      balls.root(a.map((x, k) => combine(x, b[k])).reduce((sum, x) => balls.add(sum, balls.multiply(x, x)), balls.fraction(0n, 1n)));
    const apart = along((x, y) => balls.subtract(x, y));
    const angle = balls.times(balls.angle(apart, along((x, y) => balls.add(x, y))), 2n);
    return this.degrees ? balls.divide(balls.times(angle, 180n), balls.pi) : angle;
  }

  direction(balls, i) {
    const row = Array.from({ length: this.width }, (_, k) => balls.double(this.data[i * this.width + k]));
    const length = balls.root(row.reduce((sum, x) => balls.add(sum, balls.multiply(x, x)), balls.fraction(0n, 1n)));
    return row.map((x) => balls.divide(x, length));
  }
}

/** Points of the open unit ball under the hyperbolic metric: 2 asinh(|x - y| / sqrt((1 - |x|^2) (1 - |y|^2))). */
class Curved {
  constructor(points) {
    this.data = doublesOf(points);
    this.width = points.width;
    this.relative = (this.width + 24) * UNIT;
    this.absolute = 64 * UNIT; // of the logarithm near one, and of the twice
    // What is left to the border is known to UNIT: the sum of squares is exact.
    const places = 1n << 2148n;
    this.rooms = Float64Array.from({ length: this.data.length / this.width }, (_, i) => {
      const room = places - this.#squares(i);
      refuse(room <= 0n, "its metric cannot measure one of its points");
      return nearest(room, 2148);
    });
  }

  #squares(i) {
    let total = 0n;
    for (let k = 0; k < this.width; k++) total += toWhole(this.data[i * this.width + k]) ** 2n;
    return total;
  }

  measure(i, j) {
    const apart = GAPS[2](this.data, i * this.width, j * this.width, this.width);
    const room = this.rooms[i] * this.rooms[j];
    const away = apart / root(room);
    return room > SAFE_SQUARES[0] && away < SAFE_GAPS[1] ? 2 * logOf(away + root(away * away + 1)) : NaN;
  }

  ball(balls, i, j) {
    let apart = balls.fraction(0n, 1n);
    for (let k = 0; k < this.width; k++) {
      const gap = balls.fraction(toWhole(this.data[i * this.width + k]) - toWhole(this.data[j * this.width + k]), 1n << 1074n);
      apart = balls.add(apart, balls.multiply(gap, gap));
    }
    const [one, other] = [i, j].map((at) => balls.fraction((1n << 2148n) - this.#squares(at), 1n << 2148n));
    const away = balls.divide(balls.root(apart), balls.root(balls.multiply(one, other)));
    return balls.times(balls.log(balls.add(away, balls.root(balls.add(balls.multiply(away, away), balls.one)))), 2n);
  }
}

/** Places on the Earth: directions of three coordinates, and twice the arctangent of |u - v| over |u + v|. */
class Places {
  constructor({ unit }, points) {
    const scale = perKilometre(unit);
    this.data = doublesOf(points);
    this.radius = EARTH_RADIUS_KM * scale;
    this.unit = unit;
    this.relative = 32 * UNIT;
    this.absolute = 256 * UNIT * this.radius; // every coordinate of a direction is within 32 UNIT
    this.units = new Float64Array((this.data.length / 2) * 3);
    for (let i = 0; i < this.data.length / 2; i++) {
      const [up, out] = ofLatitude(this.data[2 * i]);
      const [sine, cosine] = circle(mod(this.data[2 * i + 1], 360) / 360);
      this.units.set([out * cosine, out * sine, up], 3 * i);
    }
  }

  measure(i, j) {
    let [apart, along] = [0, 0];
    for (let k = 0; k < 3; k++) {
      const [a, b] = [this.units[3 * i + k], this.units[3 * j + k]];
      apart += (a - b) ** 2;
      along += (a + b) ** 2;
    }
    return 2 * this.radius * arctangent(root(apart), root(along));
  }

  /** Return the angle between two places. */
  angle(balls, i, j) {
    const whole = (at) => toWhole(this.data[at]);
    const turn = (angle) => balls.circle(balls.multiply(balls.pi, balls.fraction(angle, 360n << 1074n)));
    const [north, south] = [whole(2 * i), whole(2 * j)];
    const [[, one], [, other]] = [turn(2n * north), turn(2n * south)];
    const parallels = balls.multiply(one, other);
    const [sine, cosine] = turn(whole(2 * i + 1) - whole(2 * j + 1));
    const square = (x) => balls.multiply(x, x);
    const away = balls.root(balls.add(square(turn(north - south)[0]), balls.multiply(parallels, square(sine))));
    const back = balls.root(balls.add(square(turn(north + south)[0]), balls.multiply(parallels, square(cosine))));
    return balls.times(balls.angle(away, back), 2n);
  }

  ball(balls, i, j) {
    const [metres, pieces] = fractionOf(CONSTANTS.metres[this.unit]);
    const radius = balls.fraction(toWhole(EARTH_RADIUS_KM) * 1000n * pieces, metres << 1074n);
    return balls.multiply(this.angle(balls, i, j), radius);
  }
}

/** Words and symbols: how many edits or places they differ by, a whole number. */
class Counted {
  constructor(count, points) {
    this.rows = Array.from({ length: points.size }, (_, i) => points.row(i));
    this.count = count;
    this.relative = this.absolute = 0;
  }

  measure(i, j) {
    return this.count(this.rows[i], this.rows[j]);
  }

  ball(balls, i, j) {
    return balls.fraction(BigInt(this.measure(i, j)), 1n);
  }
}

const MEASURES = {
  Lp: ({ parameters: { p } }, points) => (Object.hasOwn(GAPS, p) ? new Lengths(p, points) : new Powers(p, points)),
  Mahalanobis: (metric, points) => new Whitened(metric, points),
  Angular: ({ unit }, points) => new Angles(unit, points),
  Hyperbolic: (_, points) => new Curved(points),
  Haversine: (metric, points) => new Places(metric, points),
  Levenshtein: (_, points) => new Counted((a, b) => edits(a[0], b[0]), points),
  Hamming: ({ measure }, points) => new Counted(measure, points),
};

/** Return the true distances of a space: `measure(i, j)` and `ball(balls, i, j)` of codes, and the errors of the first. */
function trueDistances({ metric, points }) {
  if (!Object.hasOwn(MEASURES, metric.name)) throw new Unsupported("this module does not draw from a kernel in this metric.");
  return MEASURES[metric.name](metric, points);
}

// ---------------------------------------------------------------------------------------------------- kernel.js

/**
 * Kernels over small vocabularies: Pr[k | i] = w_k exp(-a min(d(i, k), cap)) / N_i in real numbers of the stored points.
 *
 * A draw is one uniform number, of which further bits are read where they are needed. The reports share the interval from 0 to
 * 1 by their probabilities: the secret itself first, then all others in their order. Doubles decide where their proven error
 * leaves no doubt, balls of whole numbers elsewhere: the same words give the same report as in Python. What a file says about
 * its normalisers is not used, and nothing is remembered of what was asked.
 */


const LARGEST_EXPONENT = 600.6; // of the farthest report; below, exp stays an ordinary double
const WIDEST_WEIGHTS = 90; // logarithm of the largest weight over the smallest
const EXTRA = 64n; // places of balls, for what large numbers take

/** Return the smaller of two balls, or one that holds both where that is not sure. */
function lesser(a, b) {
  if (a.m + a.r <= b.m - b.r) return a;
  if (b.m + b.r <= a.m - a.r) return b;
  const apart = a.m > b.m ? a.m - b.m : b.m - a.m;
  return { m: (a.m + b.m) >> 1n, r: apart + (a.r > b.r ? a.r : b.r) + 1n };
}

/** The rows of a kernel, each made when it is asked for. */
class KernelRows {
  constructor(metric, size, { inner, cap, logs }) {
    this.metric = metric;
    this.rows = this.reports = size;
    this.storage = "dense";
    this.inner = inner;
    this.cap = cap ?? Infinity;
    this.logs = logs;
    this.shift = logs === null ? 0 : logs.reduce((most, log) => Math.max(most, log), -Infinity);
    const least = logs === null ? 0 : logs.reduce((low, log) => Math.min(low, log), Infinity);
    refuse(this.shift - least > WIDEST_WEIGHTS, "its weights differ too much");
    this.weights = logs === null ? null : logs.map((log) => expOf(log - this.shift));
    let away = 0;
    for (let k = 0; k < size; k++) away = Math.max(away, metric.measure(0, k));
    const farthest = 2 * (away * (1 + 2 * metric.relative) + metric.absolute); // no two are farther apart than twice that
    const reach = farthest <= this.cap ? farthest : this.cap; // also where `farthest` is no number
    refuse(!(inner * reach <= LARGEST_EXPONENT), "its exponents are larger than doubles hold");
    const roundings = 4 * (inner * reach + this.shift - least + Math.abs(this.shift)) + size + 24;
    /** A bound of the relative error of any sum of terms of a row. */
    this.error = 1.01 * (inner * (metric.relative * reach + metric.absolute) + roundings * UNIT);
  }

  /** Return the terms of a row, relative to the largest weight; NaN where doubles lost a distance. */
  terms(row) {
    const result = new Float64Array(this.reports);
    for (let k = 0; k < result.length; k++) {
      const away = k === row ? 0 : this.metric.measure(row, k);
      const term = expOf(-this.inner * Math.min(away, this.cap));
      result[k] = this.weights === null ? term : term * this.weights[k];
    }
    return result;
  }

  draw(row, source) {
    const uniforms = new Uniforms(source);
    const [high, low] = uniforms.word(0, 0, 0);
    return this.#located(row, high * 4294967296 + low) ?? this.#decided(row, uniforms);
  }

  /**
   * Return the report that a word stands for, or undefined where doubles leave it open. With t the secret's own term and O the
   * sum of the others, report k is the first with t_0 + ... + t_k > U (t + O) - t.
   */
  #located(row, word) {
    const terms = this.terms(row);
    const own = terms[row];
    terms[row] = 0;
    let others = 0;
    for (let k = 0; k < terms.length; k++) others += terms[k];
    const total = own + others;
    const margin = 2 * this.error * others + 16 * UNIT * total;
    const low = word * 2 ** -64 * total - own;
    const high = low + 2 ** -64 * total;
    if (!(low >= 0)) return high + margin < 0 || others === 0 ? row : undefined; // undefined too where a term is no number
    const final = row === terms.length - 1 ? row - 1 : terms.length - 1; // no report lies beyond, whatever the sums say
    let before = 0;
    for (let k = 0; k < terms.length; k++) {
      const after = before + terms[k];
      if (after > low) return before + margin < low && (k === final || high + margin < after) ? k : undefined;
      before = after;
    }
    return undefined;
  }

  /** Return the report of one draw in balls of whole numbers: as many words of it as it takes. */
  #decided(row, uniforms) {
    const order = [row];
    for (let k = 0; k < this.reports; k++) if (k !== row) order.push(k);
    return settled((balls, words) => {
      const [inner, cap] = [balls.double(this.inner), this.cap < Infinity ? balls.double(this.cap) : null];
      const terms = order.map((k) => this.#ball(balls, row, k, inner, cap));
      const total = terms.reduce((sum, term) => balls.add(sum, term));
      const target = balls.multiply(balls.uniform(uniforms.digits(0, 0, words), 64n * words), total);
      let running = { m: 0n, r: 0n };
      for (let k = 0; k < order.length - 1; k++) {
        running = balls.add(running, terms[k]);
        if (balls.below(target, running)) return order[k];
      }
      return order[order.length - 1];
    }, EXTRA);
  }

  #ball(balls, row, k, inner, cap) {
    const weight = this.logs === null ? { m: 0n, r: 0n } : balls.subtract(balls.double(this.logs[k]), balls.double(this.shift));
    if (k === row) return balls.exp(weight);
    const away = this.metric.ball(balls, row, k);
    return balls.exp(balls.subtract(weight, balls.multiply(inner, cap === null ? away : lesser(away, cap))));
  }

  /** Return a term of a row where doubles lost its distance. */
  #near(row, k) {
    return settled((balls) => {
      const [inner, cap] = [balls.double(this.inner), this.cap < Infinity ? balls.double(this.cap) : null];
      const { m, r } = this.#ball(balls, row, k, inner, cap);
      if (r > m >> 60n) throw UNDECIDED;
      return nearest(m, Number(balls.places));
    }, EXTRA);
  }

  /** Return the distribution of a row over all reports. */
  distribution(row) {
    const terms = this.terms(row).map((term, k) => (Number.isNaN(term) ? this.#near(row, k) : term));
    let total = 0;
    for (const term of terms) total += term;
    return terms.map((term) => term / total);
  }

  /** Return [report, probability] of reports that hold at least `level` together: all of them. */
  likely(row) {
    return Array.from(this.distribution(row), (probability, k) => [k, probability]);
  }
}

/** Read a kernel on the secrets of a space, which are its reports. */
function readKernel(body, file, guarantee) {
  const space = file.space(body.space);
  const measure = trueDistances(space);
  const logs = body.log_weights === null ? null : file.floats(body.log_weights, [space.size], "its weights");
  file.floats(body.log_normalisers, [space.size], "its normalisers");
  refuse(guarantee.basis !== "none" && !(body.inner <= guarantee.epsilon), "its kernel does not satisfy its guarantee");
  const table = new KernelRows(measure, space.size, { inner: body.inner, cap: body.cap, logs });
  return { inputs: space, outputs: space, table, draw: (code, source) => table.draw(code, source), distribution: (code) => table.distribution(code) };
}

// ---------------------------------------------------------------------------------------------------- local.js

/** Sparse rows over one background: the mechanisms of whole cities and their districts, and exact draws from them. */


const BLOCK = 65536; // reports whose numbers take two bytes
const PREPARED_ROWS = 1024; // running sums are cached for at most this many rows
const REPEATS = 8; // draws from the background before what a row leaves of it is drawn by itself
const SINGLE = 1074n - 149n; // every float of 32 bits is a multiple of 2^-149

/** Return a multiple of 2^-1074 that is one of 2^-149 as a double, rounded once. */
const toDouble = (whole) => Number(whole >> SINGLE) * 2 ** -149;

const wholeSum = (weights) => wholesOf(weights).reduce((sum, weight) => sum + weight, 0n);

/**
 * Rows of weights for near reports, and one background for all others. A draw is exact with respect to weight / total of the
 * stored numbers, as from `Rows`: the row's own reports in order, and one last cell for what it leaves of the background.
 */
class LocalRows {
  constructor({ starts, columns, values, background }) {
    this.starts = starts;
    this.columns = columns;
    this.values = values;
    this.background = background;
    this.rows = starts.length - 1;
    this.reports = background.length;
    this.storage = "sparse";
    this.everything = wholeSum(background);
    this.positive = background.reduce((count, weight) => count + (weight > 0 ? 1 : 0), 0);
    this.prepared = new Map();
    this.shares = null; // of the background, made when it is first drawn from
  }

  /**
   * Return the row's own reports, their weights, the running sums, and what is left of the background. In doubles that is
   * off by at most (k + 2) 2^-53 (all + covered): where this is below 8 ULP of the total, which `drawShares` has to spare, it
   * does; elsewhere it is computed in whole numbers.
   */
  row(row) {
    let found = this.prepared.get(row);
    if (found === undefined) {
      if (this.prepared.size >= PREPARED_ROWS) this.prepared.clear();
      const columns = this.columns.subarray(this.starts[row], this.starts[row + 1]);
      const weights = Array.from(this.values.subarray(this.starts[row], this.starts[row + 1]));
      const hidden = Float64Array.from(columns, (k) => this.background[k]);
      const [all, covered] = [toDouble(this.everything), sumOf(hidden)];
      const exactRest = () => this.everything - wholeSum(hidden);
      const rest = (columns.length + 2) * (all + covered) <= 16 * sumOf(weights) ? all - covered : toDouble(exactRest());
      found = { columns, weights, rest, exactRest, sums: shares([...weights, Math.max(rest, 0)]) };
      this.prepared.set(row, found);
    }
    return found;
  }

  draw(row, source) {
    const { columns, weights, exactRest, sums } = this.row(row);
    source.next();
    const place = drawShares(sums, () => [...wholesOf(weights), exactRest()], source);
    return place < columns.length ? columns[place] : this.#drawBackground(columns, source);
  }

  /** Draw from the background until the report is none of the row's own. */
  #drawBackground(columns, source) {
    for (let k = 0; k < REPEATS; k++) {
      this.shares ??= shares(this.background);
      const report = this.#drawWeights(this.shares, this.background, source);
      if (!isIn(columns, report)) return report;
    }
    const rest = Float64Array.from(this.background);
    for (const k of columns) rest[k] = 0;
    return this.#drawWeights(shares(rest), rest, source);
  }

  #drawWeights(sums, weights, source) {
    source.next();
    return drawShares(sums, () => wholesOf(weights), source);
  }

  /** Return the distribution of a row over all reports. */
  distribution(row) {
    const { columns, weights, rest } = this.row(row);
    const total = sumOf(weights) + rest;
    const result = Float64Array.from(this.background, (weight) => weight / total);
    for (let k = 0; k < columns.length; k++) result[columns[k]] = weights[k] / total;
    return result;
  }

  /** Return [report, probability] of reports that hold at least `level` together: the row's own, where they do. */
  likely(row, level) {
    const { columns, weights, rest } = this.row(row);
    const near = sumOf(weights);
    const total = near + rest;
    if (near >= level * total) return weights.map((weight, k) => [columns[k], weight / total]);
    return Array.from(this.distribution(row), (probability, k) => [k, probability]);
  }
}

/** Tell whether a number stands in an increasing list. */
function isIn(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return sorted[low] === value;
}

/** Read sparse rows over a background, one row per secret. */
function readLocal(body, file) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  const blocks = Math.ceil(outputs.size / BLOCK);
  const lengths = file.counts(body.lengths, [inputs.size, blocks], "its lengths");
  const numbers = file.counts(body.columns, [null], "its columns");
  const values = file.singles(body.values, [numbers.length], "its weights");
  const background = file.shaped(body.background, [outputs.size], "its background");
  const columns = new Uint32Array(numbers.length);
  const starts = new Float64Array(inputs.size + 1);
  let at = 0;
  for (let cell = 0; cell < lengths.length; cell++) {
    const end = at + Number(lengths[cell]);
    refuse(end > numbers.length, "its rows hold more reports than are stored");
    const block = cell % blocks;
    for (let first = at; at < end; at++) {
      columns[at] = Number(numbers[at]) + BLOCK * block;
      refuse(columns[at] >= outputs.size || (at > first && columns[at] <= columns[at - 1]), "its reports are not in order");
    }
    if (block === blocks - 1) starts[(cell + 1) / blocks] = at;
  }
  refuse(at !== numbers.length, "its rows hold fewer reports than are stored");
  const table = new LocalRows({ starts, columns, values, background });
  for (let row = 0; row < table.rows; row++) refuse(!hasWeight(table, row), "a secret has no report with a weight above 0");
  return { inputs, outputs, table, draw: (code, source) => table.draw(code, source), distribution: (code) => table.distribution(code) };
}

/** Tell whether any report of a row has a weight above 0. */
function hasWeight(table, row) {
  const [start, end] = [table.starts[row], table.starts[row + 1]];
  let hidden = 0;
  for (let at = start; at < end; at++) {
    if (table.values[at] > 0) return true;
    if (table.background[table.columns[at]] > 0) hidden += 1;
  }
  return table.positive > hidden;
}

// ---------------------------------------------------------------------------------------------------- spaces.js

/** Where secrets live: finitely many points, everywhere, a box, streets. A space says which values are secrets. */


const CACHED_POINTS = 2 ** 17; // rows are cached for spaces up to this size

/** Rows of a tensor of points, made where they are asked for. */
class Points {
  constructor({ data, shape }) {
    this.data = data;
    this.size = shape[0];
    this.width = data.length / shape[0];
    this.text = Array.isArray(data);
    this.cache = this.size <= CACHED_POINTS ? new Array(this.size) : null;
  }

  /** Return a row that nobody may change. */
  row(code) {
    const known = this.cache?.[code];
    if (known !== undefined) return known;
    const row = new Array(this.width);
    for (let k = 0; k < this.width; k++) {
      const value = this.data[code * this.width + k];
      row[k] = typeof value === "bigint" ? Number(value) : value;
    }
    if (this.cache !== null) this.cache[code] = row;
    return row;
  }
}

/** Return the place with the smallest value, the first of several. */
function argmin(size, value) {
  let best = -1;
  let least = Infinity;
  for (let i = 0; i < size; i++) {
    const here = value(i);
    if (here < least) [best, least] = [i, here];
  }
  if (best < 0) throw new MetricdpError("the distances are not finite numbers: nothing was drawn.");
  return best;
}

/** Return coordinates as a given number of finite numbers: null, "1" and true are none. */
function numbersOf(secret, dimension) {
  refuseSecret(!isRow(secret), "form");
  refuseSecret(secret.length !== dimension, "count");
  const values = Array.from(secret);
  refuseSecret(!values.every(Number.isFinite), "number");
  return values;
}

const isRow = (value) => Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));

/** Finitely many secrets. Codes are row numbers. */
class Finite {
  constructor(entry, file) {
    this.points = file.points(entry.points);
    this.metric = file.metric(entry.metric);
    this.ground = file.metric(entry.ground);
    this.sameGround = file.same(entry.metric, entry.ground) && entry.points === entry.coordinates;
    this.coordinates = entry.coordinates === entry.points ? this.points : file.points(entry.coordinates);
    this.columns = entry.columns;
    this.size = this.points.size;
    const { columns, coordinates } = this;
    refuse(coordinates.size !== this.size, "its coordinates do not fit its points");
    refuse(columns.length > 0 && columns.length !== coordinates.width, "its columns do not fit its coordinates");
    checkPoints(this.points, this.metric);
    if (!coordinates.text && coordinates !== this.points) checkPoints(coordinates, this.ground);
  }

  /** Return the code of a secret given by its code, its coordinates or its word, and refuse any other value. */
  encode(secret, { snap = 0, clamp = false } = {}) {
    if (typeof secret === "number") {
      refuseSecret(!Number.isInteger(secret) || secret < 0 || secret >= this.size, "code");
      return secret;
    }
    if (this.coordinates.text) return this.encodeText(secret);
    const point = numbersOf(secret, this.coordinates.width);
    const why = this.ground.legal(point);
    refuseSecret(why !== null, why);
    const code = this.nearest(point);
    if (clamp) return code;
    const away = this.ground.measure(point, this.coordinates.row(code));
    refuseSecret(!(away <= Math.max(snap, this.tolerance())), "far");
    return code;
  }

  encodeText(secret) {
    const word = typeof secret === "string" ? [secret] : secret;
    refuseSecret(!Array.isArray(word) || !word.every((part) => typeof part === "string"), "word");
    refuseSecret(word.length !== this.coordinates.width, "count");
    if (this.words === undefined) {
      this.words = new Map();
      for (let code = 0; code < this.size; code++) this.words.set(this.coordinates.row(code).join("\x1f"), code);
    }
    const code = this.words.get(word.join("\x1f"));
    refuseSecret(code === undefined, "word");
    return code;
  }

  /** Return how far a value may lie from a secret and still be that secret, rounded. */
  tolerance() {
    if (this.rounding === undefined) {
      let largest = 0;
      for (const value of this.coordinates.data) largest = Math.max(largest, Math.abs(Number(value)));
      const scale = this.ground.name === "Haversine" ? this.ground.measure([0, 0], [0, 180]) / Math.PI : 1 + largest;
      this.rounding = CONSTANTS.rounding * scale;
    }
    return this.rounding;
  }

  nearest(point) {
    const { ground, coordinates } = this;
    if (ground.name !== "Haversine") return argmin(this.size, (code) => ground.measure(point, coordinates.row(code)));
    if (this.vectors === undefined) {
      this.vectors = new Float64Array(3 * this.size);
      for (let code = 0; code < this.size; code++) this.vectors.set(unitVector(coordinates.row(code)), 3 * code);
    }
    const [x, y, z] = unitVector(point);
    const v = this.vectors;
    return argmin(this.size, (i) => (v[3 * i] - x) ** 2 + (v[3 * i + 1] - y) ** 2 + (v[3 * i + 2] - z) ** 2);
  }

  /**
   * Return the distance that snapping up to `snap` may add between two secrets, in the metric of the guarantee: twice the
   * snap where coordinates are measured as secrets are; elsewhere (roads under coordinates) the largest distance between two
   * secrets that can be reached from one place, that is, whose coordinates are at most twice the snap apart.
   */
  charge(snap) {
    if (snap === 0) return 0;
    if (this.sameGround) return 2 * snap;
    this.charges ??= new Map();
    if (!this.charges.has(snap)) this.charges.set(snap, this.widest(2 * snap));
    return this.charges.get(snap);
  }

  widest(near) {
    let largest = 0;
    const rows = Array.from({ length: this.size }, (_, code) => this.coordinates.row(code));
    for (let a = 0; a < this.size; a++) {
      for (let b = 0; b < this.size; b++) {
        if (a === b || !(this.ground.measure(rows[a], rows[b]) <= near * (1 + CONSTANTS.rounding))) continue;
        const away = this.metric.measure(this.points.row(a), this.points.row(b));
        if (away !== this.metric.apart) largest = Math.max(largest, away); // parts of a policy may be told apart
      }
    }
    return largest;
  }
}

function checkPoints(points, metric) {
  refuse(metric.text !== "either" && points.text !== (metric.text === true), "its points do not fit their metric");
  const seen = new Set();
  for (let code = 0; code < points.size; code++) {
    const row = points.row(code);
    checkRow(row, metric);
    const spelled = row.join("\x1f");
    refuse(seen.has(spelled), "two of its points are the same");
    seen.add(spelled);
  }
}

function unitVector([latitude, longitude]) {
  const [north, east] = [radians(latitude), radians(longitude)];
  return [Math.cos(north) * Math.cos(east), Math.cos(north) * Math.sin(east), Math.sin(north)];
}

/** Every point that the metric can measure. */
class Unbounded {
  constructor({ metric, dimension }, file) {
    this.metric = file.metric(metric);
    this.dimension = dimension;
  }

  encode(secret) {
    const point = numbersOf(secret, this.dimension);
    const why = this.metric.legal(point);
    refuseSecret(why !== null, why);
    return point;
  }
}

const UNIT_WITHIN = 1e-3; // unit vectors stored in 16 bits have lengths within this of one
const LENGTHS = { unit: [1 - UNIT_WITHIN, 1 + UNIT_WITHIN], any: [1e-100, 1e100] };

/** All directions: a row stands for the unit vector x / |x|; with `lengths` "unit" it must be one, within a thousandth. */
class Sphere {
  constructor({ metric, dimension, lengths }, file) {
    this.metric = file.metric(metric);
    this.dimension = dimension;
    this.lengths = lengths;
  }

  encode(secret) {
    const point = numbersOf(secret, this.dimension);
    const squares = point.reduce((sum, x) => sum + x * x, 0);
    const [shortest, longest] = LENGTHS[this.lengths];
    refuseSecret(!(squares >= shortest * shortest && squares <= longest * longest), this.lengths === "unit" ? "unit" : "direction");
    return point;
  }
}

/** A box, lower <= x <= upper in every coordinate. */
class Box {
  constructor({ metric, lower, upper }, file) {
    this.metric = file.metric(metric);
    this.lower = lower;
    this.upper = upper;
    this.dimension = lower.length;
    refuse(upper.length !== lower.length || lower.some((low, k) => !(low < upper[k])), "its box is empty");
  }

  /** With `clamp`, every coordinate is put between its ends: no two points are farther apart afterwards in any l_p. */
  encode(secret, { clamp = false } = {}) {
    const point = numbersOf(secret, this.dimension);
    if (clamp) return point.map((x, k) => Math.min(Math.max(x, this.lower[k]), this.upper[k]));
    refuseSecret(point.some((x, k) => x < this.lower[k] || x > this.upper[k]), "box");
    return point;
  }
}

/** Places along streets: a street number and an offset from its first end. */
class Streets {
  constructor({ metric }, file) {
    this.metric = file.metric(metric);
    this.network = this.metric.network;
  }

  encode(secret) {
    const [street, offset] = numbersOf(secret, 2);
    const { lengths } = this.network;
    const good = Number.isInteger(street) && street >= 0 && street < lengths.length;
    refuseSecret(!good || !(offset >= 0 && offset <= lengths[street]), "street");
    return [street, offset];
  }
}

const SPACES = { finite: Finite, box: Box, unbounded: Unbounded, sphere: Sphere, streets: Streets };

/** Rebuild a space from its checked entry. */
function readSpace(entry, file) {
  if (!Object.hasOwn(SPACES, entry.kind)) throw new Unsupported("this module does not draw for secrets in a space of this kind.");
  const Space = SPACES[entry.kind];
  return new Space(entry, file);
}

// ---------------------------------------------------------------------------------------------------- nearest.js

/** Noise on the vector of a secret, after which the nearest vector is reported: words with some noise. */


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
function readNearest(body, file, guarantee) {
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

// ---------------------------------------------------------------------------------------------------- streets.js

/** Distributions at crossings and cuts of streets, interpolated to every place along them. */


const ROUNDINGS = 4 * 2 ** -53; // of a quotient, a product and a difference, for every piece

/** Read a mechanism along streets. */
function readStreets(body, file) {
  const [inputs, outputs] = [file.space(body.inputs), file.space(body.outputs)];
  const { edges, lengths, nodes } = inputs.network;
  const counts = file.wholes(body.counts, [lengths.length], "its pieces");
  const ratios = readRatios(file, body.ratios, lengths.length);
  const firstCut = new Float64Array(counts.length);
  let next = nodes; // anchors are the crossings, then the inner cuts street by street
  for (let street = 0; street < counts.length; street++) {
    refuse(!(ratios[street] > 0), "a street has no positive ratio");
    firstCut[street] = next;
    next += counts[street] - 1;
  }
  const table = readRows(body.matrix, file, next, outputs.size);
  const anchor = (street, step) => {
    if (step === 0) return edges[2 * street];
    return step === counts[street] ? edges[2 * street + 1] : firstCut[street] + step - 1;
  };
  /** Return the length up to a place in pieces of its street, as a fraction. */
  const exactSteps = ([street, offset]) => [toWhole(offset) * BigInt(counts[street]), toWhole(lengths[street])];
  // Doubles are off by at most ROUNDINGS a piece. A place that may lie on either side of a cut is found exactly, so that the
  // piece is the true one and a position of 0 is the cut itself.
  const positionOf = ([street, offset]) => {
    const steps = (offset / lengths[street]) * counts[street];
    const step = Math.min(Math.floor(steps), counts[street] - 1);
    const along = Math.min(Math.max(steps - step, 0), 1);
    const beyond = along > 0.5;
    const position = beyond ? 1 - along : along;
    if (position > ROUNDINGS * counts[street] || !(offset > 0 && offset < lengths[street])) return { step, position, beyond };
    const [top, bottom] = exactSteps([street, offset]);
    const here = top % bottom;
    const above = 2n * here > bottom;
    const share = Number(((above ? bottom - here : here) << 1000n) / bottom) * 2 ** -1000;
    return { step: Number(top / bottom), position: here === 0n ? 0 : Math.max(share, Number.MIN_VALUE), beyond: above };
  };
  const located = (place) => {
    const { step, position, beyond } = positionOf(place);
    const [lower, upper] = [anchor(place[0], step), anchor(place[0], step + 1)];
    return beyond ? [upper, lower, position] : [lower, upper, position];
  };
  const draw = (place, source) => {
    const [near, far, position] = located(place);
    const exactly = () => {
      const [top, bottom] = exactSteps(place);
      const { step, beyond } = positionOf(place);
      const along = top - BigInt(step) * bottom;
      return [beyond ? bottom - along : along, bottom];
    };
    const blur = ROUNDINGS * counts[place[0]];
    return table.draw(flip(position, ratios[place[0]], exactly, source, blur) ? far : near, source);
  };
  const distribution = (place) => {
    const [near, far, position] = located(place);
    const share = nearShare(position, ratios[place[0]])[0];
    return mixed(table, [[near, 1 - share], [far, share]]);
  };
  return { inputs, outputs, table, draw, distribution };
}

// ---------------------------------------------------------------------------------------------------- readers.js

/** The readers of the kinds of mechanism: written by build.js, which finds them by their names. */


/**
 * A reader takes a body, the file and the guarantee, and gives `inputs`, `outputs`, `draw(value, source)`, where value is what
 * `inputs.encode` gives, and where there is one the `table`, the `distribution(value)`, and for the accuracy in a plane either the `rate` of Laplace
 * noise and the `reach` of a cell or `within(level)`.
 */
const READERS = {
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

// ---------------------------------------------------------------------------------------------------- kinds.js

/** Reading the mechanism of a file: a reader each for the kinds that it can hold. */


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
function readMechanism(file) {
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

// ---------------------------------------------------------------------------------------------------- schema.js

/**
 * What a value in a manifest must be. A check takes a value and says where it stands, and gives the value back or refuses
 * the file; so nothing is built, allocated or drawn from a manifest that does not fit.
 */


/** A text of at most `limit` characters. */
const text = (limit = 10_000) => (value, where) => {
  const long = typeof value === "string" && value.length > limit && [...value].length > limit; // a character may be two units
  refuse(typeof value !== "string" || long, `${where} is not a text`);
  return value;
};

/** One of the given texts. */
const oneOf = (names) => (value, where) => {
  refuse(typeof value !== "string" || !names.includes(value), `${where} is not one of ${names.join(", ")}`);
  return value;
};

/** A finite number in a range; with `infinite` the number infinity too, which a manifest writes as {"float": "inf"}. */
const number =
  ({ least = -Infinity, above = -Infinity, most = Number.MAX_VALUE, infinite = false } = {}) =>
  (value, where) => {
    if (infinite && isNamed(value, "inf")) return Infinity;
    const good = typeof value === "number" && Number.isFinite(value) && value >= least && value > above && value <= most;
    refuse(!good, `${where} is not a number in its range`);
    return value;
  };

const isNamed = (value, name) =>
  typeof value === "object" && value !== null && value.float === name && Object.keys(value).length === 1;

/** A whole number in a range. */
const whole =
  (least = 0, most = Number.MAX_SAFE_INTEGER) =>
  (value, where) => {
    refuse(!Number.isSafeInteger(value) || value < least || value > most, `${where} is not a whole number in its range`);
    return value;
  };

/** The value or null. */
const orNull = (check) => (value, where) => (value === null ? null : check(value, where));

/** A list of a given number of values, each of which passes the check. */
const list =
  (check, least = 0, most = 1_000_000) =>
  (value, where) => {
    refuse(!Array.isArray(value) || value.length < least || value.length > most, `${where} is not a list of the right length`);
    return value.map((item, k) => check(item, `${where}[${k}]`));
  };

/** A list with one check for every place. */
const tuple =
  (...checks) =>
  (value, where) => {
    refuse(!Array.isArray(value) || value.length !== checks.length, `${where} is not a list of the right length`);
    return checks.map((check, k) => check(value[k], `${where}[${k}]`));
  };

/** An object with exactly these keys, but for the optional ones. */
const record =
  (checks, optional = {}) =>
  (value, where) => {
    refuse(typeof value !== "object" || value === null || Array.isArray(value), `${where} is not an object`);
    const result = {};
    for (const [key, check] of Object.entries(checks)) {
      refuse(!Object.hasOwn(value, key), `${where} has no field ${key}`);
      result[key] = check(value[key], `${where}.${key}`);
    }
    for (const key of Object.keys(value)) {
      if (Object.hasOwn(checks, key)) continue;
      refuse(!Object.hasOwn(optional, key), `${where} has a field that this module does not know`);
      result[key] = optional[key](value[key], `${where}.${key}`);
    }
    return result;
  };

/** Choose the check by what the value is. */
const choose = (pick) => (value, where) => pick(value, where)(value, where);

// ---------------------------------------------------------------------------------------------------- manifest.js

/**
 * What a manifest may say: every value in it is checked before anything is built. Which fields there are and what is possible
 * in them comes from the declarations of metrics, spaces and mechanisms (`declared.js`); nothing of that is repeated here.
 */


const FIELDS = ["body", "certificate", "format", "guarantee", "kind", "metrics", "sha256", "spaces", "units", "version"];
const FIELDS_OF = { 1: FIELDS, 2: [...FIELDS, "licence", "signature"] };

const NAMED = "this file names its vectors instead of holding them: write it again with its vectors (`metricdp export`).";

const anything = (value) => value;
const tensor = text();
const side = whole(1, CONSTANTS.largest_matrix);
const STORAGES = {
  sparse: { shape: tuple(side, side), columns: tensor, values: tensor, present: orNull(tensor) },
  quantised: { shape: tuple(side, side), columns: tensor, counts: tensor, bits: whole(CONSTANTS.fewest_bits, CONSTANTS.most_bits) },
};

const table = (version) =>
  choose((value, where) => {
    if (typeof value === "string") return tensor;
    refuse(version === 1, "it has a part that its version does not have");
    const storage = oneOf(Object.keys(STORAGES))(value?.storage, `${where}.storage`);
    return record({ storage: text(), ...STORAGES[storage] });
  });

/** The check of a field, by the type of its declaration; `reading` is the manifest as far as it has been checked. */
const CHECKS = {
  number: (kind) => number(kind),
  whole: ({ least, most }) => whole(least, most),
  text: ({ choices, longest }) => (choices === undefined ? text(longest) : oneOf(choices)),
  maybe: ({ of }, reading) => orNull(checkOf(of, reading)),
  many: ({ of, least, most }, reading) => list(checkOf(of, reading), least, most),
  group: ({ of }, reading) => tuple(...of.map((kind) => checkOf(kind, reading))),
  part: (kind, reading) => (value, where) => reading.part(kind, value, where),
  array: (kind, reading) => (value, where) => {
    if (kind.of === "points" && Array.isArray(value?.files)) throw new Unsupported(NAMED);
    return kind.coded && typeof value === "object" ? coded(kind, reading)(value, where) : reading.file.checkArray(value, kind, where);
  },
  table: (_, reading) => table(reading.version),
};

/** Codes, and a table of the numbers that they stand for. */
const coded = (kind, { file }) =>
  record({
    codes: (value, where) => file.checkArray(value, { of: "narrow", sides: kind.sides }, where),
    table: (value, where) => file.checkArray(value, { ...kind, sides: 1 }, where),
  });

const checkOf = (kind, reading) => CHECKS[kind.type](kind, reading);

/** Return the guarantee of a kind of mechanism: a pure one has an epsilon, a concentrated one a rho and no epsilon. */
const guaranteeKind = (kind) => DECLARED.mechanism[kind].promise ?? "pure";

/** A manifest while it is checked, in the order in which it is built: nothing refers to what comes later. */
class Reading {
  constructor(file, version) {
    this.file = file;
    this.version = version;
    this.names = { metric: [], space: [] };
    this.sizes = []; // of every metric: how deep it is nested, how many it is made of
    this.open = [1, 1];
    this.inside = false;
  }

  /** Return the check of an entry with these fields; what the first files did not say yet may be absent. */
  record(fields) {
    const checks = Object.entries(fields).map(([name, kind]) => [name, checkOf(kind, this)]);
    const isLater = ([name]) => Object.hasOwn(DECLARED.later, name);
    const check = record(Object.fromEntries(checks.filter((entry) => !isLater(entry))), Object.fromEntries(checks.filter(isLater)));
    const defaults = Object.fromEntries(checks.filter(isLater).map(([name]) => [name, DECLARED.later[name]]));
    return (value, where) => ({ ...defaults, ...check(value, where) });
  }

  /** Return the declared fields of a metric, a space or a mechanism. */
  fields(sort, name, where) {
    refuse(typeof name !== "string", `${where} has no name`);
    if (!Object.hasOwn(DECLARED[sort], name)) throw new Unsupported(`a ${sort} of this file is not known here: update metricdp.`);
    const { since, fields } = DECLARED[sort][name];
    refuse(since > this.version, "it has a part that its version does not have");
    return fields;
  }

  metric(value, where) {
    const { name, parameters } = record({ name: anything, parameters: anything })(value, where);
    this.open = [1, 1];
    const checked = this.record(this.fields("metric", name, where))(parameters, `${where}.parameters`);
    this.names.metric.push(name);
    this.sizes.push(this.open);
    return { name, parameters: checked };
  }

  space(value, where) {
    const fields = this.fields("space", value?.kind, where);
    const { kind, ...entry } = value;
    this.names.space.push(kind);
    return { kind, ...this.record(fields)(entry, where) };
  }

  /** Return the checks of what describes a mechanism. */
  mechanism(kind, where) {
    const body = this.record(this.fields("mechanism", kind, where));
    return { kind: text(), guarantee: this.record(DECLARED[guaranteeKind(kind)]), certificate: this.record(DECLARED.certificate), body };
  }

  part({ of, named = [] }, value, where) {
    if (of === "mechanism") return this.inner(value, where);
    const names = this.names[of];
    refuse(!Number.isSafeInteger(value) || value < 0 || value >= names.length, `${where} refers to something that is not in the file`);
    refuse(named.length > 0 && !named.includes(names[value]), `${where} must be a ${of} of the kind ${named.join(" or ")}`);
    if (of === "metric") this.nest(value, where);
    return value;
  }

  /** Count what a metric is made of: a few words could otherwise say a metric that takes years to measure. */
  nest(value, where) {
    const [depth, terms] = this.sizes[value];
    this.open = [Math.max(this.open[0], depth + 1), this.open[1] + terms];
    const deep = this.open[0] > CONSTANTS.deepest_metric || this.open[1] > CONSTANTS.largest_metric_terms;
    refuse(deep, `${where} is nested too deep`);
  }

  inner(value, where) {
    refuse(this.inside, "one of its parts has parts of its own");
    this.inside = true;
    const checked = stated(record(this.mechanism(value?.kind, where))(value, where), where);
    refuse(guaranteeKind(checked.kind) !== "pure", "one of its parts has a guarantee of another kind");
    this.inside = false;
    return checked;
  }
}

/** Refuse a certificate whose values do not go together; nothing that is drawn depends on it. */
function stated(mechanism, where) {
  const { guarantee, certificate } = mechanism;
  const pure = guaranteeKind(mechanism.kind) === "pure";
  refuse(!pure && certificate.epsilon !== Infinity, `${where} states an epsilon, and its guarantee has none`);
  const bound = guarantee.basis !== "none" && certificate.lower_bound > certificate.loss;
  refuse(bound, `${where} states a bound above its loss`); // where nothing is guaranteed, bounds of private mechanisms do not bind
  refuse(![0, 3].includes(certificate.worst_pair.length), `${where} has neither three codes nor none`);
  const worst = /^(constopt|optimal \(worst)/.test(certificate.method); // how the first files say it
  certificate.objective ??= worst ? "worst" : "expected";
  return mechanism;
}

/** Refuse what is no manifest of a version that is read here; checksum and signature are verified next. */
function checkVersion(given) {
  refuse(given.format !== CONSTANTS.format, "it is a safetensors file, but metricdp did not write it");
  const { version } = given;
  refuse(!Number.isSafeInteger(version) || version < 1, "its version is not a positive whole number");
  if (version > CONSTANTS.version) {
    throw new CorruptFile(
      `the file was refused: it has format version ${version}, this module reads up to ${CONSTANTS.version}. Update metricdp.`,
    );
  }
  const wanted = [...FIELDS_OF[version]].sort().join();
  refuse(Object.keys(given).sort().join() !== wanted, "its manifest has a missing or unknown field");
  refuse(typeof given.sha256 !== "string", "its checksum is missing");
}

/** Return the manifest of a file, whose every byte is as it was written by now, as checked values. */
function checkedManifest(file) {
  const given = file.manifest;
  const reading = new Reading(file, given.version);
  const checks = {
    format: text(), version: whole(), sha256: text(), units: text(CONSTANTS.licence_limit),
    metrics: list((value, where) => reading.metric(value, where), 1, CONSTANTS.largest_count),
    spaces: list((value, where) => reading.space(value, where), 1, CONSTANTS.largest_count),
    ...reading.mechanism(given.kind, "it"),
  };
  if (given.version > 1) Object.assign(checks, { licence: text(CONSTANTS.licence_limit), signature: anything });
  return stated(record(checks)(given, "its manifest"), "its certificate");
}

// ---------------------------------------------------------------------------------------------------- predictive.js

/**
 * The predictive mechanism on the device (Chatzikokolakis, Palamidessi and Stronati 2014): a report is repeated, or guessed from the
 * reports before, as long as a private test says that it is still good; only where it fails fresh noise is drawn.
 *
 *     near  iff  d(x, prediction) <= threshold + noise of rate `test`;      report = prediction if near, else fresh
 *
 * Either answer leaks at most test * d, a fresh report its epsilon * d. The coin of the test is exact: a uniform is compared with the
 * probability of the true distance, in doubles where they decide, in balls of whole numbers where not (src/metricdp/mobility/prediction.py).
 */


const STEEPEST = 700; // beyond this exponent a probability is no double
const KINDS_OF_NOISE = ["spherical-laplace", "vector-laplace"];
const MOST_DIMENSIONS = 256;
const LAST = 2; // reports that a prediction looks at

/** Return Pr[noise >= u] for noise of rate one: e^-u / 2 above zero, 1 - e^u / 2 below. */
function tailOf(exponent) {
  const size = 0.5 * expOf(-Math.abs(exponent));
  return exponent >= 0 ? size : 1 - size;
}

/** Return the tail of a ball. */
function exactTail(balls, exponent) {
  const half = (ball) => balls.multiply(balls.fraction(1n, 2n), ball);
  if (exponent.m >= exponent.r) return half(balls.exp(balls.negative(exponent)));
  if (exponent.m + exponent.r < 0n) return balls.subtract(balls.one, half(balls.exp(exponent)));
  const size = exponent.m < 0n ? -exponent.m : exponent.m;
  return { m: half(balls.one).m, r: size + exponent.r + 2n }; // the slope of the tail is at most one half
}

/** Answer the test of a place against a prediction: true with exactly the probability of the true distance. */
function isNear(metric, place, prediction, { test, threshold }, source) {
  const words = [];
  const word = (at) => {
    while (words.length <= at) {
      source.next();
      words.push((BigInt(source.high) << 32n) | BigInt(source.low));
    }
    return words[at];
  };
  const apart = trueDistances({ metric, points: { data: Float64Array.of(...place, ...prediction), width: place.length, size: 2 } });
  const away = apart.measure(0, 1);
  const probability = tailOf(Math.min(Math.max(test * (away - threshold), -STEEPEST), STEEPEST));
  const level = Number(word(0)) * 2 ** -64;
  const margin = 1e-12 * (1 + test * (away + Math.abs(threshold))) + test * (apart.relative * away + apart.absolute);
  if (Math.abs(level - probability) > margin) return level < probability; // not so where `away` is no number
  const extra = BigInt(Math.ceil(Math.log2(2 + test) + Math.log2(2 + Math.abs(threshold)))) + 64n;
  return settled((balls, count) => {
    let digits = 0n;
    for (let at = 0; at < count; at++) digits = (digits << 64n) | word(at);
    const excess = balls.subtract(exactAway(balls, metric, apart), balls.double(threshold));
    return balls.below(balls.uniform(digits, 64n * count), exactTail(balls, balls.multiply(balls.double(test), excess)));
  }, extra);
}

/** Return the distance of two points as a ball; the radius of the Earth is a decimal number. */
function exactAway(balls, metric, apart) {
  if (metric.name !== "Haversine") return apart.ball(balls, 0, 1);
  const [radius, parts] = radiusOf(metric.unit);
  return balls.multiply(apart.angle(balls, 0, 1), balls.fraction(radius, parts));
}

/** Return c with Pr[Gamma(n) <= c] = level, by bisection. */
function gammaQuantile(n, level) {
  const within = (x) => {
    let [term, sum] = [Math.exp(-x), 0];
    for (let k = 0; k < n; k++) {
      sum += term;
      term *= x / (k + 1);
    }
    return 1 - sum;
  };
  let [low, high] = [0, 4 * n + 700];
  for (let k = 0; k < 200; k++) {
    const middle = 0.5 * (low + high);
    if (within(middle) < level) low = middle;
    else high = middle;
  }
  return high;
}

const PREDICTIONS = {
  parrot: (reports) => reports[reports.length - 1],
  linear: (reports) => {
    const [last, before] = [reports[reports.length - 1], reports[reports.length - 2]];
    return before === undefined ? last : last.map((x, k) => 2 * x - before[k]);
  },
};

/** Return a prediction as a report could be; on the Earth a line that leaves it goes on at the pole or around it. */
function tidied({ metric }, point) {
  if (metric.name !== "Haversine") return point;
  const [north, east] = point;
  const turned = (east + 180) % 360;
  return [Math.min(90, Math.max(-90, north)), east >= -180 && east <= 180 ? east : (turned < 0 ? turned + 360 : turned) - 180];
}

/** Return what a test costs and how wide it is, as `FixedUtility` of Python has it. */
function stepOf(dimension, epsilon, { confidence, caution, slope, test, threshold }) {
  refuseOption((test === undefined) !== (threshold === undefined), "give `test` and `threshold` together, or neither.");
  if (test !== undefined) {
    refuseOption(!(optionNumber(test, "test") > 0), "`test` must be positive.");
    refuseOption(typeof threshold !== "number" || !Number.isFinite(threshold), "`threshold` must be a finite number.");
    return { test, threshold };
  }
  refuseOption(typeof confidence !== "number" || !(confidence > 0.5 && confidence < 1), "`confidence` must lie between 0.5 and 1.");
  refuseOption(!(optionNumber(caution, "caution") > 0 && optionNumber(slope, "slope") > 0), "`caution` and `slope` must be positive.");
  const wide = -Math.log(2 * (1 - confidence));
  const share = ((caution * wide) / gammaQuantile(dimension, confidence)) * (1 + 1 / slope);
  return { test: share * epsilon, threshold: wide / (slope * share * epsilon) };
}

/**
 * A trace that is being released step by step. For two traces whose places are at most d apart at every step, all that was given out is
 * at most exp(`spent` d) times likelier from one than from the other; with a `total`, no run can spend more.
 */
class Trace {
  #mechanism;
  #inputs;
  #predict;
  #reports = [];
  #spent = 0n;
  #resting = 0;

  /** Traces come from `mechanism.trace`. @private */
  constructor(mechanism, inputs, options) {
    const { from = null, total = null, rest = 0, prediction = "parrot", confidence = 0.9, caution = 0.5, slope = 0.8, test, threshold } = options;
    if (!KINDS_OF_NOISE.includes(mechanism.kind) || inputs.dimension > MOST_DIMENSIONS || !["Haversine", "Lp"].includes(inputs.metric.name)) {
      throw new Unsupported("a trace needs Laplace noise for points anywhere, on the Earth or under l_p: open such a file.");
    }
    if (mechanism.guarantee.basis === "none" || mechanism.guarantee.slack > 0) {
      throw new InvalidInput("a trace needs noise whose guarantee has no slack.");
    }
    refuseOption(typeof prediction !== "string" || !Object.hasOwn(PREDICTIONS, prediction), "`prediction` must be \"parrot\" or \"linear\".");
    refuseOption(!Number.isSafeInteger(rest) || rest < 0, "`rest` must be a whole number of at least 0.");
    const { epsilon } = mechanism.guarantee;
    refuseOption(total !== null && !(optionNumber(total, "total") >= epsilon), "`total` must be at least the cost of one report.");
    this.#mechanism = mechanism;
    this.#inputs = inputs;
    this.#predict = PREDICTIONS[prediction];
    /** What all steps together may cost, per unit of distance. @type {number | null} */
    this.total = total;
    /** How many steps after a fresh report repeat the prediction without a test, for nothing. @type {number} */
    this.rest = rest;
    const step = stepOf(inputs.dimension, epsilon, { confidence, caution, slope, test, threshold });
    /** What one test costs, per unit of distance. @type {number} */
    this.test = step.test;
    /** How far a prediction may be off, before the noise of the test. @type {number} */
    this.threshold = step.threshold;
    if (from !== null) this.#resume(from);
    Object.freeze(this);
  }

  /** Go on from what `toJSON` gave; what it does not fit is refused, so that nothing that was spent is forgotten. */
  #resume(from) {
    const { sha256, reports, spent, resting } = typeof from === "object" && from !== null ? from : {};
    const { dimension } = this.#inputs;
    const isPoint = (point) => Array.isArray(point) && point.length === dimension && point.every(Number.isFinite);
    const good =
      sha256 === this.#mechanism.sha256 && Array.isArray(reports) && reports.length <= LAST && reports.every(isPoint) &&
      typeof spent === "string" && /^0x[0-9a-f]{1,1000}$/.test(spent) && Number.isSafeInteger(resting) && resting >= 0; // prettier-ignore
    refuseOption(!good, "`from` must be what `toJSON` of a trace of the same mechanism gave.");
    this.#reports = reports.map((point) => [...point]);
    this.#spent = BigInt(spent);
    this.#resting = resting;
  }

  /**
   * Return what a later page needs to go on, for `mechanism.trace({ from })`: the last reports, what was spent and the name of the file. All of
   * it was given out; nothing is a place.
   * @returns {{ sha256: string, reports: number[][], spent: string, resting: number }}
   */
  toJSON() {
    const reports = this.#reports.slice(-LAST).map((point) => [...point]);
    return { sha256: this.#mechanism.sha256, reports, spent: `0x${this.#spent.toString(16)}`, resting: this.#resting };
  }

  /** The reports so far (of a trace that was resumed, the last two before): what was given out, and nothing else. @returns {number[][]} */
  get reports() {
    return this.#reports.map((point) => [...point]);
  }

  /** Tests and fresh noise together, an epsilon per unit of distance, rounded up. @returns {number} */
  get spent() {
    return doubleAbove(this.#spent, 1074);
  }

  /**
   * Take one more step: the report for a place, and whether it is fresh. Null where the total does not pay for another step; that and
   * which reports are fresh is part of what is released. `words` replaces the random source, for tests only.
   * @param {ArrayLike<number>} place
   * @param {{ words?: Words }} [options]
   * @returns {{ point: number[], fresh: boolean } | null}
   */
  next(place, { words = system } = {}) {
    const secret = this.#inputs.encode(place);
    const first = this.#reports.length === 0;
    const prediction = first ? null : tidied(this.#inputs, this.#predict(this.#reports));
    if (this.#resting > 0 && this.#resting <= this.rest) return this.#given(prediction, false);
    const [test, noise] = [first ? 0n : toWhole(this.test), toWhole(this.#mechanism.guarantee.epsilon)];
    if (this.total !== null && this.#spent + test + noise > toWhole(this.total)) return null;
    this.#spent += test; // counted before anybody is told, also where the noise refuses the place
    const near = !first && isNear(this.#inputs.metric, secret, prediction, this, words);
    if (!near) this.#spent += noise;
    return this.#given(near ? prediction : this.#mechanism.sample(secret, { words }).point, !near);
  }

  #given(point, fresh) {
    this.#resting = fresh ? 1 : this.#resting + (this.#resting > 0 ? 1 : 0);
    this.#reports.push(point);
    return { point: [...point], fresh };
  }
}

// ---------------------------------------------------------------------------------------------------- prune.js

/**
 * Reports that somebody does not want to give, left out on the device: a pruned report becomes one that is kept, always the same, found
 * by public numbers alone. That is post-processing of the draw, so the guarantee stays as it is, exactly, whatever is pruned.
 */


const ALIKE =
  "give one list of codes for all secrets. Reports show which codes never occur, so a list that depends on the secret would reveal it.";
const NOT_HERE =
  "renormalising is not post-processing, and only Python can prove its guarantee: take the rule \"cheapest\" or \"nearest\".";

/** Return which reports are pruned: one list for all secrets, of codes that are there. The sentences name none of them. */
function goneOf(codes, size, before) {
  refuseOption(!Array.isArray(codes) && !(ArrayBuffer.isView(codes) && !(codes instanceof DataView)), ALIKE);
  const gone = Uint8Array.from(before);
  for (const code of codes) {
    refuseOption(Array.isArray(code), ALIKE);
    refuseOption(!Number.isInteger(code) || code < 0 || code >= size, "a pruned code must be a whole number from 0 to one below the number of reports.");
    gone[code] = 1;
  }
  refuseOption(codes.length === 0 || gone.every(Boolean), "prune at least one report and keep at least one.");
  return gone;
}

/** Return the nearest kept report of a pruned one, where reports are measured. */
function byNearest({ outputs }, left, kept) {
  const { coordinates, points, metric, ground } = outputs;
  const [places, away] = coordinates.text ? [points, metric] : [coordinates, ground];
  return left.map((code) => kept[argmin(kept.length, (k) => away.measure(places.row(code), places.row(kept[k])))]);
}

function measured(metric, one, other) {
  try {
    return metric.measure(one, other);
  } catch (error) {
    if (error instanceof Unsupported) throw new Unsupported('distances of this metric are not computed here: take the rule "nearest".');
    throw error;
  }
}

/** Return the kept report that costs least in the place of a pruned one: argmin over t of sum_x z_xk d(x, t), all secrets alike. */
function byCost({ inputs, outputs, table }, left, kept) {
  const rows = inputs.size;
  const probabilities = left.map(() => new Float64Array(rows));
  for (let x = 0; x < rows; x++) {
    const distribution = table.distribution(x);
    left.forEach((code, at) => (probabilities[at][x] = distribution[code]));
  }
  const [least, best] = [new Float64Array(left.length).fill(Infinity), new Array(left.length).fill(kept[0])];
  for (const code of kept) {
    const goal = outputs.points.row(code);
    const away = Float64Array.from({ length: rows }, (_, x) => measured(inputs.metric, goal, inputs.points.row(x)));
    probabilities.forEach((probability, at) => {
      let cost = 0;
      for (let x = 0; x < rows; x++) cost += probability[x] * away[x];
      if (cost < least[at]) [least[at], best[at]] = [cost, code];
    });
  }
  return best;
}

/** Return which report stands for every code, and which are pruned. */
function mapped(parts, kind, codes, rule) {
  const { outputs } = parts;
  if (outputs.size === undefined) throw new Unsupported(`a ${kind} mechanism has no list of reports to prune from.`);
  const gone = goneOf(codes, outputs.size, parts.gone ?? new Uint8Array(outputs.size));
  const all = Array.from({ length: outputs.size }, (_, code) => code);
  const [left, kept] = [all.filter((code) => gone[code]), all.filter((code) => !gone[code])];
  if (rule === "renormalise") throw new Unsupported(NOT_HERE);
  refuseOption(rule !== "cheapest" && rule !== "nearest", '`rule` must be "cheapest" or "nearest".');
  if (rule === "cheapest" && kind !== "matrix") throw new Unsupported('the cost of a report is computed from a matrix: take the rule "nearest" here.');
  const goals = rule === "cheapest" ? byCost(parts, left, kept) : byNearest(parts, left, kept);
  const map = Uint32Array.from(all);
  left.forEach((code, at) => (map[code] = goals[at]));
  return { map, gone };
}

/** Rows after the map. */
class PrunedRows {
  constructor(table, map) {
    Object.assign(this, { table, map });
    this.rows = table.rows;
    this.reports = table.reports;
    this.storage = table.storage;
    this.bits = table.bits;
  }

  distribution(row) {
    return moved(this.table.distribution(row), this.map);
  }
}

/** Return a distribution after the map: what is pruned has probability 0. */
function moved(distribution, map) {
  const result = new Float64Array(distribution.length);
  distribution.forEach((probability, code) => (result[map[code]] += probability));
  return result;
}

/** Return the parts of a mechanism that never gives some reports; `whole` keeps the table before it, for what is said to apps. */
function prunedParts(parts, kind, codes, rule) {
  const { map, gone } = mapped(parts, kind, codes, rule);
  const { draw, distribution, table, whole = table } = parts;
  return {
    ...parts,
    gone,
    whole,
    draw: (value, source) => map[draw(value, source)],
    ...(distribution ? { distribution: (value) => moved(distribution(value), map) } : {}),
    ...(table ? { table: new PrunedRows(table, map) } : {}),
  };
}

// ---------------------------------------------------------------------------------------------------- mechanism.js

/** A mechanism as its file holds it: what it guarantees, and reports drawn from it. */


/**
 * A code, coordinates (such as [latitude, longitude]) or a word; for a product a list with one of them per part.
 * @typedef {number | ArrayLike<number> | ArrayLike<string> | string | Secret[]} Secret
 */
/**
 * What was drawn: the code where reports are finitely many, and its coordinates or word; for a product `parts` has the
 * reports part by part.
 * @typedef {{ code: number | null, point: (number | string)[], parts?: Report[] }} Report
 */
/**
 * ln Pr[y | x] - ln Pr[y | x'] <= epsilon d(x, x') + slack, for secrets at most `radius` apart where there is one.
 * @typedef {Readonly<{ epsilon: number, unit: string, slack: number, radius: number | null,
 *   basis: "theorem" | "certificate" | "none", metric: string }>} Guarantee
 */
/**
 * What was certified, as the file states it: the loss (the expected one, or with the objective "worst" that of the unluckiest
 * secret), a bound for all mechanisms with this guarantee and these reports, the audited epsilon (where the guarantee has one) and the pair
 * that it comes from. The loss is null after pruning.
 * @typedef {Readonly<{ loss: number | null, lower_bound: number, epsilon?: number, method: string, note?: string, seconds: number,
 *   verified_pairs: number, worst_pair: readonly number[], objective?: "expected" | "worst" }>} Certificate
 */
/**
 * `snap` puts coordinates on the nearest secret up to this distance, at a slack (see `slack`). `clamp` puts all of them there,
 * or on the edge of a box, however far they are: then the guarantee is that of the place they were put on.
 * @typedef {{ snap?: number, clamp?: boolean }} Placing
 */

class Mechanism {
  #parts;

  #facts;

  /** Mechanisms come from `open` and `prune`. @private */
  constructor(parts, facts) {
    this.#parts = parts;
    this.#facts = facts;
    const { kind, version, sha256, bytes, guarantee, certificate, licence, signedBy, signature } = facts;
    /** @type {Kind} */
    this.kind = kind;
    /** @type {number} */
    this.version = version;
    /** @type {number} */
    this.bytes = bytes;
    /** @type {string} */
    this.sha256 = sha256;
    /** @type {"dense" | "sparse" | "quantised"} */
    this.storage = this.#parts.table?.storage ?? "dense";
    /** @type {number | null} */
    this.bits = this.#parts.table?.bits ?? null;
    /** Whether the guarantee is pure: epsilon times the distance for every report. Else it is concentrated. @type {boolean} */
    this.isPure = guaranteeKind(kind) === "pure";
    /**
     * What is guaranteed: with an epsilon where `isPure`, else with a rho, and then reading its `epsilon` is an error.
     * @type {Guarantee | ConcentratedGuarantee}
     */
    this.guarantee = guarantee;
    /** @type {Certificate} */
    this.certificate = certificate;
    /** @type {string} */
    this.licence = licence;
    /** The key that signed the file, 64 digits. @type {string | null} */
    this.signedBy = signedBy;
    /**
     * "good": the key in the file made it. "trusted": and you named that key. "unchecked": this browser cannot tell.
     * @type {"none" | "good" | "trusted" | "unchecked"}
     */
    this.signature = signature;
    /** @type {readonly string[]} */
    this.columns = Object.freeze([...(this.#parts.inputs.columns ?? [])]);
    const ground = this.#parts.inputs.ground ?? this.#parts.inputs.metric;
    /** The unit in which coordinates are measured where they are (latitude, longitude) in degrees. @type {string | null} */
    this.earthUnit = ground?.name === "Haversine" ? ground.unit : null;
    Object.freeze(this);
  }

  /**
   * Return a mechanism that never gives some reports, with the same guarantee, exactly: a pruned report becomes one that is kept, always
   * the same. By the rule "cheapest" (the usual one, of a matrix) that is the one with the least expected distance from the secret, all
   * secrets being equally likely; by "nearest" (the usual one elsewhere) the nearest. Nothing of it leaves the device: the map is made
   * here, of public numbers; errors name no code, and `accuracy` stays that of the mechanism before it.
   *
   * `codes` is one list for all secrets, and must be a standing wish ("never my street"): one that depends on where somebody is would
   * give that away, since reports show what never comes. Secrets at pruned places are protected as before.
   * @param {ArrayLike<number>} codes
   * @param {{ rule?: "cheapest" | "nearest" }} [options]
   * @returns {Mechanism}
   */
  prune(codes, { rule = this.kind === "matrix" ? "cheapest" : "nearest" } = {}) {
    const parts = prunedParts(this.#parts, this.kind, codes, rule);
    const { method, note } = this.certificate;
    const certificate = Object.freeze({
      ...this.certificate, loss: null, worst_pair: Object.freeze([]), method: `${method}, reports pruned on the device`,
      note: `${note ? `${note}; ` : ""}the loss after pruning is not computed here`,
    }); // prettier-ignore
    return new Mechanism(parts, { ...this.#facts, certificate });
  }

  /** The number of secrets, where they are finitely many. @returns {number | null} */
  get secrets() {
    return this.#parts.inputs.size ?? null;
  }

  /** The number of reports, where they are finitely many. @returns {number | null} */
  get reports() {
    return this.#parts.outputs.size ?? null;
  }

  /**
   * Draw one report for a secret. A value that is no secret is an error, never passed through; the error says nothing about the value.
   * `words` replaces the random source, for tests only.
   * @param {Secret} secret
   * @param {Placing & { words?: Words }} [options]
   * @returns {Report}
   */
  sample(secret, { snap = 0, clamp = false, words = system } = {}) {
    if (this.guarantee.basis === "none") {
      throw new InvalidInput("this mechanism has no guarantee: it is for comparisons only. Do not release its reports.");
    }
    const drawn = this.#parts.draw(this.#encoded(secret, { snap, clamp }), words);
    const report = this.#parts.parts
      ? { code: null, point: drawn.map(({ point }) => point), parts: drawn }
      : reportOf(this.#parts, drawn);
    if (!isReport(report.point)) throw new MetricdpError("the mechanism drew a value that is not a report: do not use its file.");
    return report;
  }

  #encoded(secret, placing) {
    this.#checkPlacing(placing);
    return this.#parts.inputs.encode(secret, placing);
  }

  #checkPlacing({ snap, clamp }) {
    optionNumber(snap, "snap");
    refuseOption(typeof clamp !== "boolean", "`clamp` must be true or false.");
    if (snap === 0) return;
    const finite = (this.#parts.parts ?? [this.#parts]).filter(({ inputs }) => inputs.size !== undefined).length;
    refuseOption(finite === 0, "`snap` is for mechanisms on finitely many points; this one takes every value as it is.");
    refuseOption(finite > 1, "`snap` does not say which part of this product it is for: put the values on the points first.");
  }

  /**
   * Release a trace step by step by the predictive mechanism: `trace.next(place)` repeats or guesses a report as long as a private test
   * says that it is still good, and draws fresh noise where not. Fresh reports are those of this mechanism; a test costs less, and
   * somebody who does not move spends little more than one report. It is for Laplace noise for points anywhere, on the Earth or under l_p.
   *
   * `total` is what the whole trace may cost (an epsilon per unit), `rest` how many steps after a fresh report repeat the prediction for
   * nothing, `prediction` how the next place is guessed from the reports alone. `confidence`, `caution` and `slope` are those of Python's
   * `mdp.mobility.FixedUtility`, or give `test` and `threshold` themselves.
   * Keep `JSON.stringify(trace)` where the app may end, and go on with `from`.
   * @param {{ from?: object | null, total?: number | null, rest?: number, prediction?: "parrot" | "linear", confidence?: number, caution?: number, slope?: number,
   *   test?: number, threshold?: number }} [options]
   * @returns {Trace}
   */
  trace(options = {}) {
    return new Trace(this, this.#parts.inputs, options);
  }

  /**
   * Return the probabilities of all reports for a secret, where there are finitely many.
   * @param {Secret} secret
   * @param {Placing} [options]
   * @returns {Float64Array}
   */
  distribution(secret, { snap = 0, clamp = false } = {}) {
    if (!this.#parts.distribution) throw new Unsupported(`a ${this.kind} mechanism has no table of probabilities.`);
    return this.#parts.distribution(this.#encoded(secret, { snap, clamp }));
  }

  /**
   * The old name of `distribution`.
   * @deprecated
   * @param {Secret} secret
   * @param {Placing} [options]
   * @returns {Float64Array}
   */
  law(secret, options) {
    return this.distribution(secret, options);
  }

  /**
   * Return the coordinates of a secret by its code.
   * @param {number} code
   * @returns {(number | string)[]}
   */
  secretAt(code) {
    const { inputs } = this.#parts;
    if (!inputs.coordinates) throw new Unsupported("this mechanism has no list of secrets: it takes any point.");
    refuseOption(typeof code !== "number", "`code` must be the number of a secret.");
    return [...inputs.coordinates.row(inputs.encode(code))];
  }

  /**
   * Return the slack of the guarantee when values are snapped: with the distances of the guarantee themselves 2 * epsilon * snap
   * more, d being the distance between the values; where coordinates are measured otherwise (roads) epsilon times the
   * largest distance between two secrets that can be reached from one place, d being the distance from the secret that
   * one value is put on to any secret that the other can reach. Concentrated guarantees have none (`NotPure`).
   * @param {number} [snap]
   * @returns {number}
   */
  slack(snap = 0) {
    this.#checkPlacing({ snap, clamp: false });
    if (!this.isPure) notPure("slack");
    const { epsilon, slack } = this.guarantee;
    if (snap === 0) return slack;
    const part = (this.#parts.parts ?? [{ ...this.#parts, guarantee: { epsilon } }]).find(({ inputs }) => inputs.size !== undefined);
    return slack + part.guarantee.epsilon * part.inputs.charge(snap);
  }

  #guaranteeAt(snap) {
    return { ...this.guarantee, slack: this.slack(snap) };
  }

  /**
   * Return the largest factor between the probabilities of any report from two secrets at this distance; infinite
   * beyond the radius of the guarantee, where there is one. A concentrated guarantee has one with a `delta` only: no set of reports is more
   * than that factor likelier from one of the two, plus delta.
   * @param {number} distance
   * @param {{ snap?: number, delta?: number }} [options]
   * @returns {number}
   */
  factor(distance, { snap = 0, delta = 0 } = {}) {
    optionNumber(distance, "distance");
    if (this.isPure) return largestFactor(this.#guaranteeAt(snap), distance);
    this.#checkPlacing({ snap, clamp: false });
    if (delta === 0) notPure("factor");
    return this.guarantee.radius !== null && distance > this.guarantee.radius ? Infinity : Math.exp(this.guarantee.epsilonAt(distance, delta));
  }

  /**
   * Return the distance up to which one report shifts the odds between two secrets by at most `factor`; for a concentrated guarantee
   * with a `delta`, up to which no set of reports is more than that factor likelier, plus delta.
   * @param {number} [factor]
   * @param {{ snap?: number, delta?: number }} [options]
   * @returns {number}
   */
  reach(factor = 2, { snap = 0, delta = 0 } = {}) {
    optionNumber(factor, "factor", 1);
    if (this.isPure) return reachOf(this.#guaranteeAt(snap), factor);
    this.#checkPlacing({ snap, clamp: false });
    if (delta === 0) notPure("reach");
    return this.guarantee.distanceAt(Math.log(factor) * (1 - 2 ** -50), delta);
  }

  /**
   * Return a radius, in the unit of the distances, that holds a report with at least this probability whatever the
   * secret: the same for all secrets, so it tells nothing about them.
   * @param {number} [level]
   * @returns {number}
   */
  accuracy(level = 0.95) {
    refuseOption(typeof level !== "number" || !(level > 0 && level < 1), "`level` must be a probability between 0 and 1.");
    const { inputs, outputs, rate, reach, within, table, whole = table } = this.#parts;
    if (within) return within(level);
    if (rate !== undefined && inputs.dimension === 2) return gammaTwoQuantile(level) / rate + (reach ?? 0); // by the lattice
    if (!["matrix", "local"].includes(this.kind)) throw new Unsupported(`the accuracy of a ${this.kind} mechanism is not computed here.`);
    return farthest(inputs, outputs, whole, level);
  }

  /**
   * Audit every pair of secrets again in doubles: the smallest epsilon of a matrix, good to `tolerance` (relative). It holds
   * only where a finite epsilon over at least one pair is at most the claim. The proof itself is Python's (`mdp.load`,
   * `metricdp audit`); this finds a forged table without it.
   * @returns {{ epsilon: number, claimed: number, tolerance: number, pairs: number, holds: boolean,
   *   verdict: "holds" | "violated" | "cannot judge" }}
   */
  audit() {
    if (this.kind !== "matrix") throw new Unsupported("only matrices are audited here; use `metricdp audit`.");
    return auditMatrix(this.#parts, this.guarantee);
  }

  /**
   * Explain the guarantee to a person: `short` is one sentence, `lines` more of it, `meanings` the rows of its table.
   * @param {{ snap?: number }} [options]
   * @returns {{ short: string, lines: string[], meanings: { distance: string, factor: string, words: string }[] }}
   */
  explain({ snap = 0 } = {}) {
    const { short, head, rows, whole } = this.isPure ? this.#pureWords(snap) : this.#concentratedWords(snap);
    return {
      short,
      meanings: rows,
      lines: [
        short,
        ...(rows.length > 0 ? tableLines(head, rows) : []),
        `${whole}.`,
        `Licence of the data: ${this.licence || "not stated"}.`,
        `Signature: ${this.signature}${this.signedBy ? ` (ed25519 ${this.signedBy})` : ""}.`,
      ],
    };
  }

  #pureWords(snap) {
    const all = this.#guaranteeAt(snap);
    const { parts } = this.#parts;
    const named = ({ guarantee, inputs }) => {
      const slack = guarantee.slack + (inputs.size === undefined ? 0 : guarantee.epsilon * inputs.charge(snap));
      return { ...guarantee, slack, metric: inputs.metric.name };
    };
    const short = parts && all.basis !== "none" ? shortOfParts(parts.map(named)) : shortWords(all);
    const scaled = all.basis !== "none" && !parts; // a product has a scale for every part
    return { short, head: meaningHead(all), rows: scaled ? meanings(all) : [], whole: guaranteeNumbers(all) };
  }

  #concentratedWords(snap) {
    this.#checkPlacing({ snap, clamp: false });
    const { guarantee } = this;
    const [head, rows] = [concentratedHead(guarantee), concentratedMeanings(guarantee)];
    return { short: concentratedShort(guarantee), head, rows, whole: concentratedNumbers(guarantee) };
  }
}

/** Rebuild the mechanism of a file that was verified. */
function mechanismOf(file, { signedBy, verified, trusted, bytes }) {
  const parts = readMechanism(file);
  const { kind, version, sha256, licence = "", ...manifest } = file.manifest;
  const guarantee = { ...manifest.guarantee, metric: file.metric(manifest.guarantee.metric).name };
  const { epsilon, ...stated } = manifest.certificate;
  const isPure = guaranteeKind(kind) === "pure";
  return new Mechanism(parts, {
    kind, version, sha256, bytes, licence, signedBy,
    guarantee: isPure ? Object.freeze(guarantee) : new ConcentratedGuarantee(guarantee),
    certificate: Object.freeze(isPure ? { ...stated, epsilon } : stated),
    signature: signedBy === null ? "none" : !verified ? "unchecked" : trusted ? "trusted" : "good",
  }); // prettier-ignore
}

/** Tell whether every number of a report is finite. */
function isReport(point) {
  return point.every((value) => (Array.isArray(value) ? isReport(value) : typeof value === "string" || Number.isFinite(value)));
}

/** Return the largest distance, over secrets, that holds a report with this probability. */
function farthest({ ground, coordinates }, outputs, table, level) {
  let largest = 0;
  for (let row = 0; row < table.rows; row++) {
    const here = coordinates.row(row);
    const away = table.likely(row, level).map(([k, probability]) => [ground.measure(here, outputs.coordinates.row(k)), probability]);
    const inside = away.reduce((sum, [far, probability]) => (far <= largest ? sum + probability : sum), 0);
    if (inside >= level) continue;
    away.sort((a, b) => a[0] - b[0]);
    let mass = 0;
    const reached = away.find(([, probability]) => (mass += probability) >= level - 1e-12) ?? away[away.length - 1];
    largest = Math.max(largest, reached[0]);
  }
  return largest;
}

/** Return r with P(Gamma(2, 1) <= r) = level: 1 - (1 + r) exp(-r), by bisection. */
function gammaTwoQuantile(level) {
  let [low, high] = [0, 800];
  for (let k = 0; k < 100; k++) {
    const middle = (low + high) / 2;
    if (1 - (1 + middle) * Math.exp(-middle) < level) low = middle;
    else high = middle;
  }
  return high;
}

// ---------------------------------------------------------------------------------------------------- file.js

/** The bytes of a mechanism file, taken apart: header, tensors, and the metrics and spaces that they make. */


const TYPES = {
  F64: Float64Array, F32: Float32Array, I64: BigInt64Array, U8: Uint8Array, U16: Uint16Array, U32: Uint32Array, U64: BigUint64Array,
};
const TYPES_OF = { 1: ["F64", "I64", "U8"], 2: Object.keys(TYPES) };
const UNSIGNED = [Uint8Array, Uint16Array, Uint32Array, BigUint64Array];
const ARRAYS = { // by declaration
  float: [Float64Array], single: [Float32Array], whole: [BigInt64Array], narrow: UNSIGNED, points: [Float64Array, BigInt64Array, Array],
};
const MOST_CODES = 65536; // kinds of numbers that a table holds
const DECODER_OPTIONS = { fatal: true, ignoreBOM: true };

const offset = whole();
const tensorEntry = (types) =>
  record({ dtype: oneOf(types), shape: list(whole(1), 1, 8), data_offsets: tuple(offset, offset) });

function parsed(text, what) {
  try {
    const value = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  } catch {
    // said below
  }
  throw new CorruptFile(`the file was refused: it is not a mechanism file, or its ${what} is damaged.`);
}

function decoded(bytes, what) {
  try {
    return new TextDecoder("utf-8", DECODER_OPTIONS).decode(bytes);
  } catch {
    throw new CorruptFile(`the file was refused: its ${what} is not text.`);
  }
}

class MechanismFile {
  /** Take apart the bytes (an ArrayBuffer that nobody else writes to); `verified` and `build` come next. */
  constructor(buffer) {
    refuse(buffer.byteLength < 8, "it is not a mechanism file");
    const size = new DataView(buffer).getBigUint64(0, true);
    refuse(size < 2n || size > BigInt(CONSTANTS.header_limit), "it is not a mechanism file, or its first bytes are damaged");
    this.start = 8 + Number(size);
    refuse(this.start > buffer.byteLength, "it is cut off");
    this.bytes = new Uint8Array(buffer);
    const header = parsed(decoded(this.bytes.subarray(8, this.start), "header"), "header");
    const { __metadata__: metadata, ...entries } = header;
    refuse(typeof metadata?.metricdp !== "string", "it is a safetensors file, but metricdp did not write it");
    this.manifest = parsed(metadata.metricdp, "manifest");
    checkVersion(this.manifest);
    this.layOut(entries);
    this.used = new Set();
    this.read = new Map();
    this.metrics = [];
    this.spaces = [];
  }

  /** Check that the tensors fill the rest of the file from end to end, each as long as its shape says. */
  layOut(entries) {
    const check = tensorEntry(TYPES_OF[this.manifest.version]);
    this.entries = new Map(Object.entries(entries).map(([name, entry]) => [name, check(entry, "a tensor")]));
    let end = 0;
    for (const { dtype, shape, data_offsets: span } of [...this.entries.values()].sort((a, b) => a.data_offsets[0] - b.data_offsets[0])) {
      const length = shape.reduce((a, b) => a * b, TYPES[dtype].BYTES_PER_ELEMENT);
      refuse(span[0] !== end || span[1] - span[0] !== length, "its tensors overlap or have gaps");
      end = span[1];
    }
    const size = this.bytes.length - this.start;
    refuse(end !== size, end > size ? "it is cut off" : "it is too long");
  }

  /** Check the manifest and rebuild metrics and spaces in the order they were stored; each refers to earlier ones only. */
  build() {
    this.manifest = checkedManifest(this);
    for (const entry of this.manifest.metrics) this.metrics.push(readMetric(entry, this));
    for (const entry of this.manifest.spaces) this.spaces.push(readSpace(entry, this));
  }

  refuseLeftovers() {
    for (const name of this.entries.keys()) refuse(!this.used.has(name), "it holds a tensor that nothing refers to");
  }

  /** Return a metric by its number, which the manifest was checked for. */
  metric(number) {
    return this.metrics[number];
  }

  /** Return a space by its number; it is of the kind that its field declares. */
  space(number) {
    return this.spaces[number];
  }

  /** Tell whether two metrics are the same one. */
  same(one, two) {
    const { metrics } = this.manifest;
    return one === two || JSON.stringify(spelled(metrics[one])) === JSON.stringify(spelled(metrics[two]));
  }

  /** Return {data, shape} of a tensor; text comes as a list of strings. */
  tensor(name) {
    if (!this.read.has(name)) this.read.set(name, this.entries.has(`${name}.bytes`) ? this.texts(name) : this.numbers(name));
    return this.read.get(name);
  }

  numbers(name) {
    const entry = this.entries.get(name);
    refuse(entry === undefined, "it refers to a tensor that it does not hold");
    this.used.add(name);
    const [from, to] = entry.data_offsets;
    const data = new TYPES[entry.dtype](this.bytes.slice(this.start + from, this.start + to).buffer);
    return { data, shape: entry.shape };
  }

  texts(name) {
    const bytes = this.numbers(`${name}.bytes`).data;
    const { data: ends, shape } = this.numbers(`${name}.ends`);
    refuse(!(bytes instanceof Uint8Array) || !(ends instanceof BigInt64Array), "its words are not text");
    let start = 0n;
    const data = Array.from(ends, (end) => {
      refuse(end < start || end > BigInt(bytes.length), "its words do not end where they should");
      const word = decoded(bytes.subarray(Number(start), Number(end)), "vocabulary");
      start = end;
      return word;
    });
    const full = start === BigInt(bytes.length) || (start === 0n && bytes.length === 1); // a tensor is never empty
    refuse(!full, "its words do not end where they should");
    return { data, shape };
  }

  /** Refuse a tensor that is not of the type, the sides and the range that its field declares; return its name. */
  checkArray(name, { of, sides = 0, least = -Infinity, most = Infinity }, where) {
    refuse(typeof name !== "string", `${where} is not the name of a tensor`);
    const { data, shape } = this.tensor(name);
    const isText = Array.isArray(data);
    const fits = ARRAYS[of].some((Type) => data instanceof Type) && (isText || sides === 0 || shape.length === sides);
    refuse(!fits, `${where} is not a tensor of the right type and shape`);
    if (!isText) for (const value of data) refuse(!(value >= least && value <= most), `${where} holds a number outside its range`);
    return name;
  }

  shape(name) {
    return this.tensor(name).shape;
  }

  /** Return finite doubles of a shape (null: any side; a shape of null: any). */
  floats(name, shape, what) {
    const data = this.shaped(name, shape, what);
    refuse(!(data instanceof Float64Array), `${what} are not doubles`);
    for (const value of data) refuse(!Number.isFinite(value), `${what} are not finite numbers`);
    return data;
  }

  /** Return whole numbers of at least 0 of a shape, of any width. */
  counts(name, shape, what) {
    const data = this.shaped(name, shape, what);
    refuse(!UNSIGNED.some((Type) => data instanceof Type), `${what} are not whole numbers`);
    return data;
  }

  /** Return signed whole numbers of a shape as doubles. */
  wholes(name, shape, what) {
    const data = this.shaped(name, shape, what);
    refuse(!(data instanceof BigInt64Array), `${what} are not whole numbers`);
    return Float64Array.from(data, Number);
  }

  bits(name, shape, what) {
    const data = this.shaped(name, shape, what);
    refuse(!(data instanceof Uint8Array), `${what} are not bytes`);
    return data;
  }

  /** Return single floats of a shape, which may lie in the file as codes and a table that decreases. */
  singles(entry, shape, what) {
    if (typeof entry === "string") return this.shaped(entry, shape, what);
    const table = this.shaped(entry.table, [null], what);
    const decreases = table.every((value, k) => k === 0 || value < table[k - 1]);
    refuse(table.length > MOST_CODES || !decreases, `${what} have a table that is too long or not in decreasing order`);
    return Float32Array.from(this.counts(entry.codes, shape, what), (code) => {
      refuse(code >= table.length, `${what} have a code that is not in their table`);
      return table[Number(code)];
    });
  }

  shaped(name, shape, what) {
    const { data, shape: found } = this.tensor(name);
    const fits = shape === null || (shape.length === found.length && shape.every((side, k) => side === null || side === found[k]));
    refuse(!fits, `${what} have the wrong size`);
    return data;
  }

  points(name) {
    const found = this.tensor(name);
    const good = Array.isArray(found.data) || found.data instanceof Float64Array || found.data instanceof BigInt64Array;
    refuse(!good || found.shape.length < 2, "its points are not rows of numbers or words");
    return new Points(found);
  }
}

/** Return an entry with its keys in order, so that equal ones are spelled alike. */
const spelled = ({ name, parameters }) => [name, Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1))];

// ---------------------------------------------------------------------------------------------------- signing.js

/** Checksum and Ed25519 signature: whether a file is as it was written, and by whom. */


const ZERO = "0".charCodeAt(0);
const PREFIX = "302a300506032b6570032100"; // SubjectPublicKeyInfo of Ed25519
const ENTRY = record({ algorithm: oneOf(["ed25519"]), public_key: text(64), value: text(128) });

const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const unhex = (digits) => Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));

/** Return the 64 digits of a public key given as PEM text or as the digits themselves. */
function keyDigits(key) {
  const digits = typeof key === "string" ? rawDigits(key.trim()) : null;
  if (digits === null) {
    throw new InvalidInput("a trusted key must be the text of a .pub file (PEM, Ed25519) or its 64 digits.");
  }
  if (isWeak(digits)) throw new InvalidInput("every signature fits this trusted key, so it protects nothing: give another key.");
  return digits;
}

function rawDigits(key) {
  if (/^[0-9a-f]{64}$/i.test(key)) return key.toLowerCase();
  const body = /-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+?)-----END PUBLIC KEY-----/.exec(key);
  if (body === null) return null;
  try {
    const bytes = hex(Uint8Array.from(atob(body[1].replace(/\s/g, "")), (c) => c.charCodeAt(0)));
    return bytes.length === 88 && bytes.startsWith(PREFIX) ? bytes.slice(PREFIX.length) : null;
  } catch {
    return null; // no base64
  }
}

/**
 * Tell whether a public key is a point of small order, or is written with a coordinate beyond the field: such keys have
 * signatures that fit any message, so they say nothing. The sign bit does not matter.
 */
function isWeak(digits) {
  const last = parseInt(digits.slice(62), 16) & 0x7f;
  const unsigned = digits.slice(0, 62) + last.toString(16).padStart(2, "0");
  const beyond = last === 0x7f && /^f{60}$/.test(digits.slice(2, 62)) && parseInt(digits.slice(0, 2), 16) >= 0xed;
  return beyond || CONSTANTS.weak_keys.includes(unsigned);
}

/** Return where these ASCII digits stand in the header; they must occur once. */
function find(file, digits) {
  const head = file.bytes.subarray(0, file.start);
  let found = -1;
  for (let at = head.indexOf(digits.charCodeAt(0)); at >= 0; at = head.indexOf(digits.charCodeAt(0), at + 1)) {
    let k = 1;
    while (k < digits.length && head[at + k] === digits.charCodeAt(k)) k += 1;
    if (k === digits.length) {
      refuse(found >= 0, "its header holds its checksum or its signature twice");
      found = at;
    }
  }
  refuse(found < 0, "its checksum or signature is missing");
  return found;
}

/** Verify checksum and signature; return the key that signed the file, and whether that could be verified here. */
async function verified(file) {
  const subtle = globalThis.crypto?.subtle;
  if (!subtle) throw new Unsupported("this page has no crypto.subtle: serve it over https (or from localhost).");
  const { sha256, signature } = file.manifest;
  refuse(!/^[0-9a-f]{64}$/.test(sha256), "its checksum is missing");
  const blank = file.bytes.slice();
  const place = find(file, sha256);
  blank.fill(ZERO, place, place + 64);
  const digest = hex(await subtle.digest("SHA-256", blank));
  refuse(digest !== sha256, "its checksum does not fit its contents: the file was altered or damaged");
  if (signature === null || signature === undefined) return { signedBy: null, verified: false };
  const { public_key: key, value } = ENTRY(signature, "its signature");
  refuse(!/^[0-9a-f]{64}$/.test(key) || !/^[0-9a-f]{128}$/.test(value), "its signature or public key has the wrong form");
  refuse(isWeak(key), "every signature fits its public key");
  const at = find(file, value);
  blank.fill(ZERO, at, at + 128);
  const purpose = new TextEncoder().encode(`${CONSTANTS.signature_purpose}\0`);
  const message = new Uint8Array([...purpose, ...new Uint8Array(await subtle.digest("SHA-256", blank))]);
  let imported;
  try {
    imported = await subtle.importKey("raw", unhex(key), { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    refuse(error?.name !== "NotSupportedError", "its public key is not a valid key");
    return { signedBy: key, verified: false }; // an old browser: only an error where a signature was asked for
  }
  const good = await subtle.verify({ name: "Ed25519" }, imported, unhex(value), message);
  refuse(!good, "its signature does not fit its contents: the file was altered after it was signed");
  return { signedBy: key, verified: true };
}

// ---------------------------------------------------------------------------------------------------- open.js

/** Opening a mechanism file, from bytes, an address or a path. */


const LARGEST = 256 * 2 ** 20;

/** Tell whether a name is that of a file on the machine of a Node program, which `fetch` does not read. */
function isLocalFile(source) {
  return globalThis.process?.versions?.node !== undefined && (/^file:/i.test(source) || !/^[a-z][a-z0-9+.-]+:/i.test(source));
}

async function localFile(source, largest) {
  const { readFile, stat } = await import("node:fs/promises");
  const place = /^file:/i.test(source) ? new URL(source) : source;
  try {
    const { size } = await stat(place);
    if (size <= largest) return await readFile(place);
  } catch (error) {
    throw new InvalidInput(`${source} could not be read: ${error.message}.`);
  }
  throw tooLarge(largest);
}

const tooLarge = (largest) => new CorruptFile(`the file was refused: it has more than the limit of ${largest} bytes.`);

/** Return the bytes of a file in a buffer of their own, which nobody changes between the check and the use. */
async function bytesOf(source, largest) {
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
    if (source.byteLength > largest) throw tooLarge(largest);
    const view = source instanceof ArrayBuffer ? new Uint8Array(source) : new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    return new Uint8Array(view).buffer;
  }
  if (typeof source === "string" || source instanceof URL) {
    if (isLocalFile(String(source))) return bytesOf(await localFile(String(source), largest), largest);
    const response = await fetch(source);
    if (!response.ok) throw new InvalidInput(`${source} could not be read: ${response.status} ${response.statusText}.`);
    if (Number(response.headers.get("Content-Length") ?? 0) > largest) throw tooLarge(largest);
    return bytesOf(await response.arrayBuffer(), largest);
  }
  throw new InvalidInput("give a mechanism file as an ArrayBuffer, as bytes or as a URL (in Node also as a path).");
}

/**
 * Open a mechanism file and check it: its form, every byte by its checksum, the signature where there is one.
 *
 * With `trusted` (the text of a .pub file or its digits, or a list of them) the file is refused unless one of these keys
 * signed it. That is what stands between your users and a forged file: the checksum alone only finds accidents, and the
 * proof of a matrix is not repeated here. Files of more than `largest` bytes are refused.
 * @param {ArrayBuffer | ArrayBufferView | string | URL} source
 * @param {{ trusted?: string | string[] | null, largest?: number }} [options]
 * @returns {Promise<Mechanism>}
 */
async function open(source, { trusted = null, largest = LARGEST } = {}) {
  optionNumber(largest, "largest");
  refuseOption(Array.isArray(trusted) && trusted.length === 0, "`trusted` is an empty list: give at least one key.");
  const keys = trusted === null ? null : (Array.isArray(trusted) ? trusted : [trusted]).map(keyDigits);
  const buffer = await bytesOf(source, largest);
  try {
    const file = new MechanismFile(buffer);
    const found = await verified(file);
    if (keys !== null) {
      refuse(found.signedBy === null, "it has no signature");
      refuse(!keys.includes(found.signedBy), `it is signed by ${found.signedBy}, which is not a key that you trust`);
      if (!found.verified) throw new Unsupported("this browser cannot check Ed25519 signatures: use a newer one.");
    }
    return mechanismOf(file, { ...found, trusted: keys !== null, bytes: buffer.byteLength });
  } catch (error) {
    if (error instanceof MetricdpError) throw error;
    throw new CorruptFile(`the file was refused: its contents are not those of a mechanism (${error.name}).`);
  }
}

// ---------------------------------------------------------------------------------------------------- tree.js

/**
 * Trees of areas: places in areas in larger areas, with a mechanism file for every level. Everybody chooses how precise reports are and
 * which areas they avoid, on the device; `metricdp tree` writes such folders.
 */


const LARGEST_TREE = 64 * 2 ** 20; // bytes of a tree.json
const MOST_LEVELS = 31;
const LONGEST = 1000; // letters of a name
const MOST_PLACES = 2 ** 24;
const NO_AREA = "an area to avoid does not belong to its level.";

const named = (value, where) => {
  refuse(value === "", `${where} is empty`);
  return text(LONGEST)(value, where);
};

const anyValue = (value) => value;

/** What a tree.json may say; what depends on other values is checked level by level. */
const checkTree = record({
  format: text(), version: whole(), places: whole(1, MOST_PLACES),
  levels: list(record({ name: named, file: named, sha256: text(64), areas: anyValue }, { of: anyValue, middles: anyValue }), 1, MOST_LEVELS),
});

/** Return the checked level after those that are finer. */
function levelOf({ name, file, sha256, areas, of, middles }, places, finer) {
  const first = finer.length === 0;
  const size = first ? places : areas?.length ?? 0;
  refuse(!/^[^/\\:]+$/.test(file) || file.startsWith(".") || finer.some((one) => one.name === name), "a file of the tree lies in another folder, or two levels have the same name");
  refuse(!/^[0-9a-f]{64}$/.test(sha256), "a checksum of the tree does not have 64 digits");
  if (!first || areas !== null) list(named, size, size)(areas, "areas");
  refuse(areas !== null && new Set(areas).size !== areas.length, "two areas of a level have the same name");
  if (first) {
    refuse(of !== undefined || middles !== undefined, "the finest level of the tree has `of` or `middles`, which only areas have");
    return { name, file, sha256, areas, of: Array.from({ length: places }, (_, place) => place), size };
  }
  list(whole(0, size - 1), places, places)(of, "of");
  list(whole(0, places - 1), size, size)(middles, "middles");
  refuse(middles.some((place, area) => of[place] !== area), "the place that stands for an area of the tree lies outside the area");
  const around = new Map(); // the area of this level in which one of the level below lies
  finer[finer.length - 1].of.forEach((area, place) => {
    refuse(around.has(area) && around.get(area) !== of[place], "an area of the tree lies in several of the next level");
    around.set(area, of[place]);
  });
  return { name, file, sha256, areas, of, size };
}

/**
 * A tree of areas, as `openTree` gives it: the levels, the finest first, and mechanisms that report areas of a level and avoid others.
 */
class LocationTree {
  #levels;
  #opened;

  /** Trees come from `openTree`. @private */
  constructor(levels, opened) {
    this.#levels = levels;
    this.#opened = opened;
    /**
     * The levels, the finest first; `areas` are the names of its areas, null where places have none.
     * @type {readonly { readonly name: string, readonly size: number, readonly areas: readonly string[] | null }[]}
     */
    this.levels = Object.freeze(
      levels.map(({ name, size, areas }) => Object.freeze({ name, size, areas: areas === null ? null : Object.freeze([...areas]) })),
    );
    Object.freeze(this);
  }

  #number(name) {
    const found = this.#levels.findIndex((level) => level.name === name);
    refuseOption(found < 0, `the tree has no such level: its levels are ${this.#levels.map((level) => level.name).join(", ")}.`);
    return found;
  }

  /**
   * Return the reports of the file of a level that lie in some areas, by name (places without names by number), of a level that is
   * no finer.
   * @param {string} level
   * @param {ArrayLike<string | number>} areas
   * @param {{ of?: string }} [options] `of`: whose reports, the places unless said
   * @returns {number[]}
   */
  codes(level, areas, { of = this.#levels[0].name } = {}) {
    const [chosen, reported] = [this.#number(level), this.#number(of)];
    refuseOption(chosen < reported, "the avoided level is finer than the reported one: take the mechanism of the avoided level.");
    refuseOption(!Array.isArray(areas), "give the areas to avoid as one list of names, the same for every secret.");
    const { areas: names, of: inside, size } = this.#levels[chosen];
    const known = names === null ? null : new Map(names.map((name, area) => [name, area]));
    const wanted = new Set(
      areas.map((area) => {
        const code = known === null ? area : known.get(area);
        refuseOption(!Number.isInteger(code) || code < 0 || code >= size, NO_AREA);
        return code;
      }),
    );
    const found = new Set();
    this.#levels[reported].of.forEach((report, place) => {
      if (wanted.has(inside[place])) found.add(report);
    });
    return [...found].sort((a, b) => a - b);
  }

  /**
   * Open the mechanism of a level, and leave out reports from the areas that are avoided: `{ district: ["Bonfim"] }`, by the names of
   * levels. Which areas these are stays on the device; that a file was fetched tells which level somebody chose.
   * @param {string} level
   * @param {{ avoid?: Record<string, (string | number)[]>, rule?: "cheapest" | "nearest" }} [options]
   * @returns {Promise<Mechanism>}
   */
  async open(level, { avoid = {}, rule } = {}) {
    refuseOption(typeof avoid !== "object" || avoid === null || Array.isArray(avoid), "`avoid` must name areas by their level, such as { district: [\"Bonfim\"] }.");
    const number = this.#number(level);
    const codes = new Set(Object.entries(avoid).flatMap(([name, areas]) => this.codes(name, areas, { of: level })));
    const mechanism = await this.#opened(this.#levels[number]);
    refuse(mechanism.sha256 !== this.#levels[number].sha256, "its checksum is not the one in the tree");
    const fits = mechanism.secrets === this.#levels[0].size && mechanism.reports === this.#levels[number].size;
    refuse(!fits, "its places or areas are not those of the tree");
    return codes.size === 0 ? mechanism : mechanism.prune([...codes], rule === undefined ? {} : { rule });
  }
}

/** Return what a tree.json says, checked. */
function treeLevels(buffer) {
  let given;
  try {
    given = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(buffer));
  } catch {
    throw new CorruptFile("the file was refused: it is not a tree of metricdp.");
  }
  refuse(given?.format !== "metricdp-tree", "it is not a tree of metricdp");
  refuse(given.version !== 1, "it was written by a later metricdp");
  const { places, levels } = checkTree(given, "the tree");
  return levels.reduce((finer, level) => [...finer, levelOf(level, places, finer)], []);
}

/** Return where a file beside another lies: by address, in Node also by path. */
function besideFile(source, name) {
  if (isLocalFile(String(source)) && !/^file:/i.test(source)) return `${String(source).replace(/[^/\\]*$/, "")}${name}`;
  return new URL(encodeURIComponent(name), new URL(source, globalThis.location?.href));
}

/**
 * Open a tree of areas: `tree.json` by its address (or path), or its bytes together with `read`, which says where the file of a level is.
 * The mechanism files are opened when they are asked for, and must be those whose checksums the tree names; `trusted` and `largest` are
 * those of `open`. A tree is not signed itself: what is trusted are the signatures of its mechanism files.
 * @param {ArrayBuffer | ArrayBufferView | string | URL} source
 * @param {{ trusted?: string | string[] | null, largest?: number,
 *   read?: (name: string) => ArrayBuffer | ArrayBufferView | string | URL }} [options]
 * @returns {Promise<LocationTree>}
 */
async function openTree(source, { read = null, ...options } = {}) {
  const byName = typeof source === "string" || source instanceof URL;
  refuseOption(!byName && typeof read !== "function", "bytes have no folder: give `read`, a function that returns a file of a level by its name.");
  refuseOption(read !== null && typeof read !== "function", "`read` must be a function of the name of a file.");
  const levels = treeLevels(await bytesOf(source, LARGEST_TREE));
  return new LocationTree(levels, ({ file }) => open(read === null ? besideFile(source, file) : read(file), options));
}

export { ConcentratedGuarantee, CorruptFile, InvalidInput, MetricdpError, NotPure, OutOfDomain, Unsupported, planDay, protectGeolocation, Mechanism, haversine, open, Trace, LocationTree, openTree, showDistance };
