// The tablet app: identity, current screen, and the state shown on every screen (unsent data, connection).

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
const HELD = new Set(["prepare", "gather", "checklist", "follow"]); // screens that only one tablet at a time may show
const CLOCK_MS = 10_000;
let turns = 0; // modules of the screens
let asking = 0; // number of identity requests
let awaited = 0; // number of callers waiting for the answer
let known = false; // whether the answer came or is pending
let outdated = false; // a new version of the shell is active: its screens do not match the loaded modules
let controlled = Boolean(navigator.serviceWorker?.controller);
export const app = { me: null, leave: null };

export async function go(path, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", path);
  await route();
}

// Without network the identity stays; it may change after a sign-in, a sign-out or a pairing.
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

// The server's answer; a late one is used too and redraws if it calls for another screen.
function askMe() {
  const mine = ++asking;
  known = true; // or will be soon
  return ask("/api/v1/me").then(async (me) => {
    if (mine !== asking) return; // a newer request exists
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
  if (!me.site) throw new Error("another answered"); // for example the login page of a network
  me.was = me.device?.id ?? app.me?.device?.id ?? app.me?.was; // unsent data belongs to that tablet, even if its access was revoked
  await outbox.countFrom(me.device?.seq ?? 0);
  become(me);
  await put("meta", { key: "me", value: me });
  await forget(me.device?.destroyed ?? []);
}

// Deletes withdrawn recordings from this tablet and confirms that to the server.
async function forget(recordings) {
  if (!recordings.length) return;
  await outbox.forget(recordings);
  localStorage.removeItem("second");
  await ask("/api/v1/forgotten", { body: { recordings: recordings.slice(0, 200) } }).catch(() => null); // confirm again next time
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
  const overtaken = () => turn !== turns; // the user went on meanwhile
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

// A page older than the shell reloads between two screens, but not under a sheet, which may have unsaved input.
function renewed() {
  if (!outdated || document.querySelector("dialog[open]")) return false;
  document.body.inert = true;
  location.reload();
  return true;
}

function allowed({ name, recording }) {
  if (name === "welcome" || name === "pair") return name;
  if (!app.me?.device) return "welcome";
  if (name === "card" || recording) return name; // an expired sign-in must not end a recording
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
  outdated ||= controlled; // the first worker replaces none
  controlled = true;
});

async function begin() {
  await loadWords();
  outbox.onChange(status);
  await outbox.load();
  addEventListener("popstate", () => route());
  addEventListener("hashchange", () => route());
  addEventListener("pageshow", ({ persisted }) => persisted && (askMe().catch(() => null), route())); // from the back/forward cache: an old state
  navigator.storage?.persist?.();
  const compare = (times) => measure(times).then(() => {
    if (!known) askMe().catch(() => null); // the server answers again
    return outbox.unsent() && outbox.drain();
  }).catch(() => null);
  compare(3);
  setInterval(() => compare(1), CLOCK_MS);
  await route();
  if (navigator.serviceWorker) { // caching files for later must not delay the first screen
    navigator.serviceWorker.register("/sw.js").then(() => navigator.serviceWorker.ready)
      .then(() => { document.documentElement.dataset.offline = "ready"; }).catch(() => null);
  }
}

begin().catch(failed);
