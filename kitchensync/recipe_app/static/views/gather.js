// Mise en place: items of the recipe, ticked off when fetched, or skipped. It adds no required touch.

import { button, h, redraw, show } from "/static/core/page.js";
import { afterTouches } from "/static/core/touch.js";
import { t, tongue } from "/static/core/words.js";
import { bar, footer, open as goTo } from "/static/views/frame.js";
import { myData } from "/static/views/my_data.js";

const KINDS = ["ingredients", "tools"];

// All items to fetch, by their names in the log.
export const wanted = (recording) => KINDS.flatMap((kind) => (recording.shown.fetch?.[kind] ?? []).map((text, place) => ({ kind, text, item: `${kind}_${place}` })));
const isReady = (recording, { item }) => recording.state.checklist[item] === true;
export const said = (recording) => t("gather.said", { have: wanted(recording).filter((one) => isReady(recording, one)).length, all: wanted(recording).length });

export function open(recording) {
  const draw = afterTouches(paint);
  const main = h("main", { class: "plain wide" });
  const count = h("p", { role: "status" });
  const picture = recording.shown.pictures?.result;
  show("gather", bar("prepare", t("gather.title"), myData(recording)), main,
    footer(count, button(t("gather.back"), () => goTo(recording, "checklist"), { class: "primary", id: "back" })));

  async function turn(one, touch) {
    await recording.act(touch, { kind: "check", body: { item: one.item, checked: !isReady(recording, one) } });
    draw();
  }

  const row = (one) => h("button", { type: "button", class: "check", role: "checkbox", "aria-checked": String(isReady(recording, one)), "data-key": one.item, tap: (touch) => turn(one, touch) },
    h("span", { class: isReady(recording, one) ? "box icon icon-tick alone" : "box", "aria-hidden": "true" }), h("span", tongue(recording.shown.language), one.text));

  function paint() {
    const all = wanted(recording);
    redraw(main, h("header", { class: "gather-head" }, picture && h("img", { class: "dish", src: picture, alt: "", width: 320, height: 200 }),
      h("div", {}, h("h2", { ...recording.tongue }, recording.shown.title), h("p", { class: "hint" }, all.length ? t("gather.how") : t("gather.nothing")))),
    h("div", { class: "gather" }, KINDS.map((kind) => {
      const mine = all.filter((one) => one.kind === kind);
      return mine.length > 0 && h("section", {}, h("h2", {}, t(`facts.${kind}`)), mine.map(row));
    })));
    count.textContent = all.length ? said(recording) : "";
  }
  paint();
}
