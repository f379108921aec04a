// One tablet at a time: another tablet has this recording; it can be taken over.

import { app, go } from "/static/main.js";
import * as outbox from "/static/core/outbox.js";
import { button, h, show } from "/static/core/page.js";
import { t } from "/static/core/words.js";
import { bar, footer, stageOf } from "/static/views/frame.js";

const LOOK_MS = 1500;

export function open(recording) {
  const free = recording.state.holder === null;
  const name = recording.bundle.devices?.[recording.state.holder] ?? t("held.another");
  const message = h("p", { role: "status" });

  async function take(touch) {
    await recording.act(touch, { kind: "claim" });
    message.textContent = t("saved.unsent", { count: outbox.unsent() });
    await outbox.drain();
    await go(`/t/rec/${recording.id}/${stageOf(recording)}`, { replace: true });
  }

  show("held", bar("follow", recording.shown.title), h("main", { class: "plain" },
    h("p", { class: "receipt waiting" }, free ? t("held.free") : t("held.who", { name })), h("p", {}, t("held.what"))),
  footer(message, button(t("back"), () => go("/t/choose"), { class: "quiet" }), button(t("held.take"), take, { class: "primary", id: "take" })));

  async function look() { // the desk may have released it
    await recording.refresh();
    if (recording.state.holder === app.me.device.id || (recording.state.holder === null) !== free) await go(location.pathname, { replace: true });
  }
  const looking = setInterval(() => look().catch(() => null), LOOK_MS);
  return () => clearInterval(looking);
}
