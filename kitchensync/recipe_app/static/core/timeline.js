// Timeline of the logged steps, in the review on the tablet and at the desk.

import { h } from "/static/core/page.js";
import { number, t } from "/static/core/words.js";

const partOf = (at, [from, to]) => (100 * (at - from)) / Math.max(to - from, 1); // percent of the line

// Shows the marker of the current moment on every line of a timeline; none if `at` is null.
export function moveHead(element, at, span) {
  const part = at === null ? -1 : partOf(at, span);
  for (const head of element.querySelectorAll(".head")) {
    head.hidden = part < 0 || part > 100;
    head.style.setProperty("inset-inline-start", `${part}%`);
  }
}

// `lines`: {place, text, said, runs, holds, marks, when}; runs and holds [from, to], marks {at, title, more}, all in the unit of `span`.
export function timeline(lines, span, { filmed = false } = {}) {
  const put = (element, begin, end) => {
    element.style.setProperty("inset-inline-start", `${partOf(begin, span)}%`);
    if (end !== undefined) element.style.setProperty("inline-size", `${Math.max(partOf(end, span) - partOf(begin, span), 0.7)}%`);
    return element;
  };
  return h("div", { class: filmed ? "timeline filmed" : "timeline", role: "table", "aria-label": t("review.timeline") }, lines.map(({ place, text, said, runs, holds, marks, when }) =>
    h("div", { class: "line", role: "row" },
      h("span", { class: "text", role: "rowheader", title: text }, `${place ? number(place) : "–"}. `, h("bdi", {}, text)),
      h("span", { class: "track", role: "cell", "aria-label": said },
        runs.map(([begin, end]) => put(h("i", { class: "run" }), begin, end)),
        holds.map(([begin, end]) => put(h("i", { class: "hold", title: t("step.held") }), begin, end)),
        marks.map(({ at, title, more }) => put(h("i", { class: "mark", title, ...more }), at)),
        h("i", { class: "head", hidden: true })),
      h("span", { class: "when", role: "cell" }, when))));
}
