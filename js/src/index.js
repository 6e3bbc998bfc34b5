/**
 * Read a mechanism file of metricdp and draw reports from it, in a browser, on a phone or in Node. No dependencies.
 *
 * The format is described in docs/format.md of the project. What is drawn has the same distribution as in Python, and
 * for tables of probabilities exactly the stored one. Randomness comes from crypto.getRandomValues only.
 */

export { ConcentratedGuarantee } from "./concentrated.js";
export { CorruptFile, InvalidInput, MetricdpError, NotPure, OutOfDomain, Unsupported } from "./errors.js";
export { planDay, protectGeolocation } from "./geolocation.js";
export { Mechanism } from "./mechanism.js";
export { haversine } from "./metrics.js";
export { open } from "./open.js";
export { Trace } from "./predictive.js";
export { LocationTree, openTree } from "./tree.js";
export { showDistance } from "./messages.js";
