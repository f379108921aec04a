// Edits the order of a recipe's steps as a list and in a drawing; shows the result of each change immediately.

import { ask } from "/static/core/server.js";
import { loadWords, t } from "/static/core/words.js";
import { drawGraph } from "/static/desk/drawing.js";

const place = document.getElementById("order");
if (place) edit(place, JSON.parse(place.dataset.graph));

function edit(section, { recipe, hash, steps, edges }) {
  const url = `/api/v1/desk/recipes/${recipe}/order`;
  const text = new Map(steps);
  const name = (node) => `${node} ${text.get(node)}`;
  const within = (selector) => section.querySelector(selector);
  const adding = within("form.add");
  const save = within("form.save button");
  const same = (a) => (b) => a[0] === b[0] && a[1] === b[1];
  const kept = JSON.stringify(edges);
  let asked = 0;

  function change(edge) { // removes an existing edge, adds a missing one
    const without = edges.filter((one) => !same(edge)(one));
    edges = without.length < edges.length ? without : [...edges, edge].sort((a, b) => a[1] - b[1] || a[0] - b[0]);
    return tell();
  }

  async function tell() {
    const mine = ++asked;
    const told = await ask(`${url}/check`, { body: { edges, seen: hash } });
    if (mine !== asked) return; // changed meanwhile
    list(told);
    within(".cycle").textContent = told.cycle.length ? t("order.cycle", { steps: told.cycle.map(name).join(" → ") }) : "";
    within(".cycle").hidden = !told.cycle.length;
    within(".count").textContent = told.cycle.length ? "" : told.count || t("choose.uncounted");
    samples(told);
    drawGraph(within(".drawing"), { ...told, name, change });
    save.disabled = told.cycle.length > 0 || JSON.stringify([...edges].sort()) === JSON.stringify(JSON.parse(kept).sort());
  }

  function list({ redundant, cycle }) {
    const rows = within("ol.edges");
    const focused = rows.contains(document.activeElement) ? document.activeElement.closest("li").value : null;
    rows.replaceChildren(...steps.map(([node, words]) => {
      const row = Object.assign(document.createElement("li"), { value: node });
      const said = Object.assign(document.createElement("span"), { textContent: words, dir: "auto" });
      row.append(said, ...edges.filter((edge) => edge[1] === node).map((edge) => chip(edge, redundant, cycle)));
      return row;
    }));
    if (focused === null) return;
    const row = [...rows.children].find((child) => child.value === focused);
    (row.querySelector("button") ?? adding.elements.after).focus();
  }

  function chip(edge, redundant, cycle) {
    const button = document.createElement("button");
    const [before, after] = edge;
    const at = cycle.indexOf(before);
    button.type = "button";
    button.className = redundant.some(same(edge)) ? "quiet redundant" : at >= 0 && cycle[at + 1] === after ? "quiet wrong" : "quiet";
    button.textContent = `${t("recipes.after", { steps: name(before) })} ✕`;
    if (button.classList.contains("redundant")) button.textContent += ` · ${t("order.redundant")}`;
    button.setAttribute("aria-label", t("order.remove", { after: name(after), before: name(before) }) + (button.classList.contains("redundant") ? ` (${t("order.redundant")})` : ""));
    button.addEventListener("click", () => trying(change(edge)));
    return button;
  }

  function samples({ orders }) {
    within(".samples").hidden = !orders.length;
    within(".samples > div").replaceChildren(...orders.map((order) => {
      const shown = document.createElement("ol");
      shown.append(...order.map((node) => {
        const row = document.createElement("li");
        const button = Object.assign(document.createElement("button"), { type: "button", className: "link", textContent: name(node), dir: "auto" });
        button.addEventListener("click", () => { // the step comes too early: choose its prerequisite
          adding.elements.after.value = node;
          adding.elements.before.focus();
        });
        row.append(button);
        return row;
      }));
      return shown;
    }));
  }

  const message = document.getElementById("message");
  const trying = (promise) => promise.catch((error) => {
    message.textContent = error.message;
    message.hidden = false;
    message.scrollIntoView({ block: "nearest" });
  });

  for (const select of [adding.elements.after, adding.elements.before]) {
    select.replaceChildren(...steps.map(([node]) => new Option(name(node), node)));
  }
  adding.addEventListener("submit", (event) => {
    event.preventDefault();
    const edge = [Number(adding.elements.before.value), Number(adding.elements.after.value)];
    if (!edges.some(same(edge))) trying(change(edge));
  });
  within("form.save").addEventListener("submit", (event) => {
    event.preventDefault();
    trying(ask(url, { body: { edges, seen: hash } }).then(() => location.reload()));
  });
  trying(loadWords().then(tell));
}
