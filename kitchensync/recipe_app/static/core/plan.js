// What the plan of a recording makes of its recipe: the words at each step, their order, what is left out.
// The same as operations/plan.py, and a test compares the two. Pure: no page, no network, no storage.

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

// The number of each step as it was shown, null where it was left out; in the order cooked, what nobody began last.
export function numberedSteps({ steps }, plan) {
  const begun = (node) => Math.min(...(steps[node]?.runs ?? []).map(({ start, end }) => start ?? end));
  const nodes = [...plan.order, ...plan.left].sort((one, other) => (begun(one) < begun(other) ? -1 : begun(one) > begun(other) ? 1 : 0));
  return nodes.map((node) => [node, plan.order.indexOf(node) + 1 || null]);
}

// Errors planned at a step whose planned recovery is still to do.
export const recoveriesAt = ({ errors }, node) => Object.values(errors).filter((error) =>
  error.planned && !error.removed && error.node === node && error.recovery && error.corrected_by === null);

function moved(order, errors) { // in front of the step that it was to wait for
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

function note({ node, categories, before, description, text }) { // what neither the order nor leaving out shows
  const shown = (category) => category === MISSING || (category === ORDER && typeof before === "number" && before !== node);
  return categories.length && categories.every(shown) ? "" : description || text || "";
}
