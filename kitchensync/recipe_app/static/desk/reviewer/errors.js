// Judges the errors of a recording and marks their moments on the video; after all have submitted, disputes are ruled.

import { newId } from "/static/core/ids.js";
import { button, h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";
import { openedIn } from "/static/core/load_film.js";
import { begun, failed, say, tickPeople } from "/static/desk/say.js";
import { LOOP_S, Moments } from "/static/desk/reviewer/moments.js";

const root = document.getElementById("judge");
const base = `/api/v1/desk/recordings/${root.dataset.recording}`, address = `${base}/errors`;
const status = h("p", { role: "status", id: "left" }), list = h("ol", { class: "judged" }), films = h("div", { class: "films", tabindex: "0", role: "group", hidden: true }), making = h("p", { class: "hint" });
const watch = h("div", { class: "watch" }, films), results = h("div"), actions = h("p", { class: "actions start" });
let state = null, moments = null, current = 0, turns = 0;

const share = (value) => (value === null ? "–" : value.toFixed(2));

async function look() { // the video helps but is not required
  const opened = await openedIn(films, base, making);
  moments = new Moments(opened, mark, move);
  films.setAttribute("aria-label", t("film.keys"));
  watch.append(moments.element);
  watch.after(h("details", { open: true }, h("summary", {}, t("steps.keys")), h("p", {}, t("judge.keys"))));
  root.film = opened.film; // lets tests read the current frame
  await draw();
}

const keep = (answer) => ask(state.complete ? `${address}/rule` : address, { body: { op_id: newId(), answer } }).then(() => say(""));

function mark(error, moment, frame) { // and loop the marked part, unless another error is current by now
  const loops = () => frame !== null && state.errors[current].error_id === error.error_id;
  keep({ item: error.error_id, moment, frame }).then(() => { if (loops()) root.film.around(frame, LOOP_S); }).then(draw).catch(failed);
}

function select(row) { // the error that keys mark
  if (!state.errors[row]) return;
  current = row;
  [...list.children].forEach((child, number) => (number === row ? child.setAttribute("aria-current", "true") : child.removeAttribute("aria-current")));
  moments?.draw(state.errors[row], state);
}

function move(rows) {
  select(Math.min(state.errors.length - 1, Math.max(0, current + rows)));
  list.children[current].scrollIntoView({ block: "nearest" });
  films.focus({ preventScroll: true }); // arrow keys on an answer would choose another one
  moments.show(state.errors[current]);
}

function jump(error) {
  select(state.errors.indexOf(error));
  if (!moments?.show(error)) say(t("judge.not_in_film"));
}

function words(error) {
  const said = [error.expected && t("judge.expected", { text: error.expected }), error.actual && t("judge.actual", { text: error.actual }), error.text, error.description];
  return said.filter(Boolean).join(" · ");
}

function asked(error, question, answers) {
  const name = `${error.error_id} ${question}`;
  const disputed = (state.disputed ?? []).some((one) => one.item === error.error_id && one.question === question);
  const final = state.final?.[error.error_id]?.[question];
  const chosen = state.complete ? final : state.mine[error.error_id]?.[question];
  const given = state.complete && disputed ? state.answers.map((answer) => answer[error.error_id]?.[question]).filter(Boolean) : [];
  const put = (answer) => keep({ item: error.error_id, question, answer }).then(draw).catch(failed);
  return h("fieldset", { class: disputed ? "disputed" : "", disabled: state.complete && (!state.rules || (!disputed && !final)) },
    h("legend", {}, t(`judge.${question}`), given.length ? h("span", { class: "hint" }, ` ${given.map((one) => t(`judge.${one}`)).join(" / ")}`) : null),
    answers.map((answer) => h("label", { class: "choice" }, h("input", { type: "radio", name, value: answer, "data-key": `${name} ${answer}`, checked: answer === chosen, onchange: () => put(answer) }), t(`judge.${answer}`))));
}

function row(error, number) {
  const kinds = error.categories.map((number) => h("span", { class: `badge c${number}` }, t(`category.${number}`)));
  const disputed = state.complete && state.disputed.some((one) => one.item === error.error_id);
  return h("li", { class: disputed ? "disputed" : "", onfocusin: () => { if (number !== current) select(number); } }, h("p", {}, kinds, " ", h("strong", {}, error.step || t("error.no_step")), error.planned ? h("span", { class: "badge normal" }, t("judge.planned")) : null, " ", h("span", { class: "hint" }, words(error))),
    moments ? h("p", { class: "hint" }, moments.summary(error, state)) : null,
    button(t("judge.show"), () => jump(error), { class: "quiet", "data-key": `${error.error_id} show` }),
    h("div", { class: "questions" }, Object.entries(state.questions).map(([question, answers]) => asked(error, question, answers))));
}

function table(heads, rows) {
  return h("table", {}, h("thead", {}, h("tr", {}, heads.map((key) => h("th", {}, t(key))))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell))))));
}

function agreed({ agreement, agreement_of_moments: marked }) {
  return [
    table(["judge.question", "judge.share", "round.kappa"], Object.entries(agreement).map(([question, found]) => [t(`judge.${question}`), share(found.share), share(found.kappa)])),
    table(["judge.moments", "judge.share", "judge.apart"], Object.entries(marked).map(([moment, found]) => [t(`judge.moment.${moment}`), share(found.share), share(found.apart_s)])),
  ];
}

async function draw() {
  const turn = ++turns, newest = await ask(address);
  if (turn !== turns) return; // a later answer is being sent
  state = newest;
  const left = state.complete ? state.disputed.length : state.left, held = document.activeElement?.dataset.key;
  list.replaceChildren(...(state.errors.length ? state.errors.map(row) : [h("li", { class: "empty" }, t("review.nothing"))]));
  if (held) list.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
  status.textContent = t(state.complete ? "judge.to_rule" : "judge.left", { count: left });
  const send = (path, said) => () => ask(`${address}/${path}`, { body: {} }).then(() => say(t(said))).then(draw).catch(failed);
  const finish = state.complete
    ? h("button", { type: "button", class: "primary", id: "accept", disabled: left > 0, onclick: send("accept", "judge.accepted") }, t("judge.accept"))
    : h("button", { type: "button", class: "primary", id: "submit", disabled: left > 0 || !state.asked || !state.errors.length, onclick: send("submit", "judge.submitted") }, t("steps.submit"));
  results.replaceChildren(...(state.complete ? agreed(state) : []));
  actions.replaceChildren(finish);
  select(current);
  tickPeople(Object.keys(state.people));
}

root.append(watch, making, status, results, list, actions);
begun().then(() => draw().catch(failed)).then(look).catch(failed); // moments cannot be shown until the video is loaded
