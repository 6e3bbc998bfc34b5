/** Every error this module raises on purpose; the message says what was expected, what came and what to do. */
export class MetricdpError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}
/** The file is damaged, altered, foreign, newer, or not signed by a key that is trusted. */
export class CorruptFile extends MetricdpError {}
/** An argument is not what was asked for. */
export class InvalidInput extends MetricdpError {}
/** A value is not one of the secrets; it is never passed through. */
export class OutOfDomain extends InvalidInput {}
/** Something pure was asked of a guarantee that is only approximate. */
export class NotPure extends InvalidInput {}
/** This module, or this browser, cannot do it; Python can. */
export class Unsupported extends MetricdpError {}

/** Refuse a file: the reason names parts of the file, never long pieces of its contents. */
export function refuse(condition, reason) {
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
export function refuseSecret(condition, why) {
  if (!condition) return;
  const [Kind, sentence] = STRANGER[why];
  throw new Kind(sentence);
}

/** Refuse an option of a call; options are the app's own, not secrets. */
export function refuseOption(condition, sentence) {
  if (condition) throw new InvalidInput(sentence);
}

/** Return a finite number of at least `least`, or refuse the option. */
export function optionNumber(value, name, least = 0) {
  refuseOption(typeof value !== "number" || !(value >= least && value < Infinity), `\`${name}\` must be a finite number of at least ${least}.`);
  return value;
}
