/**
 * How far noise on the sphere goes: the density of an angle or of a height, and the hat below which it is proposed. Line for line
 * those of src/metricdp/mechanisms/noise/hats.py, in + - * / and square roots alone: the same doubles in both languages. Python
 * proves each hat that it makes in arbitrary precision.
 */

import { arctangent, logOf, root, sineAndCosine } from "./doubles.js";

const ABOVE = 1 + 2 ** -50; // above the roundings of a rate and of its inverse

/** Densities exp(-rate t) sin(t)^h of angles (`form` "angle"), exp(-rate v) (v (2 - v))^h of heights v = 1 - cos(t). */
export class Profile {
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
