// The tablet: who we are, which screen, and what is true on every screen (what is unsent, whether we are connected).

import { measure } from "/static/core/clock.js";
import { put, read } from "/static/core/db.js";
import * as outbox from "/static/core/outbox.js";
import { button, h, show } from "/static/core/page.js";
import { Recording } from "/static/core/recording.js";
import { ask, setCsrf } from "/static/core/server.js";
import { loadWords, t } from "/static/core/words.js";

const SCREENS = {
  welcome: "pair", pair: "pair", "sign-in": "sign_in", card: "sign_in", choose: "choose", recipes: "recipe",
  prepare: "prepare", checklist: "checklist", follow: "follow", review: "review", done: "done",
};
const HELD = new Set(["prepare", "checklist", "follow"]); // what only one tablet at a time may do
const CLOCK_MS = 10_000;
export const app = { me: null, leave: null };

export async function go(path, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", path);
  await route();
}

async function whoAmI() {
  const before = (await read("meta", "me"))?.value ?? null;
  try {
    app.me = await ask("/api/v1/me", { timeout: 4000 });
    if (!app.me.site) throw new Error("another answered"); // a page of the network's own, for one
    setCsrf(app.me.csrf);
    app.me.was = app.me.device?.id ?? before?.device?.id ?? before?.was; // what waits here is that tablet's, even when it is let in no more
    await outbox.countFrom(app.me.device?.seq ?? 0);
    await put("meta", { key: "me", value: app.me });
  } catch {
    app.me = before; // without network we are who we were
  }
  outbox.identify(app.me?.device?.id ?? "", app.me?.person?.id ?? "");
}

function place() {
  const parts = location.pathname.split("/").filter(Boolean); // t rec ID stage | t recipes NAME | q CARD
  if (parts[0] === "q") return { name: "card", id: parts[1] };
  if (parts[1] === "rec") return { name: parts[3] ?? "prepare", id: parts[2], recording: true };
  return { name: parts[1] ?? "choose", id: parts[2] && decodeURIComponent(parts[2]) };
}

async function route() {
  app.leave?.();
  app.leave = null;
  try {
    if (!app.me) await whoAmI();
    const wanted = place();
    const name = allowed(wanted);
    const subject = wanted.recording ? await Recording.open(wanted.id) : wanted.id;
    const held = wanted.recording && HELD.has(name) && !(await subject.take(app.me.device.id));
    const view = await import(`/static/views/${held ? "held" : SCREENS[name] ?? "choose"}.js`);
    app.leave = (await view.open(subject)) ?? null;
    if (name !== "follow") scrollTo(0, 0);
  } catch (error) {
    failed(error);
  }
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
  await whoAmI();
  await go("/t/choose", { replace: true });
}

function status() {
  const waiting = outbox.unsent();
  const down = outbox.turnedDown();
  const failed = outbox.notKept();
  const place = document.getElementById("saved");
  const said = waiting ? t("saved.unsent", { count: waiting }) : down.length ? t("saved.refused", { count: down.length }) : t("saved.all");
  place.textContent = failed ? t("saved.not_kept") : said;
  place.className = failed || waiting || down.length ? "saved waiting" : "saved";
  place.title = failed || down.at(-1)?.error || outbox.problem;
}

async function begin() {
  await loadWords();
  outbox.onChange(status);
  await outbox.load();
  addEventListener("popstate", () => route());
  addEventListener("hashchange", () => route());
  navigator.storage?.persist?.();
  if (navigator.serviceWorker) {
    navigator.serviceWorker.register("/sw.js").then(() => navigator.serviceWorker.ready)
      .then(() => { document.documentElement.dataset.offline = "ready"; }).catch(() => null);
  }
  const compare = (times) => measure(times).then(() => outbox.unsent() && outbox.drain()).catch(() => null);
  compare(3);
  setInterval(() => compare(1), CLOCK_MS);
  await route();
}

begin().catch(failed);
