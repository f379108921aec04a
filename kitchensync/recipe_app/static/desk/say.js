// Messages of a desk page, and the start of its script.

import { setCsrf } from "/static/core/server.js";
import { loadWords } from "/static/core/words.js";

export function say(text) {
  const message = document.getElementById("message");
  message.textContent = text;
  message.hidden = !text;
  message.scrollIntoView({ block: "nearest" });
}

export const failed = (error) => say(error.message);

export function begun() {
  setCsrf(document.querySelector('meta[name="csrf"]')?.content ?? "");
  return loadWords().catch(() => null);
}

export function tickPeople(asked) {
  for (const element of document.querySelectorAll("input[name=people]")) element.checked = asked.includes(element.value);
}
