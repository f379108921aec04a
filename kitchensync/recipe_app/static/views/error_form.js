// The form of an error, before and after cooking: categories, hints that fill it with one tap, texts.

import { button, h, redraw } from "/static/core/page.js";
import { afterTouches } from "/static/core/touch.js";
import { fineDuration, languageName, number, t, tongue } from "/static/core/words.js";
import { categoryName, NAMES, sheet } from "/static/views/frame.js";

const ORDER = 2;
const INTENTS = ["on_purpose", "by_accident"];
const NOTICED = ["at_once", "later", "somebody_else", "not"];
const NOBODY = -1; // no step corrected it
const MOST = 600; // longest text of a field, as in operations/kinds.py

export const shownHints = (recording, node) => recording.bundle.hints[node] ?? [];

// A step with its number, since two may have the same text.
export function numbered(recording, node) {
  const place = recording.numbers.get(node);
  return `${place ? number(place) : "–"}. ${recording.text(node)}`;
}

// Asks for the fields of an error at a step; `save(fields, hint, touch)` gets the input. If the error has happened,
// `span` is the time range on the capture clock, and fields known only then are shown too. `before` is the saved
// error, if the form is shown again after a failed save. `film` is the player of the review, which moves into the
// form while it is open.
export function errorForm(recording, node, { title, error, before = error, hints = true, planning = hints, span = null, film = null, save }) {
  const draw = afterTouches(paint);
  const fields = { node, categories: [...(error?.categories ?? [])], text: error?.text ?? "", description: error?.description ?? "",
    language: error?.language || recording.shown.language || "", before: error?.before ?? undefined, recovery: error?.recovery };
  if (span) Object.assign(fields, { at: error?.at ?? null, intent: error?.intent ?? "", noticed: error?.noticed ?? "", corrected_by: error?.corrected_by ?? null });
  const words = (at) => recording.shown.steps[at]?.text ?? "";
  const asPlanned = () => recording.plan.steps[fields.node]?.words ?? "";
  let used = "";
  let applied = null;
  const body = h("div", { class: "error-form" });
  const close = film?.film ? withFilm() : sheet(title, () => body, { wide: true });

  function withFilm() { // at the time of the error or the last touch of its step, until a time is set
    const { element } = film, place = document.createComment("film");
    element.replaceWith(place);
    const shut = sheet(title, () => [element, body], { wide: true, closed: () => place.replaceWith(element) });
    const from = fields.at ?? lastSeen(recording, node);
    if (film.shows(from)) film.go(from, { focus: false });
    return shut;
  }

  let several = !before || !span || before.categories.length > 1; // a correction replaces the category, unless several are enabled
  const toggle = (category) => {
    if (!several) fields.categories = [category];
    else fields.categories = fields.categories.includes(category) ? fields.categories.filter((one) => one !== category) : [...fields.categories, category].sort();
    draw();
  };
  const apply = (hint) => {
    const category = NAMES.indexOf(hint.category);
    if (!fields.categories.includes(category)) fields.categories = [...fields.categories, category].sort();
    fields.description = [fields.description, hint.wording].filter(Boolean).join("; ").slice(0, MOST);
    if (hint.text) Object.assign(fields, { text: hint.text, language: recording.bundle.language ?? "" });
    Object.assign(fields, { expected: hint.expected, actual: hint.actual, subtype: hint.subtype, before: hint.before ?? fields.before });
    [used, applied] = [hint.category, hint];
    draw();
  };
  const earlier = () => recording.shown.order.filter((one) => one !== node && !recording.bundle.protected?.includes(one)); // steps for safety cannot be omitted
  const place = () => h("div", { class: "field" }, h("label", { for: "before" }, t("error.before")),
    h("select", { id: "before", "data-key": "before", onchange: (event) => { fields.before = Number(event.target.value); } },
      h("option", { value: node }, "–"), earlier().map((one) => h("option", { value: one, selected: one === fields.before }, recording.text(one)))));
  const keep = (touch) => {
    if (!fields.categories.length) return void (body.querySelector(".warning").textContent = t("error.category_first"));
    close();
    const edited = applied && (fields.text !== (applied.text || fields.text) || !fields.description.endsWith(applied.wording));
    if (span && same(fields.text, words(fields.node))) fields.text = ""; // the correct text of the step is no error
    if (!fields.text) fields.language = undefined;
    const isAsBefore = fields.at === (before?.at ?? null); // not set: no touch tells when the error happened
    return save(isAsBefore ? { ...fields, at: undefined } : fields, { used, applied, edited }, touch).catch((problem) => { // not saved: show the input again
      errorForm(recording, node, { title, error: { ...error, ...fields }, before, hints, planning, span, film, save });
      throw problem;
    });
  };

  const chips = (name, values) => h("div", { class: "categories", role: "group", "aria-label": t(`field.${name}`) }, h("h3", {}, t(`field.${name}`)),
    values.map((value) => button(t(`${name}.${value}`), () => { fields[name] = fields[name] === value ? "" : value; draw(); },
      { class: "chip", "aria-pressed": String(fields[name] === value), "data-key": `${name}-${value}` })));
  const stepChoice = (name, label, nodes) => h("div", { class: "field" }, h("label", { for: name }, label),
    h("select", { id: name, "data-key": name, onchange: (event) => { fields[name] = nodes.find((node) => String(node ?? "") === event.target.value); } },
      nodes.map((node) => h("option", { value: node ?? "", selected: node === fields[name] }, node === null ? "–" : node === NOBODY ? t("error.no_corrector") : node === error?.error_id ? t("error.by_recovery") : numbered(recording, node)))));
  const when = () => { // a touch on the line sets the time; arrow keys move it by a second, the video by a frame
    const [from, to] = span;
    const said = () => (fields.at === null ? t("error.no_time_set") : t("review.when", { time: fineDuration((fields.at - from) / 1e9) }));
    const label = h("label", { for: "at" }, said());
    const line = h("input", { id: "at", type: "range", min: 0, max: Math.max(1, Math.ceil((to - from) / 1e9)), step: 1, "data-key": "at",
      oninput: () => {
        put(Math.round(from + line.value * 1e9));
        if (film?.shows(fields.at)) film.go(fields.at, { focus: false });
      } });
    const put = (at) => {
      fields.at = at;
      tell();
    };
    const tell = () => {
      line.value = Math.round(((fields.at ?? lastSeen(recording, fields.node) ?? from) - from) / 1e9);
      label.textContent = said();
      line.setAttribute("aria-valuetext", said());
    };
    tell();
    return h("div", { class: "field" }, label, line,
      film?.film && button(t("error.shown_frame"), () => { if (film.now() !== null) put(film.now()); }, { class: "quiet", "data-key": "shown-frame" }));
  };

  function paint() {
    const offered = hints ? shownHints(recording, node) : [];
    redraw(body,
      span ? stepChoice("node", t("review.step"), [...recording.numbers.keys()]) : h("p", { class: "step-text", ...recording.tongue }, recording.text(node)),
      span && when(),
      h("div", { class: "categories", role: "group", "aria-label": t("error.categories") }, recording.bundle.categories.map((category) =>
        button(categoryName(category), () => toggle(category), { class: `chip c${category}`, "aria-pressed": String(fields.categories.includes(category)), "data-key": `c${category}` })),
        !several && button(t("error.several"), () => { several = true; draw(); }, { class: "chip", "data-key": "several" })),
      error?.outcome_note && h("p", { class: "hint" }, `${t("review.how")} ${error.outcome_note}`),
      offered.length > 0 && h("section", {}, h("h3", {}, t("error.hints")), h("div", { class: "hints" }, offered.map((hint, place) =>
        button([h("span", { class: `badge c${NAMES.indexOf(hint.category)}` }, categoryName(NAMES.indexOf(hint.category))), h("span", {}, hint.text || hint.wording)],
          () => apply(hint), { class: "hint-row", "data-key": `h${place}` })))),
      planning && fields.categories.includes(ORDER) && place(),
      span && [chips("intent", INTENTS), chips("noticed", NOTICED), stepChoice("corrected_by", t("field.corrected_by"), [null, NOBODY, ...(error?.recovery ? [error.error_id] : []), ...recording.numbers.keys()])],
      h("div", { class: "field" }, h("label", { for: "description" }, t("error.description")),
        h("textarea", { id: "description", rows: 2, maxlength: MOST, value: fields.description, "data-key": "description", oninput: (event) => { fields.description = event.target.value; } })),
      h("div", { class: "field" }, h("label", { for: "text" }, t(span ? "error.instead" : "error.text")),
        span && !fields.text && !same(asPlanned(), words(fields.node)) && button(t("error.as_planned", { text: asPlanned() }), () => { fields.text = asPlanned(); draw(); }, { class: "hint-row", "data-key": "as-planned" }),
        fields.language !== (recording.shown.language ?? "") && h("span", { class: "hint" }, t("plan.tongue", { language: languageName(fields.language) })),
        h("textarea", { id: "text", ...tongue(fields.language), rows: 2, maxlength: MOST, value: fields.text, "data-key": "text", oninput: (event) => { fields.text = event.target.value; } })),
      planning && h("div", { class: "field" }, h("label", { for: "recovery" }, t("field.recovery")),
        h("textarea", { id: "recovery", rows: 2, maxlength: MOST, value: fields.recovery ?? "", "data-key": "recovery", oninput: (event) => { fields.recovery = event.target.value; } })),
      h("p", { class: "warning", role: "alert" }),
      h("p", { class: "actions" }, button(t("cancel"), close, { class: "quiet", "data-key": "cancel" }), button(t("save"), keep, { class: "primary", "data-key": "save" })));
  }
  paint();
}

const same = (one, other) => one.trim().toLowerCase() === other.trim().toLowerCase();

// The last touch of a step: the first guess for the time of its error.
function lastSeen(recording, node) {
  const run = recording.state.steps[node]?.runs.at(-1);
  return run?.end ?? run?.start ?? null;
}

export const kept = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
export const living = (recording) => Object.values(recording.state.errors).filter((error) => !error.removed);
