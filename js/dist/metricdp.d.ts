// Written by build.js --types from the comments of metricdp.js, SHA-256 05b5f0c226e2a589ebf043672d9b52ce7b764e02580a2313e1322a3e86b61cbf.
/**
 * What stands in for navigator.geolocation; `spent` says what was handed out today: reports, refusals, the total epsilon, and
 * the radius (metres) that holds 95 % of reports.
 */
export type ProtectedGeolocation = {
    getCurrentPosition: (success: (position: any) => void, failure?: (error: {
        code: number;
        message: string;
    }) => void, options?: object) => void;
    watchPosition: (success: (position: any) => void, failure?: (error: {
        code: number;
        message: string;
    }) => void, options?: object) => number;
    clearWatch: (id: number) => void;
    spent: () => {
        reports: number;
        refused: number;
        perDay: number;
        epsilon: number;
        accuracy: number;
    };
};
/**
 * Uniform 64-bit words: `next` puts one into `high` and `low`, 32 bits each.
 */
export type Words = {
    high: number;
    low: number;
    next(): void;
};
/**
 * A code, coordinates (such as [latitude, longitude]) or a word; for a product a list with one of them per part.
 */
export type Secret = number | ArrayLike<number> | ArrayLike<string> | string | Secret[];
/**
 * What was drawn: the code where reports are finitely many, and its coordinates or word; for a product `parts` has the
 * reports part by part.
 */
export type Report = {
    code: number | null;
    point: any[];
    parts?: Report[];
};
/**
 * ln Pr[y | x] - ln Pr[y | x'] <= epsilon d(x, x') + slack, for secrets at most `radius` apart where there is one.
 */
export type Guarantee = Readonly<{
    epsilon: number;
    unit: string;
    slack: number;
    radius: number | null;
    basis: "theorem" | "certificate" | "none";
    metric: string;
}>;
/**
 * What was certified, as the file states it: the loss (the expected one, or with the objective "worst" that of the unluckiest
 * secret), a bound that no mechanism with this promise goes below, the audited epsilon and the pair that it comes from.
 */
export type Certificate = Readonly<{
    loss: number;
    lower_bound: number;
    epsilon: number;
    method: string;
    note?: string;
    seconds: number;
    verified_pairs: number;
    worst_pair: readonly number[];
    objective?: "expected" | "worst";
}>;
/**
 * `snap` puts coordinates on the nearest secret up to this distance, at a slack (see `slack`). `clamp` puts all of them there,
 * or on the edge of a box, however far they are: then the promise is that of the place they were put on.
 */
export type Placing = {
    snap?: number;
    clamp?: boolean;
};
/** The file is damaged, altered, foreign, newer, or not signed by a key that is trusted. */
export class CorruptFile extends MetricdpError {
}
/** An argument is not what was asked for. */
export class InvalidInput extends MetricdpError {
}
/**
 * Read a mechanism file of metricdp and draw reports from it, in a browser, on a phone or in Node. No dependencies.
 *
 * The format is described in docs/format.md of the project. What is drawn has the same distribution as in Python, and
 * for tables of probabilities exactly the stored one. Randomness comes from crypto.getRandomValues only.
 */
/** Every error this module raises on purpose; the message says what was expected, what came and what to do. */
export class MetricdpError extends Error {
    /** @param {string} message */
    constructor(message: string);
}
/** A value is not one of the secrets; it is never passed through. */
export class OutOfDomain extends InvalidInput {
}
/** This module, or this browser, cannot do it; Python can. */
export class Unsupported extends MetricdpError {
}
/**
 * What stands in for navigator.geolocation; `spent` says what was handed out today: reports, refusals, the total epsilon, and
 * the radius (metres) that holds 95 % of reports.
 * @typedef {object} ProtectedGeolocation
 * @property {(success: (position: any) => void, failure?: (error: { code: number, message: string }) => void, options?: object) => void} getCurrentPosition
 * @property {(success: (position: any) => void, failure?: (error: { code: number, message: string }) => void, options?: object) => number} watchPosition
 * @property {(id: number) => void} clearWatch
 * @property {() => { reports: number, refused: number, perDay: number, epsilon: number, accuracy: number }} spent
 */
