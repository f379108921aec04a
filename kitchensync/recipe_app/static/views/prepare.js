// Stage 2: plan errors. What happens later is logged separately.

import { newId } from "/static/core/ids.js";
import { onChange } from "/static/core/outbox.js";
import { button, h, redraw, show } from "/static/core/page.js";
import { afterTouches } from "/static/core/touch.js";
import { number, t, tongue } from "/static/core/words.js";
import { errorForm, kept, living, shownHints } from "/static/views/error_form.js";
import { undoable } from "/static/views/undo.js";
import { versionsBadge } from "/static/views/versions.js";
import { bar, categoryName, footer, NAMES, open as goTo, PLANNING, tour } from "/static/views/frame.js";
import { myData } from "/static/views/my_data.js";

export function open(recording) {
  const draw = afterTouches(paint);
  const { control, act } = undoable(recording, draw);
  const { strategy } = recording.shown;
  const main = h("main", { class: "plain wide" });
  show("prepare", bar("prepare", recording.shown.title, myData(recording)), main,
    footer(control, h("p", {}), button(t("prepare.go"), ready, { class: "primary", id: "ready" })));

  async function ready(touch) {
    if (recording.state.phase === "prepare") await recording.act(touch, { kind: "prepared" });
    await goTo(recording, "checklist");
  }

  async function plan(node, touch) {
    const told = new Set(recording.known.filter(({ kind, body }) => kind === "hint" && body.use === "shown" && body.node === node).map(({ body }) => body.wording));
    const fresh = shownHints(recording, node).filter(({ wording }) => !told.has(wording));
    if (fresh.length) await recording.act(touch, ...fresh.map((hint) => use(node, hint, "shown")));
    errorForm(recording, node, {
      title: t("prepare.new"),
      save: (fields, { used, applied, edited }, saved) => act(saved,
        { kind: "plan_error", body: { error_id: newId(), fields: kept(fields), hint: used } },
        ...(applied ? [use(node, applied, edited ? "edited" : "applied")] : [])),
    });
  }

  const use = (node, hint, how) => ({ kind: "hint", body: { node, category: hint.category, wording: hint.wording, use: how } });

  const change = (error) => errorForm(recording, error.node, {
    title: t("prepare.change"), error,
    save: (fields, _, touch) => set(error, kept(fields), touch),
  });

  const set = (error, fields, touch) => act(touch, { kind: "edit_error", body: { error_id: error.error_id, fields } });

  function suggest(touch) {
    const planned = new Set(living(recording).map((error) => error.node));
    const fresh = recording.bundle.suggested.filter((one) => !planned.has(one.node));
    return fresh.length ? act(touch, ...fresh.flatMap(({ node, ...hint }) => [
      { kind: "plan_error", body: { error_id: newId(), hint: hint.category, fields: fieldsOf(node, hint) } }, use(node, hint, "suggested")])) : null;
  }

  const fieldsOf = (node, hint) => ({
    node, categories: [NAMES.indexOf(hint.category)], subtype: hint.subtype, expected: hint.expected, actual: hint.actual, text: hint.text, description: hint.wording,
    ...(hint.text && { language: recording.bundle.language ?? "" }), ...(typeof hint.before === "number" && { before: hint.before }),
  });

  function errorRow(error) {
    const own = error.origin !== "script";
    const { text } = error;
    const description = stated(recording, error) ?? error.description;
    return h("li", { class: "planned" },
      h("span", { class: "badges" }, error.categories.map((category) => h("span", { class: `badge c${category}` }, categoryName(category))),
        versionsBadge(recording, error, (fields, touch) => set(error, fields, touch))),
      h("span", { class: "what" }, h("span", { ...(text && tongue(error.language)) }, text || description || place(error)), text && description && h("span", { class: "hint" }, " ", description), error.recovery && h("span", { class: "hint" }, ` ${t("follow.recovery")}: ${error.recovery}`)),
      own && h("span", { class: "actions" }, button(t("change"), () => change(error), { class: "quiet", "data-key": `change-${error.error_id}` }),
        button(t("remove"), (touch) => set(error, { removed: true }, touch), { class: "quiet", "data-key": `remove-${error.error_id}` })));
  }

  const place = ({ node, before }) => (typeof before === "number" && before !== node ? t("plan.before", { step: recording.text(before) }) : "");

  function step(node, place, errors) {
    return h("article", { class: errors.length ? "step-card has-error" : "step-card" },
      h("p", { class: "place" }, number(place)), h("p", { class: "text", ...recording.tongue }, recording.text(node)),
      errors.length > 0 && h("ul", {}, errors.map(errorRow)),
      PLANNING.includes(strategy) && (recording.bundle.protected.includes(node)
        ? h("p", { class: "hint" }, t("prepare.protected"))
        : button(t("prepare.add"), (touch) => plan(node, touch), { class: "quiet add", "data-key": `add-${node}` })));
  }

  function paint() {
    const errors = living(recording).filter((error) => error.planned);
    const { order, script } = recording.shown;
    redraw(main, tour(`prepare.${strategy}`),
      h("section", { class: "strategy" }, h("span", { class: `badge ${strategy}` }, t(`strategy.${strategy}`)), h("p", {}, t(`prepare.${strategy}`)),
        strategy !== "normal" && h("p", { class: "banner" }, t("not_eaten"))),
      script && certificate(recording),
      strategy !== "normal" && !errors.length && h("p", { class: "warning", id: "empty-plan" }, t(`plan.empty.${strategy}`)),
      PLANNING.includes(strategy) && balance(errors, order.length),
      strategy === "induced" && recording.bundle.suggested.length > 0 && button(t("prepare.suggest"), suggest, { class: "quiet", "data-key": "suggest" }),
      script && h("section", { class: "left-out" }, errors.filter((error) => !order.includes(error.node)).map((error) => h("article", { class: "step-card has-error left" },
        h("p", { class: "place" }, "–"), h("p", { class: "text", ...recording.tongue }, recording.text(error.node)), h("ul", {}, errorRow(error))))),
      h("section", { class: "step-cards" }, order.map((node, place) => step(node, place + 1, errors.filter((error) => error.node === node)))));
  }
  paint();
  return onChange(() => { recording.reduceAgain(); });
}

