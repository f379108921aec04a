// Stage 4: plan and events side by side. The review only adds to the log and never changes it.

import { FilmPlayer } from "/static/core/film_player.js";
import { newId } from "/static/core/ids.js";
import { button, h, redraw, show } from "/static/core/page.js";
import { timeline } from "/static/core/timeline.js";
import { afterTouches } from "/static/core/touch.js";
import { duration, number, t } from "/static/core/words.js";
import { errorForm, kept, living, numbered } from "/static/views/error_form.js";
import { bar, categoryName, footer, open as goTo, sheet, tour } from "/static/views/frame.js";
import { myData } from "/static/views/my_data.js";
import { undoable } from "/static/views/undo.js";
import { versionsBadge } from "/static/views/versions.js";
import { recordVoice, voicePlayer } from "/static/views/voice.js";

const MISSING = 6;
const LOOK_MS = 5000; // to show changes from the desk
const OUTCOMES = ["as_planned", "differently", "not_done"];

export function open(recording) {
  const draw = afterTouches(paint);
  const body = h("div", { class: "parts" });
  const film = new FilmPlayer(`/api/v1/recordings/${recording.id}`, draw);
  const main = h("main", { class: "plain wide" }, film.element, body);
  const message = h("p", { role: "status" });
  let written = ""; // text of an unsaved note, kept when redrawing
  const { control, act } = undoable(recording, draw);
  const closed = () => Boolean(recording.state.review_closed); // closed by the desk
  const back = recording.state.phase !== "done" && button(t("back"), () => goTo(recording, "follow"), { class: "quiet" });
  const finish = button(t("review.finish"), end, { class: "primary", id: "finish" });
  show("review", bar("review", t("review.title"), myData(recording)), main, footer(control, message, back, finish));

  const planned = () => living(recording).filter((error) => error.planned);
  const made = () => living(recording).filter((error) => !error.planned);
  const undecided = () => planned().filter((error) => !error.outcome).length;

  const change = (error, fields, touch) => act(touch, { kind: "edit_error", body: { error_id: error.error_id, fields } });

  async function end(touch) {
    if (undecided() && !closed()) return;
    if (recording.state.phase !== "done") await recording.act(touch, { kind: "finish" });
    await goTo(recording, "done");
  }

  const edit = (error) => errorForm(recording, error.node, { title: t("prepare.change"), error, hints: false, span: span(recording), film, save: (fields, _, touch) => change(error, kept(fields), touch) });

  function add() {
    sheet(t("review.which"), (close) => h("div", { class: "hints" }, button(t("back"), close, { class: "quiet" }), [...recording.numbers.keys()].map((node) => button(numbered(recording, node), () => {
      close();
      errorForm(recording, node, {
        title: t("review.add"), hints: false, span: span(recording), film,
        save: (fields, _, touch) => act(touch, { kind: "add_error", body: { error_id: newId(), fields: kept(fields) } }),
      });
    }, { class: "hint-row" }))), { wide: true });
  }

  const describe = (error) => [
    h("span", { class: "badges" }, error.categories.map((category) => h("span", { class: `badge c${category}` }, categoryName(category))),
      !closed() && versionsBadge(recording, error, (fields, touch) => change(error, fields, touch))),
    error.planned ? sides(recording, error) : h("span", { class: "what" }, numbered(recording, error.node), (error.description || error.text) && h("span", { class: "hint" }, error.description || error.text)),
  ];

  function plannedRow(error) {
    return h("li", { class: "planned" }, describe(error),
      h("div", { class: "outcomes", role: "group", "aria-label": t("review.outcome") }, OUTCOMES.map((outcome) => button(outcomeOf(error, outcome),
        (touch) => change(error, { outcome }, touch), { class: "chip", disabled: closed(), "aria-pressed": String(error.outcome === outcome), "data-key": `${outcome}-${error.error_id}` }))),
      error.outcome === "differently" && h("div", { class: "field" }, h("label", { for: `n${error.error_id}` }, t("review.how")),
        h("input", { id: `n${error.error_id}`, maxlength: 600, disabled: closed(), value: error.outcome_note, "data-key": `note-${error.error_id}`, onchange: (event) => change(error, { outcome_note: event.target.value }, now()) })));
  }

  const facts = ({ error_id, at, origin, intent, noticed, corrected_by: by }) => [at ? clock(recording, at) : t("review.no_time"), origin === "review" && t("review.added"), intent && t(`intent.${intent}`),
    noticed && `${t("field.noticed")}: ${t(`noticed.${noticed}`)}`, by === error_id ? t("error.by_recovery") : by >= 0 && by !== null && `${t("field.corrected_by")}: ${numbered(recording, by)}`].filter(Boolean);

  const madeRow = (error) => h("li", { class: "planned" }, describe(error),
    h("span", { class: "hint" }, facts(error).join(" · "),
      recording.bundle.places?.[error.error_id] && h("span", {}, " · ", t("error.pictures", { where: recording.bundle.places[error.error_id] }))),
    h("span", { class: "actions" }, inFilm(film, error.at, { class: "quiet", "data-key": `film-${error.error_id}` }), !closed() && button(t("change"), () => edit(error), { class: "quiet", "data-key": `edit-${error.error_id}` }),
      !closed() && button(t("remove"), (touch) => change(error, { removed: true }, touch), { class: "quiet", "data-key": `remove-${error.error_id}` })));

  const notDone = () => Object.values(recording.state.steps).filter(({ state }) => ["waiting", "stopped"].includes(state)).length;
  const rest = () => recording.state.rest === "stopped_early" && h("p", { class: "hint", id: "rest" }, t("review.stopped_early", { count: notDone() }));

  const voiceNotes = () => recording.state.voices.length > 0 && h("ul", { class: "rows" }, recording.state.voices.map(({ sha256, seconds, op_id }, place) => h("li", {},
    voicePlayer(recording, sha256, t("desk.voice", { number: place + 1, seconds: Math.round(seconds) })),
    !closed() && button(t("remove"), (touch) => recording.undo(touch, [op_id]).then(draw), { class: "quiet", "data-key": `unvoice-${sha256}` }))));

  function paint() {
    redraw(body, tour("review"),
      h("section", {}, h("h2", {}, t("review.timeline")), logged(recording, film), rest()),
      planned().length > 0 && h("section", {}, h("h2", {}, t("review.planned")), h("p", { class: "hint" }, t("review.planned.hint")), h("ul", {}, planned().map(plannedRow))),
      h("section", {}, h("h2", {}, t("review.made")),
        made().length ? h("ul", {}, made().map(madeRow)) : h("p", { class: "empty of-fine" }, t("review.nothing")),
        !closed() && h("p", { class: "actions start" }, button(t("review.add"), add, { class: "quiet", "data-key": "add" }), button(t("voice.record"), () => recordVoice(recording, draw), { class: "quiet", "data-key": "voice" })),
        voiceNotes()),
      h("section", {}, h("h2", {}, t("review.note")), !closed() && h("div", { class: "field" }, h("label", { for: "note" }, t("review.note.label")),
        h("textarea", { id: "note", rows: 2, maxlength: 600, value: written, "data-key": "note", oninput: (event) => { written = event.target.value; } }), button(t("review.note.keep"), note, { class: "quiet" })),
        h("ul", {}, recording.state.notes.map((note) => h("li", {}, note.text)))));
    const left = undecided();
    message.textContent = closed() ? t("review.closed") : left ? t("review.left", { count: left }) : "";
    finish.disabled = left > 0 && !closed();
    if (closed()) control.hidden = true;
  }

  async function note(touch) {
    const text = written.trim();
    if (!text) return;
    written = "";
    await act(touch, { kind: "note", body: { text } }).catch((problem) => { // not saved: show the input again
      written = text;
      throw problem;
    });
  }
  paint();
  const looking = setInterval(() => recording.refresh().then((news) => news && draw(), () => null), LOOK_MS);
  return () => clearInterval(looking);
}

