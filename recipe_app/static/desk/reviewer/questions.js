// Questions about a stopped film: one at a time, the question first; an invalid one hides its answers.

import { newId } from "/static/core/ids.js";
import { button, h } from "/static/core/page.js";
import { ask, setCsrf } from "/static/core/server.js";
import { loadWords, t } from "/static/core/words.js";
import { Film, follow } from "/static/desk/reviewer/film.js";
import { opened } from "/static/desk/reviewer/load.js";

const LOOK_S = 10;
const root = document.getElementById("questions");
const base = `/api/v1/desk/recordings/${root.dataset.recording}`, address = `${base}/questions`;
const status = h("p", { role: "status", id: "left" }), making = h("p", { class: "hint" }), films = h("div", { class: "films", hidden: true });
const place = h("div", {});
let film = null, state = null, current = 0, said = null;

function say(text) {
  const message = document.getElementById("message");
  message.textContent = text;
  message.hidden = !text;
}

const failed = (error) => say(error.message);

async function look() { // the film helps, and is not needed to read
  const { video, front, facts } = await opened(base, making);
  making.textContent = "";
  films.hidden = false;
  films.replaceChildren(...[video, front].filter(Boolean));
  film = new Film(video, facts.fps, facts.frames);
  if (front) follow(front, video, film.fps);
  stop();
}

function stop() { // nothing after the end of the question's film is shown
  const item = state?.items[current];
  if (!film || !item) return;
  const last = Math.min(film.frames - 1, Math.ceil(item.end_s * film.fps) - 1), first = Math.max(0, last - Math.round(LOOK_S * film.fps));
  film.loop = [first, last];
  film.go(last);
}

const rules = () => state.complete;
const answersOf = (item) => (rules() ? state.standing[item.item].candidates : item.answers);

function show(number) {
  current = Math.min(Math.max(0, number), state.items.length - 1);
  const item = state.items[current], mine = rules() ? null : state.mine[item?.item];
  said = { valid: mine?.valid ?? null, accepted: item ? answersOf(item).map((_, k) => mine?.accepted[k] ?? false) : [], added: mine?.added ?? [], answer_type: mine?.answer_type ?? "" };
  draw();
  stop();
}

function choice(name, value, chosen, label, put) {
  return h("label", { class: "choice" }, h("input", { type: "radio", name, value, checked: chosen, onchange: put }), label);
}

function tick(text, k) {
  return h("label", { class: "choice" }, h("input", { type: "checkbox", checked: said.accepted[k], onchange: (event) => { said.accepted[k] = event.target.checked; } }), text);
}

function card(item) {
  const standing = state.standing?.[item.item], closed = rules() && standing.state !== "to_rule";
  const added = h("input", { id: "added", maxlength: "600", value: said.added.join("; "), "aria-label": t("questions.added"), onchange: (event) => { said.added = event.target.value.split(";").map((one) => one.trim()).filter(Boolean); } });
  const types = ["direct", "suggestion", "intervention"].map((type) => choice("type", type, said.answer_type === type, t(`questions.${type}`), () => { said.answer_type = type; }));
  const answers = said.valid ? h("fieldset", { class: "questions" }, h("legend", {}, t("questions.answers")), answersOf(item).map(tick), h("label", { class: "choice" }, t("questions.added"), added), types) : "";
  return h("section", {},
    h("details", {}, h("summary", {}, t("questions.before", { count: item.previous.length })), h("ol", {}, item.previous.map((text) => h("li", {}, text)))),
    h("p", {}, h("strong", {}, t("questions.now", { step: item.current })), " ", button(t("questions.watch"), () => film && film.video.play(), { class: "quiet" })),
    h("p", { class: "question" }, item.question),
    standing ? h("p", { class: "hint" }, t(`questions.${standing.state}`), " ", standing.answers.join(" · ")) : "",
    closed ? "" : h("fieldset", { class: "questions" }, h("legend", {}, t("questions.valid")), choice("valid", "yes", said.valid === true, t("judge.yes"), () => { said.valid = true; draw(); }), choice("valid", "no", said.valid === false, t("judge.no"), () => { said.valid = false; draw(); })),
    closed ? "" : answers,
    h("p", { class: "actions start" }, button(t("questions.back"), () => show(current - 1), { class: "quiet" }),
      closed ? "" : h("button", { type: "button", class: "primary", id: "save", disabled: said.valid === null, onclick: () => save(item).catch(failed) }, t("questions.save")),
      button(t("questions.next"), () => show(current + 1), { class: "quiet" })));
}

async function save(item) {
  const verdict = { item: item.item, valid: said.valid, accepted: said.valid ? said.accepted : [], added: said.valid ? said.added : [], answer_type: said.valid ? said.answer_type : "" };
  await ask(rules() ? `${address}/rule` : address, { body: { op_id: newId(), verdict } });
  await load();
  const open = state.items.findIndex((one) => (rules() ? state.standing[one.item].state === "to_rule" : !state.mine[one.item]));
  show(open < 0 ? current : open);
  say("");
}

function draw() {
  const item = state.items[current], left = rules() ? state.to_rule : state.left;
  status.textContent = item ? `${current + 1} / ${state.items.length} · ${t(rules() ? "judge.to_rule" : "judge.left", { count: left })}` : "";
  const send = (path, words) => () => ask(`${address}/${path}`, { body: {}, timeout: 60_000 }).then(async () => { await load(); show(current); say(t(words)); }).catch(failed);
  const act = (id, key, path, words, disabled) => h("button", { type: "button", class: "primary", id, disabled, onclick: send(path, words) }, t(key));
  const finish = rules() ? act("accept", "judge.accept", "accept", "judge.accepted", left > 0) : act("submit", "steps.submit", "submit", "judge.submitted", left > 0 || !state.asked);
  place.replaceChildren(...(item ? [card(item), h("p", { class: "actions start" }, finish), rules() ? agreed() : ""] : [h("p", { class: "empty" }, t("questions.none")), h("p", { class: "actions start" }, act("ask", "questions.ask", "ask", "questions.asked", false))]));
}

function agreed() {
  const share = (value) => (value === null ? "–" : value.toFixed(2));
  return h("table", {}, h("thead", {}, h("tr", {}, ["questions.kind", "questions.agree_question", "questions.agree_answer", "questions.approved"].map((key) => h("th", {}, t(key))))),
    h("tbody", {}, Object.entries(state.agreement).map(([kind, found]) => h("tr", {}, h("td", {}, kind), h("td", {}, share(found.questions)), h("td", {}, share(found.answers)), h("td", {}, share(found.approved))))));
}

async function load() {
  state = await ask(address);
  for (const one of document.querySelectorAll("input[name=people]")) one.checked = state.people.includes(one.value);
}

setCsrf(document.querySelector('meta[name="csrf"]')?.content ?? "");
root.replaceChildren(films, making, status, place);
loadWords().catch(() => null).then(load).then(() => show(0)).then(() => look().catch(failed)).catch(failed);
