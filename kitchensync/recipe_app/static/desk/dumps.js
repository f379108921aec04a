// Imports files with data that a tablet could not send.

import { ask } from "/static/core/server.js";

const MINUTES_MS = 600_000;

const filled = (text, values) => text.replace(/\{([a-z]+)\}/g, (_, name) => values[name]);

// Imports files and shows what was new, known and refused.
export async function takeDumps(form, files) {
  const [taken, refusals] = [form.querySelector("#taken"), form.querySelector("#not-taken")];
  const sum = { new: 0, known: 0, sounds: 0, refused: [] };
  taken.textContent = "";
  refusals.replaceChildren();
  const say = (text) => refusals.append(Object.assign(document.createElement("li"), { textContent: text }));
  for (const file of files) {
    taken.textContent = filled(form.dataset.reading, { name: file.name });
    try {
      add(sum, await ask(form.dataset.send, { body: { text: await file.text() }, timeout: MINUTES_MS }));
    } catch (error) {
      say(`${file.name}: ${error.message}`);
    }
  }
  sum.refused.forEach(say);
  const came = sum.new + sum.known + sum.sounds + sum.refused.length > 0;
  taken.textContent = came ? filled(form.dataset.taken, { ...sum, refused: sum.refused.length }) : "";
}

function add(sum, outcome) {
  for (const name of ["new", "known", "sounds"]) sum[name] += outcome[name];
  sum.refused.push(...outcome.refused);
}
