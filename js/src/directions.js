/**
 * Noise on the sphere of any dimension in whole numbers of cells: in doubles with proven bounds, in balls of whole numbers where
 * those leave more than one cell. How far: a value proposed below a hat (`hats.js`), kept or not. Which way: a normal vector g less
 * its part along the secret x, w = g - <g, x> x / |x|^2. The report is y = sin(t) w / |w| + cos(t) x / |x|. Words and bounds are
 * those of Python (src/metricdp/mechanisms/noise/directions.py, docs/explanation/exact_noise.md).
 */

import { UNDECIDED, settled } from "./balls.js";
import { UNIT, logOf, root, sineAndCosine } from "./doubles.js";
import { Uniforms, exponentialOf, sureCell, unlikely } from "./noise.js";
import { untilDecided } from "./randomness.js";
import { exactNormals, normalsOf } from "./vectors.js";
import { toWhole } from "./whole.js";

const PROPOSALS = 8; // of one attempt
const MOST_AWAY = 3.2;

const lengthIn = (balls, row) => balls.root(row.reduce((sum, x) => balls.add(sum, balls.multiply(x, x)), balls.fraction(0n, 1n)));

/** The distribution of noise on the sphere; a coordinate y lies at y * top / bottom cells. */
export class DirectionDistribution {
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
