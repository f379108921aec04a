// The work queue: assigns people to many recordings together.

import { h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { tickable } from "/static/desk/batch.js";
import { begun, failed, say } from "/static/desk/say.js";

const LONGEST_MS = 60_000, MOST = 400;
const form = document.getElementById("assign");
const chosen = tickable(form);
const groups = [...form.querySelectorAll("[data-what]")];

form.elements.what.addEventListener("change", ({ target }) => {
  for (const group of groups) group.hidden = group.disabled = group.dataset.what !== target.value;
});

async function assign() {
  const people = new FormData(form).getAll("people"), recordings = chosen();
  if (!recordings.length) return say(form.dataset.none);
  if (!people.length) return say(form.dataset.nobody);
  const refused = [];
  for (let first = 0; first < recordings.length; first += MOST) {
    const body = { what: form.elements.what.value, recordings: recordings.slice(first, first + MOST), people };
    refused.push(...(await ask("/api/v1/desk/assign", { body, timeout: LONGEST_MS })).refused);
  }
  if (!refused.length) return location.reload();
  const name = (id) => document.querySelector(`[name="chosen"][value="${CSS.escape(id)}"]`).closest("tr").querySelector("a").textContent;
  return document.getElementById("refused").replaceChildren(...refused.map(({ recording, why }) => h("li", { class: "bad" }, h("strong", {}, name(recording)), ` ${why}`)));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  say("");
  event.submitter.disabled = true; // sent once
  assign().catch(failed).finally(() => { event.submitter.disabled = false; });
});
await begun();
