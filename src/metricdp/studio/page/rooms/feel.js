/** Feel: what a promise means at one place, as a cloud of reports. */

import { html } from "../markup.js";
import { nothing, render } from "../vendor/lit.js";
import { post } from "../api.js";
import { circle, colour, makeMap, point, points } from "../map.js";
import { factor, metres, notBelow, number, say, within } from "../words.js";

const STEPS = [20, 30, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 1500, 2000];
const FACTORS = [1.5, 2, 3, 5, 10];
const NEAR = ["door", "shop", "street", "quarter"]; // as far apart as the factors of an answer, in their order
const CLOUD = 400;

export async function enter(main, { announce }) {
  const state = { factor: 2, step: STEPS.indexOf(200), kind: "noise", place: [41.1496, -8.611], noise: null, optimal: null, busy: false, problem: "" };
  let map = null;
  let asked = 0;
  let soon;

  const wish = () => ({ factor: state.factor, metres: STEPS[state.step] });
  const kinds = () => (state.kind === "both" ? ["noise", "optimal"] : [state.kind]);

  async function ask() {
    const visit = (asked += 1);
    Object.assign(state, { busy: true, problem: "", noise: null, optimal: null }); // nothing of another place stays
    draw();
    try {
      for (const kind of ["noise", "optimal"]) {
        state[kind] = kinds().includes(kind) ? await post("/studio/feel", { ...wish(), kind, place: state.place, count: CLOUD }) : null;
        if (visit !== asked) return;
        draw();
      }
    } catch (error) {
      if (visit !== asked) return;
      state.problem = error.message;
    }
    state.busy = false;
    draw();
    const last = state.optimal ?? state.noise;
    if (last) announce(say("feel.said", { wish: said(), half: within(last.radii.half), most: within(last.radii.most) }));
  }
  const askSoon = () => {
    clearTimeout(soon);
    soon = setTimeout(ask, 150);
    draw();
  };
  const said = () => say("feel.wish", { factor: number(state.factor), distance: metres(STEPS[state.step]) });

  function paint() {
    if (!map) return;
    const [cloud, areas] = [[], []];
    for (const kind of kinds()) {
      const found = state[kind];
      if (!found) continue;
      const shade = colour(kind === "noise" ? "noise" : "accent");
      cloud.push(...points(found.reports, { colour: shade }).features);
      areas.push(circle(found.place, found.radii.half, { colour: shade }), circle(found.place, found.radii.most, { colour: shade }));
    }
    map.show({ cloud, areas, places: [point(state.place, { colour: colour("bad") })] });
  }

  function facts(kind) {
    const found = state[kind];
    if (!found) return nothing;
    return html`<h2>${say(`feel.${kind}`)}</h2>
      <dl class="facts" data-kind=${kind}>
        <dt>${say("feel.half")}</dt><dd>${within(found.radii.half)}</dd>
        <dt>${say("feel.most")}</dt><dd>${within(found.radii.most)}</dd>
        <dt>${say("feel.mean")}</dt><dd>${metres(found.mean)}</dd>
        ${kind === "optimal" ? html`<dt>${say("feel.loss")}</dt><dd>${metres(1000 * found.loss)} ${say("feel.bound", { bound: notBelow(1000 * found.lower_bound) })}</dd>` : nothing}
      </dl>
      <p class="small soft">${say(`feel.${kind}.about`, { crossings: found.crossings ?? "", snap: metres(found.snap ?? 0), wish: said() })}</p>`;
  }

  /** How well one report tells positions apart: for every mechanism that is shown, the largest factor there is. */
  function table() {
    const shown = ["noise", "optimal"].filter((kind) => state[kind]);
    if (!shown.length) return nothing;
    const [first] = shown.map((kind) => state[kind]);
    return html`<table id="factors">
        <caption>${say("feel.table")}</caption>
        <thead><tr><th scope="col">${say("feel.who")}</th>${shown.map((kind) => html`<th scope="col" class="number">${say(`feel.${kind}`)}</th>`)}</tr></thead>
        <tbody>${NEAR.map((who, row) => html`<tr><td>${say("feel.away", { who: say(`feel.near.${who}`), distance: metres(first.factors[row].metres) })}</td>
          ${shown.map((kind) => html`<td class="number" data-kind=${kind}>${factor(state[kind].factors[row].factor)}</td>`)}</tr>`)}</tbody>
      </table>
      ${state.optimal ? html`<p class="small soft">${say("feel.table.optimal", { snap: metres(state.optimal.snap) })}</p>` : nothing}
      <p class="small soft">${say("feel.once", { epsilon: number(first.epsilon) })}</p>`;
  }

  function draw() {
    render(
      html`<section class="card" aria-labelledby="title">
          <h1 id="title">${say("feel.title")}</h1>
          <p class="soft">${say("feel.lead")}</p>
          <fieldset>
            <legend>${say("feel.promise")}</legend>
            <p class="wish" id="wish">${said()}</p>
            <div class="row">
              <label>${say("feel.factor")}
                <select id="factor" @change=${(event) => { state.factor = Number(event.target.value); ask(); }}>
                  ${FACTORS.map((value) => html`<option value=${value} ?selected=${value === state.factor}>${number(value)}x</option>`)}
                </select></label>
            </div>
            <label class="block" for="distance">${say("feel.distance")}</label>
            <input id="distance" type="range" min="0" max=${STEPS.length - 1} step="1" .value=${String(state.step)} aria-valuetext=${metres(STEPS[state.step])}
              @input=${(event) => { state.step = Number(event.target.value); askSoon(); }}>
          </fieldset>
          <fieldset>
            <legend>${say("feel.with")}</legend>
            ${["noise", "optimal", "both"].map((kind) => html`<label class="row"><input type="radio" name="kind" value=${kind} .checked=${state.kind === kind}
              @change=${() => { state.kind = kind; ask(); }}> ${say(`feel.kind.${kind}`)}</label>`)}
          </fieldset>
          <p><button class="plain" id="here" @click=${() => move(map.centre())} ?disabled=${!map}>${say("feel.here")}</button></p>
          ${state.busy ? html`<p class="soft" aria-busy="true">${say(state.kind === "noise" ? "feel.drawing" : "feel.designing")}</p>` : nothing}
          ${state.problem ? html`<p class="notice bad" role="alert">${state.problem}</p>` : nothing}
          ${["noise", "optimal"].map(facts)}
          ${table()}
        </section>
        <div>
          <div class="map" id="map"></div>
          <ul class="key">
            <li><i style="background:var(--bad)"></i>${say("feel.key.place")}</li>
            <li><i style="background:var(--noise)"></i>${say("feel.noise")}</li>
            <li><i style="background:var(--accent)"></i>${say("feel.optimal")}</li>
            <li>${say("feel.key.rings")}</li>
          </ul>
          <p class="small"><label>${say("map.background")} <input type="file" id="background" accept=".geojson,.json,.pmtiles" @change=${behind}></label></p>
        </div>`,
      main,
    );
    paint();
  }

  async function behind(event) {
    try {
      const file = event.target.files[0];
      await map.background(file);
      main.querySelector("#map").dataset.background = file.name;
    } catch {
      state.problem = say("map.unreadable");
      draw();
    }
  }
  function move(place) {
    state.place = place;
    ask();
  }

  draw();
  const asking = ask();
  map = await makeMap(main.querySelector("#map"), { onPlace: move });
  draw();
  await asking;
  return () => map.remove();
}
