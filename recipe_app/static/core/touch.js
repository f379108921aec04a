// One tap on one control: its time is that of the first touch, it acts when the finger leaves inside the control,
// and a second tap on the same control within 400 ms (a drop, a bounce) is nothing.

import { touchNow } from "/static/core/clock.js";

const DEAD_MS = 400;

export function onTap(control, act) {
  let touch = null;
  let lastAct = -Infinity;
  control.addEventListener("pointerdown", () => {
    touch = touchNow();
    control.classList.add("pressed");
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
    control.addEventListener(end, () => control.classList.remove("pressed"));
  }
  control.addEventListener("click", () => {
    const begun = touch || touchNow(); // a key press has no pointer
    touch = null;
    if (performance.now() - lastAct < DEAD_MS) return;
    lastAct = performance.now();
    act(begun);
  });
}
