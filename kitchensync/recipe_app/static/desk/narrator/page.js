// The narration page: the video pauses while somebody speaks.

import { newId } from "/static/core/ids.js";
import { button, h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";
import { Talk } from "/static/desk/narrator/talk.js";
import { opened } from "/static/core/load_film.js";
import { begun, failed, say } from "/static/desk/say.js";
import { newMark } from "/static/desk/reviewer/marks.js";

const root = document.getElementById("narrator");
const base = `/api/v1/desk/recordings/${root.dataset.recording}`, address = `${base}/narrations`;
const status = h("p", { role: "status", id: "now" });

const clock = (s) => `${Math.floor(s / 60)}:${(s % 60).toFixed(1).padStart(4, "0")}`;

function open({ video, front, film }, { narrations: given, submitted, server, asks_server: asksServer }) {
  const all = new Map(given.map((one) => [one.narration, one]));
  let talk = null, name = "";
  const press = h("button", { type: "button", class: "primary talk", id: "talk", "aria-pressed": "false", onclick: () => turn().catch(failed) }, t("narrate.talk"));
  const list = h("ul", { class: "rows narrations" });
  const finish = h("button", { type: "button", class: "primary", id: "submit", onclick: () => submit().catch(failed) }, t("narrate.submit"));
  root.replaceChildren(...[h("div", { class: "films" }, [video, front].filter(Boolean)), status,
    h("p", { class: "actions start" }, button(t("narrate.play"), () => film.play(), { class: "quiet" }), press, finish),
    server && h("p", { class: "hint", id: "leaves" }, asksServer ? t("narrate.sent", server) : t("narrate.not_sent", server)),
    h("details", { open: true }, h("summary", {}, t("steps.keys")), h("p", { id: "keys" }, t("narrate.keys"))), list].filter(Boolean));

  const change = (what) => ask(address, { body: { op_id: newId(), change: what } });

  function draw() {
    const told = [...all.values()].sort((a, b) => a.frame - b.frame);
    list.replaceChildren(...told.map(row));
    status.textContent = talk ? t("narrate.listening") : t("narrate.count", { count: told.length });
    press.textContent = t(talk ? "narrate.stop" : "narrate.talk");
    press.setAttribute("aria-pressed", String(Boolean(talk)));
    finish.disabled = Boolean(talk) || !told.length;
  }

  function row(one) {
    const text = h("input", { value: one.text ?? "", maxlength: "600", "aria-label": t("narrate.text", { at: clock(one.frame / film.fps) }), onchange: () => retell(one, text.value).catch(failed) });
    const parts = [one.verb, one.noun].filter(Boolean).join(" · ");
    return h("li", {}, button(clock(one.frame / film.fps), () => { video.pause(); film.go(one.frame); }, { class: "quiet" }), text, h("span", { class: "hint" }, parts),
      one.sha256 && button(t("narrate.hear"), () => new Audio(`${address}/${one.narration}/sound`).play(), { class: "quiet" }),
      button(t("narrate.remove"), () => remove(one).catch(failed), { class: "quiet" }));
  }

  async function retell(one, text) {
    all.set(one.narration, await change({ narration: one.narration, text, source: "typed" }));
    draw();
  }

  async function remove(one) {
    await change({ narration: one.narration, removed: true }).catch((error) => { if (error.status !== 404) throw error; }); // it is already deleted
    all.delete(one.narration);
    draw();
  }

  async function turn() { // start or stop talking
    if (talk) return stop();
    video.pause();
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true })
      .catch(() => { throw new Error(t(isSecureContext ? "voice.denied" : "voice.insecure")); });
    name = newMark();
    all.set(name, await change({ narration: name, frame: film.shown }));
    talk = new Talk(`${address}/${name}/sound`, stream, () => stop().then(() => say(t("narrate.longest"))).catch(failed));
    talk.begin();
    return draw();
  }

  async function stop() {
    const ending = talk;
    talk = null;
    press.disabled = true;
    await ending.end();
    await heard(name);
    press.disabled = false;
    draw();
  }

  async function heard(narration) {
    const one = await ask(`${address}/${narration}/end`, { body: {}, timeout: 120_000 });
    all.set(narration, one);
    say(one.why || (one.text ? "" : t("narrate.no_text")));
  }

  async function submit() {
    await ask(`${address}/submit`, { body: {}, timeout: 60_000 });
    say(t("steps.submitted"));
  }

  addEventListener("keydown", (event) => {
    if (event.target.matches("input, select, textarea, summary") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("button") && ["Space", "Enter"].includes(event.code)) return;
    const acts = { Space: () => film.play(), ArrowLeft: () => film.step(-1), ArrowRight: () => film.step(1), KeyR: () => turn().catch(failed) };
    if (!acts[event.code]) return;
    event.preventDefault();
    acts[event.code]();
  });
  addEventListener("beforeunload", (event) => { if (talk) event.preventDefault(); });
  root.film = film; // lets tests read the current frame
  if (submitted) say(t("steps.submitted"));
  draw();
  // A narration from before the page was closed: the server has it, and it is finished now.
  const torn = given.filter((one) => !one.sha256), nothingCame = (error) => { if (error.status !== 404) failed(error); };
  torn.reduce((before, one) => before.then(() => heard(one.narration)).catch(nothingCame), Promise.resolve()).then(draw);
}

root.append(status);
begun()
  .then(async () => open(await opened(base, status), await ask(address)))
  .catch((error) => { status.textContent = ""; failed(error); });
