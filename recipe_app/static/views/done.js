// The receipt: what the server has, what still waits here, and the last resort.

import { go, signedIn } from "/static/main.js";
import * as outbox from "/static/core/outbox.js";
import { button, h, redraw, show } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { asFile, asFrames } from "/static/core/dump.js";
import { drawn, qr } from "/static/core/qr.js";
import { number, t } from "/static/core/words.js";
import { living } from "/static/views/error_form.js";
import { bar, footer, sheet, tour } from "/static/views/frame.js";
import { withdraw } from "/static/views/withdraw.js";

const FRAME_MS = 400;

export function open(recording) {
  const main = h("main", { class: "plain" });
  show("done", bar("review", t("done.title")), main, footer(h("p", {}), recording.state.withdrawn ? null : button(t("withdraw"), () => withdraw(recording), { class: "quiet" }), button(t("done.next"), () => go("/t/choose"), { class: "primary" }), button(t("sign_out"), leave, { class: "quiet" })));

  async function leave() {
    if (outbox.unsent()) return draw();
    await ask("/api/v1/sign-out", { method: "POST", body: {} }).catch(() => null);
    return signedIn();
  }

  async function save() { // the browser's own way to keep a file
    const content = await asFile(await outbox.dump());
    const link = h("a", { href: URL.createObjectURL(new Blob([content], { type: "application/json" })), download: `kitchensync-${recording.id}.json` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  async function showFrames() { // a phone films them; a code at a time, over and over
    const frames = await asFrames(await outbox.dump({ sounds: false }));
    const picture = h("div", { class: "frame-of-dump", dir: "ltr" });
    const label = h("p", { class: "progress" });
    let place = 0;
    const next = () => {
      picture.replaceChildren(drawn(qr(frames[place]), 7));
      label.textContent = `${number(place + 1)} / ${number(frames.length)}`;
      place = (place + 1) % frames.length;
    };
    const turning = setInterval(next, FRAME_MS);
    sheet(t("done.frames"), (close) => [h("p", {}, t("done.frames.how")), picture, label, button(t("back"), close, { class: "quiet" })], { closed: () => clearInterval(turning), wide: true });
    next();
  }

  function draw() {
    recording.refold();
    const waiting = outbox.unsent();
    const refused = outbox.turnedDown();
    const errors = living(recording).filter((error) => !error.planned || ["as_planned", "differently"].includes(error.outcome)).length;
    redraw(main, tour("done"),
      h("p", { class: waiting ? "receipt waiting" : "receipt" }, waiting ? t("done.waiting", { count: waiting }) : t("done.received", { count: recording.ops.length })),
      recording.state.withdrawn && h("p", { class: "banner" }, t("withdraw.done")),
      h("p", {}, t("done.sum", { steps: Object.values(recording.state.steps).filter((step) => step.state === "done").length, errors })),
      refused.length > 0 && h("section", {}, h("h2", {}, t("saved.refused", { count: refused.length })), h("ul", { class: "warning" }, refused.map((one) => h("li", {}, `${one.operation.kind}: ${one.error}`)))),
      (waiting > 0 || refused.length > 0) && h("p", { class: "actions start" }, button(t("done.dump"), save, { class: "quiet", "data-key": "dump" }), " ", button(t("done.frames"), showFrames, { class: "quiet", "data-key": "frames" })));
  }
  draw();
  return outbox.onChange(draw);
}
