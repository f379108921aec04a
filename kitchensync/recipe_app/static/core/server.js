// Requests to the app. An unsuccessful answer becomes an Error with the server's message and its `status`.
// Without an answer there is no status, and the message is ours: browsers use their own language.

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

export function silent(cause) { // for other parts that need the server
  throw new Error(t("server.silent"), { cause });
}

// The server's answer, or the local copy if that is slow or fails: a lost network must not block the page.
export function soonOr(kept, answer) {
  const soon = new Promise((resolve) => setTimeout(() => resolve(kept), SOON_MS));
  return Promise.race([answer.catch(() => kept), soon]);
}
