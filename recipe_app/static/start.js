// The start page: recording, recipe and order, then one button.

import { newId } from "/static/outbox.js";

const at = (id) => document.getElementById(id);
const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`)?.value ?? null;
let asked = 0;

function seed() {
  return Math.min(Math.max(Math.trunc(Number(at("seed").value)) || 0, 0), 999999);
}

async function json(url, body) {
  const options = body && {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const answer = await fetch(url, { cache: "no-store", ...options });
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error || `the server answered ${answer.status}`);
  return content;
}

async function preview() {
  const recipe = chosen("recipe");
  at("go").disabled = !recipe;
  if (!recipe) return;
  const number = ++asked;
  try {
    const drawn = await json(`/api/recipes/${encodeURIComponent(recipe)}/order?seed=${seed()}`);
    if (number !== asked) return; // a later question was asked since
    at("preview").replaceChildren(
      ...drawn.order.map((node) => {
        const item = document.createElement("li");
        item.textContent = drawn.steps[node].text;
        return item;
      }),
    );
    at("message").textContent = "";
  } catch (error) {
    at("message").textContent = error.message;
  }
}

async function go() {
  at("go").disabled = true;
  try {
    const recording = chosen("recording") || (await json("/api/standalone", { op_id: newId() })).recording;
    await json(`/api/recordings/${encodeURIComponent(recording)}/recipe`, {
      op_id: newId(),
      recipe: chosen("recipe"),
      seed: seed(),
    });
    location.assign(`/follow/${encodeURIComponent(recording)}`);
  } catch (error) {
    at("message").textContent = error.message;
    at("go").disabled = false;
  }
}

at("another").addEventListener("click", () => {
  at("seed").value = seed() + 1;
  preview();
});
at("seed").addEventListener("change", preview);
at("go").addEventListener("click", go);
for (const radio of document.querySelectorAll('input[name="recipe"]')) radio.addEventListener("change", preview);
preview();
