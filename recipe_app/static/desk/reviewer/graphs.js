// The order of a recipe's steps, drawn alone as a list of edges; then the edges that differ are ruled on.

import { h } from "/static/core/page.js";
import { ask, setCsrf } from "/static/core/server.js";
import { loadWords, t } from "/static/core/words.js";

const root = document.getElementById("graphs"), address = `/api/v1/desk/recipes/${root.dataset.recipe}/graphs`;
const status = h("p", { role: "status" }), place = h("div", {});
let state = null;

function say(text) {
  const message = document.getElementById("message");
  message.textContent = text;
  message.hidden = !text;
}

const failed = (error) => say(error.message);
const text = (node) => `${node} ${state.steps.find(([one]) => one === node)[1]}`;
const words = ([before, after]) => t("graphs.edge", { before: text(before), after: text(after) });

async function send(path, body, said) {
  await ask(`${address}${path}`, { body });
  await load();
  say(said ? t(said) : "");
}

const keep = (edges) => send("", { edges, seen: state.hash });
const act = (id, key, path, said, disabled = false) => h("p", { class: "actions start" }, h("button", { type: "button", class: "primary", id, disabled, onclick: () => send(path, {}, said).catch(failed) }, t(key)));

function chosen(id) {
  return h("select", { id, "aria-label": t(`graphs.${id}`) }, state.steps.map(([node]) => h("option", { value: String(node) }, text(node))));
}

function drawing() {
  const after = chosen("after"), before = chosen("before");
  const add = () => keep([...state.mine, [Number(before.value), Number(after.value)]]).then(() => document.getElementById("add").focus()).catch(failed);
  const remove = (edge) => keep(state.mine.filter((one) => one !== edge)).catch(failed);
  return [
    h("ul", { class: "rows" }, state.mine.map((edge) => h("li", {}, h("span", { dir: "auto" }, words(edge)), " ", h("button", { type: "button", class: "quiet", "aria-label": t("graphs.remove", { edge: words(edge) }), onclick: () => remove(edge) }, "✕")))),
    h("p", { class: "inline" }, h("label", {}, t("graphs.after"), " ", after), " ", h("label", {}, t("graphs.before"), " ", before), " ", h("button", { type: "button", class: "quiet", id: "add", disabled: !state.asked, onclick: add }, t("order.add"))),
    act("submit", "steps.submit", "/submit", "judge.submitted", !state.asked),
  ];
}

function ruling({ edge, holds }) {
  const choice = (value, key) => h("label", { class: "choice" }, h("input", { type: "radio", name: edge.join("-"), checked: holds === value, onchange: () => send("/rule", { edge, holds: value }).catch(failed) }), t(key));
  return h("fieldset", { class: "questions" }, h("legend", { dir: "auto" }, words(edge)), choice(true, "judge.yes"), choice(false, "judge.no"));
}

function agreed() {
  const forms = Object.entries(state.agreement), names = ["precision", "recall", "f1"];
  return h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, t("graphs.form")), names.map((name) => h("th", {}, t(`graphs.${name}`))))),
    h("tbody", {}, forms.map(([form, found]) => h("tr", {}, h("td", {}, t(`graphs.${form}`)), names.map((name) => h("td", {}, found[name].toFixed(3)))))));
}

async function load() {
  state = await ask(address);
  for (const one of document.querySelectorAll("input[name=people]")) one.checked = state.people.includes(one.value);
  const left = state.complete ? state.differing.filter((one) => one.holds === null).length : 0;
  status.textContent = state.complete ? t("judge.to_rule", { count: left }) : "";
  place.replaceChildren(...(state.complete ? [...state.differing.map(ruling), agreed(), act("accept", "graphs.accept", "/accept", "graphs.accepted", left > 0)] : drawing()));
}

setCsrf(document.querySelector('meta[name="csrf"]')?.content ?? "");
root.replaceChildren(status, place);
loadWords().catch(() => null).then(load).catch(failed);
