// Common parts of the light screens: the bar with the four stages, and sheets over a screen.

import { app, go, signedIn } from "/static/main.js";
import * as outbox from "/static/core/outbox.js";
import { button, h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { playSlate } from "/static/core/slate.js";
import { t } from "/static/core/words.js";
import { forOperator } from "/static/views/alarm.js";
import { saveToFile } from "/static/views/dump.js";

const STOP_AGAIN_MS = 3000;
export const PLANNING = ["disordered", "induced"]; // strategies with errors planned in advance
const STAGES = ["choose", "prepare", "follow", "review"];

export function bar(stage, title, ...more) {
  const now = STAGES.indexOf(stage);
  return h("header", { class: "bar" },
    h("p", { class: "brand" }, "KitchenSync"),
    h("h1", {}, title),
    now >= 0 && h("ol", { class: "stages", "aria-label": t("stages.label") },
      STAGES.map((name, place) => h("li", { class: place < now ? "past" : place === now ? "now" : "", "aria-current": place === now ? "step" : null },
        t(`stages.${name}`)))),
    app.me?.person && h("p", { class: "who" }, app.me.person.pseudonym, " ", ...more, " ", button(t("sign_out"), signOut, { class: "link" })));
}

async function signOut() {
  if (outbox.unsent()) return tell(t("sign_out.unsent", { count: outbox.unsent() }), saveToFile());
  await ask("/api/v1/sign-out", { method: "POST", body: {} }).catch(() => null);
  return signedIn();
}

export async function stopDevices(recording) { // stops only what the tablet started; an operator's recording continues
  await playSlate(recording);
  if (recording.state.capture?.action !== "start") return;
  await outbox.drain();
  tellNotStopped(recording, await askToStop(recording));
}

const askToStop = (recording) => ask(`/api/v1/capture/${recording.id}`, { body: { action: "stop" }, timeout: 60_000 })
  .then(({ reasons }) => ({ reasons, heard: true }), (error) => ({ reasons: [error.message], heard: Boolean(error.status) }));

// Retries while the sheet is open if the server was not reached, unless another tablet continues the recording.
function tellNotStopped(recording, { reasons, heard }) {
  if (!reasons.length) return;
  let shown = true;
  const close = sheet(t("capture.not_stopped"), (shut) => [h("p", {}, t("capture.not_stopped.what")), forOperator(reasons),
    h("p", { class: "actions" }, button(t("ok"), shut, { class: "quiet" }),
      button(t("failed.again"), () => { shut(); return stopDevices(recording); }, { class: "primary" }))],
  { closed: () => { shown = false; } });
  const again = async () => {
    await outbox.drain();
    const reached = await recording.refresh().then(() => true, () => false);
    if (!shown || recording.state.holder !== app.me?.device?.id) return;
    const answer = reached ? await askToStop(recording) : { heard: false };
    if (!shown) return;
    if (!answer.heard) return void setTimeout(again, STOP_AGAIN_MS);
    close();
    tellNotStopped(recording, answer);
  };
  if (!heard) setTimeout(again, STOP_AGAIN_MS);
}

// A recipe's picture, or a drawn plate without one; the title is next to it.
export const dish = (address) => (address ? h("img", { class: "dish", src: address, alt: "", width: 320, height: 200, loading: "lazy" }) : h("span", { class: "dish empty", "aria-hidden": "true" }));

export function tour(name) { // the guided tour of `kitchensync app --demo`
  return app.me?.demo && h("aside", { class: "tour" }, h("strong", {}, t("tour")), " ", t(`tour.${name}`, app.me.demo));
}

// A sheet over the screen: Escape and the back button close it, the focus stays inside and returns afterwards.
export function sheet(title, content, { closed = () => null, wide = false } = {}) {
  const before = document.activeElement;
  const dialog = h("dialog", { class: wide ? "sheet wide" : "sheet", "aria-label": title });
  const close = () => { dialog.close(); };
  dialog.addEventListener("close", () => { dialog.remove(); before?.focus({ focusVisible: false }); closed(); });
  dialog.append(h("h2", {}, title), ...[content(close)].flat());
  document.body.append(dialog);
  dialog.showModal();
  return close;
}

export function tell(text, ...more) {
  sheet(text, (close) => [...more, h("p", { class: "actions" }, button(t("ok"), close, { class: "primary" }))]);
}

export const footer = (...children) => h("footer", { class: "go" }, ...children);
export const stageOf = (recording) => ({ prepare: "prepare", checklist: "checklist", follow: "follow", review: "review", done: "done", withdrawn: "done" }[recording.state.phase]);
export const open = (recording, stage) => go(`/t/rec/${recording.id}/${stage}`);
// Names of the categories in hints, by number, as in task_graphs/categories.py.
export const NAMES = ["Preparation", "Measurement", "Order", "Timing", "Technique", "Temperature", "Missing step", "Other"];

export const categoryName = (number) => t(`category.${number}`);

// The folder of the devices: chosen at the beginning or started from the checklist; as in operations/events.py.
export function folderOf(recording) {
  let { folder } = recording.shown;
  for (const { kind, body } of recording.ops) {
    if (kind === "capture" && body.action === "start" && !body.reasons.length) folder = body.folder;
  }
  return folder;
}
