// Checks a kitchen's computer and devices before a session: problems first, passed checks folded.

import { h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { loadWords, t } from "/static/core/words.js";

const LONGEST_MS = 90_000, ORDER = ["bad", "look", "good"];
const WORDS = { bad: "preflight.bad", look: "preflight.look", good: "preflight.good" };
const IN_ALL = { bad: "preflight.all.bad", look: "preflight.all.look", good: "preflight.all.good" };

const row = ({ what, status, seen, advice }) => h("li", { class: status, "data-what": what },
  h("span", { class: "badge" }, t(WORDS[status])), " ", h("strong", { dir: "ltr" }, what), h("span", { lang: "en", dir: "ltr" }, ` ${seen}`),
  ...(advice ? [h("p", { class: "hint", lang: "en", dir: "ltr" }, advice)] : []));

function shown(findings) {
  const sorted = [...findings].sort((one, other) => ORDER.indexOf(one.status) - ORDER.indexOf(other.status));
  const [well, others] = [true, false].map((good) => sorted.filter(({ status }) => (status === "good") === good).map(row));
  return [h("ul", { class: "findings" }, ...others),
    ...(well.length ? [h("details", {}, h("summary", {}, t("preflight.well", { count: well.length })), h("ul", { class: "findings" }, ...well))] : [])];
}

const words = loadWords();
for (const place of document.querySelectorAll("#preflight [data-kitchen]")) {
  const press = place.querySelector("button"), said = place.querySelector("[role=status]"), found = place.querySelector(".found");
  press.addEventListener("click", async () => {
    press.disabled = true;
    try {
      await words;
      found.replaceChildren();
      said.textContent = t("preflight.doing");
      const { status, findings } = await ask("/api/v1/desk/preflight", { body: { kitchen: place.dataset.kitchen }, timeout: LONGEST_MS });
      found.replaceChildren(...shown(findings));
      said.textContent = t(IN_ALL[status]);
    } catch (error) {
      said.textContent = error.message;
    } finally {
      press.disabled = false;
      press.textContent = t("preflight.again");
    }
  });
}
