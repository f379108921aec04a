// Writes a recipe as text: shows how every line is understood, to correct it before saving.

import { ask } from "/static/core/server.js";
import { loadWords, t } from "/static/core/words.js";

const at = (id) => document.getElementById(id);
let written = null; // save exactly what was previewed

const kinds = (form) => [...form.querySelectorAll(".lines select")].map((select) => select.value);

export const previewed = (form) => ({ ...written, kinds: kinds(form) });

export async function previewOf(body) {
  written = body;
  await loadWords();
  await show([]);
  at("preview").querySelector("h3").focus();
}

async function show(said) {
  const form = at("preview");
  const { lines, steps } = await ask("/api/v1/desk/recipes/preview", { body: { ...written, kinds: said } });
  const rows = form.querySelector(".lines");
  const focused = [...rows.children].findIndex((row) => row.contains(document.activeElement));
  rows.replaceChildren(...lines.map((line) => drawn(form, line)));
  form.querySelector(".count").textContent = t("choose.steps", { count: steps });
  form.hidden = false;
  rows.children[focused]?.querySelector("select").focus();
}

function drawn(form, { number, kind, text, steps }) {
  const row = form.querySelector("template").content.cloneNode(true).firstElementChild;
  row.value = number;
  row.dataset.kind = kind;
  const isSame = steps.length === 1 && steps[0][1] === text.replace(/[.;]$/, "");
  const select = row.querySelector("select");
  select.value = kind;
  select.addEventListener("change", () => show(kinds(form)));
  row.querySelector(".line").textContent = text;
  row.querySelector("b").textContent = isSame ? `${steps[0][0]}.` : "";
  if (isSame) row.querySelector("ol").remove();
  else row.querySelector("ol").replaceChildren(...steps.map(([node, step]) => Object.assign(document.createElement("li"), { value: node, textContent: step })));
  return row;
}

at("words")?.addEventListener("input", () => { at("preview").hidden = true; });
