// Undo on the light screens: the last change can be taken back for ten seconds, or until the next change.

import { button } from "/static/core/page.js";
import { t } from "/static/core/words.js";

const UNDO_MS = 10_000;

export function undoable(recording, draw) {
  let last = [];
  let hiding;
  const control = button(t("follow.undo"), undo, { class: "quiet", id: "undo", hidden: true });

  function offer(operations) {
    last = operations;
    control.hidden = !last.length;
    clearTimeout(hiding);
    hiding = setTimeout(() => offer([]), UNDO_MS);
  }

  async function act(touch, ...actions) {
    const operations = await recording.act(touch, ...actions);
    offer(operations.map(({ op_id }) => op_id));
    draw();
  }

  async function undo(touch) {
    const taken = last;
    offer([]); // changes made meanwhile can be undone next
    await recording.undo(touch, taken);
    draw();
  }

  return { control, act };
}
