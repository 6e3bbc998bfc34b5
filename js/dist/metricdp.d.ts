// Written by build.js --types from the comments of metricdp.js, SHA-256 5a98a68cba6f2bd2c49f78276cef3eacfb7f7330575af181576b435b2678f338.
/**
 * A position as apps know it, with a report in the place of the true one.
 */
export type ProtectedPosition = {
    coords: {
        latitude: number;
        longitude: number;
        accuracy: number;
        altitude: null;
        altitudeAccuracy: null;
        heading: null;
        speed: null;
    };
    timestamp: number;
};
/**
 * What navigator.geolocation says where it has no position.
 */
export type PositionFailure = {
    code: number;
    message: string;
};
/**
 * Where positions come from: navigator.geolocation, or anything with its getCurrentPosition.
 */
export type PositionSource = {
    getCurrentPosition: (success: (position: {
        coords: {
            latitude: number;
            longitude: number;
        };
    }) => void, failure: (error: PositionFailure) => void, options?: PositionOptions) => void;
};
/**
 * What was handed out today: reports, refusals (each tells "outside" once), how many of both a day has, and the guarantee for all
 * reports of the day together: somebody who sees them all tells two positions at distance d apart by a factor of
 * exp(epsilon d + slack) at most. A concentrated guarantee is spent in `rho`, which adds up as well, and has neither epsilon nor slack.
 * `accuracy` is the radius (metres) that holds 95 % of reports.
 */
export type Spent = {
    reports: number;
    refused: number;
    perDay: number;
    left: number;
    epsilon?: number;
    slack?: number;
    rho?: number;
    accuracy: number;
};
/**
 * What stands in for navigator.geolocation; `spent` says what was handed out today.
 */
export type ProtectedGeolocation = {
    getCurrentPosition: (success: (position: ProtectedPosition) => void, failure?: (error: PositionFailure) => void, options?: PositionOptions) => void;
    watchPosition: (success: (position: ProtectedPosition) => void, failure?: (error: PositionFailure) => void, options?: PositionOptions) => number;
    clearWatch: (id: number) => void;
    spent: () => Spent;
};
/**
 * How a day's budget is spent: `everySeconds` and `perDay` are options of protectGeolocation, the rest says what they cost.
 */
export type DayPlan = {
    everySeconds: number;
    perDay: number;
    epsilon?: number;
    slack?: number;
    rho?: number;
    accuracy: number;
    sentence: string;
};
/**
 * Uniform 64-bit words: `next` puts one into `high` and `low`, 32 bits each.
 */
export type Words = {
    high: number;
    low: number;
    next(): void;
};
export type Kind = "bag-laplace" | "direction-noise" | "gaussian-noise" | "hyperbolic-laplace" | "interpolated" | "local" | "kernel" | "vector-laplace" | "matrix" | "nearest" | "outline-laplace" | "product" | "projected-laplace" | "spherical-laplace" | "spherical-gaussian" | "streets";
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
    point: (number | string)[];
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
 * secret), a bound for all mechanisms with this guarantee and these reports, the audited epsilon (where the guarantee has one) and the pair
 * that it comes from. The loss is null after pruning.
 */
export type Certificate = Readonly<{
    loss: number | null;
    lower_bound: number;
    epsilon?: number;
    method: string;
    note?: string;
    seconds: number;
    verified_pairs: number;
    worst_pair: readonly number[];
    objective?: "expected" | "worst";
}>;
/**
 * `snap` puts coordinates on the nearest secret up to this distance, at a slack (see `slack`). `clamp` puts all of them there,
 * or on the edge of a box, however far they are: then the guarantee is that of the place they were put on.
 */
export type Placing = {
    snap?: number;
    clamp?: boolean;
};
/**
 * D_a(M(x) || M(x')) <= a rho d(x, x')^2 for every order a > 1 (Renyi): how likely a large ratio is, never how large one can be. It has no
 * epsilon per unit, and asking for one is an error (`NotPure`); at a distance and with a delta it has one. Rho is per squared unit, and
 * rho adds up: many reports of one person keep the sum.
 */
