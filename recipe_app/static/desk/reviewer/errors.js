// Errors of a recording, judged one by one; when all have submitted, what they disagree on is ruled here.

import { newId } from "/static/core/ids.js";
import { button, h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";
import { openedIn } from "/static/core/load_film.js";
import { begun, failed, say, tickPeople } from "/static/desk/say.js";

const LOOK_S = 10;
const root = document.getElementById("judge");
const base = `/api/v1/desk/recordings/${root.dataset.recording}`, address = `${base}/errors`;
const status = h("p", { role: "status", id: "left" }), list = h("ol", { class: "judged" }), films = h("div", { class: "films", hidden: true }), making = h("p", { class: "hint" });
let film = null, touches = [];

const share = (value) => (value === null ? "–" : value.toFixed(2));

async function look() { // the film helps, and is not needed
  const opened = await openedIn(films, base, making);
  film = opened.film;
  touches = opened.facts.touches;
}

function jump(error) {
  const touch = touches.find(({ node }) => node === error.node);
  const start = touch?.start ?? touch?.end, end = touch?.end ?? start; // one of them may be left open
  if (film && touch) film.around(Math.round((start + end) / 2), Math.max(LOOK_S, (end - start) / film.fps));
  else say(t("judge.not_in_film"));
}

function words(error) {
  const said = [error.expected && t("judge.expected", { text: error.expected }), error.actual && t("judge.actual", { text: error.actual }), error.text, error.description];
  return said.filter(Boolean).join(" · ");
}

function asked(error, question, answers, state) {
  const name = `${error.error_id} ${question}`;
  const disputed = (state.disputed ?? []).some((one) => one.item === error.error_id && one.question === question);
  const final = state.final?.[error.error_id]?.[question];
  const chosen = state.complete ? final : state.mine[error.error_id]?.[question];
  const given = state.complete && disputed ? state.answers.map((one) => one[error.error_id]?.[question]).filter(Boolean) : [];
  const path = state.complete ? `${address}/rule` : address;
  const put = (answer) => ask(path, { body: { op_id: newId(), answer: { item: error.error_id, question, answer } } }).then(draw).catch(failed);
  return h("fieldset", { class: disputed ? "disputed" : "", disabled: state.complete && (!state.rules || (!disputed && !final)) },
    h("legend", {}, t(`judge.${question}`), given.length ? h("span", { class: "hint" }, ` ${given.map((one) => t(`judge.${one}`)).join(" / ")}`) : null),
    answers.map((answer) => h("label", { class: "choice" }, h("input", { type: "radio", name, value: answer, checked: answer === chosen, onchange: () => put(answer) }), t(`judge.${answer}`))));
}

function row(error, state) {
  const kinds = error.categories.map((number) => h("span", { class: `badge c${number}` }, t(`category.${number}`)));
  return h("li", {}, h("p", {}, kinds, " ", h("strong", {}, error.step || t("error.no_step")), error.planned ? h("span", { class: "badge normal" }, t("judge.planned")) : null, " ", h("span", { class: "hint" }, words(error))),
    button(t("judge.show"), () => jump(error), { class: "quiet" }),
    h("div", { class: "questions" }, Object.entries(state.questions).map(([question, answers]) => asked(error, question, answers, state))));
}

function agreed({ agreement }) {
  return h("table", {}, h("thead", {}, h("tr", {}, ["judge.question", "judge.share", "round.kappa"].map((key) => h("th", {}, t(key))))),
    h("tbody", {}, Object.entries(agreement).map(([question, found]) => h("tr", {}, h("td", {}, t(`judge.${question}`)), h("td", {}, share(found.share)), h("td", {}, share(found.kappa))))));
}

async function draw() {
  const state = await ask(address), left = state.complete ? state.disputed.length : state.left;
  const here = document.activeElement?.matches("input[type=radio]") ? [document.activeElement.name, document.activeElement.value] : null;
  list.replaceChildren(...state.errors.map((error) => row(error, state)));
  if (here) [...list.querySelectorAll("input")].find(({ name, value }) => name === here[0] && value === here[1])?.focus();
  status.textContent = t(state.complete ? "judge.to_rule" : "judge.left", { count: left });
  const send = (path, said) => () => ask(`${address}/${path}`, { body: {} }).then(() => say(t(said))).then(draw).catch(failed);
  const finish = state.complete
    ? h("button", { type: "button", class: "primary", id: "accept", disabled: left > 0, onclick: send("accept", "judge.accepted") }, t("judge.accept"))
    : h("button", { type: "button", class: "primary", id: "submit", disabled: left > 0 || !state.asked || !state.errors.length, onclick: send("submit", "judge.submitted") }, t("steps.submit"));
  root.replaceChildren(films, making, status, state.complete ? agreed(state) : "", state.errors.length ? list : h("p", { class: "empty" }, t("review.nothing")), h("p", { class: "actions start" }, finish));
  tickPeople(Object.keys(state.people));
}

begun().then(draw).then(() => look().catch(failed)).catch(failed);
