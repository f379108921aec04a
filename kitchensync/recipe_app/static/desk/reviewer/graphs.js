// Each person draws the order of a recipe's steps as edges; afterwards differing edges are ruled.

import { button, h } from "/static/core/page.js";
import { opened } from "/static/core/load_film.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";
import { drawGraph } from "/static/desk/drawing.js";
import { begun, failed, say, tickPeople } from "/static/desk/say.js";

const root = document.getElementById("graphs"), address = `/api/v1/desk/recipes/${root.dataset.recipe}/graphs`;
const status = h("p", { role: "status" }), place = h("div", {});
let state = null, open = false;
const shown = h("div", {}), queue = h("div", {});
const same = (a) => (b) => a[0] === b[0] && a[1] === b[1];

const text = (node) => `${node} ${state.steps.find(([one]) => one === node)[1]}`;
const words = ([before, after]) => t("graphs.edge", { before: text(before), after: text(after) });

let sent = Promise.resolve();

function post(path, body) { // one after the other, so that the last answer is the saved one
  sent = sent.catch(() => {}).then(() => ask(`${address}${path}`, { body }));
  return sent;
}

async function send(path, body, said) {
  await post(path, body);
  await load();
  say(said ? t(said) : "");
}

const answers = (edges) => ({ edges, fastened: state.fastened, seen: state.hash });
const keep = (edges) => send("", answers(edges));
const act = (id, key, path, said, disabled = false) => h("p", { class: "actions start" }, h("button", { type: "button", class: "primary", id, disabled, onclick: () => send(path, {}, said).catch(failed) }, t(key)));

function chosen(id) {
  return h("select", { id, "aria-label": t(`graphs.${id}`) }, state.steps.map(([node]) => h("option", { value: String(node) }, text(node))));
}

const evidence = ({ kept, seen }) => t("graphs.evidence", { kept, count: seen });

function contradicted() { // edges of the newest version that somebody without an error did not follow
  if (!state.contradicted.length) return "";
  const films = (one) => one.broken_by.map((name, at) => [" ", h("a", { href: `/desk/recordings/${name}/steps` }, String(at + 1))]).flat();
  return h("section", {}, h("h2", {}, t("graphs.contradicted")), h("ul", { class: "rows", id: "contradicted" }, state.contradicted.map((one) => h("li", {}, h("span", { dir: "auto" }, words(one.edge)), " ", h("span", { class: "hint" }, evidence(one)), ...films(one)))));
}

function recorded() { // a video of one recording, to see in what order people cook
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

function screws() { // steps that fasten with a screw: ProMQA-Assembly asks this about toys, so it is hidden in kitchens
  const change = (node, event) => { // no redraw, so that the keyboard focus stays
    state.fastened = [...state.fastened.filter((one) => one !== node), ...(event.target.checked ? [node] : [])];
    post("", answers(state.mine)).catch(failed);
  };
  const choice = ([node]) => h("label", { class: "option" }, h("input", { type: "checkbox", checked: state.fastened.includes(node), disabled: !state.asked, onchange: (event) => change(node, event) }), h("span", { class: "name", dir: "auto" }, text(node)));
  return h("details", { id: "screws", open: open || state.fastened.length > 0, ontoggle: (event) => { open = event.target.open; } }, h("summary", {}, t("graphs.fastened")), state.steps.map(choice));
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
    screws(),
    act("submit", "steps.submit", "/submit", "judge.submitted", !state.asked),
  ];
}

function ruling(name, said, path, { holds, ...asked }) {
  const choice = (value, key) => h("label", { class: "choice" }, h("input", { type: "radio", name, checked: holds === value, onchange: () => send(path, { ...asked, holds: value }).catch(failed) }), t(key));
  return h("fieldset", { class: "questions" }, h("legend", { dir: "auto" }, said), choice(true, "judge.yes"), choice(false, "judge.no"));
}

const rulings = () => [
  ...state.differing.map((one) => ruling(one.edge.join("-"), words(one.edge), "/rule", one)),
  ...state.differing_fastening.map((one) => ruling(`screw-${one.step}`, t("graphs.is_fastened", { step: text(one.step) }), "/rule-fastening", one)),
];

function agreed() {
  const forms = Object.entries(state.agreement), names = ["precision", "recall", "f1"];
  return h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, t("graphs.form")), names.map((name) => h("th", {}, t(`graphs.${name}`))))),
    h("tbody", {}, forms.map(([form, found]) => h("tr", {}, h("td", {}, t(`graphs.${form}`)), names.map((name) => h("td", {}, found[name].toFixed(3)))))));
}

const fastening = () => (state.fastening === null ? "" : h("p", {}, t("graphs.fastening", { share: state.fastening.toFixed(3) })));

async function load() {
  let told, before;
  do { // until there is no newer answer
    before = sent;
    await before.catch(() => {});
    told = await ask(address);
  } while (sent !== before);
  state = told;
  tickPeople(state.people);
  const left = state.complete ? [...state.differing, ...state.differing_fastening].filter((one) => one.holds === null).length : 0;
  status.textContent = state.complete ? t("judge.to_rule", { count: left }) : "";
  queue.replaceChildren(contradicted());
  place.replaceChildren(...(state.complete ? [...rulings(), agreed(), fastening(), act("accept", "graphs.accept", "/accept", "graphs.accepted", left > 0)] : drawing()));
}

root.replaceChildren(status, queue, shown, place);
begun().then(load).then(() => shown.replaceChildren(recorded())).catch(failed);
