// Stage 3: follow the recipe. Dark, for wet hands at one metre; every touch is kept before the screen changes.

import { touchNow } from "/static/core/clock.js";
import { look } from "/static/core/cooking.js";
import { distance, sizesFor } from "/static/core/distance.js";
import { keepAwake } from "/static/core/awake.js";
import { newId } from "/static/core/ids.js";
import * as outbox from "/static/core/outbox.js";
import { button, h, redraw, show } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { afterTouches } from "/static/core/touch.js";
import { number, t } from "/static/core/words.js";
import { Cover } from "/static/views/cover.js";
import { app, go } from "/static/main.js";
import { Timers } from "/static/views/timers.js";
import { categoryName, open as goTo, sheet, stopDevices } from "/static/views/frame.js";
import { withdraw } from "/static/views/withdraw.js";

const PARAGRAPH_SIZES = [40, 36, 32, 28, 26, 24, 22];
const POLL_MS = 1500;
const STALE_MS = 3000;
const UNDO_MS = 10_000;
const BEGIN = { waiting: "follow.begin", held: "follow.continue" };

export function open(recording) {
  const draw = afterTouches(paint);
  const { display, order } = recording.shown;
  const quiet = display !== "steps"; // nothing on the screen may tell where the cook is
  const root = show("follow");
  root.className = `follow show-${display}`;
  document.body.dataset.cooking = look();
  let health = { health: "unknown", at: -Infinity };
  let saidOnTop = "";
  let undoUntil = 0;
  let awake = true;
  let small = false;
  const { sizes, least } = sizesFor(distance());
  const timers = new Timers(recording, afterTouches(() => !quiet && drawTimers()));

  const lookAgain = afterTouches(drawTop);

  const stateOf = (node) => recording.state.steps[node]?.state ?? "waiting";
  const opened = () => order.filter((node) => stateOf(node) === "open");
  const held = () => order.filter((node) => stateOf(node) === "held");
  const waiting = () => order.filter((node) => stateOf(node) === "waiting");

  async function act(touch, ...actions) {
    await recording.act(touch, ...actions);
    undoUntil = performance.now() + UNDO_MS;
    draw();
  }

  // What a sheet does: once, and it goes when that is kept, not before.
  function once(close, work) {
    let begun = false;
    return (touch) => {
      if (begun) return null;
      begun = true;
      return work(touch).then(close, (error) => {
        begun = false; // it can be touched again
        throw error;
      });
    };
  }

  function done(touch, node) { // the next step begins with the same touch, unless another one is open already
    const actions = [{ op_id: newId(), kind: "done", body: { node } }];
    const next = opened().length <= 1 ? waiting().find((one) => one !== node) : undefined;
    if (next !== undefined) actions.push({ kind: "start", body: { node: next, with_op: actions[0].op_id } });
    return act(touch, ...actions);
  }

  function advance(touch) {
    const [current] = opened();
    if (current !== undefined) return done(touch, current);
    const [first] = [...held(), ...waiting()];
    return first === undefined ? null : act(touch, { kind: "start", body: { node: first } });
  }

  function lastDone() { // by time: an order is one thing, what somebody did another
    const ended = (one) => recording.state.steps[one].runs.at(-1)?.end ?? 0;
    return order.filter((one) => stateOf(one) === "done").sort((a, b) => ended(a) - ended(b)).at(-1);
  }

  function undo(touch) {
    if (recording.state.last.length) return recording.undo(touch, recording.state.last).then(draw);
    return null;
  }

  const redo = (touch) => recording.undo(touch, recording.state.redo.slice(-1)).then(draw);

  function logError(touch) { // the error's time is this first touch
    const node = opened()[0] ?? lastDone() ?? order[0];
    sheet(t("follow.error.title"), (close) => [
      !quiet && h("p", { class: "step-text", ...recording.tongue }, recording.text(node)),
      h("div", { class: "grid" }, recording.bundle.categories.map((category) => button(
        [h("span", { class: "name" }, categoryName(category)), h("span", { class: "hint" }, t(`category.${category}.hint`))],
        once(close, () => act(touch, { kind: "error", body: { error_id: newId(), fields: { node, categories: [category] } } })),
        { class: "tile", "data-category": category }))),
      button(t("follow.error.none"), close, { class: "cancel" }),
    ].filter(Boolean), { wide: true });
  }

  function allSteps() {
    sheet(t("follow.steps"), (close) => {
      const list = h("ol", { class: "all-steps" }, order.map((node, place) => {
        const state = stateOf(node);
        const say = (kind) => once(close, (touch) => act(touch, { kind, body: { node } }));
        return h("li", { class: `is-${state}` }, h("span", { class: "place" }, number(place + 1)), h("span", { class: "text", ...recording.tongue }, recording.text(node)),
          state === "open" && button(t("follow.hold"), say("hold"), { class: "row" }),
          state === "open" ? button(t("follow.done"), say("done"), { class: "row tall" }) : button(t(BEGIN[state] ?? "follow.again"), say(state in BEGIN ? "start" : "reopen"), { class: "row" }),
          state === "waiting" && button(t("follow.skip"), say("skip"), { class: "row" }));
      }));
      return [list, h("p", { class: "actions" }, button(t("follow.mark"), once(close, (touch) => act(touch, { kind: "mark", body: { text: t("follow.marked") } })), { class: "cancel" }),
        recording.state.redo.length > 0 && button(t("follow.redo"), once(close, redo), { class: "cancel" }), button(t("back"), close, { class: "cancel" }))];
    }, { wide: true });
  }

  function end() {
    sheet(t("follow.end.title"), (close) => [h("p", { class: "actions tall" }, button(t("follow.end.no"), close, { class: "cancel" }),
      button(t("follow.end.yes"), async (touch) => {
        close();
        if (recording.state.phase === "follow") await recording.act(touch, { kind: "end" });
        await stopDevices(recording);
        await goTo(recording, "review");
      }, { class: "done" })), h("p", { class: "actions" }, button(t("withdraw"), () => { close(); withdraw(recording); }, { class: "small" }))]);
  }

  function pause() {
    const [current] = opened();
    sheet(t("pause.title"), (close) => h("div", { class: "grid two-tiles" },
      current !== undefined && button([h("span", { class: "name" }, t("pause.step")), h("span", { class: "hint", ...recording.tongue }, quiet ? "" : recording.text(current))], once(close, (touch) => act(touch, { kind: "hold", body: { node: current } })), { class: "cancel whole" }),
      button([h("span", { class: "name" }, t("pause.privacy")), h("span", { class: "hint" }, t(recording.bundle.pause === "drop" ? "pause.privacy.drop" : "pause.privacy.hint"))], once(close, (touch) => act(touch, { kind: "pause" })), { class: "cancel" }),
      button([h("span", { class: "name" }, t("pause.wipe")), h("span", { class: "hint" }, t("pause.wipe.hint"))], () => { close(); cover.lock(); }, { class: "cancel" }),
      button(t("back"), close, { class: "cancel" })));
  }

  const top = h("header", { class: "top" });
  const strip = h("div", { class: "strips", role: "status" });
  const main = h("main", { class: "steps" });
  const foot = h("footer", { class: "buttons" });
  const cover = new Cover(recording, (touch) => act(touch, { kind: "resume" }));
  root.replaceChildren(top, strip, main, foot, cover.element);

  function paint() {
    drawTop();
    if (display === "paragraph") drawParagraph();
    else if (display === "hidden") drawHidden();
    else drawSteps();
    fit();
    cover.draw();
  }

  function drawTop() {
    const known = performance.now() - health.at < STALE_MS ? health.health : "unknown";
    const finished = order.filter((node) => ["done", "skipped"].includes(stateOf(node))).length;
    drawStrip();
    const said = [known, health.reasons?.[0], quiet || finished].join("|");
    if (said === saidOnTop) return; // asked twice a second: what is under a finger stays where it is
    saidOnTop = said;
    redraw(top,
      h("p", { class: "state" }, h("span", { class: `dot ${known}` }), h("span", {}, t(`health.${known}`), known === "problem" && health.reasons.length ? `: ${health.reasons[0]}` : "")),
      h("p", { class: "progress" }, quiet ? "" : t("follow.progress", { done: finished, all: order.length })),
      h("p", { class: "actions" }, !quiet && button(t("follow.steps"), allSteps, { class: "small", "data-key": "steps" }), button(t("pause"), pause, { class: "small", "data-key": "pause" }), button(t("follow.end"), end, { class: "small", "data-key": "end" })));
  }

  function drawStrip() {
    const lines = [!awake && t("follow.dark"), recording.shown.strategy !== "normal" && t("not_eaten"), small && !quiet && t("follow.small")].filter(Boolean);
    if (strip.dataset.said === lines.join("|")) return;
    strip.dataset.said = lines.join("|");
    strip.replaceChildren(...lines.map((line) => h("p", { class: "strip" }, line)));
  }

  function drawSteps() {
    const now = opened();
    const next = waiting();
    const paused = held();
    const shown = now.length ? now : [...paused, ...next].slice(0, 1);
    const finished = !shown.length;
    redraw(main,
      finished && h("h1", { class: "current" }, t("follow.finished")),
      h("div", { class: now.length > 1 ? "opened several" : "opened" }, shown.map((node) => openStep(node, now))),
      h("div", { class: "timers" }),
      h("div", { class: "chips" }, paused.filter((node) => now.length || !shown.includes(node)).map(heldChip)),
      h("ol", { class: "next", "aria-label": t("follow.next") }, next.filter((node) => !shown.includes(node)).slice(0, 2).map((node) =>
        h("li", {}, h("span", { class: "place" }, number(order.indexOf(node) + 1)), h("span", { class: "what", ...recording.tongue }, recording.text(node))))));
    drawTimers();
    const [one] = now;
    const also = now.length > 0 && next[0];
    redraw(foot, undoButton(),
      button(t("follow.error"), logError, { class: "error", "data-key": "error" }),
      also !== false && also !== undefined && button([h("span", {}, t("follow.also")), h("span", { class: "what", ...recording.tongue }, recording.text(also))], (touch) => act(touch, { kind: "start", body: { node: also } }), { class: "also", "data-key": "also" }),
      finished ? button(t("follow.review"), end, { class: "done", "data-key": "done" })
        : now.length > 1 ? null
          : button(now.length ? t("follow.done") : t(paused.length ? "follow.continue" : "follow.begin"), (touch) => (now.length ? done(touch, one) : advance(touch)), { class: "done", "data-key": "done" }));
  }

  const heldChip = (node) => button(`${t("follow.step", { place: order.indexOf(node) + 1 })}, ${t("step.held")}: ${t("follow.continue")}`,
    (touch) => act(touch, { kind: "start", body: { node } }), { class: "timer-chip held", "data-key": `held-${node}`, "aria-label": `${t("follow.continue")}: ${recording.text(node)}` });

  function openStep(node, now) {
    return h("article", { class: "open-step" },
      h("div", {}, h("p", { class: "label" }, t("follow.step", { place: order.indexOf(node) + 1 }), stateOf(node) === "held" && ` · ${t("step.held")}`),
        h(now[0] === node || !now.length ? "h1" : "h2", { class: "current", ...recording.tongue }, recording.text(node)), timers.chips(node)),
      now.length > 1 && button(t("follow.done"), (touch) => done(touch, node), { class: "done", "data-key": `done-${node}`, "aria-label": `${t("follow.done")}: ${recording.text(node)}` }));
  }

  function undoButton() {
    const fresh = performance.now() < undoUntil;
    return button(t("follow.undo"), undo, { class: fresh ? "undo fresh" : "undo", disabled: !quiet && !recording.state.last.length, "data-key": "undo" });
  }

  const quietButtons = () => [
    button("↺", undo, { class: "undo", "aria-label": t("follow.undo"), "data-key": "undo" }),
    button("!", logError, { class: "error", "aria-label": t("follow.error"), "data-key": "error" }),
    button("→", advance, { class: "done", "aria-label": t("follow.advance"), "data-key": "done" }),
  ];

  function drawParagraph() { // the same at every step: no highlight, no number, nothing that moves
    if (main.childElementCount) return;
    main.replaceChildren(h("p", { class: "paragraph", ...recording.tongue }, `${order.map((node) => recording.text(node).replace(/[.\s]+$/, "")).join(". ")}.`));
    foot.replaceChildren(...quietButtons());
  }

  function drawHidden() {
    if (main.childElementCount) return;
    main.replaceChildren(h("p", { class: "card-only" }, recording.shown.title));
    foot.replaceChildren(...quietButtons());
  }

  function drawTimers() {
    main.querySelector(".timers")?.replaceChildren(...timers.running());
  }

  let fitted = "";
  function fit() { // the largest size at which nothing is cut off
    const key = `${main.textContent} ${innerWidth} ${innerHeight} ${strip.childElementCount}`;
    if (fitted === key) return;
    fitted = key;
    let chosen;
    for (chosen of display === "paragraph" ? PARAGRAPH_SIZES : sizes) {
      document.documentElement.style.setProperty("--size", `${chosen}px`);
      if (main.scrollHeight <= main.clientHeight) break;
    }
    if (small !== chosen < least && !quiet) { // the strip takes room itself, so it is drawn before the last word
      small = chosen < least;
      drawStrip();
    }
  }

  async function poll() {
    try {
      const answer = await ask(`/api/v1/health/${recording.id}`, { timeout: 2500 });
      health = { ...answer, at: performance.now() };
      if (await recording.refresh()) draw();
      if (recording.state.holder !== app.me?.device?.id) await go(location.pathname, { replace: true }); // another tablet took over
    } catch {
      // without an answer the state is unknown by itself, 3 s after the last one
    }
    lookAgain();
  }

  const onKey = (event) => { // a foot pedal is a keyboard
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
  const ticking = [setInterval(poll, POLL_MS), setInterval(() => { timers.tick(); lookAgain(); }, 500)];
  addEventListener("keydown", onKey);
  addEventListener("resize", fit);
  document.fonts?.ready.then(() => { fitted = ""; fit(); });
  poll();
  paint();
  return () => {
    ticking.forEach(clearInterval);
    removeEventListener("keydown", onKey);
    removeEventListener("resize", fit);
    letSleep();
    quietly();
    root.className = "";
    delete document.body.dataset.cooking;
  };
}
