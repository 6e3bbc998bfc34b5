/** Audit: a matrix, recorded samples or a mechanism file; the verdict, and the worst pair on the map. */

import { html } from "../markup.js";
import { nothing, render } from "../vendor/lit.js";
import { post, send } from "../api.js";
import { table } from "../csv.js";
import { colour, makeMap, point, points } from "../map.js";
import { dropping, facts, problem } from "../parts.js";
import { atLeast, atMost, number, say } from "../words.js";

const METRICS = ["l2", "l1", "linf", "haversine"];

export async function enter(main, { announce }) {
  const state = { kind: "mechanism", metric: "l2", epsilon: 1, matrix: null, points: null, samples: null, secrets: [], reports: [], found: null, problem: "", busy: false };
  let map = null;

  function take(name, file) {
    state.found = null;
    state.problem = "";
    file.text().then((text) => {
      const read = table(text);
      if (read === null || read.wrong !== null) {
        state.problem = read === null ? say("audit.unreadable", { file: file.name }) : say("audit.ragged", { file: file.name, row: read.wrong });
        state[name] = null;
      } else {
        state[name] = { ...read, file: file.name };
        if (name === "samples") {
          const half = Math.floor(read.names.length / 2);
          state.secrets = read.names.slice(0, half);
          state.reports = read.names.slice(half, 2 * half);
        }
        if ((name === "points" || name === "samples") && read.names.some((column) => /^lat/i.test(column))) state.metric = "haversine";
      }
      draw();
    });
  }

  async function judge(question) {
    state.busy = true;
    state.problem = "";
    state.found = null;
    draw();
    try {
      state.found = await question();
      announce(say(`audit.verdict.${state.found.verdict}`));
    } catch (error) {
      state.problem = error.message;
    }
    state.busy = false;
    draw();
    await show();
  }
  const judgeFile = (file) => judge(() => send("/studio/audit", file));
  const judgeMatrix = () =>
    judge(async () => {
      const found = await post("/v1/audit", { kind: "matrix", matrix: state.matrix.rows, points: state.points.rows, metric: state.metric, epsilon: state.epsilon });
      const places = state.metric === "haversine" ? state.points.rows : null;
      return { ...found, places };
    });
  const chosen = (names) => state.samples.rows.map((row) => names.map((name) => row[state.samples.names.indexOf(name)]));
  const judgeSamples = () =>
    judge(() => post("/v1/audit", { kind: "samples", secrets: chosen(state.secrets), reports: chosen(state.reports), metric: state.metric, epsilon: state.epsilon }));

  /** The places, and of the worst pair the two secrets and the report. */
  async function show() {
    const { places, witness, report_places: reports } = state.found ?? {};
    const element = main.querySelector("#map");
    if (!places || !element) return;
    map = await makeMap(element, { label: say("audit.map") });
    const cloud = points(places, { colour: colour("soft"), opacity: 0.5, size: 3 }).features;
    const marks = [];
    const links = [];
    if (witness && places[witness.secret] && places[witness.other]) {
      const [one, two] = [places[witness.secret], places[witness.other]];
      const three = (reports ?? places)[witness.report];
      marks.push(point(one, { colour: colour("bad") }), point(two, { colour: colour("noise") }));
      if (three) marks.push(point(three, { colour: colour("accent") }));
      links.push({ type: "Feature", properties: { colour: colour("bad") }, geometry: { type: "LineString", coordinates: [one, two].map(([lat, lon]) => [lon, lat]) } });
    }
    map.show({ cloud, places: marks, links });
    map.fit(places);
  }

  const promised = () => html`<div class="row">
      <label>${say("audit.metric")} <select id="metric" @change=${(event) => { state.metric = event.target.value; }}>
        ${METRICS.map((name) => html`<option value=${name} ?selected=${name === state.metric}>${say(`metric.${name}`)}</option>`)}</select></label>
      <label>${say("audit.epsilon")} <input id="epsilon" type="number" min="0" step="any" .value=${String(state.epsilon)} @input=${(event) => { state.epsilon = Number(event.target.value); draw(); }}></label>
    </div>`;
  const columns = (name, label) => html`<fieldset><legend>${label}</legend><div class="row">${state.samples.names.map(
    (column) => html`<label><input type="checkbox" .checked=${state[name].includes(column)} @change=${(event) => {
      state[name] = state.samples.names.filter((other) => (other === column ? event.target.checked : state[name].includes(other)));
      draw();
    }}> ${column}</label>`)}</div></fieldset>`;
  const loaded = (name) => (state[name] ? html`<p class="small">${say("audit.read", { file: state[name].file, rows: number(state[name].rows.length, 9), columns: state[name].names.length })}</p>` : nothing);

  const forms = {
    mechanism: () => dropping({ id: "file", label: say("audit.mechanism.file"), hint: say("audit.mechanism.hint"), accept: ".mdp", take: judgeFile }),
    matrix: () => html`${dropping({ id: "matrix", label: say("audit.matrix.file"), hint: say("audit.matrix.hint"), accept: ".csv,.txt,.tsv", take: (file) => take("matrix", file) })} ${loaded("matrix")}
      ${dropping({ id: "points", label: say("audit.points.file"), hint: say("audit.points.hint"), accept: ".csv,.txt,.tsv", take: (file) => take("points", file) })} ${loaded("points")}
      ${promised()}
      <p><button id="judge" ?disabled=${!(state.matrix && state.points && state.epsilon > 0) || state.busy} @click=${judgeMatrix}>${say("audit.judge")}</button></p>`,
    samples: () => html`${dropping({ id: "samples", label: say("audit.samples.file"), hint: say("audit.samples.hint"), accept: ".csv,.txt,.tsv", take: (file) => take("samples", file) })} ${loaded("samples")}
      ${state.samples ? html`${columns("secrets", say("audit.secrets"))} ${columns("reports", say("audit.reports"))}` : nothing}
      ${promised()}
      <p><button id="judge" ?disabled=${!(state.samples && state.secrets.length && state.reports.length && state.epsilon > 0) || state.busy} @click=${judgeSamples}>${say("audit.judge")}</button></p>`,
  };

  /** The worst pair by its numbers. Places between listed ones have none (-1), and those of samples are not rows of their file. */
  function worst({ witness, basis }) {
    const numbered = witness && basis !== "samples" && [witness.secret, witness.other, witness.report].every((one) => one >= 0);
    return numbered ? say("audit.witness", witness) : null;
  }

  /** What samples show is a lower bound: asking stops as soon as the promise is refuted, and more may leak. */
  const leaked = ({ epsilon, confidence }) => [say("audit.leaks", { confidence: number(100 * confidence, 6) }), atLeast(epsilon, 6)];

  function verdict() {
    const found = state.found;
    if (!found) return nothing;
    const good = found.verdict === "holds";
    const approximate = found.kind !== "pure"; // concentrated: it has a rho and no epsilon
    const measured = (value) => (Number.isFinite(value) ? atMost(value, 6) : say("audit.infinite")); // null or "infinity"
    return html`<section class="card" aria-labelledby="verdict">
        <h2 id="verdict" style="margin-top:0">${say(`audit.verdict.${found.verdict}`)}</h2>
        <p class="notice ${good ? "good" : found.verdict === "violated" ? "bad" : ""}">${say(`audit.${approximate ? "approximate" : "meaning"}.${found.verdict}`)}</p>
        ${approximate ? found.sentences.map((sentence) => html`<p>${sentence}</p>`) : nothing}
        ${facts([
          ...(approximate
            ? [[say("audit.rho.claimed"), number(found.claimed, 6)], [say("audit.rho.measured"), measured(found.rho)]]
            : [[say("audit.claimed"), found.claimed === null ? null : number(found.claimed, 6)], found.basis === "samples" ? leaked(found) : [say("audit.measured"), measured(found.epsilon)]]),
          [say("audit.basis"), say(`audit.basis.${found.basis}`)],
          [say("audit.pairs"), found.pairs ? number(found.pairs, 12) : null],
          [say("audit.draws"), found.draws ? number(found.draws, 12) : null],
          [say("audit.reason"), found.reason],
          [say("audit.power"), found.power],
          [say("audit.worst"), worst(found)],
        ])}
        ${found.findings?.length ? html`<ul>${found.findings.map((finding) => html`<li>${finding.sentence}</li>`)}</ul>` : nothing}
        ${found.places ? html`<div class="map" id="map"></div>
          <ul class="key"><li><i style="background:var(--bad)"></i>${say("audit.key.secret")}</li><li><i style="background:var(--noise)"></i>${say("audit.key.other")}</li>
            <li><i style="background:var(--accent)"></i>${say("audit.key.report")}</li></ul>` : nothing}
      </section>`;
  }

  function draw() {
    main.className = "single";
    render(
      html`<section class="card" aria-labelledby="title">
          <h1 id="title">${say("audit.title")}</h1>
          <p class="soft">${say("audit.lead")}</p>
          <fieldset><legend>${say("audit.what")}</legend><div class="row">
            ${Object.keys(forms).map((kind) => html`<label><input type="radio" name="kind" value=${kind} .checked=${state.kind === kind}
              @change=${() => { state.kind = kind; state.found = null; state.problem = ""; draw(); }}> ${say(`audit.${kind}`)}</label>`)}</div></fieldset>
          ${forms[state.kind]()}
          ${state.busy ? html`<p class="soft" aria-busy="true">${say("audit.judging")}</p>` : nothing}
          ${problem(state.problem)}
        </section>
        ${verdict()}`,
      main,
    );
  }

  draw();
  return () => map?.remove();
}
