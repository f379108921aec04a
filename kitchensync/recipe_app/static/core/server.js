// Requests to the app; an answer that is no success becomes an Error with the server's own words and its `status`.
// Where no answer came there is no status, and the words are ours: a browser says that in its own language.

import { t } from "/static/core/words.js";

const SOON_MS = 1200;
let csrf = "";

export const setCsrf = (token) => { csrf = token; };

export async function ask(url, { body, method, raw, timeout = 8000 } = {}) {
  const options = { cache: "no-store", method: method ?? (body ? "POST" : "GET"), headers: {}, signal: AbortSignal.timeout(timeout) };
  if (body) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  } else if (raw) {
    options.headers["content-type"] = raw.type;
    options.body = raw;
  }
  if (options.method !== "GET") options.headers["x-kitchensync-csrf"] = csrf;
  const answer = await fetch(url, options).catch(silent);
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(content.error ?? t("server.answered", { status: String(answer.status) })), { status: answer.status });
  return content;
}

export function silent(cause) { // for whatever else needs the server
  throw new Error(t("server.silent"), { cause });
}

// What the server answers, or what is kept here when that takes longer or fails: nobody waits for a network that is gone.
export function soonOr(kept, answer) {
  const soon = new Promise((resolve) => setTimeout(() => resolve(kept), SOON_MS));
  return Promise.race([answer.catch(() => kept), soon]);
}