// The statements of a script in the page's language, in the order of the script's texts, as in the log.
function sentences(recording) {
  const { missing, broken, unmet } = recording.shown.script;
  const text = (node) => recording.text(node);
  const users = (node) => unmet.filter(([before]) => before === node).map(([, after]) => text(after));
  return [...missing.map((node) => t(users(node).length ? "script.left_out_used" : "script.left_out", { step: text(node), steps: users(node).join("; ") })),
    ...broken.map(([first, second]) => t("script.before", { first: text(second), second: text(first) }))];
}

const stated = (recording, { origin, description }) =>
  (origin === "script" ? sentences(recording)[recording.shown.script.wording.indexOf(description)] : undefined);

function certificate(recording) {
  const { script } = recording.shown;
  const watch = (node) => t(script.missing.includes(node) ? "script.watch_left_out" : "script.watch_moved", { step: recording.text(node) });
  return h("section", { class: "certificate" }, h("h2", {}, t("certificate.title")),
    h("ul", {}, sentences(recording).map((sentence) => h("li", {}, sentence))),
    script.watched.length > 0 && h("ul", { class: "warning" }, script.watched.map((node) => h("li", {}, watch(node)))),
    h("p", { class: "hint" }, t("certificate.facts", { missing: script.missing.length, broken: script.broken.length, seed: String(script.seed), hash: script.graph_hash.slice(0, 12) })));
}

function balance(errors, steps) {
  const categories = new Set(errors.flatMap((error) => error.categories));
  const touched = new Set(errors.map((error) => error.node)).size;
  const share = Math.round((100 * touched) / Math.max(steps, 1));
  const advice = errors.length === 0 ? "balance.none" : categories.size < 3 ? "balance.vary" : share > 70 ? "balance.many" : "balance.good";
  const meter = h("meter", { min: 0, max: 8, value: categories.size, "aria-label": t("balance.label") });
  return h("section", { class: "balance" }, h("p", {}, t("balance.said", { categories: categories.size, share })), meter, h("p", { class: "hint" }, t(advice)));
}
