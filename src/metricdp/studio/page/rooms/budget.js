/** Budget: who spent what, what a day would cost, and a release that is charged, or refused. */

import { html } from "../markup.js";
import { nothing, render } from "../vendor/lit.js";
import { get, post } from "../api.js";
import { problem } from "../parts.js";
import { number, say } from "../words.js";

export async function enter(main, { announce }) {
  const state = { ledger: null, name: "anna", person: null, epsilon: 3.5, minutes: 30, plan: null, place: [41.1496, -8.611], mechanism: "", released: null, refused: "", problem: "" };

  async function load() {
    try {
      state.ledger = await get("/studio/budget");
      state.mechanism ||= state.ledger.mechanisms[0]?.name ?? "";
      state.epsilon = state.ledger.mechanisms[0]?.guarantee.epsilon ?? state.epsilon;
    } catch (error) {
      state.problem = error.message;
    }
    draw();
  }
  const attempt = async (work) => {
    state.problem = "";
    try {
      await work();
    } catch (error) {
      state.problem = error.message;
    }
    draw();
  };
  const look = () => attempt(async () => {
    state.person = await post("/studio/budget/person", { person: state.name });
    announce(say("budget.looked", { person: state.name }));
  });
  const plan = () => attempt(async () => { state.plan = (await post("/studio/budget/plan", { epsilon: state.epsilon, minutes: state.minutes })).lines; });
  async function release() {
    Object.assign(state, { released: null, refused: "", problem: "" });
    try {
      state.released = await post("/v1/release", { person: state.name, request: crypto.randomUUID(), secret: state.place, mechanism: state.mechanism });
      announce(say("budget.released"));
    } catch (error) {
      state.refused = error.message;
      announce(error.message);
    }
    const drawn = { released: state.released, refused: state.refused };
    await load();
    await look();
    Object.assign(state, drawn);
    draw();
  }

  const limits = () => state.person && html`${state.person.closed ? html`<p class="notice bad">${say("budget.closed")}</p>` : nothing}
    ${state.person.accounts.length === 0 && !state.person.closed ? html`<p>${say("budget.nothing")}</p>` : nothing}
    ${state.person.accounts.map(({ metric, limits: all }) => html`<table class="person"><caption>${metric}</caption>
      <thead><tr><th scope="col">${say("budget.limit")}</th><th scope="col">${say("budget.spent")}</th><th scope="col">${say("budget.left")}</th><th scope="col">${say("budget.refreshes")}</th></tr></thead>
      <tbody>${all.map((one) => html`<tr><td>${one.limit}</td><td><progress max="1" .value=${one.share} aria-label=${one.limit}></progress> ${one.spent}</td><td>${one.left}</td><td>${one.refreshes ?? say("budget.never")}</td></tr>`)}</tbody></table>`)}`;

  const told = ({ report, cost, left, promise }) => html`<p class="notice good" id="released">${say("budget.report", {
    report: Object.values(report).map((value) => (typeof value === "number" ? number(value, 8) : value)).join(", "), cost: cost.words, left: left.words,
  })}<br>${promise.sentence}</p>`;

  function draw() {
    main.className = "single";
    const { ledger } = state;
    render(
      html`<section class="card" aria-labelledby="title">
          <h1 id="title">${say("budget.title")}</h1>
          <p class="soft">${say("budget.lead")}</p>
          ${problem(state.problem)}
          ${ledger ? html`<p>${say("budget.policy")} <strong id="policy">${ledger.policy}</strong>. ${ledger.lasting ? nothing : html`<span class="soft">${say("budget.temporary")}</span>`}</p>
            <p class="notice ${ledger.verified ? "good" : "bad"}" id="verified">${ledger.verified ? say("budget.verified", { entries: number(ledger.entries, 12) }) : ledger.faults.join(" ")}</p>` : nothing}
          <h2>${say("budget.person")}</h2>
          <div class="row"><label>${say("budget.whose")} <input id="person" type="text" maxlength="200" .value=${state.name} @input=${(event) => { state.name = event.target.value; }}></label>
            <button id="look" class="plain" @click=${look}>${say("budget.look")}</button>
            ${ledger ? html`<label>${say("budget.mechanism")} <select id="mechanism" @change=${(event) => { state.mechanism = event.target.value; }}>${ledger.mechanisms.map(({ name }) => html`<option value=${name}>${name}</option>`)}</select></label>` : nothing}
            <button id="release" @click=${release}>${say("budget.release")}</button></div>
          <p class="small soft">${say("budget.release.about")}</p>
          ${state.released ? told(state.released) : nothing}
          ${state.refused ? html`<p class="notice bad" role="alert" id="refused">${say("budget.refused")} ${state.refused}</p>` : nothing}
          ${limits() || nothing}
          <h2>${say("budget.plan")}</h2>
          <div class="row"><label>${say("budget.epsilon")} <input id="epsilon" type="number" min="0.001" step="any" .value=${String(Number(state.epsilon.toPrecision(4)))} style="width:6.5rem" @change=${(event) => { state.epsilon = Number(event.target.value); }}> /km</label>
            <label>${say("budget.every")} <input id="minutes" type="number" min="0.1" step="any" .value=${String(state.minutes)} style="width:6rem" @change=${(event) => { state.minutes = Number(event.target.value); }}> min</label>
            <button id="plan" class="plain" @click=${plan}>${say("budget.calculate")}</button></div>
          ${state.plan ? html`<ul id="planned">${state.plan.map((line) => html`<li>${line}</li>`)}</ul>` : nothing}
        </section>
        <section class="card" aria-labelledby="who"><h2 id="who" style="margin-top:0">${say("budget.who")}</h2>
          ${ledger?.accounts.length ? html`<div class="scroll" tabindex="0" role="region" aria-label=${say("budget.who")}><table id="accounts"><thead><tr><th scope="col">${say("budget.hash")}</th><th scope="col">${say("budget.metric")}</th>
              <th scope="col" class="number">${say("budget.today")}</th><th scope="col" class="number">${say("budget.ever")}</th><th scope="col">${say("budget.last")}</th></tr></thead>
            <tbody>${ledger.accounts.map((one) => html`<tr><td><code>${one.person}…</code></td><td>${one.metric}</td><td class="number">${one.today}</td><td class="number">${one.spent}</td><td>${one.last}</td></tr>`)}</tbody></table></div>`
            : html`<p class="soft">${say("budget.empty")}</p>`}
          ${ledger ? html`<p class="small" id="refusals">${say("budget.refusals", { count: number(ledger.refusals, 12) })}</p>` : nothing}
          <p class="small soft">${say("budget.hashes")}</p></section>`,
      main,
    );
  }

  draw();
  await load();
}
