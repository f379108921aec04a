// Stage 1: choose a recipe, or continue a recording.

import { app, go } from "/static/main.js";
import { read } from "/static/core/db.js";
import { reduceLog } from "/static/core/reduce.js";
import { choose } from "/static/core/recording.js";
import * as outbox from "/static/core/outbox.js";
import { button, h, show } from "/static/core/page.js";
import { ask, soonOr } from "/static/core/server.js";
import { afterTouches } from "/static/core/touch.js";
import { dayTime, pageLanguage, t } from "/static/core/words.js";
import { bar, dish, tour } from "/static/views/frame.js";
import { recipeList } from "/static/views/recipe_list.js";

const STAGE = { prepare: "prepare", checklist: "checklist", follow: "follow", review: "review", done: "done", withdrawn: "done" };
const AGAIN_MS = 3000;
const over = (one) => ["done", "withdrawn"].includes(one.phase);

export async function load() {
  const asked = lists();
  return (await soonOr(null, asked)) ?? { recipes: undefined, begun: await keptHere(), asked };
}

export function open(_, first) {
  let here = true;
  let timer = null;
  let shown = first;
  const draw = afterTouches(() => here && screen(shown));
  const later = () => { timer = setTimeout(() => follow(lists()), AGAIN_MS); };
  const follow = async (asked) => { // until the server answers
    const found = await asked;
    if (!here) return;
    const news = found.recipes !== shown.recipes;
    shown = found;
    if (news) draw();
    if (!found.recipes) later();
  };
  screen(first);
  if (first.asked) follow(first.asked);
  else if (!first.recipes) later();
  return () => { here = false; clearTimeout(timer); };
}

async function lists() { // recipes are null if the server does not answer
  const [recipes, recordings, planned] = await Promise.all([
    ask("/api/v1/recipes").catch(() => null),
    ask("/api/v1/recordings").catch(() => null),
    ask("/api/v1/next").catch(() => null),
  ]);
  return { recipes: recipes && recipes.recipes, planned: planned?.sessions ?? [], begun: recordings?.recordings ?? (await keptHere()) };
}

function screen({ recipes, begun, planned = [] }) {
  show("choose", bar("choose", t("choose.title")), h("main", { class: "plain wide" },
    tour("choose"),
    recipes === null && h("p", { class: "warning", role: "status" }, t("choose.offline")),
    recipes === undefined && h("p", { class: "hint", role: "status" }, t("loading")),
    planned.length > 0 && h("section", { id: "planned" }, h("h2", {}, t("choose.planned")),
      h("p", { class: "warning", role: "alert" }), h("div", { class: "cards" }, planned.slice(0, 1).map(session))),
    begun.some((one) => !over(one)) && h("section", {}, h("h2", {}, t("choose.begun")),
      h("div", { class: "cards" }, begun.filter((one) => !over(one)).slice(0, 4).map(resume))),
    recipes && h("section", { id: "recipes" }, h("h2", {}, t("choose.recipes")),
      recipes.length
        ? recipeList(recipes, card)
        : h("p", { class: "empty" }, t("choose.none"))),
    begun.some(over) && h("section", {}, h("h2", {}, t("choose.past")),
      h("div", { class: "cards" }, begun.filter(over).slice(0, 6).map(resume)))));
}

async function keptHere() { // recordings that this person began, as known to this tablet
  const bundles = await read("bundles").catch(() => []);
  return bundles.filter(({ ops }) => ops[0].actor === app.me?.person?.id).map(({ recording, ops }) => {
    const { title, strategy } = ops[0].body;
    return { id: recording, recipe: title, strategy, phase: reduceLog([...ops, ...outbox.pending(recording)]).phase };
  }).reverse();
}

const facts = ({ steps, minutes, heating }) => [t("choose.steps", { count: steps }), minutes && t("choose.minutes", { count: minutes }), heating.join(", ")].filter(Boolean).join(" · ");

const card = (recipe) => button([dish(recipe.picture),
  h("span", { class: "name" }, recipe.titles[pageLanguage] ?? recipe.title), h("span", { class: "hint" }, facts(recipe)),
], () => go(`/t/recipes/${encodeURIComponent(recipe.recipe)}`), { class: "card with-dish" });

// Sessions that a study planned for this person: one touch begins one with everything drawn for it.
const session = (one) => button([
  h("span", { class: "name" }, titleOf(one.recipe)),
  h("span", { class: "badges" }, h("span", { class: `badge ${one.strategy}` }, t(`strategy.${one.strategy}`)), h("span", { class: "hint" }, `${dayTime(Date.parse(one.start))} · ${one.kitchen}`)),
], async () => {
  try {
    const { free } = await ask("/api/v1/running");
    const recording = await choose({ recipe: one.recipe, session: one.session, folder: free[0] ?? null });
    await go(`/t/rec/${recording.id}/prepare`);
  } catch (error) {
    document.querySelector("#planned [role=alert]").textContent = error.message;
  }
}, { class: "card" });

const resume = (one) => button([
  h("span", { class: "name" }, titleOf(one.recipe)),
  h("span", { class: "badges" }, h("span", { class: `badge ${one.strategy}` }, t(`strategy.${one.strategy}`)), h("span", { class: "hint" }, t(`phase.${one.phase}`))),
], () => go(`/t/rec/${one.id}/${STAGE[one.phase] ?? "prepare"}`), { class: "card" });

const titleOf = (name) => name.replace(/[_-]+/g, " ").replace(/^./, (letter) => letter.toUpperCase());
