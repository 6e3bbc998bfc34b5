/** Pieces that several rooms show. */

import { html } from "./markup.js";
import { nothing } from "./vendor/lit.js";
import { atLeast, atMost, number, say } from "./words.js";

/** A place to drop files on, or to choose them; `take` hears of every file. */
export function dropping({ id, label, hint, accept, take, many = false }) {
  const over = (event, on) => {
    event.preventDefault();
    event.currentTarget.classList.toggle("over", on);
  };
  const taken = (files) => (many ? take([...files]) : files[0] && take(files[0]));
  return html`<div class="drop" @dragover=${(event) => over(event, true)} @dragleave=${(event) => over(event, false)}
      @drop=${(event) => { over(event, false); taken(event.dataTransfer.files); }}>
    <label class="block" for=${id}>${label}</label>
    <input id=${id} type="file" accept=${accept} ?multiple=${many} @change=${(event) => taken(event.target.files)}>
    ${hint ? html`<p class="small soft">${hint}</p>` : nothing}
  </div>`;
}

export const problem = (sentence) => (sentence ? html`<p class="notice bad" role="alert">${sentence}</p>` : nothing);

/** Names and values, one under the other; pairs without a value are left out. */
export const facts = (pairs) =>
  html`<dl class="facts">${pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;

/** What was verified, in numbers. */
export function certificate(found, unit = "") {
  const length = (value) => (value === null ? null : `${number(value, 4)} ${unit}`.trim());
  return facts([
    [say("certificate.loss"), length(found.loss)],
    [say("certificate.bound"), found.lower_bound === null ? null : `${atLeast(found.lower_bound, 4)} ${unit}`.trim()],
    [say("certificate.gap"), Number.isFinite(found.gap) ? `${atMost(100 * found.gap)} %` : null],
    [say("certificate.epsilon"), Number.isFinite(found.epsilon) ? atMost(found.epsilon, 6) : null],
    [say("certificate.pairs"), found.pairs ? number(found.pairs, 12) : null],
    [say("certificate.method"), found.method],
    [say("certificate.note"), found.note],
  ]);
}

/** Hand bytes to the person as a file. */
export function save(name, content, type = "application/octet-stream") {
  const address = URL.createObjectURL(new Blob([content], { type }));
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
