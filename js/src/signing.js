/** Checksum and Ed25519 signature: whether a file is as it was written, and by whom. */

import { InvalidInput, Unsupported, refuse } from "./errors.js";
import { oneOf, record, text } from "./schema.js";
import { CONSTANTS } from "./constants.js";

const ZERO = "0".charCodeAt(0);
const PREFIX = "302a300506032b6570032100"; // SubjectPublicKeyInfo of Ed25519
const ENTRY = record({ algorithm: oneOf(["ed25519"]), public_key: text(64), value: text(128) });

const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const unhex = (digits) => Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));

/** Return the 64 digits of a public key given as PEM text or as the digits themselves. */
export function keyDigits(key) {
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
export async function verified(file) {
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
