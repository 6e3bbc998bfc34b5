/** Templates whose text cannot be taken for something else: what files say is shown with its control characters written out. */

import { html as lit } from "./vendor/lit.js";

// as in rendering.py, without the tab and the line break, which a page shows as a space
const UNSAFE = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e007f}]/gu;

function escape(letter) {
  const code = letter.codePointAt(0);
  if (letter === "\r") return "\\r";
  const [mark, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${mark}${code.toString(16).padStart(digits, "0")}`;
}

/** Text as a page may show it: nothing in it turns the direction of writing, hides or ends a line. */
export const printable = (text) => text.replace(UNSAFE, escape);

const shown = (value) => (typeof value === "string" ? printable(value) : Array.isArray(value) ? value.map(shown) : value);

/** A template of lit: text between tags is printable, attributes and properties are as given. */
export function html(parts, ...values) {
  let inTag = false;
  return lit(
    parts,
    ...values.map((value, place) => {
      const [open, close] = [parts[place].lastIndexOf("<"), parts[place].lastIndexOf(">")];
      if (open !== close) inTag = open > close;
      return inTag ? value : shown(value);
    }),
  );
}
