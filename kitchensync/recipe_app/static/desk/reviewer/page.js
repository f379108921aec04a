// The page that reviews a recording's steps: video, timeline, keyboard shortcuts.

import { h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";
import { opened, sharpen } from "/static/core/load_film.js";
import { begun, failed, say } from "/static/desk/say.js";
import { Lanes } from "/static/desk/reviewer/lanes.js";
import { Marks } from "/static/desk/reviewer/marks.js";
import { keysOf } from "/static/desk/reviewer/keys.js";
import { asked, Questions, questionLanes } from "/static/desk/reviewer/evidence.js";

const LOOP_S = 3, USUAL_S = 20;
const TOUCHED = [["Space", "play"], ["Enter", "right"], ["n", "next"], ["s", "set"], ["a", "begin"], ["z", "undo"], ["d", "missing"], ["Delete", "remove"]];
const root = document.getElementById("reviewer");
const base = `/api/v1/desk/recordings/${root.dataset.recording}`, work = `${base}/${root.dataset.work}`;
const answers = root.dataset.work === "evidence"; // evidence for questions, one lane each
const rules = root.dataset.work === "ruling"; // rulings on other people's marks
const status = h("p", { role: "status", id: "left" });

// Marks of several people, drawn like touches without uncertainty.
function spansOf(marks, choices) {
  const nodes = new Map(marks.map(({ mark, node }) => [mark, node]));
  return Object.entries(choices).filter(([mark]) => nodes.has(mark))
    .flatMap(([mark, { start, end }]) => start.map((first, person) => ({ node: nodes.get(mark), start: first, end: end[person], doubt: 0 })));
}

// An error at each touch of its step; only for people who may see errors.
async function errorsOf({ facts }) {
  if (!("errors" in root.dataset)) return [];
  const { errors } = await ask(`${base}/errors`);
  const text = (error) => error.categories.map((number) => t(`category.${number}`)).join(", ") || t("error.no_step");
  return errors.flatMap((error) => facts.touches.filter(({ node }) => node === error.node).map(({ start, end }) => ({ start: start ?? end, end: end ?? start, text: text(error) })));
}

function open({ video, front, facts, film }, said) {
  const { marks: given, submitted, choices = {} } = said;
  const canvas = h("canvas", { class: "lanes", tabindex: "0", role: "application", "aria-label": t("steps.timeline"), "aria-describedby": "keys" });
  const now = h("p", { class: "now", id: "now", "aria-live": "polite" });
  if (rules) facts.touches = spansOf(given, choices);
  const sent = (path, words, then) => () => send(path, words, then).catch(failed);
  const showAccept = () => { accept.hidden = !("accepts" in root.dataset); next.hidden = false; };
  const again = () => ask(work).then(({ complete }) => complete && location.reload()); // other people's answers are visible now
  const then = answers ? again : rules ? undefined : showAccept;
  const finish = h("button", { type: "button", class: "primary", id: "submit", hidden: said.complete || said.asked === false, onclick: sent("submit", rules ? "steps.accepted" : "steps.submitted", then) }, t(rules ? "round.accept" : "steps.submit"));
  const accept = h("button", { type: "button", class: "quiet", id: "accept", hidden: true, onclick: sent("accept", "steps.accepted") }, t("steps.accept"));
  const next = h("a", { class: "quiet", id: "next", href: `/desk/review/next?after=${root.dataset.recording}`, hidden: true }, t("work.next"));
  const steps = h("select", { id: "step", "aria-label": t(answers ? "judge.question" : "steps.step") }, facts.steps.map(({ node, label }) => h("option", { value: String(node) }, label)));
  const sharp = h("button", { type: "button", class: "quiet", id: "sharp", onclick: () => sharpen(base, video, sharpening).then(() => { sharp.remove(); sharpening.remove(); }).catch(failed) }, t("steps.sharp"));
  const sharpening = h("span", { role: "status" });
  const place = h("div", { hidden: !answers }), touches = h("p", { class: "inline", id: "touches" });
  const keys = h("details", { open: true }, h("summary", {}, t("steps.keys")), h("p", { id: "keys" }, [t("steps.keys.all"), rules && t("round.keys"), answers && t("evidence.keys")].filter(Boolean).join(" · ")));
  root.replaceChildren(h("div", { class: "films" }, [video, front].filter(Boolean)), status, now, canvas, touches, h("p", { class: "actions start" }, steps, finish, accept, next, sharp, sharpening), place, keys);

  const label = new Map(facts.steps.map((step) => [step.node, step.label]));
  const marks = new Marks(work, given, draw);
  marks.closed = Boolean(said.complete) || said.asked === false;
  const hand = { boundaries: (node) => marks.boundaries.filter(({ mark }) => marks.all.get(mark).node === node), allowed: (one, frame) => page.allowed(one, frame), look, choose, put, go: (frame) => look(null, frame) };
  const lanes = new Lanes(canvas, film, facts, hand, draw);
  const begun = { at: performance.now(), open: marks.open.length };
  const page = { film, marks, lanes, steps, finish, choose, choices, clips: said.clips, chosen: null, warning: "", warnedOf: "" };
  const questions = answers && new Questions(place, work, said, { film, marks, steps });

  function draw() {
    const one = marks.boundaries.find(({ mark, end }) => mark === page.chosen?.mark && end === page.chosen?.end);
    lanes.draw(marks.shown, one);
    const left = marks.open.length, did = begun.open - left;
    const each = did > 0 ? (performance.now() - begun.at) / 1000 / did : USUAL_S;
    const said = left ? t("steps.left", { count: left, minutes: String(Math.ceil(left * each / 60)) }) : t("steps.none_left");
    status.textContent = [page.warning, said, marks.waiting.length ? t("steps.saving") : "", marks.problem].filter(Boolean).join(" · ");
    status.dataset.open = String(left);
    const where = one && { step: label.get(marks.all.get(one.mark).node), frame: one.frame === null ? "?" : String(one.frame) };
    if (!where) now.textContent = t("steps.none_chosen");
    else now.textContent = one.end === "start" ? t("steps.at_start", where) : t("steps.at_end", where);
    finish.disabled = left > 0;
    if (questions) questions.show();
  }

  function choose(one) {
    if (!one) return;
    page.chosen = { mark: one.mark, end: one.end };
    page.warning = "";
    steps.value = String(marks.all.get(one.mark).node);
    if (questions && one.frame === null) questions.watch(Number(steps.value), one.at);
    else film.around(one.at, LOOP_S);
    lanes.isMoved = false;
    lanes.follow(one.at);
    draw();
  }

  function look(one, frame) { // also while a boundary is dragged; one seek at a time
    film.loop = null;
    if (one) film.video.pause();
    if (!one || !film.video.seeking) film.go(frame);
  }

  function put(one, frame) {
    page.chosen = { mark: one.mark, end: one.end };
    steps.value = String(marks.all.get(one.mark).node);
    page.put(frame);
    film.go(frame);
    draw();
  }

  async function send(path, words, then = () => null) {
    await marks.saved();
    await ask(`${work}/${path}`, { body: {}, timeout: 60_000 });
    await then();
    say(t(words));
  }

  const act = keysOf(page);
  touches.replaceChildren(...TOUCHED.filter(([, word]) => !answers || word !== "begin").map(([code, word]) => h("button", { type: "button", class: "quiet", id: `do-${word}`, title: code.toUpperCase(), onclick: () => { page.act(code); draw(); canvas.focus({ preventScroll: true }); } }, t(`steps.do.${word}`))));
  addEventListener("keydown", (event) => act(event) && draw());
  film.onFrame((frame) => { lanes.follow(frame); draw(); });
  new ResizeObserver(draw).observe(canvas);
  addEventListener("beforeunload", (event) => { if (marks.waiting.length) event.preventDefault(); });
  if (submitted && !answers) showAccept();
  root.film = film; // lets tests read the current frame
  draw();
  choose(marks.open[0]);
  canvas.focus({ preventScroll: true }); // browsers do not draw a hidden video
}

root.append(status);
begun()
  .then(async () => {
    if (answers) await asked(root, work, status);
    const shown = await opened(base, status);
    shown.facts.errors = await errorsOf(shown);
    const said = await ask(work);
    if (answers) questionLanes(shown, said);
    open(shown, said);
  })
  .catch((error) => { status.textContent = ""; failed(error); });
