/** Sentences in the reader's language, from one file of strings; numbers as that language writes them. */

const LANGUAGES = { en: "English", de: "Deutsch" };
let strings = {};
let language = "en";

export async function learn() {
  strings = await (await fetch("strings.json")).json();
  const wished = localStorage.getItem("language") ?? navigator.language?.slice(0, 2);
  speak(wished in LANGUAGES ? wished : "en");
}

export function speak(chosen) {
  language = chosen;
  document.documentElement.lang = chosen;
  localStorage.setItem("language", chosen);
}

export const spoken = () => language;
export const languages = () => Object.entries(LANGUAGES);

/** Return the sentence of a key, with {names} replaced. A key that is not there is a mistake and shows itself. */
export function say(key, values = {}) {
  const sentence = strings[key]?.[language];
  if (sentence === undefined) throw new Error(`no string for ${key} in ${language}`);
  return sentence.replaceAll(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

export const number = (value, digits = 3) =>
  new Intl.NumberFormat(language, { maximumSignificantDigits: digits }).format(value);

/** A length in metres as people say it. */
export function metres(value, digits = 2) {
  return value < 1000 ? `${number(value, digits)} m` : `${number(value / 1000, digits)} km`;
}

/** A number rounded up or down to so many digits; what is a multiple of the step but for rounding stays as it is. */
function stepped(value, digits, towards) {
  if (!(value > 0)) return value;
  const step = 10 ** (Math.floor(Math.log10(value)) - digits + 1);
  return (towards > 0 ? Math.ceil(value / step - 1e-9) : Math.floor(value / step + 1e-9)) * step;
}

/** A length rounded up: what lies within a radius lies within what is said. */
export const within = (value, digits = 2) => metres(stepped(value, digits, 1), digits);

/** A length rounded down: what nothing goes below, nothing goes below as it is said. */
export const notBelow = (value, digits = 2) => metres(stepped(value, digits, -1), digits);

/** A number rounded up: what is at most the number is at most what is said. */
export const atMost = (value, digits = 3) => number(stepped(value, digits, 1), digits);

/** A number rounded down. */
export const atLeast = (value, digits = 3) => number(stepped(value, digits, -1), digits);

const BEYOND = 1000; // a larger factor is no protection, and its digits say nothing

/** A factor that something is at most; what is large, or infinite (null in JSON), is no limit. */
export const factor = (value) => (value !== null && value <= BEYOND ? `${atMost(value)}x` : say("factor.beyond", { factor: number(BEYOND) }));

export const percent = (share, digits = 2) =>
  new Intl.NumberFormat(language, { style: "percent", maximumSignificantDigits: digits }).format(share);
