// Instructions of the chosen strategy, before planning; one touch continues.

import { go } from "/static/main.js";
import { button, h, show } from "/static/core/page.js";
import { t } from "/static/core/words.js";
import { bar, footer, PLANNING } from "/static/views/frame.js";
import { myData } from "/static/views/my_data.js";

export function open(recording) {
  const { strategy } = recording.shown;
  const { version } = recording.bundle.instructions ?? { version: "" };
  const training = recording.bundle.training ?? []; // before the first session of this recipe, or with a skill
  const said = t(`instructions.${strategy}`);
  show("instructions", bar("prepare", recording.shown.title, myData(recording)),
    h("main", { class: "plain instructions" }, recording.shown.pictures?.result && h("img", { class: "dish", src: recording.shown.pictures.result, alt: "", width: 320, height: 200 }), h("p", {}, h("span", { class: `badge ${strategy}` }, t(`strategy.${strategy}`))),
      h("h2", {}, t("instructions.title")),
      h("ul", {}, said.split("\n").filter(Boolean).map((line) => h("li", {}, line))),
      h("p", { class: "hint" }, t("instructions.version", { version })),
      training.map(({ of, about, items }) => h("section", {}, h("h2", {}, t(`training.before.${of}`, { about })), h("ul", {}, items.map((item) => h("li", {}, shown(item))))))),
    footer(h("p", {}), button(t("instructions.go"), leave, { class: "primary", id: "continue" })));

  async function leave(touch) { // without planned errors the checklist is next
    const plans = PLANNING.includes(strategy);
    await recording.act(touch, { kind: "instructed", body: { version, shown: said, ...(training.length && { training: training.map((one) => one.version) }) } }, ...(plans ? [] : [{ kind: "prepared" }]));
    await go(`/t/rec/${recording.id}/${plans ? "prepare" : "checklist"}`, { replace: true });
  }
}

const shown = (item) => (/^https?:\/\/\S+$/.test(item) ? h("a", { href: item, target: "_blank", rel: "noopener noreferrer" }, item) : item);
