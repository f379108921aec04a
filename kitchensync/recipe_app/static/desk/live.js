// The live page of a recording, polled once a second. Without an answer for three seconds its state is unknown.

import { newId } from "/static/core/ids.js";
import { h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { loadWords, number, t } from "/static/core/words.js";
import { ofCamera, ofDisk, rounded } from "/static/desk/device_words.js";
import { picturesAt } from "/static/desk/live_pictures.js";
import { rateLine } from "/static/desk/rate_line.js";

const EVERY_MS = 1000, NO_NEWS_MS = 3000, ANSWER_MS = 2500;
const at = (id) => document.getElementById(id);
const { live, over } = at("tiles").dataset;
let heard = performance.now(), shown = "";

const pictures = picturesAt(live.replace(/live$/, "pictures"), EVERY_MS);

function tile([name, facts], wrong) {
  const { rate_hz: rate, nominal_hz: nominal, silent_s: seconds, waiting: packets } = facts;
  const words = [t("live.rate", { rate: rounded(rate), nominal: rounded(nominal ?? 0) }), t("live.last", { seconds: rounded(seconds) }), t("live.waiting", { packets })];
  const { connections, losses: lost, flagged } = facts;
  if (connections > 1 || lost || flagged) words.push(t("live.breaks", { breaks: Math.max(connections - 1, 0), lost, flagged }));
  return h("section", { class: `tile ${wrong?.severity ?? ""}`, "data-subject": name },
    h("h2", {}, name), h("p", { class: "word", lang: "en", dir: "ltr" }, wrong?.operator ?? facts.state ?? ""), ...pictures.of(name), rateLine(facts.rates_hz, nominal ?? 0), ...words.map((text) => h("p", {}, text)));
}

function camera([name, facts], wrong) {
  return h("section", { class: `tile ${wrong?.severity ?? ""}`, "data-subject": name },
    h("h2", {}, name), h("p", { class: "word", lang: "en", dir: "ltr" }, wrong?.operator ?? facts.state), ...ofCamera(facts).map((text) => h("p", {}, text)));
}

function light(health) {
  at("light").className = `dot ${health}`;
  if (at("health").textContent !== t(`health.${health}`)) at("health").textContent = t(`health.${health}`);
}

function show(said) {
  light(said.health);
  const { paused } = said, isOver = over.split(" ").includes(said.health);
  at("ended").hidden = said.health !== "stopped";
  at("controls").hidden = isOver;
  pictures.look(Object.keys(said.streams ?? {}), paused);
  at("pause").hidden = !paused;
  for (const press of document.querySelectorAll("[data-action]")) press.hidden = (press.dataset.action === "pause") === paused;
  const lines = said.findings.map(({ operator, do: advice }) => `${operator}; ${advice}`);
  if (shown !== lines.join("\n")) { // announced once, not every second
    shown = lines.join("\n");
    at("wrong").replaceChildren(...said.findings.map(({ severity, rule }, place) =>
      h("li", { class: severity, "data-rule": rule, lang: "en", dir: "ltr" }, lines[place])));
  }
  const wrong = Object.fromEntries(said.findings.map((finding) => [finding.subject, finding]).reverse());
  at("tiles").replaceChildren(
    ...Object.entries(said.streams ?? {}).map((entry) => tile(entry, wrong[entry[0]])),
    ...Object.entries(said.cameras ?? {}).map((entry) => camera(entry, wrong[entry[0]])));
  at("room").textContent = ofDisk(said.disk) || (isOver || said.findings.length ? "" : t("live.fine"));
}

async function follow() {
  for (;;) {
    try {
      show(await ask(live, { timeout: ANSWER_MS }));
      heard = performance.now();
    } catch { /* the light below says so */ }
    await new Promise((resolve) => { setTimeout(resolve, EVERY_MS); });
  }
}

at("remark").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { text } = event.target.elements;
  try {
    await ask(event.target.dataset.remark, { body: { op_id: newId(), text: text.value } });
    text.value = "";
    at("kept").textContent = t("live.marked");
  } catch (error) {
    at("kept").textContent = error.message;
  }
});

await loadWords();
setInterval(() => { if (performance.now() - heard > NO_NEWS_MS) light("unknown"); }, 250);
follow();
