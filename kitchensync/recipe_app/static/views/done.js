// The receipt: data on the server, unsent data, and the last resort.

import { go, signedIn } from "/static/main.js";
import * as outbox from "/static/core/outbox.js";
import { button, h, redraw, show } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { afterTouches } from "/static/core/touch.js";
import { t } from "/static/core/words.js";
import { forOperator } from "/static/views/alarm.js";
import { saveToFile } from "/static/views/dump.js";
import { living } from "/static/views/error_form.js";
import { bar, folderOf, footer, open as goTo, tour } from "/static/views/frame.js";
import { keepButton } from "/static/views/withdraw.js";
import { myData } from "/static/views/my_data.js";

export function open(recording) {
  const draw = afterTouches(paint);
  const main = h("main", { class: "plain" });
  show("done", bar("review", t("done.title"), myData(recording)), main, footer(h("p", {}), button(t("done.next"), () => go("/t/choose"), { class: "quiet" }), button(t("sign_out"), leave, { class: "quiet" })));

  async function leave() {
    if (outbox.unsent()) return draw();
    await ask("/api/v1/sign-out", { method: "POST", body: {} }).catch(() => null);
    return signedIn();
  }

  function paint() {
    recording.reduceAgain();
    const waiting = outbox.unsent();
    const refused = outbox.turnedDown();
    const agreed = recording.state.consent?.accepted ? recording.state.consent.scopes ?? [] : [];
    const lacking = folderOf(recording) && !recording.state.withdrawn ? ["annotate", "release_raw"].filter((scope) => !agreed.includes(scope)) : [];
    const errors = living(recording).filter((error) => !error.planned || ["as_planned", "differently"].includes(error.outcome)).length;
    redraw(main, tour("done"), recording.shown.pictures?.result && !recording.state.withdrawn && h("img", { class: "dish wide", src: recording.shown.pictures.result, alt: "", width: 320, height: 200 }),
      h("p", { class: waiting ? "receipt waiting" : "receipt icon icon-tick" }, waiting ? t("done.waiting", { count: waiting }) : t("done.received")),
      recording.state.withdrawn && h("p", { class: "banner" }, t("withdraw.done", { hours: recording.bundle.grace_hours })),
      recording.state.withdrawn && recording.shown.person !== "" && h("p", { class: "actions start" }, keepButton(recording)),
      lacking.length > 0 && h("p", { class: "badges" }, lacking.map((scope) => h("span", { class: "badge conflict" }, t(`consent.lacks.${scope}`)))),
      h("p", {}, t("done.sum", { steps: Object.values(recording.state.steps).filter((step) => step.state === "done").length, errors })),
      recording.state.review_closed ? h("p", { class: "hint" }, t("review.closed"))
        : !recording.state.withdrawn && h("p", { class: "actions start" }, button(t("done.review"), () => goTo(recording, "review"), { class: "primary", "data-key": "review" })),
      refused.length > 0 && h("section", {}, h("h2", {}, t("saved.refused", { count: refused.length })), forOperator(refused.map((one) => `${one.operation.kind}: ${one.error}`))),
      (waiting > 0 || refused.length > 0) && saveToFile());
  }
  paint();
  return outbox.onChange(draw);
}
