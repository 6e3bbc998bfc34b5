/**
 * What a value in a manifest must be. A check takes a value and says where it stands, and gives the value back or refuses
 * the file; so nothing is built, allocated or drawn from a manifest that does not fit.
 */

import { refuse } from "./errors.js";

/** A text of at most `limit` characters. */
export const text = (limit = 10_000) => (value, where) => {
  const long = typeof value === "string" && value.length > limit && [...value].length > limit; // a character may be two units
  refuse(typeof value !== "string" || long, `${where} is not a text`);
  return value;
};

/** One of the given texts. */
export const oneOf = (names) => (value, where) => {
  refuse(typeof value !== "string" || !names.includes(value), `${where} is not one of ${names.join(", ")}`);
  return value;
};

/** A finite number in a range; with `infinite` the number infinity too, which a manifest writes as {"float": "inf"}. */
export const number =
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
export const whole =
  (least = 0, most = Number.MAX_SAFE_INTEGER) =>
  (value, where) => {
    refuse(!Number.isSafeInteger(value) || value < least || value > most, `${where} is not a whole number in its range`);
    return value;
  };

/** The value or null. */
export const orNull = (check) => (value, where) => (value === null ? null : check(value, where));

/** A list of a given number of values, each of which passes the check. */
export const list =
  (check, least = 0, most = 1_000_000) =>
  (value, where) => {
    refuse(!Array.isArray(value) || value.length < least || value.length > most, `${where} is not a list of the right length`);
    return value.map((item, k) => check(item, `${where}[${k}]`));
  };

/** A list with one check for every place. */
export const tuple =
  (...checks) =>
  (value, where) => {
    refuse(!Array.isArray(value) || value.length !== checks.length, `${where} is not a list of the right length`);
    return checks.map((check, k) => check(value[k], `${where}[${k}]`));
  };

/** An object with exactly these keys, but for the optional ones. */
export const record =
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
export const choose = (pick) => (value, where) => pick(value, where)(value, where);
