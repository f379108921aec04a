// The order of a recipe's steps, drawn alone as a list of edges; then the edges that differ are ruled on.

import { button, h } from "/static/core/page.js";
import { opened } from "/static/core/load_film.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";
import { drawGraph } from "/static/desk/drawing.js";
import { begun, failed, say, tickPeople } from "/static/desk/say.js";

const root = document.getElementById("graphs"), address = `/api/v1/desk/recipes/${root.dataset.recipe}/graphs`;
const status = h("p", { role: "status" }), place = h("div", {});
let state = null;
const shown = h("div", {}), queue = h("div", {});
const same = (a) => (b) => a[0] === b[0] && a[1] === b[1];

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

const evidence = ({ kept, seen }) => t("graphs.evidence", { kept, count: seen });

function contradicted() { // edges of the newest version that somebody broke who made no error
  if (!state.contradicted.length) return "";
  const films = (one) => one.broken_by.map((name, at) => [" ", h("a", { href: `/desk/recordings/${name}/steps` }, String(at + 1))]).flat();
  return h("section", {}, h("h2", {}, t("graphs.contradicted")), h("ul", { class: "rows", id: "contradicted" }, state.contradicted.map((one) => h("li", {}, h("span", { dir: "auto" }, words(one.edge)), " ", h("span", { class: "hint" }, evidence(one)), ...films(one)))));
}

function recorded() { // a film of one of the recordings, to see in what order people cook
  if (!state.films.length) return "";
  const which = h("select", { id: "film", "aria-label": t("graphs.film") }, state.films.map(([name, at]) => h("option", { value: name }, new Date(at / 1e6).toLocaleString())));
  const making = h("p", { class: "hint" }), films = h("div", { class: "films" });
  const look = async () => {
    const { video } = await opened(`/api/v1/desk/recordings/${which.value}`, making);
    video.controls = true;
    making.textContent = "";
    films.replaceChildren(video);
  };
  return h("section", { class: "recorded" }, h("p", { class: "inline" }, h("label", {}, t("graphs.film"), " ", which), " ", button(t("graphs.watch"), () => look().catch(failed), { class: "quiet" })), making, films);
}

function drawing() {
  const after = chosen("after"), before = chosen("before");
  const add = () => keep([...state.mine, [Number(before.value), Number(after.value)]]).then(() => document.getElementById("add").focus()).catch(failed);
  const remove = (edge) => keep(state.mine.filter((one) => one !== edge)).catch(failed);
  const picture = h("div", { class: "drawing", tabindex: "0", role: "region", "aria-label": t("order.drawing"), "data-title": t("order.drawing") });
  const change = (edge) => (state.mine.some(same(edge)) ? remove(state.mine.find(same(edge))) : keep([...state.mine, edge]).catch(failed));
  drawGraph(picture, { ...state, name: text, change: state.asked ? change : null });
  return [
    picture,
    h("ul", { class: "rows" }, state.mine.map((edge) => h("li", {}, h("span", { dir: "auto" }, words(edge)), " ", h("span", { class: "hint" }, evidence(state.evidence.find((one) => same(edge)(one.edge)))), " ", h("button", { type: "button", class: "quiet", "aria-label": t("graphs.remove", { edge: words(edge) }), onclick: () => remove(edge) }, "✕")))),
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
  tickPeople(state.people);
  const left = state.complete ? state.differing.filter((one) => one.holds === null).length : 0;
  status.textContent = state.complete ? t("judge.to_rule", { count: left }) : "";
  queue.replaceChildren(contradicted());
  place.replaceChildren(...(state.complete ? [...state.differing.map(ruling), agreed(), act("accept", "graphs.accept", "/accept", "graphs.accepted", left > 0)] : drawing()));
}

root.replaceChildren(status, queue, shown, place);
begun().then(load).then(() => shown.replaceChildren(recorded())).catch(failed);
