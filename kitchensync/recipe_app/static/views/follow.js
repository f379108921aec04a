// Stage 3: follow the recipe. Dark, for wet hands at one metre; every touch is saved before the screen changes.

import { touchNow } from "/static/core/clock.js";
import { look } from "/static/core/cooking.js";
import { distance, sizesFor } from "/static/core/distance.js";
import { keepAwake } from "/static/core/awake.js";
import { newId } from "/static/core/ids.js";
import * as outbox from "/static/core/outbox.js";
import { recoveriesAt } from "/static/core/plan.js";
import { button, h, redraw, show } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { afterTouches } from "/static/core/touch.js";
import { number, t } from "/static/core/words.js";
import { Cover } from "/static/views/cover.js";
import { app, go } from "/static/main.js";
import { Alarm } from "/static/views/alarm.js";
import { myData } from "/static/views/my_data.js";
import { Timers } from "/static/views/timers.js";
import { categoryName, open as goTo, sheet, stopDevices } from "/static/views/frame.js";

const PARAGRAPH_SIZES = [40, 36, 32, 28, 26, 24, 22];
const POLL_MS = 1000; // alarms must be shown within two seconds
const STALE_MS = 3000;
const UNDO_MS = 10_000;
const MINUTES = [1, 2, 3, 5, 10, 15, 20, 30];
const MOST_SHOWN = 4000; // longest text of a step in the log, as in operations/kinds.py
const SAID = { done: "step.done", start: "step.open", reopen: "step.open", hold: "step.held", skip: "step.skipped", recovered: "follow.recovery", mark: "follow.marked" };
const BEGIN = { waiting: "follow.begin", held: "follow.continue", stopped: "follow.continue" };