export class ConcentratedGuarantee {
    /** Guarantees come with their mechanisms. @private */
    private constructor();
    /** @type {number} */
    rho: number;
    /** @type {"gaussian" | "renyi"} */
    form: "gaussian" | "renyi";
    /** @type {number | null} */
    radius: number | null;
    /** The unit of the distances. @type {string} */
    unit: string;
    /** @type {"theorem" | "certificate"} */
    basis: "theorem" | "certificate";
    /** @type {string} */
    metric: string;
    /** There is none: reading it is an error. @type {never} */
    get epsilon(): never;
    /** There is none: reading it is an error. @type {never} */
    get slack(): never;
    /**
     * Return an epsilon with which Pr[M(x) in S] <= e^epsilon Pr[M(x') in S] + delta is proven, for all sets S of reports and secrets up to
     * this far apart; rounded up.
     * @param {number} distance
     * @param {number} delta
     * @returns {number}
     */
    epsilonAt(distance: number, delta: number): number;
    /**
     * Return a delta that is proven for this epsilon and secrets up to this far apart; rounded up.
     * @param {number} distance
     * @param {number} epsilon
     * @returns {number}
     */
    deltaAt(distance: number, epsilon: number): number;
    /**
     * Return a distance up to which (epsilon, delta) is proven; rounded down.
     * @param {number} epsilon
     * @param {number} delta
     * @returns {number}
     */
    distanceAt(epsilon: number, delta: number): number;
    /**
     * Return the guarantee of `times` reports of one person together: rho adds up.
     * @param {number} times
     * @returns {ConcentratedGuarantee}
     */
    composed(times: number): ConcentratedGuarantee;
    #private;
}
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
/** Something pure was asked of a guarantee that is only approximate. */
export class NotPure extends InvalidInput {
}
/** A value is not one of the secrets; it is never passed through. */
export class OutOfDomain extends InvalidInput {
}
/** This module, or this browser, cannot do it; Python can. */
export class Unsupported extends MetricdpError {
}
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
export function planDay(mechanism: Mechanism, { budget, hours, snap }: {
    budget: number;
    hours?: number;
    snap?: number;
}): DayPlan;
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
export function protectGeolocation(mechanism: Mechanism, { geolocation, storage, everySeconds, perDay, snap, clamp, confirmSlack, now, }?: {
    geolocation?: PositionSource;
    storage?: {
        getItem(name: string): string | null;
        setItem(name: string, value: string): void;
    };
    everySeconds?: number;
    perDay?: number;
    snap?: number;
    clamp?: boolean;
    confirmSlack?: boolean;
    now?: () => number;
}): ProtectedGeolocation;
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
export class Mechanism {
    /** Mechanisms come from `open` and `prune`. @private */
    private constructor();
    /** @type {Kind} */
    kind: Kind;
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
    /** Whether the guarantee is pure: epsilon times the distance for every report. Else it is concentrated. @type {boolean} */
    isPure: boolean;
    /**
     * What is guaranteed: with an epsilon where `isPure`, else with a rho, and then reading its `epsilon` is an error.
     * @type {Guarantee | ConcentratedGuarantee}
     */
    guarantee: Guarantee | ConcentratedGuarantee;
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
    prune(codes: ArrayLike<number>, { rule }?: {
        rule?: "cheapest" | "nearest";
    }): Mechanism;
    /** The number of secrets, where they are finitely many. @returns {number | null} */
    get secrets(): number | null;
    /** The number of reports, where they are finitely many. @returns {number | null} */
    get reports(): number | null;
    /**
     * Draw one report for a secret. A value that is no secret is an error, never passed through; the error says nothing about the value.
     * `words` replaces the random source, for tests only.
     * @param {Secret} secret
     * @param {Placing & { words?: Words }} [options]
     * @returns {Report}
     */
    sample(secret: Secret, { snap, clamp, words }?: Placing & {
        words?: Words;
    }): Report;
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
    trace(options?: {
        from?: object | null;
        total?: number | null;
        rest?: number;
        prediction?: "parrot" | "linear";
        confidence?: number;
        caution?: number;
        slope?: number;
        test?: number;
        threshold?: number;
    }): Trace;
    /**
     * Return the probabilities of all reports for a secret, where there are finitely many.
     * @param {Secret} secret
     * @param {Placing} [options]
     * @returns {Float64Array}
     */
    distribution(secret: Secret, { snap, clamp }?: Placing): Float64Array;
    /**
     * The old name of `distribution`.
     * @deprecated
     * @param {Secret} secret
     * @param {Placing} [options]
     * @returns {Float64Array}
     */
    law(secret: Secret, options?: Placing): Float64Array;
    /**
     * Return the coordinates of a secret by its code.
     * @param {number} code
     * @returns {(number | string)[]}
     */
    secretAt(code: number): (number | string)[];
    /**
     * Return the slack of the guarantee when values are snapped: with the distances of the guarantee themselves 2 * epsilon * snap
     * more, d being the distance between the values; where coordinates are measured otherwise (roads) epsilon times the
     * largest distance between two secrets that can be reached from one place, d being the distance from the secret that
     * one value is put on to any secret that the other can reach. Concentrated guarantees have none (`NotPure`).
     * @param {number} [snap]
     * @returns {number}
     */
    slack(snap?: number): number;
    /**
     * Return the largest factor between the probabilities of any report from two secrets at this distance; infinite
     * beyond the radius of the guarantee, where there is one. A concentrated guarantee has one with a `delta` only: no set of reports is more
     * than that factor likelier from one of the two, plus delta.
     * @param {number} distance
     * @param {{ snap?: number, delta?: number }} [options]
     * @returns {number}
     */
    factor(distance: number, { snap, delta }?: {
        snap?: number;
        delta?: number;
    }): number;
    /**
     * Return the distance up to which one report shifts the odds between two secrets by at most `factor`; for a concentrated guarantee
     * with a `delta`, up to which no set of reports is more than that factor likelier, plus delta.
     * @param {number} [factor]
     * @param {{ snap?: number, delta?: number }} [options]
     * @returns {number}
     */
    reach(factor?: number, { snap, delta }?: {
        snap?: number;
        delta?: number;
    }): number;
    /**
     * Return a radius, in the unit of the distances, that holds a report with at least this probability whatever the
     * secret: the same for all secrets, so it tells nothing about them.
     * @param {number} [level]
     * @returns {number}
     */
    accuracy(level?: number): number;
    /**
     * Audit every pair of secrets again in doubles: the smallest epsilon of a matrix, good to `tolerance` (relative). It holds
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
     * Explain the guarantee to a person: `short` is one sentence, `lines` more of it, `meanings` the rows of its table.
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
 * A trace that is being released step by step. For two traces whose places are at most d apart at every step, all that was given out is
 * at most exp(`spent` d) times likelier from one than from the other; with a `total`, no run can spend more.
 */
export class Trace {
    /** Traces come from `mechanism.trace`. @private */
    private constructor();
    /** What all steps together may cost, per unit of distance. @type {number | null} */
    total: number | null;
    /** How many steps after a fresh report repeat the prediction without a test, for nothing. @type {number} */
    rest: number;
    /** What one test costs, per unit of distance. @type {number} */
    test: number;
    /** How far a prediction may be off, before the noise of the test. @type {number} */
    threshold: number;
    /**
     * Return what a later page needs to go on, for `mechanism.trace({ from })`: the last reports, what was spent and the name of the file. All of
     * it was given out; nothing is a place.
     * @returns {{ sha256: string, reports: number[][], spent: string, resting: number }}
     */
    toJSON(): {
        sha256: string;
        reports: number[][];
        spent: string;
        resting: number;
    };
    /** The reports so far (of a trace that was resumed, the last two before): what was given out, and nothing else. @returns {number[][]} */
    get reports(): number[][];
    /** Tests and fresh noise together, an epsilon per unit of distance, rounded up. @returns {number} */
    get spent(): number;
    /**
     * Take one more step: the report for a place, and whether it is fresh. Null where the total does not pay for another step; that and
     * which reports are fresh is part of what is released. `words` replaces the random source, for tests only.
     * @param {ArrayLike<number>} place
     * @param {{ words?: Words }} [options]
     * @returns {{ point: number[], fresh: boolean } | null}
     */
    next(place: ArrayLike<number>, { words }?: {
        words?: Words;
    }): {
        point: number[];
        fresh: boolean;
    } | null;
    #private;
}
/**
 * A tree of areas, as `openTree` gives it: the levels, the finest first, and mechanisms that report areas of a level and avoid others.
 */
export class LocationTree {
    /** Trees come from `openTree`. @private */
    private constructor();
    /**
     * The levels, the finest first; `areas` are the names of its areas, null where places have none.
     * @type {readonly { readonly name: string, readonly size: number, readonly areas: readonly string[] | null }[]}
     */
    levels: readonly {
        readonly name: string;
        readonly size: number;
        readonly areas: readonly string[] | null;
    }[];
    /**
     * Return the reports of the file of a level that lie in some areas, by name (places without names by number), of a level that is
     * no finer.
     * @param {string} level
     * @param {ArrayLike<string | number>} areas
     * @param {{ of?: string }} [options] `of`: whose reports, the places unless said
     * @returns {number[]}
     */
    codes(level: string, areas: ArrayLike<string | number>, { of }?: {
        of?: string;
    }): number[];
    /**
     * Open the mechanism of a level, and leave out reports from the areas that are avoided: `{ district: ["Bonfim"] }`, by the names of
     * levels. Which areas these are stays on the device; that a file was fetched tells which level somebody chose.
     * @param {string} level
     * @param {{ avoid?: Record<string, (string | number)[]>, rule?: "cheapest" | "nearest" }} [options]
     * @returns {Promise<Mechanism>}
     */
    open(level: string, { avoid, rule }?: {
        avoid?: Record<string, (string | number)[]>;
        rule?: "cheapest" | "nearest";
    }): Promise<Mechanism>;
    #private;
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
export function openTree(source: ArrayBuffer | ArrayBufferView | string | URL, { read, ...options }?: {
    trusted?: string | string[] | null;
    largest?: number;
    read?: (name: string) => ArrayBuffer | ArrayBufferView | string | URL;
}): Promise<LocationTree>;
/**
 * Return a distance for people: 0.2 km is 200 m.
 * @param {number} distance
 * @param {string} unit
 * @returns {string}
 */
export function showDistance(distance: number, unit: string): string;
