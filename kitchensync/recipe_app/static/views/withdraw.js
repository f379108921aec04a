// The person withdraws the recording: it is no longer exported, and it is destroyed after some hours. Until then
// the same person may cancel this. The server stops the devices.

import * as outbox from "/static/core/outbox.js";
import { button, h } from "/static/core/page.js";
import { t } from "/static/core/words.js";
import { open as goTo, sheet, stageOf } from "/static/views/frame.js";

export const keepButton = (recording) => button(t("withdraw.keep"), async (touch) => {
  await recording.act(touch, { kind: "keep" });
  await outbox.drain();
  await goTo(recording, stageOf(recording));
}, { class: "quiet", "data-key": "keep" });

export function withdraw(recording) {
  sheet(t("withdraw.title"), (close) => [h("p", {}, t("withdraw.what", { hours: recording.bundle.grace_hours })),
    h("p", { class: "actions" }, button(t("withdraw.no"), close, { class: "quiet" }),
      button(t("withdraw.yes"), async (touch) => {
        close();
        await recording.act(touch, { kind: "withdraw" });
        await outbox.drain();
        await goTo(recording, "done");
      }, { class: "primary" }))]);
}
