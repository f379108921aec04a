// The last resorts for what waits on this tablet: a file, or QR codes that a phone films.

import * as outbox from "/static/core/outbox.js";
import { button, h } from "/static/core/page.js";
import { asFile, asFrames } from "/static/core/dump.js";
import { drawn, qr } from "/static/core/qr.js";
import { number, t } from "/static/core/words.js";
import { sheet } from "/static/views/frame.js";

const FRAME_MS = 400;

export const lastResorts = () => h("p", { class: "actions start" }, button(t("done.dump"), save, { class: "quiet", "data-key": "dump" }), " ",
  button(t("done.frames"), showFrames, { class: "quiet", "data-key": "frames" }));

async function save() { // the browser's own way to keep a file
  const content = await asFile(await outbox.dump());
  const name = `kitchensync-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.json`;
  const link = h("a", { href: URL.createObjectURL(new Blob([content], { type: "application/json" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function showFrames() { // a code at a time, over and over
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
