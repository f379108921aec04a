// One tap on one control: its time is that of the first touch, it acts when the finger leaves inside the control,
// and a second tap on the same control within 400 ms (a drop, a bounce) is nothing.

import { touchNow } from "/static/core/clock.js";

const DEAD_MS = 400;

export function onTap(control, act) {
  let touch = null;
  let lastAct = -Infinity;
  const tapped = () => {
    const begun = touch || touchNow(); // a key press has no pointer
    touch = null;
    if (performance.now() - lastAct < DEAD_MS) return;
    lastAct = performance.now();
    act(begun);
  };
  control.addEventListener("pointerdown", () => {
    touch = touchNow();
    control.classList.add("pressed");
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
    control.addEventListener(end, (event) => {
      control.classList.remove("pressed");
      if (!isInside(control, event) || end === "pointercancel") touch = null; // it was taken back
    });
  }
  control.addEventListener("pointerup", (event) => { // a drop lies on the glass already: a second touch gets no click
    if (!event.isPrimary && touch && !control.disabled) tapped();
  });
  control.addEventListener("click", (event) => { // browsers give a control what touched the glass beside it: no tap
    if (event.pointerType !== "touch" || touch) tapped();
  });
}

function isInside(control, { clientX, clientY }) {
  const { left, right, top, bottom } = control.getBoundingClientRect();
  return left <= clientX && clientX <= right && top <= clientY && clientY <= bottom;
}
