// The page of a recording's steps: film, timeline, and a key for everything.

import { h } from "/static/core/page.js";
import { ask, setCsrf } from "/static/core/server.js";
import { loadWords, t } from "/static/core/words.js";
import { Film, follow } from "/static/desk/reviewer/film.js";
import { opened } from "/static/desk/reviewer/load.js";
import { Lanes } from "/static/desk/reviewer/lanes.js";
import { Marks } from "/static/desk/reviewer/marks.js";
import { keysOf } from "/static/desk/reviewer/keys.js";

const LOOP_S = 3, USUAL_S = 20;
const root = document.getElementById("reviewer");
const base = `/api/v1/desk/recordings/${root.dataset.recording}`, work = `${base}/${root.dataset.work}`;
const rules = root.dataset.work === "ruling"; // on what others marked
const status = h("p", { role: "status", id: "left" });

function say(text) {
  const message = document.getElementById("message");
  message.textContent = text;
  message.hidden = !text;
}

// What each of several people marked, drawn as touches are that leave no doubt.
function spansOf(marks, choices) {
  const nodes = new Map(marks.map(({ mark, node }) => [mark, node]));
  return Object.entries(choices).filter(([mark]) => nodes.has(mark))
    .flatMap(([mark, { start, end }]) => start.map((first, person) => ({ node: nodes.get(mark), start: first, end: end[person], doubt: 0 })));
}

function open({ video, front, facts }, { marks: given, submitted, choices = {} }) {
  const canvas = h("canvas", { class: "lanes", tabindex: "0", role: "application", "aria-label": t("steps.timeline"), "aria-describedby": "keys" });
  const now = h("p", { class: "now", id: "now", "aria-live": "polite" });
  if (rules) facts.touches = spansOf(given, choices);
  const asked = (path, said, then) => () => send(path, said, then).catch((error) => say(error.message));
  const showAccept = () => { accept.hidden = !("accepts" in root.dataset); };
  const finish = h("button", { type: "button", class: "primary", id: "submit", onclick: asked("submit", rules ? "steps.accepted" : "steps.submitted", rules ? undefined : showAccept) }, t(rules ? "round.accept" : "steps.submit"));
  const accept = h("button", { type: "button", class: "quiet", id: "accept", hidden: true, onclick: asked("accept", "steps.accepted") }, t("steps.accept"));
  const steps = h("select", { id: "step", "aria-label": t("steps.step") }, facts.steps.map(({ node, label }) => h("option", { value: String(node) }, label)));
  const keys = h("details", { open: true }, h("summary", {}, t("steps.keys")), h("p", { id: "keys" }, [t("steps.keys.all"), rules && t("round.keys")].filter(Boolean).join(" · ")));
  root.replaceChildren(h("div", { class: "films" }, [video, front].filter(Boolean)), status, now, canvas, h("p", { class: "actions start" }, steps, finish, accept), keys);

  const film = new Film(video, facts.fps, facts.frames);
  if (front) follow(front, video, film.fps);
  const label = new Map(facts.steps.map((step) => [step.node, step.label]));
  const marks = new Marks(work, given, draw);
  const lanes = new Lanes(canvas, film, facts, clicked, draw);
  const begun = { at: performance.now(), open: marks.open.length };
  const page = { film, marks, lanes, steps, choose, draw, choices, chosen: null };

  function draw() {
    const one = marks.boundaries.find(({ mark, end }) => mark === page.chosen?.mark && end === page.chosen?.end);
    lanes.draw(marks.shown, one);
    const left = marks.open.length, did = begun.open - left;
    const each = did > 0 ? (performance.now() - begun.at) / 1000 / did : USUAL_S;
    const said = left ? t("steps.left", { count: left, minutes: String(Math.ceil(left * each / 60)) }) : t("steps.none_left");
    status.textContent = [said, marks.waiting.length ? t("steps.saving") : "", marks.problem].filter(Boolean).join(" · ");
    status.dataset.open = String(left);
    const where = one && { step: label.get(marks.all.get(one.mark).node), frame: one.frame === null ? "?" : String(one.frame) };
    if (!where) now.textContent = t("steps.none_chosen");
    else now.textContent = one.end === "start" ? t("steps.at_start", where) : t("steps.at_end", where);
    finish.disabled = left > 0;
  }

  function choose(one) {
    if (!one) return;
    page.chosen = { mark: one.mark, end: one.end };
    steps.value = String(marks.all.get(one.mark).node);
    film.around(one.at, LOOP_S);
    lanes.follow(one.at);
    draw();
  }

  function clicked(frame, node, near) {
    const one = marks.boundaries.find(({ mark, at }) => marks.all.get(mark).node === node && near(at));
    if (one) return choose(one);
    film.loop = null;
    return film.go(frame);
  }

  async function send(path, said, then = () => null) {
    await marks.saved();
    await ask(`${work}/${path}`, { body: {}, timeout: 60_000 });
    then();
    say(t(said));
  }

  const act = keysOf(page);
  addEventListener("keydown", (event) => act(event) && draw());
  film.onFrame((frame) => { lanes.follow(frame); draw(); });
  new ResizeObserver(draw).observe(canvas);
  addEventListener("beforeunload", (event) => { if (marks.waiting.length) event.preventDefault(); });
  if (submitted) showAccept();
  root.film = film; // for who looks from outside which picture is shown
  draw();
  canvas.focus({ preventScroll: true }); // a film out of sight is not drawn
}

setCsrf(document.querySelector('meta[name="csrf"]')?.content ?? "");
root.append(status);
loadWords().catch(() => null)
  .then(async () => open(await opened(base, status), await ask(work)))
  .catch((error) => { status.textContent = ""; say(error.message); });
