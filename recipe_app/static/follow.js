// The follow page: one step large, three big buttons, eight tiles.

import { keepAwake } from "/static/awake.js";
import { measure } from "/static/clock.js";
import { fold } from "/static/fold.js";
import { Outbox } from "/static/outbox.js";
import { onTap } from "/static/touch.js";

const POLL_MS = 1500;
const STALE_MS = 3000;
const CLOCK_MS = 10_000;
const SIZES = [72, 64, 58, 52, 46, 40, 36, 32, 28];
const SENTENCES = {
  recording: "Recording", stopped: "Recording has stopped", standalone: "Without a recording", unknown: "Recording state unknown",
};
const notices = { awake: "", refused: "" };

const at = (id) => document.getElementById(id);
const recording = document.body.dataset.recording;
const stateKey = `kitchensync.state.${recording}`;
let state = JSON.parse(localStorage.getItem(stateKey) || "null");
let heardAt = -Infinity;
let errorTouch = null;
let errorStep = null;

const outbox = new Outbox(recording, { onReceipt: (receipt) => take(receipt.state), onChange: show });

function take(fresh) {
  heardAt = performance.now();
  if (!state || fresh.count >= state.count) state = fresh; // an answer overtaken by a later one is not shown
  keep();
  show();
}

function keep() { // a reload shows the recipe at once, before the server has answered
  try {
    localStorage.setItem(stateKey, JSON.stringify(state));
  } catch {
    notice("awake", notices.awake); // full: the server has all of this, nothing is lost
  }
}

async function poll() {
  try {
    const answer = await fetch(`/api/recordings/${encodeURIComponent(recording)}`, { cache: "no-store", signal: AbortSignal.timeout(3000) });
    if (answer.ok) take(await answer.json());
  } catch {
    show(); // the dot turns to unknown by itself
  }
  outbox.drain();
}

function show() {
  showConnection();
  if (!state) return;
  const now = fold(state, outbox.waiting());
  const finished = now.total > 0 && !now.current;
  at("progress").textContent = now.total ? `${now.done} / ${now.total}` : "";
  at("label").textContent = finished ? "Finished" : now.current ? `Step ${now.current.place}` : "";
  at("current").textContent = finished ? finish(now) : now.current ? now.current.text : "No recipe was chosen yet.";
  at("next").replaceChildren(...now.next.map(line));
  at("done").disabled = !now.current;
  at("error").disabled = !now.total;
  at("undo").disabled = !now.last;
  at("undo-what").textContent = now.last ? describe(now.last) : "";
  fit();
}

function showConnection() {
  const known = state && performance.now() - heardAt < STALE_MS ? state.state : "unknown";
  at("dot").className = `dot ${known}`;
  at("state").textContent = known === "unknown" && (!state || state.state !== "unknown") ? "Not connected" : SENTENCES[known];
  const waiting = outbox.waiting().length;
  const refused = outbox.refused();
  at("saved").textContent = waiting ? `${waiting} unsent` : refused.length ? `${refused.length} not accepted` : "All saved";
  at("saved").classList.toggle("waiting", waiting + refused.length > 0);
  const reason = refused.length ? `Not accepted, kept on this tablet: ${refused.at(-1).error}` : "";
  notice("refused", outbox.unsafe ? "This browser keeps nothing: do not reload before all is saved." : reason);
}

function finish(now) {
  const errors = now.errors === 1 ? "1 error" : now.errors ? `${now.errors} errors` : "no errors";
  return `All ${now.total} steps are done, ${errors} logged.`;
}

function line(step) {
  const item = document.createElement("li");
  item.dataset.place = step.place;
  item.textContent = step.text;
  return item;
}

function describe(entry) {
  if (entry.kind === "error") {
    return document.querySelector(`[data-category="${entry.category}"] .name`).textContent;
  }
  const step = state.recipe.steps.find((one) => one.node === entry.step);
  return step ? step.text : "";
}

function fit() { // the largest size at which nothing is cut off
  const main = document.querySelector("main");
  for (const size of SIZES) {
    document.documentElement.style.setProperty("--size", `${size}px`);
    if (main.scrollHeight <= main.clientHeight) return;
  }
}

function openTiles(touch) {
  const now = fold(state, outbox.waiting());
  const step = now.current || now.lastStep;
  errorTouch = touch; // the error's time is this first touch
  errorStep = step ? step.node : null;
  at("tiles-step").textContent = step ? step.text : "";
  at("tiles").hidden = false;
  document.querySelector(".tile").focus({ focusVisible: false });
}

function closeTiles() {
  at("tiles").hidden = true;
  errorTouch = null;
  at("error").focus({ focusVisible: false });
}

function log(operation, touch) {
  outbox.add(operation, touch);
  show();
}

onTap(at("done"), (touch) => {
  const { current } = fold(state, outbox.waiting());
  if (current) log({ kind: "done", step: current.node }, touch);
});
onTap(at("undo"), (touch) => {
  const { last } = fold(state, outbox.waiting());
  if (last) log({ kind: "undo", undoes: last.op_id }, touch);
});
onTap(at("error"), openTiles);
onTap(at("cancel"), closeTiles);
for (const tile of document.querySelectorAll(".tile")) {
  onTap(tile, () => {
    if (errorTouch) log({ kind: "error", step: errorStep, category: Number(tile.dataset.category) }, errorTouch);
    closeTiles();
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !at("tiles").hidden) closeTiles();
});

function notice(kind, text) {
  if (notices[kind] === text) return;
  notices[kind] = text;
  at("strip").textContent = Object.values(notices).filter(Boolean).join(" · ");
  at("strip").hidden = !at("strip").textContent;
  fit();
}

const sayAwake = (text) => notice("awake", text);

document.addEventListener("visibilitychange", () => {
  keepAwake(sayAwake);
  if (document.visibilityState === "visible") poll();
});
window.addEventListener("online", poll);
window.addEventListener("resize", fit);

const syncClock = (times) => measure(times).catch(() => null); // without network there is nothing to compare with
syncClock(5);
setInterval(() => syncClock(2), CLOCK_MS);
keepAwake(sayAwake);
poll();
setInterval(poll, POLL_MS);
setInterval(showConnection, 500);
