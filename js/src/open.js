/** Opening a mechanism file, from bytes, an address or a path. */

import { CorruptFile, InvalidInput, MetricdpError, Unsupported, optionNumber, refuse, refuseOption } from "./errors.js";
import { MechanismFile } from "./file.js";
import { mechanismOf } from "./mechanism.js";
import { keyDigits, verified } from "./signing.js";

const LARGEST = 256 * 2 ** 20;

/** Tell whether a name is that of a file on the machine of a Node program, which `fetch` does not read. */
export function isLocalFile(source) {
  return globalThis.process?.versions?.node !== undefined && (/^file:/i.test(source) || !/^[a-z][a-z0-9+.-]+:/i.test(source));
}

async function localFile(source, largest) {
  const { readFile, stat } = await import("node:fs/promises");
  const place = /^file:/i.test(source) ? new URL(source) : source;
  try {
    const { size } = await stat(place);
    if (size <= largest) return await readFile(place);
  } catch (error) {
    throw new InvalidInput(`${source} could not be read: ${error.message}.`);
  }
  throw tooLarge(largest);
}

const tooLarge = (largest) => new CorruptFile(`the file was refused: it has more than the limit of ${largest} bytes.`);

/** Return the bytes of a file in a buffer of their own, which nobody changes between the check and the use. */
export async function bytesOf(source, largest) {
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
    if (source.byteLength > largest) throw tooLarge(largest);
    const view = source instanceof ArrayBuffer ? new Uint8Array(source) : new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    return new Uint8Array(view).buffer;
  }
  if (typeof source === "string" || source instanceof URL) {
    if (isLocalFile(String(source))) return bytesOf(await localFile(String(source), largest), largest);
    const response = await fetch(source);
    if (!response.ok) throw new InvalidInput(`${source} could not be read: ${response.status} ${response.statusText}.`);
    if (Number(response.headers.get("Content-Length") ?? 0) > largest) throw tooLarge(largest);
    return bytesOf(await response.arrayBuffer(), largest);
  }
  throw new InvalidInput("give a mechanism file as an ArrayBuffer, as bytes or as a URL (in Node also as a path).");
}

/**
 * Open a mechanism file and check it: its form, every byte by its checksum, the signature where there is one.
 *
 * With `trusted` (the text of a .pub file or its digits, or a list of them) the file is refused unless one of these keys
 * signed it. That is what stands between your users and a forged file: the checksum alone only finds accidents, and the
 * proof of a matrix is not repeated here. Files of more than `largest` bytes are refused.
 * @param {ArrayBuffer | ArrayBufferView | string | URL} source
 * @param {{ trusted?: string | string[] | null, largest?: number }} [options]
 * @returns {Promise<import("./mechanism.js").Mechanism>}
 */
export async function open(source, { trusted = null, largest = LARGEST } = {}) {
  optionNumber(largest, "largest");
  refuseOption(Array.isArray(trusted) && trusted.length === 0, "`trusted` is an empty list: give at least one key.");
  const keys = trusted === null ? null : (Array.isArray(trusted) ? trusted : [trusted]).map(keyDigits);
  const buffer = await bytesOf(source, largest);
  try {
    const file = new MechanismFile(buffer);
    const found = await verified(file);
    if (keys !== null) {
      refuse(found.signedBy === null, "it has no signature");
      refuse(!keys.includes(found.signedBy), `it is signed by ${found.signedBy}, which is not a key that you trust`);
      if (!found.verified) throw new Unsupported("this browser cannot check Ed25519 signatures: use a newer one.");
    }
    return mechanismOf(file, { ...found, trusted: keys !== null, bytes: buffer.byteLength });
  } catch (error) {
    if (error instanceof MetricdpError) throw error;
    throw new CorruptFile(`the file was refused: its contents are not those of a mechanism (${error.name}).`);
  }
}
