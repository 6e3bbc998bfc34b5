/** Protect: a file in, columns guessed and shown, warnings, a preview, then the file, its report and its certificate. */

import { html } from "../markup.js";
import { nothing, render } from "../vendor/lit.js";
import { PAGE, blob, follow, post, remove, send } from "../api.js";
import { dropping, facts, problem, save } from "../parts.js";
import { metres, number, percent, say } from "../words.js";

const KEPT = "metricdp-studio-file"; // which file this tab has, so that a reload finds it again
const ACCEPT = ".csv,.tsv,.txt,.gz,.zst,.parquet,.feather,.arrow,.jsonl,.ndjson,.geojson,.json";

export async function enter(main, { announce }) {
  const fresh = () => ({ file: null, columns: [], factor: 2, distance: 200, person: "", allocation: "none", budget: 40, most: 10, drop: new Set(), coarsen: {}, sure: false, preview: null, share: null, done: null, problem: "", busy: "" });
  let state = fresh();
  let unfollow = () => {};

  async function take(file) {
    forget();
    state = { ...fresh(), busy: say("protect.reading") };
    draw();
    try {
      const found = await send("/studio/files", file);
      state = { ...fresh(), file: found, columns: found.guess };
      sessionStorage.setItem(KEPT, found.id);
      announce(say("protect.read", { file: found.name, columns: found.columns.length }));
    } catch (error) {
      state = { ...fresh(), problem: error.message };
    }
    draw();
  }
  function forget() {
    unfollow();
    sessionStorage.removeItem(KEPT);
    if (state.file) remove(`/studio/protect/${state.file.id}`).catch(() => {});
  }

  /** Go on with the file that was here before a reload. */
  async function resume() {
    const id = sessionStorage.getItem(KEPT);
    if (!id) return;
    try {
      const found = await post(`/studio/protect/${id}/page`, { page: PAGE });
      state = { ...fresh(), file: found, columns: found.guess, share: found.begun ? 0 : null };
      if (found.begun) watch();
    } catch {
      sessionStorage.removeItem(KEPT); // it is gone: there is nothing to go on with
    }
  }

  const epsilon = () => Math.log(state.factor) / (state.distance / 1000);
  const question = () => ({
    columns: state.columns, epsilon: epsilon(), drop: [...state.drop], coarsen: state.coarsen, force: state.sure,
    ...(state.person ? { person: state.person, ...(state.allocation === "even" ? { allocation: "even", budget: state.budget } : state.allocation === "max_rows" ? { max_rows: state.most, budget: state.budget } : {}) } : {}),
  });

  async function look() {
    Object.assign(state, { problem: "", preview: null, done: null, busy: say("protect.looking") });
    draw();
    try {
      state.preview = await post(`/studio/protect/${state.file.id}/preview`, question());
      announce(say("protect.previewed", { rows: state.preview.before.length }));
    } catch (error) {
      state.problem = error.message;
    }
    state.busy = "";
    draw();
  }

  async function run() {
    Object.assign(state, { problem: "", done: null, share: 0 });
    draw();
    try {
      await post(`/studio/protect/${state.file.id}/run`, question());
      watch();
    } catch (error) {
      Object.assign(state, { problem: error.message, share: null });
      draw();
    }
  }

  function watch() {
    unfollow = follow(`/studio/protect/${state.file.id}/events`, {
      progress: ({ share }) => { state.share = share; draw(); },
      done: (found) => { unfollow(); Object.assign(state, { done: found, share: null }); announce(say("protect.done")); draw(); },
      failed: ({ message }) => { unfollow(); Object.assign(state, { problem: message, share: null }); draw(); },
    });
  }

  async function fetched(what, name) {
    try {
      save(name, await blob(`/studio/protect/${state.file.id}/${what}`));
    } catch (error) {
      state.problem = error.message;
      draw();
    }
  }

  function columns() {
    const names = state.file.columns;
    const pick = (at) => html`<label>${say(at === 0 ? "protect.first" : "protect.second")}
      <select id="column-${at}" @change=${(event) => { state.columns = state.columns.with(at, event.target.value); state.preview = null; draw(); }}>
        <option value="" ?selected=${!state.columns[at]}>${say("protect.choose")}</option>
        ${names.map(({ name }) => html`<option value=${name} ?selected=${name === state.columns[at]}>${name}</option>`)}</select></label>`;
    return html`<fieldset><legend>${say("protect.columns")}</legend><div class="row">${pick(0)} ${pick(1)}</div>
      <p class="small soft">${state.file.guess.every(Boolean) ? say("protect.guessed") : say("protect.unguessed")}</p></fieldset>`;
  }

  function warnings() {
    const found = state.file.warnings;
    if (!found.length) return nothing;
    const remedy = (column, time) => {
      const key = time ? "coarsen" : "drop";
      const on = time ? column in state.coarsen : state.drop.has(column);
      return html`<br><label class="small"><input type="checkbox" data-column=${column} .checked=${on} @change=${(event) => {
        const wanted = event.target.checked;
        if (time) state.coarsen = Object.fromEntries([...Object.entries(state.coarsen).filter(([name]) => name !== column), ...(wanted ? [[column, "1h"]] : [])]);
        else state.drop = new Set([...[...state.drop].filter((name) => name !== column), ...(wanted ? [column] : [])]);
        draw();
      }}> ${say(`protect.${key}`, { column })}</label>`;
    };
    return html`<h2>${say("protect.warnings")}</h2><ul id="warnings">${found.map(({ column, sentence, time }) => html`<li>${sentence} ${column ? remedy(column, time) : nothing}</li>`)}</ul>`;
  }

  function people() {
    return html`<fieldset><legend>${say("protect.people")}</legend>
      <label>${say("protect.person")} <select id="person" @change=${(event) => { state.person = event.target.value; draw(); }}>
        <option value="">${say("protect.nobody")}</option>${state.file.columns.map(({ name }) => html`<option value=${name} ?selected=${name === state.person}>${name}</option>`)}</select></label>
      ${state.person ? html`<div class="row"><label>${say("protect.allocation")} <select id="allocation" @change=${(event) => { state.allocation = event.target.value; draw(); }}>
          ${["none", "even", "max_rows"].map((name) => html`<option value=${name} ?selected=${name === state.allocation}>${say(`protect.allocation.${name}`)}</option>`)}</select></label>
        ${state.allocation !== "none" ? html`<label>${say("protect.budget")} <input id="budget" type="number" min="0.01" step="any" .value=${String(state.budget)} style="width:6rem" @change=${(event) => { state.budget = Number(event.target.value); }}> /km</label>` : nothing}
        ${state.allocation === "max_rows" ? html`<label>${say("protect.most")} <input id="most" type="number" min="1" .value=${String(state.most)} style="width:5rem" @change=${(event) => { state.most = Number(event.target.value); }}></label>` : nothing}</div>` : nothing}
    </fieldset>`;
  }

  function preview() {
    if (!state.preview) return nothing;
    const { names, before, after } = state.preview;
    const changed = new Set(state.preview.protected);
    const side = (rows, caption, id) => html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}><table id=${id}><caption>${caption}</caption>
      <thead><tr>${names.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${row.map((cell, k) => html`<td class=${changed.has(names[k]) && id === "after" ? "new" : ""}>${cell ?? ""}</td>`)}</tr>`)}</tbody></table></div>`;
    return html`<section class="card" aria-labelledby="preview"><h2 id="preview" style="margin-top:0">${say("protect.preview", { rows: before.length })}</h2>
      <p class="small soft">${say("protect.preview.about")}</p>
      ${side(before, say("protect.before"), "before")} ${side(after, say("protect.after"), "after")}
      <ul class="small">${state.preview.lines.map((line) => html`<li>${line}</li>`)}</ul>
      <p><button id="run" ?disabled=${state.share !== null} @click=${run}>${say("protect.run")}</button></p></section>`;
  }

  function finished() {
    if (state.share !== null) return html`<section class="card"><label for="share">${say("protect.running", { share: percent(state.share) })}</label><progress id="share" max="1" .value=${state.share}></progress></section>`;
    if (!state.done) return nothing;
    const button = (what, name, plain) => html`<button class=${plain ? "plain" : ""} id="get-${what}" @click=${() => fetched(what, name)}>${say(`protect.get.${what}`)}</button>`;
    return html`<section class="card" aria-labelledby="done"><h2 id="done" style="margin-top:0">${say("protect.done")}</h2>
      <ul>${state.done.lines.map((line) => html`<li>${line}</li>`)}</ul>
      <p class="row">${button("file", `protected-${state.file.name}`, false)} ${state.done.report ? button("report", "report.html", true) : nothing}
        ${button("certificate", "certificate.json", true)}</p></section>`;
  }

  function draw() {
    main.className = "single";
    render(
      html`<section class="card" aria-labelledby="title">
          <h1 id="title">${say("protect.title")}</h1>
          <p class="soft">${say("protect.lead")}</p>
          ${dropping({ id: "file", label: say("protect.file"), hint: say("protect.hint"), accept: ACCEPT, take })}
          ${state.busy ? html`<p class="soft" aria-busy="true">${state.busy}</p>` : nothing}
          ${state.file ? html`
            ${facts([[say("protect.name.file"), state.file.name], [say("protect.format"), state.file.format], [say("protect.size"), `${number(state.file.bytes / 1e6, 3)} MB`], [say("protect.all"), state.file.columns.map(({ name }) => name).join(", ")]])}
            ${columns()}
            <fieldset><legend>${say("protect.promise")}</legend><div class="row">
              <label>${say("design.factor")} <input id="factor" type="number" min="1.05" max="100" step="0.05" .value=${String(state.factor)} style="width:5rem" @change=${(event) => { state.factor = Number(event.target.value); draw(); }}></label>
              <label>${say("design.at")} <input id="distance" type="number" min="1" max="100000" .value=${String(state.distance)} style="width:6rem" @change=${(event) => { state.distance = Number(event.target.value); draw(); }}> m</label></div>
              <p class="small soft">${say("design.means", { factor: number(state.factor), distance: metres(state.distance), epsilon: number(epsilon()) })}</p></fieldset>
            ${people()} ${warnings()}
            <p class="row"><button id="look" ?disabled=${!state.columns.every(Boolean) || state.busy !== ""} @click=${look}>${say("protect.look")}</button>
              ${state.problem ? html`<label class="small"><input id="sure" type="checkbox" .checked=${state.sure} @change=${(event) => { state.sure = event.target.checked; }}> ${say("protect.sure")}</label>` : nothing}</p>` : nothing}
          ${problem(state.problem)}
        </section>
        ${preview()} ${finished()}`,
      main,
    );
  }

  await resume();
  draw();
  return forget;
}
