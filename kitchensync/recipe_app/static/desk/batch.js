// One action for the selected rows of a list: the selection, its options, its progress.

import { ask } from "/static/core/server.js";

const PAGES = { consents: "/desk/consents", export: "/api/v1/desk/exports/recordings", recipes: "/api/v1/desk/exports/recipes" };
const ASK_AGAIN_MS = 1000;

// Selects rows of a list, one by one or all; returns a function that gives their ids.
export function tickable(form) {
  const boxes = [...document.querySelectorAll('input[name="chosen"]')];
  const all = form.querySelector('[name="all"]');
  const count = form.querySelector("output");
  const chosen = () => boxes.filter((box) => box.checked).map((box) => box.value);
  const tell = () => {
    count.textContent = form.dataset.count.replace("{count}", chosen().length);
    all.checked = boxes.length > 0 && boxes.every((box) => box.checked);
  };
  all.addEventListener("change", () => { for (const box of boxes) box.checked = all.checked; tell(); });
  for (const box of boxes) box.addEventListener("change", tell);
  tell();
  return chosen;
}

// Sets up the form of a list; `say` shows problems.
export function batch(form, say) {
  const chosen = tickable(form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say("");
    const verb = form.elements.verb.value;
    if (!chosen().length) return say(form.dataset.none);
    if (PAGES[verb]) return location.assign(`${PAGES[verb]}?${new URLSearchParams(chosen().map((id) => [form.dataset.name, id]))}`);
    return ask("/api/v1/desk/batch", { body: { verb, recordings: chosen() } }).then(show).catch((error) => say(error.message));
  });
  const progress = document.getElementById("batch-progress");
  if (!progress) return;
  const follow = () => ask("/api/v1/desk/batch").then(show).catch((error) => say(error.message));
  progress.querySelector("button").addEventListener("click", () => ask("/api/v1/desk/batch/give-up", { body: {} }).then(show).catch((error) => say(error.message)));
  let later = 0;

  function show({ busy, rows }) {
    progress.hidden = !rows.length;
    progress.querySelector("button").hidden = !busy;
    progress.querySelector("tbody").replaceChildren(...rows.map(line));
    clearTimeout(later);
    if (busy) later = setTimeout(follow, ASK_AGAIN_MS);
  }

  function line({ recording, name, verb, state, word, said }) {
    const row = document.createElement("tr");
    const link = Object.assign(document.createElement("a"), { href: `/desk/recordings/${encodeURIComponent(recording)}`, textContent: name });
    const badge = Object.assign(document.createElement("span"), { className: state === "done" ? "badge normal" : "badge", textContent: word });
    for (const child of [link, form.elements.verb.querySelector(`[value="${verb}"]`).textContent, badge, said]) {
      const cell = document.createElement("td");
      cell.append(child);
      row.append(cell);
    }
    row.dataset.state = state;
    return row;
  }
  follow();
}