/**
 * Return an object with getCurrentPosition, watchPosition and clearWatch, and `spent()` for what was used today.
 *
 * A mechanism on finitely many places refuses a position that is none of them (nor within `snap` kilometres, or whatever its
 * unit is). With `clamp` it is put on the nearest place instead, however far that is, a public rule that is the same for
 * everybody; no answer tells inside from outside then. The promise is that of the places: two positions are as hard to tell
 * apart as the places they are put on, and `accuracy` is about that place too.
 * @param {Mechanism} mechanism
 * @param {{ geolocation?: { getCurrentPosition: Function }, storage?: { getItem(name: string): string | null,
 *   setItem(name: string, value: string): void }, everySeconds?: number, perDay?: number, snap?: number, clamp?: boolean,
 *   now?: () => number }} [options]
 * @returns {ProtectedGeolocation}
 */
export function protectGeolocation(mechanism: Mechanism, { geolocation, storage, everySeconds, perDay, snap, clamp, now, }?: {
    geolocation?: {
        getCurrentPosition: Function;
    };
    storage?: {
        getItem(name: string): string | null;
        setItem(name: string, value: string): void;
    };
    everySeconds?: number;
    perDay?: number;
    snap?: number;
    clamp?: boolean;
    now?: () => number;
}): ProtectedGeolocation;
/** A mechanism as its file holds it: what it promises, and reports drawn from it. */
/**
 * A code, coordinates (such as [latitude, longitude]) or a word; for a product a list with one of them per part.
 * @typedef {number | ArrayLike<number> | ArrayLike<string> | string | Secret[]} Secret
 */
/**
 * What was drawn: the code where reports are finitely many, and its coordinates or word; for a product `parts` has the
 * reports part by part.
 * @typedef {{ code: number | null, point: any[], parts?: Report[] }} Report
 */
/**
 * ln Pr[y | x] - ln Pr[y | x'] <= epsilon d(x, x') + slack, for secrets at most `radius` apart where there is one.
 * @typedef {Readonly<{ epsilon: number, unit: string, slack: number, radius: number | null,
 *   basis: "theorem" | "certificate" | "none", metric: string }>} Guarantee
 */
/**
 * What was certified, as the file states it: the loss (the expected one, or with the objective "worst" that of the unluckiest
 * secret), a bound that no mechanism with this promise goes below, the audited epsilon and the pair that it comes from.
 * @typedef {Readonly<{ loss: number, lower_bound: number, epsilon: number, method: string, note?: string, seconds: number,
 *   verified_pairs: number, worst_pair: readonly number[], objective?: "expected" | "worst" }>} Certificate
 */
/**
 * `snap` puts coordinates on the nearest secret up to this distance, at a slack (see `slack`). `clamp` puts all of them there,
 * or on the edge of a box, however far they are: then the promise is that of the place they were put on.
 * @typedef {{ snap?: number, clamp?: boolean }} Placing
 */
