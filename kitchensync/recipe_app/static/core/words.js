// Messages in the page's language, from the same catalogues as on the server.

const language = document.documentElement.lang || "en";
const plain = language === "xx" ? "en" : language;
const plurals = new Intl.PluralRules(plain);
const numbers = new Intl.NumberFormat(plain);
const fineSeconds = new Intl.NumberFormat(plain, { minimumIntegerDigits: 2, minimumFractionDigits: 1, maximumFractionDigits: 1 });
let catalogue = {};

export const number = (value) => numbers.format(value);

export async function loadWords() {
  catalogue = await (await fetch(`/locales/${language}.json`)).json();
}

export function t(key, values = {}) {
  let message = catalogue[key] ?? key;
  if (typeof message === "object") message = message[plurals.select(values.count)] ?? message.other;
  return message.replace(/\{([a-z_]+)\}/g, (_, name) => (typeof values[name] === "number" ? number(values[name]) : values[name]));
}

// Attributes of an element with a recipe's text: its language, and the direction from its letters.
export const tongue = (name) => ({ lang: name || null, dir: "auto" });
export const pageLanguage = plain;

export function languageName(name) { // each in its own language, for people who know no other
  const said = new Intl.DisplayNames([name], { type: "language", fallback: "code" }).of(name);
  return said.charAt(0).toLocaleUpperCase(name) + said.slice(1);
}

export const listed = (words) => new Intl.ListFormat(plain, { type: "conjunction" }).format(words);

export const dayTime = (milliseconds) => new Intl.DateTimeFormat(plain, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }).format(milliseconds);

export function clockTime(milliseconds) {
  return new Intl.DateTimeFormat(plain, { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(milliseconds);
}

export function duration(seconds) { // 5:03
  const whole = Math.max(0, Math.round(seconds));
  return `${numbers.format(Math.floor(whole / 60))}:${String(whole % 60).padStart(2, "0").replace(/\d/g, (d) => numbers.format(d))}`;
}

export function fineDuration(seconds) { // 5:02.8
  const tenths = Math.max(0, Math.round(seconds * 10));
  return `${numbers.format(Math.floor(tenths / 600))}:${fineSeconds.format((tenths % 600) / 10)}`;
}
