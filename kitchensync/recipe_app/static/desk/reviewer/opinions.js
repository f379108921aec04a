// Independent opinions about a video: whether a step succeeded, or how good a question about it is.

import { newId } from "/static/core/ids.js";
import { button, h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";
import { openedIn } from "/static/core/load_film.js";
import { begun, failed, say, tickPeople } from "/static/desk/say.js";

const root = document.getElementById("opinions"), { recording, kind } = root.dataset;
const base = `/api/v1/desk/recordings/${recording}`, address = `${base}/opinions/${kind}`;
const status = h("p", { role: "status", id: "left" }), making = h("p", { class: "hint" }), films = h("div", { class: "films", hidden: true });
const place = h("div", {});
let film = null, state = null, current = 0;


async function look() { // the video helps but is not required for reading
  film = (await openedIn(films, base, making)).film;
  stop();
}

function stop() { // shows nothing after the end of the item
  const item = state?.items[current];
  if (!film || !item) return;
  film.loop = [item.from_s, item.end_s].map((at) => Math.min(film.frames - 1, Math.floor(at * film.fps)));
  film.go(film.loop[1]);
}

function show(number) {
  current = Math.min(Math.max(0, number), state.items.length - 1);
  draw();
  stop();
}

async function answer(item, question, value) {
  await ask(address, { body: { op_id: newId(), answer: { item: item.item, question, answer: value } } });
  (state.mine[item.item] ??= {})[question] = value;
  state.left = state.items.reduce((left, one) => left + Object.keys(state.questions).filter((name) => !state.mine[one.item]?.[name]).length, 0);
  const submit = document.getElementById("submit");
  if (submit) submit.disabled = state.left > 0 || !state.asked;
  count();
}

function asked(item, question, choices) {
  const choice = (value) => h("label", { class: "choice" }, h("input", { type: "radio", name: question, value, checked: state.mine[item.item]?.[question] === value, onchange: () => answer(item, question, value).catch(failed) }), choices.length === 2 ? t(`judge.${value}`) : value);
  return h("fieldset", { class: "questions" }, h("legend", {}, t(`opinions.${question}`)), choices.map(choice));
}

function card(item) {
  return h("section", {},
    h("p", {}, h("strong", {}, item.text), " ", button(t("opinions.watch"), () => film && film.video.play(), { class: "quiet" })),
    item.question ? h("p", { class: "question" }, item.question, " ", h("strong", {}, item.answer)) : "",
    state.complete ? "" : Object.entries(state.questions).map(([question, choices]) => asked(item, question, choices)),
    h("p", { class: "actions start" }, button(t("questions.back"), () => show(current - 1), { class: "quiet" }), button(t("questions.next"), () => show(current + 1), { class: "quiet" })));
}

function count() {
  status.textContent = state.items.length ? `${current + 1} / ${state.items.length} · ${t("judge.left", { count: state.left })}` : "";
}

function act(id, key, path, words, disabled, body = async () => ({})) {
  const send = async () => {
    await ask(`${address}/${path}`, { body: await body(), timeout: 60_000 });
    await load();
    show(current);
    say(t(words));
  };
  return h("p", { class: "actions start" }, h("button", { type: "button", class: "primary", id, disabled, onclick: () => send().catch(failed) }, t(key)));
}

function empty() {
  const given = h("input", { type: "file", accept: ".json,application/json", id: "given" });
  const body = async () => (kind === "ratings" && given.files[0] ? { questions: JSON.parse(await given.files[0].text()) } : {});
  return [h("p", { class: "empty" }, t("questions.none")), kind === "ratings" ? h("label", {}, t("opinions.given"), given) : "", act("ask", "questions.ask", "ask", "questions.asked", false, body)];
}

function figures() {
  const found = Object.entries(state.figures), names = [...new Set(found.flatMap(([, one]) => Object.keys(one)))];
  const cell = (value) => h("td", {}, value === undefined || value === null ? "–" : value.toFixed(3));
  return h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, t("judge.question")), names.map((name) => h("th", {}, t(`opinions.${name}`))))),
    h("tbody", {}, found.map(([question, one]) => h("tr", {}, h("td", {}, t(`opinions.${question}`)), names.map((name) => cell(one[name]))))));
}

function draw() {
  const item = state.items[current];
  count();
  if (!item) place.replaceChildren(...empty());
  else if (state.complete) place.replaceChildren(card(item), figures(), act("accept", "judge.accept", "accept", "judge.accepted", false));
  else place.replaceChildren(card(item), act("submit", "steps.submit", "submit", "judge.submitted", state.left > 0 || !state.asked));
}

async function load() {
  state = await ask(address);
  tickPeople(state.people);
}

root.replaceChildren(films, making, status, place);
begun().then(load).then(() => show(0)).then(() => look().catch(failed)).catch(failed);
