// Undo on the light screens: what the last touch changed can be taken back until the next one, or until the screen is left.

import { button } from "/static/core/page.js";
import { t } from "/static/core/words.js";

export function undoable(recording, draw) {
  let last = [];
  const control = button(t("follow.undo"), undo, { class: "quiet", id: "undo", hidden: true });

  function drawn(operations) {
    last = operations.map(({ op_id }) => op_id);
    control.hidden = !last.length;
    draw();
  }

  async function undo(touch) {
    await recording.undo(touch, last);
    drawn([]);
  }

  return { control, act: async (touch, ...actions) => drawn(await recording.act(touch, ...actions)) };
}
