// Questions about a stopped video, one at a time, question first; the answers of an invalid one are hidden.

import { newId } from "/static/core/ids.js";
import { button, h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";
import { openedIn } from "/static/core/load_film.js";
import { drawGraph } from "/static/desk/drawing.js";
import { begun, failed, say, tickPeople } from "/static/desk/say.js";

const LOOK_S = 10;
const root = document.getElementById("questions");
const base = `/api/v1/desk/recordings/${root.dataset.recording}`, address = `${base}/questions`;
const status = h("p", { role: "status", id: "left" }), making = h("p", { class: "hint" }), films = h("div", { class: "films", hidden: true });
const place = h("div", {});
let film = null, state = null, current = 0, said = null;


async function look() { // the video helps but is not required for reading
  film = (await openedIn(films, base, making)).film;
  stop();
}

function stop() { // shows nothing after the end of the question's part
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
  said = { valid: mine?.valid ?? null, accepted: item ? answersOf(item).map((_, k) => mine?.accepted[k] ?? false) : [], added: mine?.added ?? [], answer_type: mine?.answer_type ?? "", multimodal: mine?.multimodal ?? false, procedural: mine?.procedural ?? false };
  if (state.form === "assembly") said.valid ??= false;
  draw();
  stop();
}

function choice(name, value, chosen, label, put) {
  return h("label", { class: "choice" }, h("input", { type: "radio", name, value, checked: chosen, onchange: put }), label);
}

function tick(text, k) {
  return h("label", { class: "choice" }, h("input", { type: "checkbox", checked: said.accepted[k], onchange: (event) => { said.accepted[k] = event.target.checked; } }), text);
}

function criteria() { // one question, or a check box for each criterion of the assembly form
  if (state.form !== "assembly") return h("fieldset", { class: "questions" }, h("legend", {}, t("questions.valid")), choice("valid", "yes", said.valid === true, t("judge.yes"), () => { said.valid = true; draw(); }), choice("valid", "no", said.valid === false, t("judge.no"), () => { said.valid = false; draw(); }));
  return h("fieldset", { class: "questions" }, h("legend", {}, t("questions.criteria")), ["valid", "multimodal", "procedural"].map((one) =>
    h("label", { class: "choice" }, h("input", { type: "checkbox", "data-criterion": one, checked: said[one], onchange: ({ target }) => { said[one] = target.checked; if (one === "valid") { draw(); root.querySelector("[data-criterion=valid]").focus(); } } }), t(`questions.criterion.${one}`))));
}

const BADGES = { done: "normal", next: "conflict", missing: "disordered" };

function graphOf(item) { // the cook's progress in the recipe's graph when the video stops
  if (!state.graph) return "";
  const text = new Map(state.graph.steps), place = h("div", { class: "drawing", tabindex: "0", role: "region", "aria-label": t("order.drawing"), "data-title": t("order.drawing") });
  const kind = (node) => Object.keys(BADGES).find((badge) => item.nodes[badge].includes(node)) ?? "";
  const name = (node) => `${text.get(node)}${kind(node) ? ` (${t(`questions.node.${kind(node)}`)})` : ""}`;
  const marks = (node) => (item.errors?.[node] ?? []).map((number) => t(`category.${number}`));
  drawGraph(place, { ...state.graph, name, kind, marks });
  return h("details", { open: true }, h("summary", {}, t("questions.graph"), " ", Object.entries(BADGES).flatMap(([one, badge]) => [h("span", { class: `badge ${badge}` }, t(`questions.node.${one}`)), " "]), Object.keys(item.errors ?? {}).length ? h("span", { class: "hint" }, t("questions.node.wrong")) : ""), place);
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
    graphOf(item),
    standing ? h("p", { class: "hint" }, t(`questions.${standing.state}`), " ", standing.answers.join(" · ")) : "",
    closed ? "" : criteria(),
    closed ? "" : answers,
    h("p", { class: "actions start" }, button(t("questions.back"), () => show(current - 1), { class: "quiet" }),
      closed ? "" : h("button", { type: "button", class: "primary", id: "save", disabled: said.valid === null, onclick: () => save(item).catch(failed) }, t("questions.save")),
      button(t("questions.next"), () => show(current + 1), { class: "quiet" })));
}

async function save(item) {
  const verdict = { item: item.item, valid: said.valid, accepted: said.valid ? said.accepted : [], added: said.valid ? said.added : [], answer_type: said.valid ? said.answer_type : "", multimodal: said.multimodal, procedural: said.procedural };
  await ask(rules() ? `${address}/rule` : address, { body: { op_id: newId(), verdict } });
  await load();
  const open = state.items.findIndex((item) => (rules() ? state.standing[item.item].state === "to_rule" : !state.mine[item.item]));
  show(open < 0 ? current : open);
  say("");
}

const given = h("input", { type: "file", accept: ".json,application/json", id: "given" }), assembly = h("input", { type: "checkbox", id: "form" });

async function written() { // output of `export promqa --model`, or plain questions with answers; other examples use a fixed wording
  const form = assembly.checked ? "assembly" : "cooking";
  if (!given.files[0]) return { form };
  const rows = JSON.parse(await given.files[0].text()).filter(Boolean).map(({ verification, ...row }) => ({ ...row, ...verification }));
  const found = rows.map(({ recording_id, question_id, question, answer, answers, generation, source = generation?.model_id }) => ({ recording_id, question_id, question, answers: answers ?? [answer], source, generation }));
  return { form, questions: found.filter(({ question, answers }) => question && answers[0]) };
}

function draw() {
  const item = state.items[current], left = rules() ? state.to_rule : state.left;
  status.textContent = item ? `${current + 1} / ${state.items.length} · ${t(rules() ? "judge.to_rule" : "judge.left", { count: left })}` : "";
  const send = (path, words, body = async () => ({})) => () => body().then((sent) => ask(`${address}/${path}`, { body: sent, timeout: 60_000 })).then(async () => { await load(); show(current); say(t(words)); }).catch(failed);
  const act = (id, key, path, words, disabled, body) => h("button", { type: "button", class: "primary", id, disabled, onclick: send(path, words, body) }, t(key));
  const finish = rules() ? act("accept", "judge.accept", "accept", "judge.accepted", left > 0) : act("submit", "steps.submit", "submit", "judge.submitted", left > 0 || !state.asked);
  place.replaceChildren(...(item ? [card(item), h("p", { class: "actions start" }, finish), rules() ? agreed() : ""] : [h("p", { class: "empty" }, t("questions.none")), h("p", {}, h("label", {}, t("questions.given"), " ", given)), h("p", {}, h("label", {}, assembly, " ", t("questions.form"))), h("p", { class: "actions start" }, act("ask", "questions.ask", "ask", "questions.asked", false, written))]));
}

function agreed() {
  const share = (value) => (value === null ? "–" : value.toFixed(2));
  return h("table", {}, h("thead", {}, h("tr", {}, ["questions.kind", "questions.agree_question", "questions.agree_answer", "questions.approved"].map((key) => h("th", {}, t(key))))),
    h("tbody", {}, Object.entries(state.agreement).map(([kind, found]) => h("tr", {}, h("td", {}, kind), h("td", {}, share(found.questions)), h("td", {}, share(found.answers)), h("td", {}, share(found.approved))))));
}

async function load() {
  state = await ask(address);
  tickPeople(state.people);
}

root.replaceChildren(films, making, status, place);
begun().then(load).then(() => show(0)).then(() => look().catch(failed)).catch(failed);
