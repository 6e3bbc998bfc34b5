/** Laplace and normal noise on the Earth in whole numbers of cells, as in `vectors.js`: doubles with proven bounds, then balls. */

import { settled } from "./balls.js";
import { UNIT, arctangent, centreOf, circle, logOf, ofLatitude, root, sineAndCosine } from "./doubles.js";
import { Uniforms, exponentialOf, normalSize, sureCell, unlikely } from "./noise.js";
import { untilDecided } from "./randomness.js";
import { toWhole } from "./whole.js";

/** The distribution of noise on the Earth: [top, bottom] is the rate per radian as a fraction, `quarter` the number of cells in 90 degrees. */
export class SphereDistribution {
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
export class SphereGaussianDistribution {
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
