// Today: a tile per running recording and a line per ended one, polled once a second. Without an answer for three seconds their state is unknown.

import { newId } from "/static/core/ids.js";
import { h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { loadWords, pageLanguage, t } from "/static/core/words.js";
import { ofCamera, ofDisk } from "/static/desk/device_words.js";
import { picturesAt } from "/static/desk/live_pictures.js";
import { question } from "/static/desk/question.js";

const EVERY_MS = 1000, NO_NEWS_MS = 3000, ANSWER_MS = 2500, STOP_MS = 90_000;
const MARKS = { PASS: "normal", WARN: "conflict", FAIL: "bad" };
const SAID = { making: "card.making", none: "card.none", alone: "health.standalone", withdrawn: "phase.withdrawn", open: "room.not_ended" };
const at = (id) => document.getElementById(id);
const tiles = new Map(); // reused when refilled: somebody may be typing a remark
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

function made({ recording: name, id, title }) {
  const link = id ? h("a", { href: `/desk/recordings/${id}/live` }, title) : title;
  const tile = { name, title, part: h("section", { class: "tile", "data-subject": name }), body: h("div"), said: h("p", { role: "status" }) };
  tile.pictures = picturesAt(`/api/v1/desk/recordings/${id}/pictures`);
  tile.text = h("input", { maxlength: 300, "aria-label": `${t("live.remark")}: ${title}`, placeholder: t("live.remark") });
  tile.buttons = {};
  const press = (action, kind = "quiet") => {
    const button = h("button", { type: "button", class: kind, "data-action": action }, t(`room.${action}`));
    button.addEventListener("click", () => act(tile, action, button));
    tile.buttons[action] = button;
    return button;
  };
  tile.running = h("div", {}, h("p", { class: "inline" }, press("stop", "primary"), press("pause"), press("resume"), press("swapped")), h("p", { class: "inline" }, tile.text, press("mark")));
  tile.rare = h("details", {}, h("summary", {}, t("room.more")), h("p", { class: "inline" }, press("swap"), press("leave_films"), press("abort")));
  tile.part.append(h("h2", {}, link), tile.body, ...(steerable ? [tile.running, tile.rare, tile.said] : []));
  return tile;
}

function progress({ phase, steps, steps_done: done, seconds }) {
  const step = phase === "follow" ? t("room.step", { step: Math.min(done + 1, steps), steps }) : phase && t(`phase.${phase}`);
  return [step, typeof seconds === "number" && t("room.minutes", { minutes: Math.floor(seconds / 60) })].filter(Boolean).map((word) => ` · ${word}`);
}

function fill(tile, one) {
  const worst = one.findings.some(({ severity }) => severity === "alarm") ? "alarm" : one.findings.length ? "warning" : "";
  tile.part.className = `tile ${worst}`;
  const ended = one.health === "stopping", films = Object.entries(one.cameras), disk = ofDisk(one.disk);
  const words = one.findings.map(({ operator, do: advice, rule }) => h("p", { class: "word", lang: "en", dir: "ltr", "data-rule": rule }, `${operator}; ${advice}`));
  tile.pictures.look(ended ? [] : one.pictures, one.paused);
  const who = [one.person, one.kitchen].filter(Boolean).join(" · ");
  tile.body.replaceChildren(
    ...(who ? [h("p", {}, who)] : []),
    h("p", { class: "state" }, h("span", { class: `dot ${ended ? "stopped" : one.health}` }), ` ${one.ledger_closed ? t("room.closed") : t(`health.${ended ? "stopped" : one.health}`)}`, ...progress(one)),
    ...(one.paused ? [h("p", { class: "banner" }, t("live.paused"))] : []), ...words,
    ...(ended ? [] : one.pictures.flatMap((name) => tile.pictures.of(name))),
    h("p", {}, t("room.streams", { coming: one.streaming, streams: one.streams })),
    ...films.map(([name, facts]) => h("p", {}, `${name}: ${[facts.state, ...ofCamera(facts)].join(" · ")}`)),
    ...(disk ? [h("p", {}, disk)] : []));
  const { pause, resume, swap, swapped, abort, leave_films: leave } = tile.buttons;
  tile.running.hidden = abort.hidden = ended;
  [pause.hidden, resume.hidden, swapped.hidden] = [one.paused, !one.paused, !one.swapping];
  [swap.hidden, leave.hidden, tile.rare.hidden] = [ended || one.swapping, !ended || !films.length, ended && !films.length];
}

const badge = (status) => h("span", { class: `badge ${MARKS[status] ?? ""}` }, status);

function worth({ state, status, stage, reason, steps, steps_done: done }) {
  if (state === "aborted") return [h("span", { class: "badge bad" }, steps ? t("room.aborted", { done, count: steps }) : t("room.aborted_at_all")), " ", h("span", { dir: "auto" }, reason)];
  if (status) return [badge(status), ` ${t(stage === "final" ? "card.final" : "card.first")}`];
  return [SAID[state] ? t(SAID[state]) : ""];
}

function line(one) {
  const { id, title, person, kitchen, state, status, folder, to_read: isNew, today, began_ms: at } = one;
  const day = today ? {} : { day: "numeric", month: "short" };
  const time = new Intl.DateTimeFormat(pageLanguage, { ...day, hour: "2-digit", minute: "2-digit", timeZoneName: "short" }).format(at);
  const to = (kind, more, word) => h("a", { class: kind, href: `/desk/recordings/${id}${more}` }, word);
  const hasCard = state === "none" || (state === "made" && status);
  const unlisted = state === "made" || state === "none" || state === "making" ? [h("a", { class: "quiet", href: `/desk?unlisted=${folder}#unlisted` }, t("unlisted.put"))] : [];
  const next = [hasCard && to(isNew ? "primary" : "quiet", "/card", isNew && status ? t("room.read_card") : t("card.title")), to("quiet", "", t("room.open"))];
  return h("tr", isNew ? { "data-card": folder } : {}, h("td", { class: "nowrap" }, time),
    h("td", {}, title, h("p", { class: "hint" }, [person, kitchen].filter(Boolean).join(" · "), ...one.no_consent?.map((scope) => h("span", { class: "badge bad" }, t(`consent.lacks.${scope}`))) ?? [])), h("td", {}, ...worth(one)), h("td", {}, h("p", { class: "inline" }, ...(id ? next : unlisted))));
}

function show({ recordings, ended }) {
  const known = JSON.stringify(ended);
  if (at("ended").dataset.shown !== known) { // not redrawn every second: somebody may be about to follow a link
    at("ended").dataset.shown = known;
    at("ended").querySelector("tbody").replaceChildren(...ended.map(line));
    at("ended").hidden = ended.length === 0;
    at("none-ended").hidden = ended.length > 0;
  }
  const names = new Set(recordings.map(({ recording }) => recording));
  for (const [name, tile] of tiles) {
    if (names.has(name)) continue;
    tile.part.remove();
    tiles.delete(name);
  }
  const preflight = at("preflight"); // recording devices must not be disturbed
  if (preflight) preflight.hidden = names.size > 0;
  for (const recording of recordings) {
    const before = tiles.get(recording.recording);
    if (before?.id !== recording.id || !before) { // the cook is unknown while the devices start
      const tile = Object.assign(made(recording), { id: recording.id });
      tile.text.value = before?.text.value ?? "";
      if (before) before.part.replaceWith(tile.part);
      else at("rigs").append(tile.part);
      tiles.set(recording.recording, tile);
    }
    fill(tiles.get(recording.recording), recording);
  }
}

function light(known) {
  const words = known ? tiles.size ? t("room.running", { count: tiles.size }) : t("room.none") : t("health.unknown");
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