// "Not done" is ambiguous for a step that was planned to be omitted.
const outcomeOf = ({ categories }, outcome) => (categories.includes(MISSING) && outcome !== "differently" ? t(`outcome.missing.${outcome}`) : t(`outcome.${outcome}`));

// Recipe, plan and events of a step, each with a label.
function sides(recording, error) {
  const { node, before } = error;
  const { runs = [], state = "waiting" } = recording.state.steps[node] ?? {};
  const left = recording.plan.left.includes(node);
  const step = recording.plan.steps[node];
  const planned = [left ? t("plan.left_out") : step?.planned ? step.words : "", typeof before === "number" && before !== node && t("plan.before", { step: recording.text(before) }),
    (left || !step?.planned) && error.description].filter(Boolean).join(" · ") || t("side.same");
  const shown = runs.at(-1)?.shown;
  const done = [t(`step.${state}`), runs.length && clock(recording, runs[0].start ?? runs[0].end), shown && `${t("side.shown")}: ${shown}`].filter(Boolean).join(" · ");
  return h("dl", { class: "sides" }, [["original", recording.text(node), recording.tongue], ["planned", planned, left ? {} : recording.tongueOf(step)], ["done", done, {}]]
    .map(([name, text, tongue]) => h("div", {}, h("dt", {}, t(`side.${name}`)), h("dd", { "data-side": name, ...tongue }, text))));
}

