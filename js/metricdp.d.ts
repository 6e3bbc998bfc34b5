/** Every error this module raises on purpose. */
export class MetricdpError extends Error {}
/** The file is damaged, altered, foreign, newer, or not signed by a key that is trusted. */
export class CorruptFile extends MetricdpError {}
/** An argument is not what was asked for. */
export class InvalidInput extends MetricdpError {}
/** A value is not one of the secrets. */
export class OutOfDomain extends InvalidInput {}
/** This module, or this browser, cannot do it; Python can. */
export class Unsupported extends MetricdpError {}

/** A code, coordinates (such as [latitude, longitude]) or a word; for a product a list with one of them per part. */
export type Secret = number | ArrayLike<number> | ArrayLike<string> | string | Secret[];

/** What was drawn: the code where reports are finitely many, and its coordinates or word. */
export interface Report {
  code: number | null;
  point: number[] | string[] | (number[] | string[])[];
  /** For a product: the reports part by part. */
  parts?: Report[];
}

export interface Guarantee {
  readonly epsilon: number;
  readonly unit: string;
  readonly slack: number;
  readonly radius: number | null;
  readonly basis: "theorem" | "certificate" | "none";
  readonly metric: string;
}

export interface Certificate {
  readonly loss: number;
  readonly lower_bound: number;
  readonly epsilon: number;
  readonly method: string;
  readonly note: string;
  readonly verified_pairs: number;
  readonly objective?: "worst";
  readonly worst_pair: readonly number[];
  readonly seconds: number;
}

/** A source of uniform 64-bit words, for tests only: `next` puts one into `high` and `low`, 32 bits each. */
export interface Words {
  high: number;
  low: number;
  next(): void;
}

export interface Snapping {
  /** Put coordinates on the nearest secret up to this distance; the promise gets a slack of 2 * epsilon * snap. */
  snap?: number;
}

export class Mechanism {
  private constructor();
  readonly kind: "matrix" | "interpolated" | "streets" | "spherical-laplace" | "vector-laplace" | "nearest" | "product";
  readonly version: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly storage: "dense" | "sparse" | "quantised";
  readonly bits: number | null;
  readonly guarantee: Guarantee;
  readonly certificate: Certificate;
  readonly licence: string;
  readonly signedBy: string | null;
  /** "good": the key in the file made it. "trusted": and you named that key. "unchecked": this browser cannot tell. */
  readonly signature: "none" | "good" | "trusted" | "unchecked";
  readonly columns: readonly string[];
  readonly secrets: number | null;
  readonly reports: number | null;
  sample(secret: Secret, options?: Snapping & { words?: Words }): Report;
  law(secret: Secret, options?: Snapping): Float64Array;
  secretAt(code: number): number[] | string[];
  factor(distance: number, options?: Snapping): number;
  reach(factor?: number, options?: Snapping): number;
  accuracy(level?: number): number;
  audit(): { epsilon: number; claimed: number; tolerance: number; holds: boolean };
  explain(options?: Snapping): { short: string; lines: string[] };
}

/** Open a mechanism file and check it; with `trusted`, refuse it unless one of these public keys signed it. */
export function open(
  source: ArrayBuffer | ArrayBufferView | string | URL,
  options?: { trusted?: string | string[] | null; largest?: number },
): Promise<Mechanism>;

/** The great-circle distance in kilometres between (latitude, longitude) in degrees. */
export function haversine(a: ArrayLike<number>, b: ArrayLike<number>): number;

/** A distance for people: 0.2 km is "200 m". */
export function showDistance(distance: number, unit: string): string;
