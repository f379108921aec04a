// Asks before an action that cannot be undone. The harmless answer has the focus; Escape chooses it too.

import { h } from "/static/core/page.js";
import { t } from "/static/core/words.js";

const LONGEST = 200;

// Resolves to null if cancelled, else to the reason (an empty text if none is required).
export function question({ title, means, yes, reason = false }) {
  const text = reason && h("input", { id: "why", required: true, pattern: "\\s*\\S.+\\S\\s*", maxlength: LONGEST, autocomplete: "off" });
  const dialog = h("dialog", { class: "sheet", "aria-labelledby": "question" },
    h("form", { method: "dialog" }, h("h2", { id: "question" }, title), h("p", {}, means),
      text && h("div", { class: "field" }, h("label", { for: "why" }, t("ask.why")), text),
      h("p", { class: "actions" }, h("button", { type: "button", class: "quiet", autofocus: true, onclick: () => dialog.close() }, t("ask.no")), h("button", { class: "danger", value: "yes" }, yes))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? (text ? text.value.trim() : "") : null);
    });
  });
}
