// The list of recipes: searched by a word and filtered by facts stated at the desk.

import { h } from "/static/core/page.js";
import { pageLanguage, t } from "/static/core/words.js";

const FACTS = ["heating", "tools", "skills"];
const MINUTES = [15, 30, 60];
const chosen = { word: "", minutes: 0, heating: "", tools: "", skills: "" }; // kept while the page is open

const plain = (text) => text.toLocaleLowerCase(pageLanguage);

function fits(recipe) {
  const words = [recipe.title, ...Object.values(recipe.titles), ...recipe.ingredients, ...FACTS.flatMap((fact) => recipe[fact])];
  return words.some((text) => plain(text).includes(plain(chosen.word.trim())))
    && (!chosen.minutes || (recipe.minutes && recipe.minutes <= chosen.minutes))
    && FACTS.every((fact) => !chosen[fact] || recipe[fact].includes(chosen[fact]));
}

export function recipeList(recipes, card) {
  const cards = h("div", { class: "cards" });
  const found = h("p", { class: "hint", role: "status" });
  const paint = () => {
    const shown = recipes.filter(fits);
    cards.replaceChildren(...shown.map(card));
    found.textContent = shown.length < recipes.length ? t("choose.found", { count: shown.length }) : "";
  };
  const field = (name, label, control) => h("div", {}, h("label", { for: `filter-${name}` }, label), control);
  const pick = (name, label, options) => options.length > 0 && field(name, label,
    h("select", { id: `filter-${name}`, onchange: ({ target }) => { chosen[name] = name === "minutes" ? Number(target.value) : target.value; paint(); } },
      [["", t("choose.any")], ...options].map(([value, said]) => h("option", { value, selected: String(chosen[name] || "") === String(value) }, said))));
  const stated = (fact) => [...new Set(recipes.flatMap((recipe) => recipe[fact]))].sort().map((word) => [word, word]);
  const timed = recipes.some((recipe) => recipe.minutes) ? MINUTES.map((count) => [count, t("choose.minutes", { count })]) : [];
  paint();
  return [h("div", { class: "filters" },
    field("word", t("choose.search"), h("input", { id: "filter-word", type: "search", value: chosen.word, dir: "auto", maxlength: 60, oninput: ({ target }) => { chosen.word = target.value; paint(); } })),
    pick("heating", t("choose.heating"), stated("heating")), pick("tools", t("choose.tools"), stated("tools")),
    pick("skills", t("choose.skills"), stated("skills")), pick("minutes", t("choose.time"), timed)), found, cards];
}
