// A recording at the desk: its video and log beside tabs. One error is edited at a time; unsaved input stays.

import { FilmPlayer } from "/static/core/film_player.js";
import { newId } from "/static/core/ids.js";
import { button } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { moveHead, timeline } from "/static/core/timeline.js";
import { duration, t } from "/static/core/words.js";
import { begun, failed, say } from "/static/desk/say.js";

const at = (id) => document.getElementById(id);
const record = at("record");
const { api } = record.dataset;
const began = Number(record.dataset.began);
const tabs = [...record.querySelectorAll("[role=tab]")];
const asked = new WeakMap();
const reopened = new WeakSet(); // redrawn, not opened by anybody
let film = null, whole_s = 0;

// Tabs

function choose(tab, focus) {
  for (const one of tabs) {
    const chosen = one === tab;
    one.setAttribute("aria-selected", String(chosen));
    one.tabIndex = chosen ? 0 : -1;
    at(one.getAttribute("aria-controls")).hidden = !chosen;
  }
  history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`);
  if (focus) tab.focus();
}

function turn(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const way = document.dir === "rtl" ? -step : step;
  choose(tabs[(tabs.indexOf(event.target) + way + tabs.length) % tabs.length], true);
}

// Corrections

const isChanged = (control) => (control.type === "checkbox" ? control.checked !== control.defaultChecked
  : control.tagName === "SELECT" ? !control.selectedOptions[0].defaultSelected : control.value !== control.defaultValue);

const VALUES = { // for fields that are no text
  node: ({ value }) => (value ? Number(value) : undefined),
  corrected_by: ({ value }) => (value === "" ? undefined : /^-?\d+$/.test(value) ? Number(value) : value), // a node or an error
  at: ({ value, dataset }) => (value ? Math.round(Number(dataset.from) + Number(value) * 1e9) : undefined),
  categories: ({ form }) => [...form.elements.categories].filter((box) => box.checked).map((box) => Number(box.value)),
};

const controlsOf = (form) => [...form.elements].filter((control) => control.name);
const isWritten = (form) => controlsOf(form).some(isChanged);

// Operation ids per form content: a retry after a lost answer is the same correction, not a second error.
function idsOf(form, said) {
  if (asked.get(form)?.said !== said) asked.set(form, { said, op_id: newId(), error_id: newId() });
  return asked.get(form);
}

function correction(form) { // only changed fields: other categories and somebody else's wording stay
  const { correct: kind, error, seen } = form.dataset;
  const wanted = controlsOf(form).filter((control) => isChanged(control) || (kind === "add_error" && ["node", "categories"].includes(control.name)));
  const fields = Object.fromEntries(wanted.map((control) => [control.name, (VALUES[control.name] ?? (({ value }) => value))(control)]));
  const { op_id, error_id } = idsOf(form, JSON.stringify(fields));
  return { op_id, kind, body: kind === "note" ? fields : { error_id: error ?? error_id, fields }, seen: Number(seen) };
}

async function correct(said, form) {
  say("");
  await ask(`${api}/corrections`, { body: said });
  const undo = button(t("follow.undo"), () => correct({ op_id: newId(), kind: "undo", body: { undoes: [said.op_id] }, seen: said.seen }).catch(failed), { class: "quiet" });
  at("kept").replaceChildren(t("record.kept"), ...(said.kind === "undo" ? [] : [" ", undo]));
  await refresh(form);
}

// Reloads the page's parts from the server; other forms keep their unsaved input.
async function refresh(saved) {
  const answer = await fetch(location.pathname, { cache: "no-store" });
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!fresh.getElementById("new") !== !at("new")) return location.reload(); // withdrawn meanwhile
  const open = [...record.querySelectorAll("details[open][id]")].filter((element) => element.id !== "new" || !element.contains(saved ?? null)).map(({ id }) => id);
  const written = [...record.querySelectorAll("form[data-correct]")].filter((form) => form !== saved && isWritten(form));
  for (const part of document.querySelectorAll("[data-part]")) {
    const next = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
    if (!next) return location.reload(); // another page was returned: signed out meanwhile
    for (const form of next.querySelectorAll("form[data-correct]")) {
      const kept = written.find((one) => one.dataset.correct === form.dataset.correct && one.dataset.error === form.dataset.error);
      if (kept) form.replaceWith(kept);
    }
    if (next.dataset.line) part.dataset.line = next.dataset.line;
    part.replaceChildren(...next.childNodes);
  }
  for (const tab of tabs) tab.textContent = fresh.getElementById(tab.id).textContent;
  for (const details of open.map(at).filter(Boolean)) {
    details.open = true;
    reopened.add(details);
  }
  for (const form of written) mark(form);
  return draw();
}

// Film and time

const momentOf = (seconds) => began + seconds * 1e9;
const go = (moment) => film?.shows(moment) && film.go(moment);

function draw() {
  const line = JSON.parse(at("logged").dataset.line);
  const lines = line.rows.map(({ place, text, runs, errors }) => {
    const said = runs.map((run) => run.map(duration).join(" – ")).join(", ") || t("review.skipped");
    const marks = errors.map(([seconds, id]) => ({ at: seconds, title: duration(seconds), more: { "data-opens": id } }));
    return { place, text, said, runs, holds: [], marks, when: runs.length ? duration(runs[0][0]) : "–" };
  });
  whole_s = line.whole_s;
  at("logged").replaceChildren(...(whole_s ? [timeline(lines, [0, whole_s])] : []));
  for (const press of record.querySelectorAll("[data-now], [data-see]")) press.hidden = !film?.film;
  moved();
}

function moved() { // the current frame, seconds since the first touch of a step
  const shown = film?.now() ?? null, seconds = shown === null ? null : (shown - began) / 1e9;
  if (at("at-now")) at("at-now").textContent = seconds === null ? "" : duration(seconds);
  moveHead(at("logged"), seconds, [0, whole_s]);
}

const put = (field, moment) => { field.value = ((moment - began) / 1e9).toFixed(3); };

function opened(details) { // an error seeks to its moment; a new one starts at the current frame
  if (!details.open || reopened.delete(details)) return;
  if (details.dataset.at) return go(Number(details.dataset.at));
  const form = details.querySelector("form[data-correct=add_error]"), shown = film?.now() ?? null;
  if (form && shown !== null && !isWritten(form)) put(form.elements.at, shown);
}

function pressed({ target, clientX }) {
  const press = target.closest("button, [data-opens], .track");
  if (!press) return;
  if (press.className === "track") { // the moment that was touched
    const { left, right } = press.getBoundingClientRect();
    go(momentOf(whole_s * Math.abs(clientX - (document.dir === "rtl" ? right : left)) / (right - left)));
  } else if (press.dataset.see) go(momentOf(Number(press.dataset.see)));
  else if (press.getAttribute("role") === "tab") choose(press);
  else if (press.dataset.fix) correct({ op_id: newId(), kind: "edit_error", body: JSON.parse(press.dataset.fix), seen: Number(record.querySelector("form[data-seen]").dataset.seen) }).catch(failed);
  else if ("now" in press.dataset) {
    const moment = film.now();
    if (moment !== null) put(press.form.elements.at, moment);
    mark(press.form);
  } else if (press.dataset.opens) {
    choose(at("tab-errors"));
    at(`error-${press.dataset.opens}`).open = true;
  }
}

const mark = (form) => form.closest("details")?.classList.toggle("written", isWritten(form));

function sent(event) {
  const form = event.target;
  if (!form.dataset.correct) return;
  event.preventDefault();
  form.inert = true; // sent once; no input while saving
  correct(correction(form), form).catch(failed).finally(() => { form.inert = false; });
}

record.addEventListener("click", pressed);
record.addEventListener("submit", sent);
record.addEventListener("input", ({ target }) => target.form?.dataset.correct && mark(target.form));
record.addEventListener("toggle", ({ target }) => opened(target), true);
record.querySelector("[role=tablist]").addEventListener("keydown", turn);
addEventListener("beforeunload", (event) => { if ([...record.querySelectorAll("form[data-correct]")].some(isWritten)) event.preventDefault(); });
if (at(`tab-${location.hash.slice(1)}`)) choose(at(`tab-${location.hash.slice(1)}`));
record.inert = false; // earlier presses would be lost
await begun();
if ("film" in record.dataset) {
  film = new FilmPlayer(api, draw, { moved, hidden: "film.hidden.of_cook", absent: (problem) => { at("film").textContent = problem.message; } });
  at("film").replaceChildren(film.element);
}
draw();