export function open(recording) {
  const draw = afterTouches(paint);
  const { display } = recording.shown;
  const quiet = display !== "steps"; // the screen must not show the cook's progress
  const root = show("follow");
  root.className = `follow show-${display}`;
  document.body.dataset.cooking = look();
  let health = { health: "unknown", at: -Infinity };
  let saidOnTop = "";
  let undoUntil = 0;
  let undone = ""; // the last undone action, shown for a short time
  let fading;
  let awake = true;
  let small = false;
  const { sizes, least } = sizesFor(distance());
  let glass = recording.plan; // the shown plan; in quiet displays it never changes
  const words = (node) => glass.steps[node]?.words ?? "";
  const tongueOf = (node) => recording.tongueOf(glass.steps[node]);
  const at = (node, more) => ({ node, ...more, shown: display === "hidden" ? "" : words(node).slice(0, MOST_SHOWN) });
  const placeOf = (node) => glass.order.indexOf(node) + 1; // 0: omitted
  const timers = new Timers(recording, afterTouches(() => !quiet && drawTimers()), { words: (node) => glass.steps[node], at, placeOf });

  const lookAgain = afterTouches(drawTop);

  const stateOf = (node) => recording.state.steps[node]?.state ?? "waiting";
  const all = () => [...glass.order, ...glass.left]; // omitted steps can be done anyway
  const opened = () => all().filter((node) => stateOf(node) === "open");
  const held = () => all().filter((node) => ["held", "stopped"].includes(stateOf(node)));
  const begun = () => all().filter((node) => ["open", "held", "stopped"].includes(stateOf(node)));
  const waiting = () => glass.order.filter((node) => stateOf(node) === "waiting");

  const recoveries = () => all().filter((node) => stateOf(node) === "done").flatMap((node) => recoveriesAt(recording.state, node));

  async function act(touch, ...actions) {
    await recording.act(touch, ...actions);
    undone = "";
    refresh();
  }

  function refresh() {
    undoUntil = performance.now() + UNDO_MS;
    clearTimeout(fading);
    fading = setTimeout(draw, UNDO_MS);
    draw();
  }

  const lastOp = () => recording.known.find(({ op_id }) => op_id === recording.state.last[0]); // the operation that Undo takes back

  function lastSaid() { // the same as text
    const op = lastOp();
    const { node, categories } = op?.body.fields ?? op?.body ?? {};
    const what = op?.kind === "error" ? categories.map(categoryName).join(", ") : SAID[op?.kind] && t(SAID[op.kind]);
    return what ? [what, !quiet && node !== undefined && named(node)].filter(Boolean).join(" · ") : "";
  }

  const isFresh = () => performance.now() < undoUntil;
  const noted = () => isFresh() && (undone ? t("follow.undone", { what: undone }) : lastOp()?.kind === "error" && t("follow.noted", { what: lastSaid() }));

  // Runs the action of a sheet once and closes it after the action is saved.
  function once(close, work) {
    let begun = false;
    return (touch) => {
      if (begun) return null;
      begun = true;
      return work(touch).then(close, (error) => {
        begun = false; // allow another touch
        throw error;
      });
    };
  }

  function done(touch, node) { // the next step starts with the same touch, unless another one is open
    const actions = [{ op_id: newId(), kind: "done", body: at(node) }];
    const isLast = opened().length <= 1 && !recoveriesAt(recording.state, node).length;
    return act(touch, ...actions, ...(isLast ? nextStart(actions[0].op_id, node) : []));
  }

  function nextStart(with_op, but) {
    const next = waiting().find((node) => node !== but);
    return next === undefined ? [] : [{ kind: "start", body: at(next, { with_op }) }];
  }

  function recover(touch, error, left_out = false) { // a planned recovery is completed like a step
    const op_id = newId();
    const isLast = !opened().length && recoveries().length === 1;
    return act(touch, { op_id, kind: "recovered", body: { error_id: error.error_id, left_out, shown: display === "hidden" ? "" : error.recovery } }, ...(isLast ? nextStart(op_id) : []));
  }

  function advance(touch) {
    const [current] = opened();
    if (current !== undefined) return done(touch, current);
    const [recovery] = recoveries();
    if (recovery) return recover(touch, recovery);
    const [first] = [...held(), ...waiting()];
    return first === undefined ? null : act(touch, { kind: "start", body: at(first) });
  }

  function lastDone() { // by time, since people may not follow the order
    const ended = (one) => recording.state.steps[one].runs.at(-1)?.end ?? 0;
    return all().filter((one) => stateOf(one) === "done").sort((a, b) => ended(a) - ended(b)).at(-1);
  }

  function undo(touch) {
    if (!recording.state.last.length) return null;
    const what = lastSaid();
    return recording.undo(touch, recording.state.last).then(() => {
      undone = what;
      refresh();
    });
  }

  const redo = (touch) => recording.undo(touch, recording.state.redo.slice(-1)).then(draw);

  function logError(touch) { // this first touch is the error's time
    const steps = [...opened(), lastDone()].filter((one) => one !== undefined);
    let node = opened().length > 1 && !quiet ? null : steps[0] ?? all()[0]; // with two open steps it is unknown which one
    const which = h("div", { class: "which", role: "group", "aria-label": t("follow.error.step") });
    const choose = (one) => () => { node = one; drawWhich(); drawTiles(); };
    const drawWhich = () => redraw(which, steps.map((step) => button([h("span", { class: "place" }, named(step)), h("span", { class: "what", ...tongueOf(step) }, words(step))],
      choose(step), { class: "chip", "aria-pressed": String(step === node), "data-key": `at-${step}` })));
    const tiles = h("div", { class: "grid" });
    let shut;
    const keep = (category) => once(() => shut(), () => act(touch, { kind: "error", body: { error_id: newId(), fields: { node, categories: [category] }, shown: at(node).shown } }));
    const drawTiles = () => redraw(tiles, recording.bundle.categories.map((category) => button(
      [h("span", { class: "name" }, categoryName(category)), h("span", { class: "hint" }, t(`category.${category}.hint`))],
      keep(category), { class: `tile c${category}`, "data-category": category, "data-key": `c${category}`, disabled: node === null })));
    drawWhich();
    drawTiles();
    shut = sheet(t("follow.error.title"), (close) => [
      !quiet && (steps.length > 1 ? which : h("p", { class: "step-text", ...tongueOf(node) }, words(node))),
      tiles,
      button(t("follow.error.none"), close, { class: "cancel" }),
    ].filter(Boolean), { wide: true });
  }

  function allSteps() {
    sheet(t("follow.steps"), (close) => {
      const list = h("ol", { class: "all-steps" }, all().map((node) => {
        const state = stateOf(node);
        const left = !placeOf(node);
        const say = (kind) => once(close, (touch) => act(touch, { kind, body: at(node) }));
        return h("li", { class: `is-${left && state === "waiting" ? "left" : state}`, "data-node": node }, h("span", { class: "place" }, left ? "–" : number(placeOf(node))),
          h("span", { class: "text" }, h("span", { class: "words", ...tongueOf(node) }, words(node)), inTongue(node), left && h("span", { class: "hint" }, t("plan.left_out"))),
          state === "open" && button(t("timer.add"), () => { close(); addTimer(node); }, { class: "row" }),
          state === "open" && button(t("follow.hold"), say("hold"), { class: "row" }),
          state === "open" ? button(t("follow.done"), say("done"), { class: "row tall" }) : button(t(BEGIN[state] ?? "follow.again"), say(state in BEGIN ? "start" : "reopen"), { class: "row" }),
          state === "waiting" && !left && button(t("follow.skip"), say("skip"), { class: "row" }));
      }));
      return [list, h("p", { class: "actions" }, button(t("follow.mark"), once(close, (touch) => act(touch, { kind: "mark", body: { text: t("follow.marked") } })), { class: "cancel" }),
        recording.state.redo.length > 0 && button(t("follow.redo"), once(close, redo), { class: "cancel" }), button(t("back"), close, { class: "cancel" }))];
    }, { wide: true });
  }

  function addTimer(node) { // for a step without a duration in its text
    sheet(t("timer.add.title"), (close) => [h("div", { class: "grid" }, MINUTES.map((count) => button(t("timer.minutes", { count }),
      once(close, (touch) => timers.start(node, count * 60, touch)), { class: "tile" }))), button(t("back"), close, { class: "cancel" })], { wide: true });
  }

  function end() {
    sheet(t("follow.end.title"), (close) => [h("p", { class: "actions tall" }, button(t("follow.end.no"), close, { class: "cancel" }),
      button(t("follow.end.yes"), (touch) => {
        close();
        return waiting().length || begun().length ? askRest() : leave(touch);
      }, { class: "done" })), h("p", { class: "actions" }, myData(recording, "small"))]);
  }

  // Asks about the steps that are not done, because this cannot be known later.
  function askRest() {
    const left = waiting();
    const finished = new Map(begun().map((node) => [node, null]));
    sheet(left.length ? t("follow.rest.title", { count: left.length }) : t("follow.rest.begun"), (close) => {
      const body = h("div", { class: "rest" });
      const go = (rest) => async (touch) => {
        close();
        const done = [...finished].filter(([, yes]) => yes).map(([node]) => ({ kind: "done", body: at(node) }));
        const out = rest === "left_out" ? left.map((node) => ({ kind: "skip", body: at(node) })) : [];
        await leave(touch, { actions: [...done, ...out], rest });
      };
      const chip = (node, yes) => button(t(yes ? "follow.rest.done" : "follow.rest.stopped"), () => { finished.set(node, yes); draw(); },
        { class: "chip", "aria-pressed": String(finished.get(node) === yes), "data-key": `${yes}-${node}` });
      const ending = (label, rest) => button(t(label), go(rest), { class: "done", disabled: [...finished.values()].includes(null), "data-key": label });
      const draw = () => redraw(body,
        [...finished.keys()].map((node) => h("div", { class: "which", role: "group", "aria-label": words(node) }, h("p", tongueOf(node), words(node)), chip(node, true), chip(node, false))),
        h("p", { class: "actions tall" }, button(t("follow.end.no"), close, { class: "cancel", "data-key": "no" }),
          left.length ? [ending("follow.rest.left_out", "left_out"), ending("follow.rest.stopped_early", "stopped_early")] : ending("follow.review", undefined)));
      draw();
      return body;
    }, { wide: true });
  }

  async function leave(touch, { actions = [], rest } = {}) {
    if (recording.state.phase === "follow" || begun().length || rest) await recording.act(touch, ...actions, { kind: "end", body: rest ? { rest } : {} });
    await stopDevices(recording);
    await goTo(recording, "review");
  }

  function pause() {
    const [current] = opened();
    sheet(t("pause.title"), (close) => h("div", { class: "grid two-tiles" },
      current !== undefined && button([h("span", { class: "name" }, t("pause.step")), h("span", { class: "hint", ...tongueOf(current) }, quiet ? "" : words(current))], once(close, (touch) => act(touch, { kind: "hold", body: at(current) })), { class: "cancel whole" }),
      button([h("span", { class: "name" }, t("pause.privacy")), h("span", { class: "hint" }, t(recording.bundle.pause === "drop" ? "pause.privacy.drop" : "pause.privacy.hint"))], once(close, (touch) => act(touch, { kind: "pause" })), { class: "cancel" }),
      button([h("span", { class: "name" }, t("pause.wipe")), h("span", { class: "hint" }, t("pause.wipe.hint"))], () => { close(); cover.lock(); }, { class: "cancel" }),
      button(t("back"), close, { class: "cancel" })));
  }

  const top = h("header", { class: "top" });
  const strip = h("div", { class: "strips", role: "status" });
  const main = h("main", { class: "steps" });
  const foot = h("footer", { class: "buttons" });
  const alarm = new Alarm();
  const cover = new Cover(recording, (touch) => act(touch, { kind: "resume" }));
  root.replaceChildren(top, strip, main, foot, cover.element);

  function paint() {
    if (!quiet) glass = recording.plan;
    drawTop();
    if (display === "paragraph") drawParagraph();
    else if (display === "hidden") drawHidden();
    else drawSteps();
    fit();
    cover.draw();
  }

  function drawTop() {
    const known = performance.now() - health.at < STALE_MS ? health.health : "unknown";
    const finished = glass.order.filter((node) => ["done", "skipped"].includes(stateOf(node))).length;
    drawStrip();
    const minutes = !quiet && known !== "unknown" && typeof health.seconds === "number" && Math.floor(health.seconds / 60);
    const said = [known, minutes, quiet || finished].join("|");
    if (said === saidOnTop) return; // called twice a second: do not redraw under a finger
    saidOnTop = said;
    redraw(top,
      h("p", { class: "state" }, h("span", { class: `dot ${known}` }), h("span", {}, t(`health.${known}`), minutes !== false && ` · ${t("room.minutes", { minutes })}`)),
      h("p", { class: "progress" }, quiet ? "" : t("follow.progress", { done: finished, all: glass.order.length })),
      h("p", { class: "actions" }, !quiet && button(t("follow.steps"), allSteps, { class: "small", "data-key": "steps" }), button(t("pause"), pause, { class: "small", "data-key": "pause" }), button(t("follow.end"), end, { class: "small", "data-key": "end" })));
  }

  function drawStrip() {
    const lines = [!awake && t("follow.dark"), recording.shown.strategy !== "normal" && t("not_eaten"), small && !quiet && t("follow.small"), quiet && undone && noted()].filter(Boolean);
    if (strip.dataset.said === lines.join("|")) return;
    strip.dataset.said = lines.join("|");
    strip.replaceChildren(...lines.map((line) => h("p", { class: "strip" }, line)));
  }

  function drawSteps() {
    const now = opened();
    const next = waiting();
    const paused = held();
    const repairs = recoveries();
    const shown = now.length ? now : repairs.length ? [] : [...paused, ...next].slice(0, 1);
    const finished = !shown.length && !repairs.length;
    const several = now.length + repairs.length > 1;
    redraw(main,
      finished && h("article", { class: "open-step" }, h("h1", { class: "current" }, t("follow.finished")), recording.shown.pictures?.result && h("img", { class: "step-picture", src: recording.shown.pictures.result, alt: t("follow.picture") })),
      h("div", { class: several ? "opened several" : "opened" }, shown.map((node) => openStep(node, now, several)), repairs.map((error) => recoveryStep(error, several))),
      h("div", { class: "timers" }),
      h("div", { class: "chips" }, paused.filter((node) => now.length || repairs.length || !shown.includes(node)).map(heldChip)),
      noted() && h("p", { class: "noted", role: "status" }, noted()),
      h("ol", { class: "next", "aria-label": t("follow.next") }, next.filter((node) => !shown.includes(node)).slice(0, 2).map((node) =>
        h("li", {}, h("span", { class: "place" }, number(placeOf(node))), h("span", { class: "what", ...tongueOf(node) }, words(node))))));
    drawTimers();
    const [one] = now;
    const also = now.length > 0 && next[0];
    redraw(foot, undoButton(),
      button(t("follow.error"), logError, { class: "error", "data-key": "error" }),
      also !== false && also !== undefined && button([h("span", {}, t("follow.also")), h("span", { class: "what", ...tongueOf(also) }, words(also))], (touch) => act(touch, { kind: "start", body: at(also) }), { class: "also", "data-key": "also" }),
      finished ? button(t("follow.review"), end, { class: "done", "data-key": "done" })
        : several ? h("span", { class: "kept-place" }) // keeps the place of Done free
          : button(now.length || repairs.length ? t("follow.done") : t(paused.length ? "follow.continue" : "follow.begin"), (touch) => (now.length ? done(touch, one) : advance(touch)), { class: "done", "data-key": "done" }));
  }

  const heldChip = (node) => button(`${named(node)}, ${t("step.held")}: ${t("follow.continue")}`,
    (touch) => act(touch, { kind: "start", body: at(node) }), { class: "timer-chip held", "data-key": `held-${node}`, title: words(node) });
  const named = (node) => (placeOf(node) ? t("follow.step", { place: placeOf(node) }) : t("plan.left_out"));
  const inTongue = (node) => recording.foreign(glass.steps[node]) && h("span", { class: "hint in-tongue" }, t("plan.tongue", { language: recording.foreign(glass.steps[node]) }));

  function openStep(node, now, several) {
    const seen = !several && recording.shown.pictures?.[node];
    return h("article", { class: "open-step" },
      h("div", {}, h("p", { class: "label" }, placeOf(node) ? t("follow.step_of", { place: placeOf(node), all: glass.order.length }) : named(node), ["held", "stopped"].includes(stateOf(node)) && ` · ${t(`step.${stateOf(node)}`)}`, recording.foreign(glass.steps[node]) && " · ", inTongue(node)),
        h(now[0] === node || !now.length ? "h1" : "h2", { class: "current", "data-node": node, ...tongueOf(node) }, words(node)), timers.chips(node)),
      seen && h("img", { class: "step-picture", src: seen, alt: t("follow.picture") }),
      several && button(t("follow.done"), (touch) => done(touch, node), { class: "done", "data-key": `done-${node}`, title: words(node) }));
  }

  function recoveryStep(error, several) { // a planned recovery is shown once the step of its error is done
    return h("article", { class: "open-step", "data-recovery": error.error_id },
      h("div", {}, h("p", { class: "label" }, `${t("follow.recovery")} · ${named(error.node)}`), h("h1", { class: "current", ...recording.tongue }, error.recovery),
        button(t("follow.skip"), (touch) => recover(touch, error, true), { class: "row", "data-key": `no-recovery-${error.error_id}` })),
      several && button(t("follow.done"), (touch) => recover(touch, error), { class: "done", "data-key": `recovered-${error.error_id}`, title: error.recovery }));
  }

  function undoButton() {
    const fresh = isFresh() && !undone, said = lastSaid();
    return button([h("span", {}, t("follow.undo")), said && " ", said && h("span", { class: "what" }, said)].filter(Boolean), undo, { class: fresh ? "undo fresh" : "undo", disabled: !quiet && !recording.state.last.length, "data-key": "undo" });
  }

  const quietButtons = () => [
    button("↺", undo, { class: "undo", "aria-label": t("follow.undo"), "data-key": "undo" }),
    button("!", logError, { class: "error", "aria-label": t("follow.error"), "data-key": "error" }),
    button("→", advance, { class: "done", "aria-label": t("follow.advance"), "data-key": "done" }),
  ];

  function drawParagraph() { // looks the same at every step: no highlight, no number, nothing moves
    if (main.childElementCount) return;
    const sentence = (node, text) => h("span", { "data-node": node, lang: tongueOf(node).lang }, `${text.replace(/[.\s]+$/, "")}.`);
    const said = glass.order.flatMap((node) => [words(node), ...recoveriesAt(recording.state, node).map(({ recovery }) => recovery)].map((text) => sentence(node, text)));
    const foreign = [...new Set(glass.order.map((node) => recording.foreign(glass.steps[node])).filter(Boolean))];
    main.replaceChildren(h("p", { class: "paragraph", ...recording.tongue }, said.flatMap((one) => [one, " "])),
      ...foreign.map((language) => h("p", { class: "hint in-tongue" }, t("plan.tongue", { language }))));
    foot.replaceChildren(...quietButtons());
  }

  function drawHidden() {
    if (main.childElementCount) return;
    main.replaceChildren(h("p", { class: "card-only" }, recording.shown.title));
    foot.replaceChildren(...quietButtons());
  }

  function drawTimers() {
    main.querySelector(".timers")?.replaceChildren(...timers.running());
    root.classList.toggle("time-up", !quiet && timers.isUp); // silent, but visible across the kitchen
  }

  let fitted = "";
  function fit() { // the largest text size at which nothing is cut off
    const key = `${main.textContent} ${innerWidth} ${innerHeight} ${strip.childElementCount} ${document.documentElement.style.getPropertyValue("--alarm")}`;
    if (fitted === key) return;
    fitted = key;
    let chosen;
    for (chosen of display === "paragraph" ? PARAGRAPH_SIZES : sizes) {
      document.documentElement.style.setProperty("--size", `${chosen}px`);
      if (main.scrollHeight <= main.clientHeight) break;
    }
    if (small !== chosen < least && !quiet) { // the strip takes space itself, so it is drawn before the final size
      small = chosen < least;
      drawStrip();
    }
  }

  async function poll() {
    try {
      const answer = await ask(`/api/v1/health/${recording.id}`, { timeout: 2500 });
      health = { ...answer, at: performance.now() };
      lookAgain();
      alarm.hear(answer);
      if (await recording.refresh()) draw();
      if (recording.state.holder !== app.me?.device?.id) await go(location.pathname, { replace: true }); // another tablet took over
    } catch {
      // without an answer the state becomes unknown 3 s after the last one
    }
    lookAgain();
  }

  const onKey = (event) => { // a foot pedal acts as a keyboard
    if (document.querySelector("dialog[open]") || cover.isUp || event.repeat) return;
    if (["PageDown", "ArrowRight"].includes(event.key)) advance(touchNow());
    else if (event.key === "PageUp") logError(touchNow());
    else return;
    event.preventDefault();
  };

  const letSleep = keepAwake((held) => {
    if (held === awake && recording.state.awake?.held === held) return;
    awake = held;
    recording.act(touchNow(), { kind: "awake", body: { held } });
    drawStrip();
    fit();
  });
  const quietly = outbox.onChange(() => recording.reduceAgain());
  const ticking = [setInterval(poll, POLL_MS), setInterval(() => { timers.tick(); lookAgain(); alarm.place(); fit(); }, 500)];
  addEventListener("keydown", onKey);
  addEventListener("resize", fit);
  document.fonts?.ready.then(() => { fitted = ""; fit(); });
  poll();
  paint();
  return () => {
    ticking.forEach(clearInterval);
    clearTimeout(fading);
    removeEventListener("keydown", onKey);
    removeEventListener("resize", fit);
    alarm.close();
    letSleep();
    quietly();
    root.className = "";
    delete document.body.dataset.cooking;
  };
}
