// Stage 1: a recipe, or a recording that was begun.

import { go } from "/static/main.js";
import { read } from "/static/core/db.js";
import { button, h, show } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { pageLanguage, t } from "/static/core/words.js";
import { bar, tour } from "/static/views/frame.js";

const STAGE = { prepare: "prepare", checklist: "checklist", follow: "follow", review: "review", done: "done", withdrawn: "done" };
const over = (one) => ["done", "withdrawn"].includes(one.phase);

export async function open() {
  const [recipes, recordings] = await Promise.all([
    ask("/api/v1/recipes").catch(() => null),
    ask("/api/v1/recordings").catch(() => null),
  ]);
  const begun = recordings?.recordings ?? (await keptHere());
  show("choose", bar("choose", t("choose.title")), h("main", { class: "plain wide" },
    tour("choose"),
    !recipes && h("p", { class: "warning", role: "status" }, t("choose.offline")),
    begun.some((one) => !over(one)) && h("section", {}, h("h2", {}, t("choose.begun")),
      h("div", { class: "cards" }, begun.filter((one) => !over(one)).slice(0, 4).map(resume))),
    recipes && h("section", { id: "recipes" }, h("h2", {}, t("choose.recipes")),
      recipes.recipes.length
        ? h("div", { class: "cards" }, recipes.recipes.map(card))
        : h("p", { class: "empty" }, t("choose.none"))),
    begun.some(over) && h("section", {}, h("h2", {}, t("choose.past")),
      h("div", { class: "cards" }, begun.filter(over).slice(0, 6).map(resume)))));
}

async function keptHere() {
  const bundles = await read("bundles");
  return bundles.map(({ recording, ops }) => ({ id: recording, recipe: ops[0].body.title, strategy: ops[0].body.strategy, phase: "follow" }));
}

const card = (recipe) => button([
  h("span", { class: "name" }, recipe.titles[pageLanguage] ?? recipe.title),
  h("span", { class: "hint" }, t("choose.steps", { count: recipe.steps }), " · ",
    recipe.orders === null ? t("choose.uncounted") : t("choose.orders", { count: recipe.orders })),
], () => go(`/t/recipes/${encodeURIComponent(recipe.recipe)}`), { class: "card" });

const resume = (one) => button([
  h("span", { class: "name" }, titleOf(one.recipe)),
  h("span", { class: "badges" }, h("span", { class: `badge ${one.strategy}` }, t(`strategy.${one.strategy}`)), h("span", { class: "hint" }, t(`phase.${one.phase}`))),
], () => go(`/t/rec/${one.id}/${STAGE[one.phase] ?? "prepare"}`), { class: "card" });

const titleOf = (name) => name.replace(/[_-]+/g, " ").replace(/^./, (letter) => letter.toUpperCase());
