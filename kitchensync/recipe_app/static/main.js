// The tablet: who we are, which screen, and what is true on every screen (what is unsent, whether we are connected).

import { measure } from "/static/core/clock.js";
import { put, read } from "/static/core/db.js";
import * as outbox from "/static/core/outbox.js";
import { button, h, show } from "/static/core/page.js";
import { Recording } from "/static/core/recording.js";
import { ask, setCsrf, silent, soonOr } from "/static/core/server.js";
import { loadWords, t } from "/static/core/words.js";

const SCREENS = {
  welcome: "pair", pair: "pair", "sign-in": "sign_in", card: "sign_in", choose: "choose", recipes: "recipe",
  prepare: "prepare", gather: "gather", checklist: "checklist", follow: "follow", review: "review", done: "done",
};
const HELD = new Set(["prepare", "gather", "checklist", "follow"]); // what only one tablet at a time may do
const CLOCK_MS = 10_000;
let turns = 0; // of the screens
let asking = 0; // how often we asked who we are
let awaited = 0; // how many wait for that answer
let known = false; // whether it came, or is under way
let outdated = false; // a new version of the shell took over: its screens do not fit what is loaded here
let controlled = Boolean(navigator.serviceWorker?.controller);
export const app = { me: null, leave: null };

export async function go(path, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", path);
  await route();
}

// Without network we are who we were; after a sign-in, a sign-out or a pairing we may be somebody else.
async function whoAmI({ anew = false } = {}) {
  const kept = (await read("meta", "me"))?.value ?? null;
  const before = anew && kept ? { ...kept, person: null, csrf: "" } : kept;
  if (anew && kept) await put("meta", { key: "me", value: before });
  become(before);
  const answer = askMe();
  awaited += 1;
  await (before && !anew ? soonOr(before, answer) : answer.catch(() => null));
  awaited -= 1;
}

// The server's answer; one for which nobody waits any more is taken in too, and shown where another screen is due.
function askMe() {
  const mine = ++asking;
  known = true; // or will be
  return ask("/api/v1/me").then(async (me) => {
    if (mine !== asking) return; // asked again since
    const screen = allowed(place());
    await learn(me);
    if (!awaited && allowed(place()) !== screen) await route();
  }).catch((error) => {
    if (mine === asking) known = false;
    throw error;
  });
}

function become(me) {
  app.me = me;
  setCsrf(me?.csrf ?? "");
  outbox.identify(me?.device?.id ?? "", me?.person?.id ?? "");
}

async function learn(me) {
  if (!me.site) throw new Error("another answered"); // a page of the network's own, for one
  me.was = me.device?.id ?? app.me?.device?.id ?? app.me?.was; // what waits here is that tablet's, even when it is let in no more
  await outbox.countFrom(me.device?.seq ?? 0);
  become(me);
  await put("meta", { key: "me", value: me });
  await forget(me.device?.destroyed ?? []);
}

// What a participant withdrew is in no tablet's memory either; the server is told once it is gone.
async function forget(recordings) {
  if (!recordings.length) return;
  await outbox.forget(recordings);
  localStorage.removeItem("second");
  await ask("/api/v1/forgotten", { body: { recordings: recordings.slice(0, 200) } }).catch(() => null); // told again next time
  if (recordings.includes(place().id)) await go("/t/choose", { replace: true });
}

function place() {
  const parts = location.pathname.split("/").filter(Boolean); // t rec ID stage | t recipes NAME | q#CARD
  if (parts[0] === "q") return { name: "card", id: location.hash.slice(1) };
  if (parts[1] === "rec") return { name: parts[3] ?? "prepare", id: parts[2], recording: true };
  return { name: parts[1] ?? "choose", id: parts[2] && decodeURIComponent(parts[2]) };
}

async function route() {
  const turn = ++turns;
  const overtaken = () => turn !== turns; // somebody went on while we waited
  if (renewed()) return;
  app.leave?.();
  app.leave = null;
  try {
    if (!app.me) await whoAmI();
    const wanted = place();
    const name = allowed(wanted);
    const subject = wanted.recording ? await Recording.open(wanted.id) : wanted.id;
    if (overtaken()) return;
    const held = wanted.recording && HELD.has(name) && !(await subject.take(app.me.device.id));
    if (renewed()) return;
    const untold = name === "prepare" && subject.state?.phase === "prepare" && !subject.state.instructed;
    const view = await import(`/static/views/${held ? "held" : untold ? "instructions" : SCREENS[name] ?? "choose"}.js`).catch(silent);
    const found = await view.load?.(subject);
    if (overtaken()) return;
    app.leave = view.open(subject, found) ?? null;
    if (name !== "follow") scrollTo(0, 0);
  } catch (error) {
    if (!overtaken()) failed(error);
  }
}

// A page that is older than the shell begins anew between two screens; not under a sheet, which may say or hold something.
function renewed() {
  if (!outdated || document.querySelector("dialog[open]")) return false;
  document.body.inert = true;
  location.reload();
  return true;
}

function allowed({ name, recording }) {
  if (name === "welcome" || name === "pair") return name;
  if (!app.me?.device) return "welcome";
  if (name === "card" || recording) return name; // an expired sign-in never ends a recording
  return app.me.person ? name : "sign-in";
}

function failed(error) {
  show("failed", h("main", { class: "plain" },
    h("h1", {}, t("failed.title")), h("p", {}, error.message),
    h("p", {}, button(t("failed.again"), () => route(), { class: "primary" }), " ",
      button(t("failed.home"), () => go("/t/choose"), { class: "quiet" }))));
}

export async function signedIn() {
  app.me = null;
  await whoAmI({ anew: true });
  await go("/t/choose", { replace: true });
}

function status() {
  const waiting = outbox.unsent();
  const down = outbox.turnedDown();
  const failed = outbox.notKept();
  const place = document.getElementById("saved");
  const said = waiting ? t("saved.unsent", { count: waiting }) : down.length ? t("saved.refused", { count: down.length }) : t("saved.all");
  place.textContent = failed ? t("saved.not_kept") : said;
  place.dataset.kept = String(!failed);
  place.className = failed || waiting || down.length ? "saved waiting" : "saved";
  place.title = failed || down.at(-1)?.error || outbox.problem;
}

navigator.serviceWorker?.addEventListener("controllerchange", () => {
  outdated ||= controlled; // the first one replaces nothing
  controlled = true;
});

async function begin() {
  await loadWords();
  outbox.onChange(status);
  await outbox.load();
  addEventListener("popstate", () => route());
  addEventListener("hashchange", () => route());
  addEventListener("pageshow", ({ persisted }) => persisted && (askMe().catch(() => null), route())); // from the back/forward cache: as it was then
  navigator.storage?.persist?.();
  const compare = (times) => measure(times).then(() => {
    if (!known) askMe().catch(() => null); // it answers again
    return outbox.unsent() && outbox.drain();
  }).catch(() => null);
  compare(3);
  setInterval(() => compare(1), CLOCK_MS);
  await route();
  if (navigator.serviceWorker) { // the first screen is not kept waiting by all that is kept for later
    navigator.serviceWorker.register("/sw.js").then(() => navigator.serviceWorker.ready)
      .then(() => { document.documentElement.dataset.offline = "ready"; }).catch(() => null);
  }
}

begin().catch(failed);