export class Mechanism {
    /** Mechanisms come from `open`. @private */
    private constructor();
    /** @type {"matrix" | "local" | "interpolated" | "streets" | "spherical-laplace" | "vector-laplace" | "nearest" | "product"} */
    kind: "matrix" | "local" | "interpolated" | "streets" | "spherical-laplace" | "vector-laplace" | "nearest" | "product";
    /** @type {number} */
    version: number;
    /** @type {number} */
    bytes: number;
    /** @type {string} */
    sha256: string;
    /** @type {"dense" | "sparse" | "quantised"} */
    storage: "dense" | "sparse" | "quantised";
    /** @type {number | null} */
    bits: number | null;
    /** @type {Guarantee} */
    guarantee: Guarantee;
    /** @type {Certificate} */
    certificate: Certificate;
    /** @type {string} */
    licence: string;
    /** The key that signed the file, 64 digits. @type {string | null} */
    signedBy: string | null;
    /**
     * "good": the key in the file made it. "trusted": and you named that key. "unchecked": this browser cannot tell.
     * @type {"none" | "good" | "trusted" | "unchecked"}
     */
    signature: "none" | "good" | "trusted" | "unchecked";
    /** @type {readonly string[]} */
    columns: readonly string[];
    /** The unit in which coordinates are measured where they are (latitude, longitude) in degrees. @type {string | null} */
    earthUnit: string | null;
    /** The number of secrets, where they are finitely many. @returns {number | null} */
    get secrets(): number | null;
    /** The number of reports, where they are finitely many. @returns {number | null} */
    get reports(): number | null;
    /**
     * Draw one report for a secret. A stranger is an error, never passed through; the error says nothing about the value.
     * `words` replaces the random source, for tests only.
     * @param {Secret} secret
     * @param {Placing & { words?: Words }} [options]
     * @returns {Report}
     */
    sample(secret: Secret, { snap, clamp, words }?: Placing & {
        words?: Words;
    }): Report;
    /**
     * Return the probabilities of all reports for a secret, where there are finitely many.
     * @param {Secret} secret
     * @param {Placing} [options]
     * @returns {Float64Array}
     */
    law(secret: Secret, { snap, clamp }?: Placing): Float64Array;
    /**
     * Return the coordinates of a secret by its code.
     * @param {number} code
     * @returns {any[]}
     */
    secretAt(code: number): any[];
    /**
     * Return the slack of the promise when values are snapped: with the distances of the promise themselves 2 * epsilon * snap
     * more, d being the distance between the values; where coordinates are measured otherwise (roads) epsilon times the
     * largest distance between two secrets that can be reached from one place, d being the distance from the secret that
     * one value is put on to any secret that the other can reach.
     * @param {number} [snap]
     * @returns {number}
     */
    slack(snap?: number): number;
    /**
     * Return the largest factor between the probabilities of any report from two secrets at this distance; infinite
     * beyond the radius of the promise, where there is one.
     * @param {number} distance
     * @param {{ snap?: number }} [options]
     * @returns {number}
     */
    factor(distance: number, { snap }?: {
        snap?: number;
    }): number;
    /**
     * Return the distance up to which one report shifts the odds between two secrets by at most `factor`.
     * @param {number} [factor]
     * @param {{ snap?: number }} [options]
     * @returns {number}
     */
    reach(factor?: number, { snap }?: {
        snap?: number;
    }): number;
    /**
     * Return a radius, in the unit of the distances, that holds a report with at least this probability whatever the
     * secret: the same for all secrets, so it tells nothing about them.
     * @param {number} [level]
     * @returns {number}
     */
    accuracy(level?: number): number;
    /**
     * Judge every pair of secrets again in doubles: the smallest epsilon of a matrix, good to `tolerance` (relative). It holds
     * only where a finite epsilon over at least one pair is at most the claim. The proof itself is Python's (`mdp.load`,
     * `metricdp audit`); this finds a forged table without it.
     * @returns {{ epsilon: number, claimed: number, tolerance: number, pairs: number, holds: boolean,
     *   verdict: "holds" | "violated" | "cannot judge" }}
     */
    audit(): {
        epsilon: number;
        claimed: number;
        tolerance: number;
        pairs: number;
        holds: boolean;
        verdict: "holds" | "violated" | "cannot judge";
    };
    /**
     * Explain the promise to a person: `short` is one sentence, `lines` more of it, `meanings` the rows of its table.
     * @param {{ snap?: number }} [options]
     * @returns {{ short: string, lines: string[], meanings: { distance: string, factor: string, words: string }[] }}
     */
    explain({ snap }?: {
        snap?: number;
    }): {
        short: string;
        lines: string[];
        meanings: {
            distance: string;
            factor: string;
            words: string;
        }[];
    };
    #private;
}
/**
 * Return the great-circle distance in kilometres between (latitude, longitude) in degrees.
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 * @returns {number}
 */
export function haversine(a: ArrayLike<number>, b: ArrayLike<number>): number;
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
export function open(source: ArrayBuffer | ArrayBufferView | string | URL, { trusted, largest }?: {
    trusted?: string | string[] | null;
    largest?: number;
}): Promise<Mechanism>;
/**
 * Return a distance for people: 0.2 km is 200 m.
 * @param {number} distance
 * @param {string} unit
 * @returns {string}
 */
export function showDistance(distance: number, unit: string): string;
