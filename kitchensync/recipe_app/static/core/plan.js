// Applies a recording's plan to its recipe: texts of the steps, their order, omitted steps.
// Same as operations/plan.py; a test compares the two. Pure: no page, no network, no storage.

const [ORDER, MISSING] = [2, 6];

export function planOf({ recording, errors }) {
  const own = Object.values(errors).filter((error) => error.planned && !error.removed && error.origin !== "script");
  const left = new Set(own.filter(({ categories }) => categories.includes(MISSING)).map(({ node }) => node));
  const order = moved([...recording.order], own).filter((node) => !left.has(node));
  const nodes = Object.keys(recording.steps).map(Number).sort((one, other) => one - other);
  return {
    order,
    left: nodes.filter((node) => !order.includes(node)),
    steps: Object.fromEntries(nodes.map((node) => [node, step(recording.steps[node].text, recording.language, own.filter((error) => error.node === node))])),
  };
}

// The shown number of each step, null if omitted; in the order cooked, steps that were not started last.
export function numberedSteps({ steps }, plan) {
  const begun = (node) => Math.min(...(steps[node]?.runs ?? []).map(({ start, end }) => start ?? end));
  const nodes = [...plan.order, ...plan.left].sort((one, other) => (begun(one) < begun(other) ? -1 : begun(one) > begun(other) ? 1 : 0));
  return nodes.map((node) => [node, plan.order.indexOf(node) + 1 || null]);
}

// Planned errors of a step with an open planned recovery.
export const recoveriesAt = ({ errors }, node) => Object.values(errors).filter((error) =>
  error.planned && !error.removed && error.node === node && error.recovery && error.corrected_by === null);

function moved(order, errors) { // moves a step in front of its prerequisite
  for (const { node, before, categories } of errors) {
    if (!categories.includes(ORDER) || node === before || !order.includes(node) || !order.includes(before)) continue;
    order.splice(order.indexOf(node), 1);
    order.splice(order.indexOf(before), 0, node);
  }
  return order;
}

function step(text, language, errors) {
  const worded = errors.findLast((error) => error.text);
  const notes = errors.filter((error) => error !== worded).map(note).filter(Boolean);
  const words = worded ? worded.text : text;
  return {
    words: notes.length ? `${words} (${notes.join("; ")})` : words,
    language: worded?.language || language || "",
    planned: Boolean(worded || notes.length),
  };
}

function note({ node, categories, before, description, text }) { // the part of an error that order and omission do not show
  const shown = (category) => category === MISSING || (category === ORDER && typeof before === "number" && before !== node);
  return categories.length && categories.every(shown) ? "" : description || text || "";
}