// Seeks the video to a time, if the video shows it.
const inFilm = (film, at, how) => film.shows(at) && button(t("film.see"), () => film.go(at), how);

const now = () => ({ page: "", touch_ms: 0, wall_ms: Date.now() });

function span(recording) { // from the first touch to the end or to the last event after it, on the capture clock
  const runs = Object.values(recording.state.steps).flatMap((step) => step.runs).flatMap((run) => [run.start, run.end]);
  const ends = recording.known.filter(({ kind }) => kind === "end").map(({ host_ns }) => host_ns);
  const all = [...runs, ...ends, ...living(recording).map(({ at }) => at)].filter((at) => at !== null && at !== undefined);
  return all.length ? [Math.min(...all), Math.max(...all)] : null;
}

const clock = (recording, at) => { const all = span(recording); return all ? duration((at - all[0]) / 1e9) : ""; };

function when(recording, run, node, film) { // a touch seeks the video to the step
  const at = run.start ?? run.end, said = clock(recording, at);
  return film.shows(at) ? button(`▸ ${said}`, () => film.go(at), { class: "link", title: t("film.see_step", { step: numbered(recording, node) }), "data-key": `film-step-${node}` }) : said;
}

function logged(recording, film) {
  const all = span(recording);
  if (!all) return h("p", { class: "empty of-line" }, t("review.empty"));
  const nodes = [...recording.numbers.keys()].filter((node) => recording.state.steps[node]?.runs.length || recording.state.steps[node]?.state === "skipped");
  const errors = living(recording).filter((error) => error.at);
  const line = (node) => {
    const { runs } = recording.state.steps[node];
    return {
      place: recording.numbers.get(node),
      text: recording.text(node),
      said: runs.map((run) => `${clock(recording, run.start ?? run.end)} – ${run.end ? clock(recording, run.end) : t("step.stopped")}`).join(", ") || t("review.skipped"),
      runs: runs.map((run) => [run.start ?? run.end, run.end ?? run.stopped ?? all[1]]),
      holds: runs.flatMap((run) => run.holds ?? []).map((hold) => [hold.start, hold.end ?? all[1]]),
      marks: errors.filter((error) => error.node === node).map(({ at, categories }) => ({ at, title: categories.map(categoryName).join(", ") })),
      when: runs.length ? when(recording, runs[0], node, film) : t("review.skipped"),
    };
  };
  return timeline(nodes.map(line), all, { filmed: Boolean(film.film) });
}
