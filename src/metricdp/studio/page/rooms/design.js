/** Design: places, a promise and a loss; bounds that close on each other; a file for tables and phones. */

import { html } from "../markup.js";
import { nothing, render } from "../vendor/lit.js";
import { blob, bytes, exchange, follow, get, post, remove } from "../api.js";
import { table } from "../csv.js";
import { circle, colour, makeMap, point, points } from "../map.js";
import { certificate, dropping, problem, save } from "../parts.js";
import { factor, metres, number, say, within } from "../words.js";

const BUILDERS = ["optimal", "exponential", "truncated_exponential", "tight_constraints", "constopt", "spanner"];
const CURVE = [0.25, 0.5, 1, 2, 4];
const MOST = 1000;

export async function enter(main, { announce }) {
  const state = {
    kind: "roads", crossings: 120, centre: [41.1496, -8.611], side: 8, cell: 200, file: null, prior: "even", builder: "optimal", loss: "distance",
    factor: 2, distance: 200, epsilon: 1, gap: 1, job: null, stand: null, trace: [], start: null, problem: "", curve: null, drawn: null, saved: "",
  };
  let places = { points: [], metric: "haversine", unit: "km" };
  let map = null;
  let unfollow = () => {};

  const earth = () => places.metric === "haversine";
  const epsilon = () => (earth() ? Math.log(state.factor) / (state.distance / 1000) : state.epsilon);

  /** The places that were chosen, as the service takes them. */
  async function gather() {
    state.problem = "";
    if (state.kind === "roads") places = { ...(await get(`/studio/places?count=${state.crossings}`)), metric: "haversine", unit: "km" };
    else if (state.kind === "cells") places = { points: cells(), metric: "haversine", unit: "km" };
    else if (state.file) {
      const { names, rows } = state.file;
      const [lat, lon] = [/^lat/i, /^(lon|lng)/i].map((pattern) => names.findIndex((name) => pattern.test(name)));
      const weight = names.findIndex((name) => /^(count|weight|visits|prior|n)$/i.test(name));
      const onEarth = lat >= 0 && lon >= 0;
      const kept = names.map((_, k) => k).filter((k) => k !== weight);
      const found = rows.map((row) => (onEarth ? [row[lat], row[lon]] : kept.map((k) => row[k])));
      places = { points: found, metric: onEarth ? "haversine" : "l2", unit: onEarth ? "km" : "", weights: weight < 0 ? null : rows.map((row) => row[weight]) };
    } else places = { points: [], metric: "haversine", unit: "km" };
    if (places.points.length > MOST) state.problem = say("design.many", { most: number(MOST, 9) });
    paint();
    draw();
  }

  /** A square of cells around the middle: their centres. */
  function cells() {
    const north = (state.cell / 1000 / 6371.009) * (180 / Math.PI);
    const east = north / Math.cos((state.centre[0] * Math.PI) / 180);
    const half = (state.side - 1) / 2;
    return Array.from({ length: state.side ** 2 }, (_, k) => [
      state.centre[0] + (Math.floor(k / state.side) - half) * north,
      state.centre[1] + ((k % state.side) - half) * east,
    ]);
  }

  /** How far a position lies from the middle of its cell at most, in metres: cells are widest towards the equator. */
  function halfDiagonal() {
    const radians = (degrees) => (degrees * Math.PI) / 180;
    const widest = Math.max(0, Math.abs(radians(state.centre[0])) - (state.side * state.cell) / 2 / 6371009);
    return (state.cell / 2) * Math.hypot(1, Math.cos(widest) / Math.cos(radians(state.centre[0])));
  }

  function paint(extra = {}) {
    if (!map) return;
    const shown = earth() ? places.points : [];
    map.show({ cloud: points(shown, { colour: colour("accent"), opacity: 0.8, size: 4 }), areas: [], places: [], ...extra });
  }

  const asked = () => ({
    points: places.points, metric: places.metric, epsilon: epsilon(), builder: state.builder,
    ...(places.streets && state.kind === "roads" ? { streets: places.streets } : {}),
    ...(state.prior === "counts" && places.weights ? { prior: shares(places.weights) } : {}),
    ...(state.loss === "squared" ? { loss: "squared" } : {}),
    ...(state.builder === "optimal" ? { gap: state.gap / 100 } : {}),
  });
  const shares = (weights) => weights.map((weight) => weight / weights.reduce((sum, one) => sum + one, 0));

  async function begin() {
    Object.assign(state, { problem: "", trace: [], start: null, stand: null, drawn: null, saved: "", curve: null });
    draw();
    try {
      const { job } = await post("/studio/design", asked());
      state.job = job;
      state.stand = { state: "waiting" };
      if (state.loss === "distance") {
        const first = await post("/studio/compare", { ...asked(), builders: ["exponential"] });
        state.start = first.losses.exponential ?? null; // kept by a closed form: the optimum costs no more
      }
      draw();
      const ended = async () => {
        unfollow();
        state.stand = await get(`/v1/design/${job}`);
        const { certificate: proof, seconds } = state.stand;
        if (proof) state.trace.push({ seconds, lower: proof.lower_bound, upper: proof.loss });
        announce(say(`design.state.${state.stand.state}`));
        draw();
      };
      unfollow = follow(`/v1/design/${job}/events`, {
        running: () => { state.stand = { state: "running" }; draw(); },
        progress: ({ seconds, lower, upper }) => { state.trace.push({ seconds, lower, upper: upper ?? state.start }); draw(); },
        done: ended, failed: ended, cancelled: ended,
      });
    } catch (error) {
      state.problem = error.message;
      state.stand = null;
    }
    draw();
  }
  const cancel = () => remove(`/v1/design/${state.job}`).catch((error) => { state.problem = error.message; draw(); });

  /** The loss of several mechanisms at a quarter to four times the epsilon, one point after the other. */
  async function compare() {
    state.curve = [];
    state.problem = "";
    draw();
    try {
      for (const times of CURVE) {
        const { losses, lower_bound: bound } = await post("/studio/compare", { ...asked(), epsilon: times * epsilon() });
        for (const [name, loss] of Object.entries(losses)) state.curve.push({ epsilon: times * epsilon(), loss, name });
        if (bound !== null) state.curve.push({ epsilon: times * epsilon(), loss: bound, name: "bound" });
        draw();
      }
    } catch (error) {
      state.problem = error.message;
      draw();
    }
  }

  const result = () => bytes(`/v1/design/${state.job}/result`);
  async function keep(storage, signed) {
    try {
      const answer = await exchange(`/studio/export?storage=${storage}&sign=${signed ? 1 : 0}`, await result());
      save(storage === "quantised" ? "phone.mdp" : "design.mdp", await answer.arrayBuffer());
      state.saved = signed ? say("design.signed", { key: answer.headers.get("x-public-key").slice(0, 16) }) : say("design.saved");
    } catch (error) {
      state.problem = error.message;
    }
    draw();
  }

  /** Save the public half of the key that signs, for those who check the signature. */
  async function keepKey() {
    try {
      save("studio.pub", await blob("/studio/key"), "application/x-pem-file");
    } catch (error) {
      state.problem = error.message;
      draw();
    }
  }

  /** Draw in this page, with the module that phones use. */
  async function tryOut() {
    const { open } = await import("../vendor/metricdp.js");
    const mechanism = await open(await result());
    const middle = Math.floor(places.points.length / 2);
    const start = performance.now();
    const drawn = Array.from({ length: 400 }, () => mechanism.sample(middle).point.map(Number));
    const each = (1000 * (performance.now() - start)) / 400;
    state.drawn = { each, sentence: mechanism.explain().short };
    if (earth()) paint({ cloud: [...points(places.points, { colour: colour("soft"), opacity: 0.4, size: 3 }).features, ...points(drawn, { colour: colour("accent") }).features], places: [point(places.points[middle], { colour: colour("bad") })], areas: [circle(places.points[middle], 1000 * mechanism.accuracy(0.95), { colour: colour("accent") })] });
    draw();
  }

  async function pictures() {
    const box = main.querySelector("#bounds");
    const other = main.querySelector("#curves");
    if (!box && !other) return;
    const Plot = await import("../vendor/plot.js");
    const style = { background: "transparent", color: colour("ink"), fontSize: "13px" };
    const [scale, unit] = shownLoss();
    const axis = { label: `${say("design.loss")} (${unit})`, grid: true, tickFormat: (value) => number(value) };
    if (box?.isConnected) {
      const rows = state.trace.flatMap(({ seconds, lower, upper }) => [{ seconds, loss: lower, name: say("design.lower") }, { seconds, loss: upper, name: say("design.upper") }]).filter(({ loss }) => loss !== null).map((row) => ({ ...row, loss: scale * row.loss }));
      box.replaceChildren(Plot.plot({
        style, width: 380, height: 240, marginLeft: 55, ariaLabel: say("design.bounds"), x: { label: say("design.seconds"), grid: true }, y: { ...axis, zero: true },
        color: { legend: true, domain: [say("design.lower"), say("design.upper")], range: [colour("noise"), colour("accent")] },
        marks: [Plot.line(rows, { x: "seconds", y: "loss", stroke: "name", curve: "step-after", strokeWidth: 2 }), Plot.dot(rows.slice(-2), { x: "seconds", y: "loss", fill: "name" })],
      }));
    }
    if (other?.isConnected) {
      const rows = state.curve.filter(({ loss }) => loss !== null).map((one) => ({ ...one, loss: scale * one.loss, name: say(`builder.${one.name}`) }));
      other.replaceChildren(Plot.plot({
        style, width: 380, height: 260, marginLeft: 55, ariaLabel: say("design.curves"), x: { type: "log", label: say("design.axis", { unit: places.unit || "1" }), grid: true, tickFormat: (value) => number(value) }, y: { type: "log", ...axis },
        color: { legend: true }, marks: [Plot.line(rows, { x: "epsilon", y: "loss", stroke: "name", marker: true })],
      }));
    }
  }
  /** What a loss is multiplied by and called when it is drawn: metres rather than thousandths of kilometres. */
  function shownLoss() {
    if (state.loss === "squared") return [1, places.unit ? `${places.unit}²` : "1"];
    return places.unit === "km" ? [1000, "m"] : [1, places.unit || "1"];
  }

  const amount = (name, label, { min, max, step = 1, unit = "" }, after = () => {}) => html`<label>${label}
    <input id=${name} type="number" min=${min} max=${max} step=${step} .value=${String(state[name])} style="width:6.5rem" @change=${(event) => {
      const value = Number(event.target.value);
      state.problem = "";
      if (value >= min && value <= max) {
        state[name] = value;
        after();
      } else state.problem = say("design.range", { label, min: number(min), max: number(max, 6) });
      draw();
    }}> ${unit}</label>`;

  const where = {
    roads: () => amount("crossings", say("design.crossings"), { min: 10, max: 400 }, gather),
    cells: () => html`${amount("side", say("design.side"), { min: 2, max: 30 }, gather)} ${amount("cell", say("design.cell"), { min: 10, max: 5000, unit: "m" }, gather)}
      <p class="small soft">${say("design.click")}</p>`,
    file: () => html`${dropping({ id: "points", label: say("design.file"), hint: say("design.file.hint"), accept: ".csv,.txt,.tsv", take: async (file) => {
      const read = table(await file.text());
      state.file = read !== null && read.wrong === null ? read : null;
      await gather();
      if (!state.file) state.problem = read === null ? say("audit.unreadable", { file: file.name }) : say("audit.ragged", { file: file.name, row: read.wrong });
      if (state.file && earth()) map?.fit(places.points);
      draw();
    } })}`,
  };

  function standing() {
    const { stand } = state;
    if (!stand) return nothing;
    const busy = ["waiting", "running"].includes(stand.state);
    return html`<h2>${say(`design.state.${stand.state}`)}</h2>
      ${busy ? html`<progress aria-label=${say("design.state.running")}></progress><p><button class="plain" id="cancel" @click=${cancel}>${say("design.cancel")}</button></p>` : nothing}
      ${stand.message && stand.state === "failed" ? problem(stand.message) : nothing}
      ${state.trace.length ? html`<figure id="bounds"></figure>` : nothing}
      ${stand.certificate ? html`<p class="notice good" id="promise">${stand.guarantee.sentence}</p>${certificate(stand.certificate, state.loss === "squared" ? `${places.unit}²` : places.unit)}
        <div class="row">
          <button id="save" @click=${() => keep("auto", false)}>${say("design.save")}</button>
          <button class="plain" id="sign" @click=${() => keep("auto", true)}>${say("design.sign")}</button>
          <button class="plain" id="phone" @click=${() => keep("quantised", true)}>${say("design.phone")}</button>
          <button class="plain" id="key" @click=${keepKey}>${say("design.key")}</button>
          <button class="plain" id="try" @click=${tryOut}>${say("design.try")}</button>
        </div>
        ${state.saved ? html`<p class="small" role="status">${state.saved}</p>` : nothing}
        ${state.drawn ? html`<p class="notice" id="drawn">${say("design.drawn", { each: number(state.drawn.each, 2) })} ${state.drawn.sentence}</p>` : nothing}` : nothing}`;
  }

  function draw() {
    const wish = earth()
      ? html`<div class="row">${amount("factor", say("design.factor"), { min: 1.05, max: 100, step: 0.05 })} ${amount("distance", say("design.at"), { min: 1, max: 100000, unit: "m" })}</div>
          <p class="small soft">${say("design.means", { factor: number(state.factor), distance: metres(state.distance), epsilon: number(epsilon()) })}
          <span id="between">${say(`design.between.${state.kind}`, { snap: within(halfDiagonal()), factor: factor(Math.exp((2 * epsilon() * halfDiagonal()) / 1000)) })}</span></p>`
      : amount("epsilon", say("design.epsilon"), { min: 0.0001, max: 10000, step: "any" });
    const busy = state.stand && ["waiting", "running"].includes(state.stand.state);
    const ready = places.points.length >= 2 && places.points.length <= MOST && !busy;
    render(
      html`<section class="card" aria-labelledby="title">
          <h1 id="title">${say("design.title")}</h1>
          <p class="soft">${say("design.lead")}</p>
          <fieldset><legend>${say("design.where")}</legend><div class="row">
            ${Object.keys(where).map((kind) => html`<label><input type="radio" name="where" value=${kind} .checked=${state.kind === kind} @change=${() => { state.kind = kind; gather().catch(fail); }}> ${say(`design.${kind}`)}</label>`)}</div>
            <div>${where[state.kind]()}</div>
            <p class="small">${say("design.count", { count: number(places.points.length, 9) })}</p></fieldset>
          <fieldset><legend>${say("design.promise")}</legend>${wish}</fieldset>
          <fieldset><legend>${say("design.how")}</legend>
            <div class="row">
              <label>${say("design.builder")} <select id="builder" @change=${(event) => { state.builder = event.target.value; draw(); }}>${BUILDERS.map((name) => html`<option value=${name} ?selected=${name === state.builder}>${say(`builder.${name}`)}</option>`)}</select></label>
              <label>${say("design.loss")} <select id="loss" @change=${(event) => { state.loss = event.target.value; draw(); }}>${["distance", "squared"].map((name) => html`<option value=${name} ?selected=${name === state.loss}>${say(`loss.${name}`)}</option>`)}</select></label>
              <label>${say("design.prior")} <select id="prior" @change=${(event) => { state.prior = event.target.value; draw(); }}>${["even", "counts"].map((name) => html`<option value=${name} ?selected=${name === state.prior} ?disabled=${name === "counts" && !places.weights}>${say(`prior.${name}`)}</option>`)}</select></label>
              ${state.builder === "optimal" ? amount("gap", say("design.gap"), { min: 0.1, max: 50, step: 0.1, unit: "%" }) : nothing}
            </div></fieldset>
          <p class="row"><button id="begin" ?disabled=${!ready} @click=${begin}>${say("design.begin")}</button>
            <button class="plain" id="compare" ?disabled=${!ready} @click=${compare}>${say("design.compare")}</button></p>
          ${problem(state.problem)}
          ${standing()}
          ${state.curve ? html`<h2>${say("design.curves")}</h2><figure id="curves"></figure><p class="small soft">${say("design.curves.about")}</p>` : nothing}
        </section>
        <div><div class="map" id="map"></div></div>`,
      main,
    );
    pictures();
  }
  const fail = (error) => { state.problem = error.message; draw(); };

  draw();
  map = await makeMap(main.querySelector("#map"), {
    onPlace: (place) => {
      if (state.kind !== "cells") return;
      state.centre = place;
      gather();
    },
  });
  await gather().catch(fail);
  return () => {
    unfollow();
    map.remove();
  };
}
