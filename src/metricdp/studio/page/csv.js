/** Tables of numbers as people have them: any separator, decimal commas, a header or none. For files that this page judges itself. */

const SEPARATORS = [",", ";", "\t", "|", " "];

/** Cut a line at a separator, with quoted cells. */
function cells(line, separator) {
  const found = [];
  let cell = "";
  let quoted = false;
  for (let k = 0; k < line.length; k++) {
    const c = line[k];
    if (quoted && c === '"' && line[k + 1] === '"') {
      cell += '"';
      k += 1;
    } else if (c === '"') quoted = !quoted;
    else if (c === separator && !quoted) {
      found.push(cell.trim());
      cell = "";
    } else cell += c;
  }
  found.push(cell.trim());
  return found;
}

const numeric = (text, comma) => (text === "" ? NaN : Number(comma ? text.replace(",", ".") : text));

/** Return { names, rows } of a table of numbers; `null` where it is none. Names are column numbers where there is no header. */
export function table(text) {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/).filter((line) => line.trim() !== "");
  if (lines.length === 0) return null;
  let best = null;
  for (const separator of SEPARATORS) {
    for (const comma of separator === "," ? [false] : [false, true]) {
      const last = cells(lines.at(-1), separator);
      if (last.some((cell) => Number.isNaN(numeric(cell, comma)))) continue;
      if (best === null || last.length > best.width) best = { separator, comma, width: last.length };
    }
  }
  if (best === null) return null;
  const { separator, comma, width } = best;
  const first = cells(lines[0], separator);
  const headed = first.some((cell) => Number.isNaN(numeric(cell, comma)));
  const rows = lines.slice(headed ? 1 : 0).map((line) => cells(line, separator).map((cell) => numeric(cell, comma)));
  const wrong = rows.findIndex((row) => row.length !== width || row.some(Number.isNaN));
  return { names: headed ? first : first.map((_, k) => String(k + 1)), rows, headed, wrong: wrong < 0 ? null : wrong };
}
