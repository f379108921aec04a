// Computer and devices looked over before a session: worst first, each with what to do.

import { h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { loadWords, t } from "/static/core/words.js";

const LONGEST_MS = 90_000, ORDER = ["bad", "look", "good"];
const WORDS = { bad: "preflight.bad", look: "preflight.look", good: "preflight.good" };
const IN_ALL = { bad: "preflight.all.bad", look: "preflight.all.look", good: "preflight.all.good" };
const at = (id) => document.getElementById(id);

const row = ({ what, status, seen, advice }) => h("li", { class: status, "data-what": what },
  h("span", { class: "badge" }, t(WORDS[status])), " ", h("strong", { dir: "ltr" }, what), h("span", { lang: "en", dir: "ltr" }, ` ${seen}`),
  ...(advice ? [h("p", { class: "hint", lang: "en", dir: "ltr" }, advice)] : []));

await loadWords();
at("preflight").addEventListener("submit", async (event) => {
  event.preventDefault();
  const press = event.submitter;
  press.disabled = true;
  at("preflight-found").replaceChildren();
  at("preflight-said").textContent = t("preflight.doing");
  try {
    const found = await ask("/api/v1/desk/preflight", { body: { kitchen: at("preflight").elements.kitchen.value }, timeout: LONGEST_MS });
    const worst = [...found.findings].sort((one, other) => ORDER.indexOf(one.status) - ORDER.indexOf(other.status));
    at("preflight-found").replaceChildren(...worst.map(row));
    at("preflight-said").textContent = t(IN_ALL[found.status]);
  } catch (error) {
    at("preflight-said").textContent = error.message;
  } finally {
    press.disabled = false;
  }
});
