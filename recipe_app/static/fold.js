// What the screen shows: the server's entries and, on top, the operations that still wait. Pure: no page, no network.

export function fold(state, waiting) {
  const entries = state.entries.map((entry) => ({ ...entry }));
  const known = new Map(entries.map((entry) => [entry.op_id, entry]));
  for (const { operation } of waiting) {
    if (operation.kind === "undo") {
      const entry = known.get(operation.undoes);
      if (entry) entry.undone = true;
    } else if (!known.has(operation.op_id)) {
      const entry = { ...operation, undone: false };
      entries.push(entry);
      known.set(entry.op_id, entry);
    }
  }
  const valid = entries.filter((entry) => !entry.undone);
  const done = new Set(valid.filter((entry) => entry.kind === "done").map((entry) => entry.step));
  const steps = state.recipe ? state.recipe.steps : [];
  const left = steps.map((step, index) => ({ ...step, place: index + 1 })).filter((step) => !done.has(step.node));
  return {
    total: steps.length,
    done: steps.length - left.length,
    current: left[0] || null,
    next: left.slice(1, 3),
    errors: valid.filter((entry) => entry.kind === "error").length,
    last: valid.at(-1) || null,
    lastStep: steps.at(-1) || null,
  };
}
