/** Studio: five rooms, one at a time, in the reader's language and light. */

import { html, printable } from "./markup.js";
import { nothing, render } from "./vendor/lit.js";
import { enter as admitted, stay } from "./api.js";
import { problem } from "./parts.js";
import { languages, learn, say, speak, spoken } from "./words.js";

const ROOMS = ["feel", "protect", "design", "audit", "budget"];
const THEMES = ["auto", "light", "dark"];
let main = document.getElementById("room");
const darkness = matchMedia("(prefers-color-scheme: dark)");
let leave = () => {};
let entered = 0;

const wanted = () => (ROOMS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "feel");
const theme = () => localStorage.getItem("theme") ?? "auto";

function light() {
  const chosen = theme();
  document.documentElement.dataset.theme = chosen === "auto" ? (darkness.matches ? "dark" : "light") : chosen;
}

function frame() {
  const room = wanted();
  document.title = `${say(`${room}.name`)} · metricdp Studio`;
  document.querySelector(".skip").textContent = say("skip");
  render(
    html`<ul>${ROOMS.map((name) => html`<li><a href="#${name}" aria-current=${name === room ? "page" : "false"}>${say(`${name}.name`)}</a></li>`)}</ul>`,
    document.getElementById("rooms"),
  );
  document.getElementById("rooms").setAttribute("aria-label", say("rooms"));
  const choose = (event, apply) => {
    apply(event.target.value);
    begin();
  };
  render(
    html`<label><span class="visually-hidden">${say("language")}</span>
        <select id="language" @change=${(event) => choose(event, speak)}>
          ${languages().map(([code, name]) => html`<option value=${code} ?selected=${code === spoken()} lang=${code}>${name}</option>`)}
        </select></label>
      <label><span class="visually-hidden">${say("theme")}</span>
        <select id="theme" @change=${(event) => choose(event, (value) => localStorage.setItem("theme", value))}>
          ${THEMES.map((name) => html`<option value=${name} ?selected=${name === theme()}>${say(`theme.${name}`)}</option>`)}
        </select></label>`,
    document.getElementById("settings"),
  );
  render(spoken() === "en" ? nothing : html`${say("language.partly")}`, document.getElementById("spoken"));
}

/** Say something to those who hear the page instead of seeing it. */
export function announce(sentence) {
  document.getElementById("said").textContent = printable(sentence);
}

async function begin() {
  light();
  frame();
  const visit = (entered += 1);
  leave();
  leave = () => {};
  const fresh = main.cloneNode(false); // every visit draws into an element of its own
  fresh.className = "";
  main.replaceWith(fresh);
  main = fresh;
  const { enter } = await import(`./rooms/${wanted()}.js`);
  if (visit !== entered) return;
  const left = await enter(main, { announce });
  if (visit === entered) leave = left ?? (() => {});
  else left?.();
  document.body.dataset.ready = wanted();
}

/** Say why there is no room to enter. */
function turnAway(sentence) {
  light();
  document.documentElement.lang = "en";
  render(problem(sentence), main);
  main.className = "single";
  document.body.dataset.ready = "none";
}

const elsewhere = (event) => event.preventDefault(); // a file that misses its place must not replace the page
addEventListener("dragover", elsewhere);
addEventListener("drop", elsewhere);
await learn();
try {
  if (!(await admitted())) throw new Error(say("stranger"));
  await stay();
} catch (error) {
  turnAway(error.message);
  throw new Error("Studio was not entered", { cause: error });
}
addEventListener("hashchange", () => begin().then(() => main.focus()));
darkness.addEventListener("change", begin);
await begin();
