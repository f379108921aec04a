// Stage 1, second part: show the recipe as a paragraph or an order, choose the session's purpose, begin.

import { app, go } from "/static/main.js";
import { button, h, redraw, show } from "/static/core/page.js";
import { choose } from "/static/core/recording.js";
import { ask } from "/static/core/server.js";
import { afterTouches } from "/static/core/touch.js";
import { languageName, listed, pageLanguage, t, tongue } from "/static/core/words.js";
import { bar, footer, tour } from "/static/views/frame.js";

const STRATEGIES = ["normal", "impromptu", "disordered", "induced"];
const DISPLAY = "display";
const DISPLAYS = ["steps", "paragraph", "hidden"];

const draft = ({ recipe, seed, language }) => ask(`/api/v1/recipes/${encodeURIComponent(recipe)}/order?language=${language}${seed === undefined ? "" : `&seed=${seed}`}`);

export async function load(recipe) {
  const chosen = { recipe, strategy: "normal", display: DISPLAYS.find((name) => name === localStorage.getItem(DISPLAY)) ?? "steps", folder: null, language: "" };
  let drawn = await draft(chosen);
  chosen.seed = drawn.seed;
  if (drawn.titles[pageLanguage] && drawn.language !== pageLanguage) {
    chosen.language = pageLanguage;
    drawn = await draft(chosen);
  }
  const places = await ask("/api/v1/running");
  chosen.folder = places.free[0] ?? null; // a running recording without a recipe is the default; videos from elsewhere are chosen by hand
  return { chosen, drawn, places };
}

export function open(_, { chosen, drawn, places }) {
  const draw = afterTouches(paint);
  const devices = app.me?.devices ?? []; // devices that start at the end of the checklist
  let shown = "order";
  const main = h("main", { class: "plain wide two" });
  const message = h("p", { role: "alert" });
  const head = bar("choose", drawn.title);
  show("recipe", head, main, footer(message, button(t("back"), () => go("/t/choose"), { class: "quiet" }),
    button(t("recipe.go"), begin, { class: "primary", id: "begin" })));

  async function again(change) {
    Object.assign(chosen, change);
    drawn = await draft(chosen);
    head.querySelector("h1").textContent = drawn.title;
    draw();
  }

  async function begin() {
    localStorage.setItem(DISPLAY, chosen.display);
    try {
      const recording = await choose(chosen);
      await go(`/t/rec/${recording.id}/prepare`);
    } catch (error) {
      message.textContent = error.message;
    }
  }

  const one = (group, value, label, hint, act) => h("label", { class: "option" },
    h("input", { type: "radio", name: group, value, checked: chosen[group] === value, "data-key": `${group}-${value}`, onchange: () => { chosen[group] = act ? act(value) : value; draw(); } }),
    h("span", { class: "name" }, label), hint && h("span", { class: "hint" }, hint));

  function paint() {
    const languages = Object.keys(drawn.titles);
    const steps = drawn.order.map((node) => drawn.steps[node].text);
    redraw(main,
      h("div", {}, tour("recipe"),
        h("fieldset", {}, h("legend", {}, t("recipe.strategy")), STRATEGIES.map((name) => one("strategy", name, t(`strategy.${name}`), t(`strategy.${name}.hint`)))),
        h("fieldset", {}, h("legend", {}, t("recipe.display")), DISPLAYS.map((name) => one("display", name, t(`display.${name}`), t(`display.${name}.hint`)))),
        h("fieldset", {}, h("legend", {}, t("recipe.belongs")),
          places.running.map((name) => one("folder", name, name, t("recipe.running"))),
          places.adopted.map((name) => one("folder", name, name, t("recipe.adopted"))),
          h("label", { class: "option" },
            h("input", { type: "radio", name: "folder", value: "", checked: chosen.folder === null, "data-key": "folder-none", onchange: () => { chosen.folder = null; draw(); } }),
            h("span", { class: "name" }, devices.length ? t("recipe.devices", { devices: listed(devices.map((name) => t(`device.${name}`))) }) : t("recipe.standalone")),
            h("span", { class: "hint" }, t(devices.length ? "recipe.devices.hint" : "recipe.standalone.hint"))))),
      h("section", { class: "preview-side" }, drawn.pictures.result && h("img", { class: "dish wide", src: drawn.pictures.result, alt: "", width: 320, height: 200 }),
        h("div", { class: "switch", role: "group", "aria-label": t("recipe.show") },
          ["order", "paragraph"].map((name) => button(t(`recipe.${name}`), () => { shown = name; draw(); }, { "aria-pressed": String(shown === name), "data-key": name })),
          button(t("recipe.another"), () => again({ seed: chosen.seed + 1 }), { "data-key": "another" })),
        chosen.strategy === "disordered" && h("p", { class: "note" }, t("recipe.disordered")),
        languages.length > 1 && h("div", { class: "switch", role: "group", "aria-label": t("recipe.language") },
          languages.map((name) => button(languageName(name), () => again({ language: name }), { "aria-pressed": String(drawn.language === name), "data-key": `in-${name}`, lang: name }))),
        shown === "order" ? h("ol", { class: "preview", ...tongue(drawn.language) }, steps.map((text) => h("li", {}, text)))
          : h("p", { class: "preview", ...tongue(drawn.language) }, steps.join(". "), ".")));
  }
  paint();
}
