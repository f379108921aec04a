// Two devices changed the same thing independently: shows both versions; one touch keeps one.

import { button, h } from "/static/core/page.js";
import { number, t } from "/static/core/words.js";
import { categoryName, sheet } from "/static/views/frame.js";

const NAMED = new Set(["text", "description", "categories", "outcome", "outcome_note", "removed", "before", "language", "at", "intent", "noticed", "corrected_by", "recovery"]);

const inWords = (recording, name, value) => {
  if (name === "categories") return value.map(categoryName).join(", ");
  if (name === "intent" || name === "noticed") return value ? t(`${name}.${value}`) : "–";
  if (name === "at") return new Date(value / 1e6).toISOString().slice(11, 19);
  if (name === "outcome") return value ? t(`outcome.${value}`) : "–";
  if (name === "removed") return t(value ? "versions.removed" : "versions.kept");
  if (name === "node" || name === "before" || name === "corrected_by") return recording.text(value) || "–";
  return String(value || "–");
};

// The badge for such a conflict; `keep(fields, touch)` gets the chosen version.
export function versionsBadge(recording, error, keep) {
  const fields = Object.keys(error.conflicts);
  if (!fields.length) return null;
  const count = Math.max(...fields.map((name) => error.conflicts[name].length));
  return button(t("error.versions", { count }), () => choose(recording, error, keep), { class: "chip conflict", "data-key": `versions-${error.error_id}` });
}

function choose(recording, error, keep) {
  sheet(t("versions.title"), (close) => [h("p", { class: "step-text" }, recording.text(error.node)),
    ...Object.entries(error.conflicts).map(([name, versions]) => h("section", {}, NAMED.has(name) && h("h3", {}, t(`field.${name}`)),
      h("div", { class: "cards" }, [...versions].reverse().map((version, place) => h("article", { class: "version" },
        h("p", { class: "hint" }, t("versions.by", { place: number(place + 1), name: recording.bundle.devices?.[version.device] ?? t("desk") })),
        h("p", {}, inWords(recording, name, version.value)),
        button(t(place ? "versions.take" : "versions.keep"), (touch) => { close(); keep({ [name]: version.value }, touch); }, { class: "quiet", "data-key": `${name}-${place}` })))))),
    h("p", { class: "actions" }, button(t("back"), close, { class: "quiet" }))], { wide: true });
}
