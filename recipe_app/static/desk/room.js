// The session room: a tile a recording, asked once a second. Without news for three seconds nothing is known of any.

import { newId } from "/static/core/ids.js";
import { h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { loadWords, t } from "/static/core/words.js";
import { question } from "/static/desk/question.js";
import { rateLine } from "/static/desk/rate_line.js";

const EVERY_MS = 1000, NO_NEWS_MS = 3000, ANSWER_MS = 2500, STOP_MS = 90_000;
const at = (id) => document.getElementById(id);
const tiles = new Map(); // kept while they are filled anew: somebody may be writing a remark
const steerable = Boolean(at("rigs").dataset.steerable);
let heard = performance.now();

async function act(tile, action, press) {
  let text = action === "mark" ? tile.text.value : "";
  if (action === "stop" || action === "abort") {
    text = await question({ title: t(`ask.${action}`, { name: tile.title }), means: t(`ask.${action}.means`), yes: press.textContent, reason: action === "abort" });
    if (text === null) return;
  }
  press.disabled = true;
  tile.said.textContent = "";
  ask(`/api/v1/desk/room/${tile.name}`, { body: { op_id: newId(), action, text }, timeout: STOP_MS })
    .then(({ reasons }) => {
      tile.said.textContent = (reasons ?? []).join("; ") || t(`room.${action}.done`);
      if (action === "mark") tile.text.value = "";
    })
    .catch((error) => { tile.said.textContent = error.message; })
    .finally(() => { press.disabled = false; });
}

function made(name) {
  const tile = { name, title: name, part: h("section", { class: "tile", "data-subject": name }), body: h("div"), said: h("p", { role: "status" }) };
  tile.text = h("input", { maxlength: 300, "aria-label": `${t("live.remark")}: ${name}`, placeholder: t("live.remark") });
  const press = (action, kind = "quiet") => {
    const made = h("button", { type: "button", class: kind, "data-action": action }, t(`room.${action}`));
    made.addEventListener("click", () => act(tile, action, made));
    return made;
  };
  tile.buttons = Object.fromEntries([["stop", press("stop", "primary")], ...["mark", "pause", "resume", "swap", "swapped", "abort", "leave_films"].map((one) => [one, press(one)])]);
  tile.controls = h("p", { class: "inline" }, tile.text, ...Object.values(tile.buttons));
  tile.part.append(tile.body, ...(steerable ? [tile.controls, tile.said] : []));
  return tile;
}

function fill(tile, one) {
  const worst = one.findings.some(({ severity }) => severity === "alarm") ? "alarm" : one.findings.length ? "warning" : "";
  tile.part.className = `tile ${worst}`;
  const ended = one.health === "stopping", films = Object.entries(one.cameras);
  const words = one.findings.map(({ operator, do: advice, rule }) => h("p", { class: "word", lang: "en", dir: "ltr", "data-rule": rule }, `${operator}; ${advice}`));
  tile.body.replaceChildren(
    h("h2", {}, one.id ? h("a", { href: `/desk/recordings/${one.id}${ended ? "" : "/live"}` }, tile.name) : tile.name),
    h("p", { class: "state" }, h("span", { class: `dot ${ended ? "stopped" : one.health}` }), ` ${one.ledger_closed ? t("room.closed") : t(`health.${ended ? "stopped" : one.health}`)}`),
    ...(one.paused ? [h("p", { class: "banner" }, t("live.paused"))] : []),
    h("p", {}, t("room.streams", { coming: one.streaming, streams: one.streams })), rateLine(one.rates_hz, 0), ...words,
    ...films.map(([name, { state, battery_percent: percent }]) => h("p", {}, percent === null ? `${name}: ${state}` : `${t("live.battery", { name, percent })} · ${state}`)));
  for (const [action, button] of Object.entries(tile.buttons)) {
    button.hidden = action === "leave_films" ? !ended || !films.length : ended || (action === "pause" && one.paused) || (action === "resume" && !one.paused) || (action === "swap" && one.swapping) || (action === "swapped" && !one.swapping);
  }
  tile.text.hidden = ended;
}

function card({ id, folder, kitchen, stage, status, state }) {
  const said = status ? `${status} · ${t(stage === "final" ? "card.final" : "card.first")}` : t(state === "making" ? "card.making" : "card.none");
  return h("li", { class: "banner", "data-card": folder }, h("a", { href: `/desk/recordings/${id}/card` }, t("room.card", { name: folder })), ` ${kitchen}: ${said}`);
}

function show({ recordings, cards }) {
  const waiting = JSON.stringify(cards);
  if (at("cards").dataset.shown !== waiting) { // not drawn anew each second: somebody may be about to follow a link
    at("cards").dataset.shown = waiting;
    at("cards").replaceChildren(...cards.map(card));
  }
  const names = new Set(recordings.map(({ recording }) => recording));
  for (const [name, tile] of tiles) {
    if (names.has(name)) continue;
    tile.part.remove();
    tiles.delete(name);
  }
  for (const one of recordings) {
    if (!tiles.has(one.recording)) {
      tiles.set(one.recording, made(one.recording));
      at("rigs").append(tiles.get(one.recording).part);
    }
    fill(tiles.get(one.recording), one);
  }
  at("none").hidden = names.size > 0;
}

function light(known) {
  const words = known ? t("room.known", { recordings: tiles.size }) : t("health.unknown");
  at("light").className = `dot ${known ? (tiles.size ? "recording" : "stopped") : "unknown"}`;
  if (at("news").textContent !== words) at("news").textContent = words;
  if (!known) for (const { part } of tiles.values()) part.querySelector(".dot").className = "dot unknown";
}

await loadWords();
setInterval(() => { if (performance.now() - heard > NO_NEWS_MS) light(false); }, 250);
for (;;) {
  try {
    show(await ask("/api/v1/desk/room", { timeout: ANSWER_MS }));
    heard = performance.now();
    light(true);
  } catch { /* the light says so */ }
  await new Promise((resolve) => { setTimeout(resolve, EVERY_MS); });
}
