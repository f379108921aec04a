// What a tablet could not send: its file, or pictures and films of its QR frames, gathered until none is missing.

import { ask } from "/static/core/server.js";

const FRAME = /^KS1[zp]:([0-9a-f]{16}):(\d{1,4})\/(\d{1,4}):/;
const MINUTES_MS = 600_000;
const NAMED = 20;
const dumps = new Map(); // id -> how many frames, and those that were read, by number

const filled = (text, values) => text.replace(/\{([a-z]+)\}/g, (_, name) => values[name]);

// Read files and take in what is whole; say what came of it, and which frames are still missing.
export async function takeDumps(form, files) {
  const [taken, refusals] = [form.querySelector("#taken"), form.querySelector("#not-taken")];
  const sum = { new: 0, known: 0, sounds: 0, refused: [] };
  taken.textContent = "";
  refusals.replaceChildren();
  const say = (text) => refusals.append(Object.assign(document.createElement("li"), { textContent: text }));
  for (const file of files) {
    taken.textContent = filled(form.dataset.reading, { name: file.name });
    try {
      if (/^(image|video)\//.test(file.type)) await look(file);
      else add(sum, await ask(form.dataset.send, { body: { text: await file.text() }, timeout: MINUTES_MS }));
    } catch (error) {
      say(`${file.name}: ${error.message}`);
    }
  }
  for (const [id, { count, frames }] of dumps) {
    const missing = [...Array(count).keys()].map((place) => place + 1).filter((number) => !frames.has(number));
    if (missing.length) {
      say(filled(form.dataset.missing, { missing: missing.slice(0, NAMED).join(", "), count }));
      continue;
    }
    try {
      add(sum, await ask(form.dataset.send, { body: { text: [...frames.values()].join("\n") }, timeout: MINUTES_MS }));
    } catch (error) {
      say(error.message);
    }
    dumps.delete(id);
  }
  sum.refused.forEach(say);
  const came = sum.new + sum.known + sum.sounds + sum.refused.length > 0;
  taken.textContent = came ? filled(form.dataset.taken, { ...sum, refused: sum.refused.length }) : "";
}

async function look(file) {
  const { frames } = await ask("/api/v1/desk/dumps/frames", { method: "POST", raw: file, timeout: MINUTES_MS });
  for (const text of frames) {
    const [, id, number, count] = FRAME.exec(text);
    if (!dumps.has(id)) dumps.set(id, { count: Number(count), frames: new Map() });
    dumps.get(id).frames.set(Number(number), text);
  }
}

function add(sum, outcome) {
  for (const name of ["new", "known", "sounds"]) sum[name] += outcome[name];
  sum.refused.push(...outcome.refused);
}
