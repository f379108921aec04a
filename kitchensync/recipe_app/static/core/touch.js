// One tap on one control: its time is that of the first touch, it acts when the finger leaves inside the control,
// and a second tap on the same control within 400 ms (a drop, a bounce) is nothing, also when it was drawn anew meanwhile;
// so is a second touch at the same place, whatever lies there by then: a sheet opens under the finger.
// What is drawn under a finger swallows its touch: drawings wait until it is lifted.

import { touchNow } from "/static/core/clock.js";

const DEAD_MS = 400;
const NEAR_PX = 32; // a finger bounces within its own width
const TOUCH_MS = 1000; // what lies on a control for longer is a drop
const CLICK_MS = 50; // a browser tells the click a little after the finger was lifted
const CONTROLS = "button, label, input, textarea, summary, a";
const acted = new WeakMap(); // control -> when it last acted
const bouncing = new Set(); // pointers that came down where one had just acted
let newest = { at: -Infinity, x: 0, y: 0 }; // when and where the newest finger acted
const fingers = new Map(); // pointer -> until when drawings wait for it
const waiting = new Set();
let waking = null;

export function onTap(control, act) {
  let touch = null;
  const tapped = ({ pointerType, clientX, clientY }) => {
    const begun = touch || touchNow(); // a key press has no pointer
    touch = null;
    const now = performance.now();
    if (now - (acted.get(control) ?? -Infinity) < DEAD_MS) return;
    acted.set(control, now);
    if (pointerType === "touch") newest = { at: now, x: clientX, y: clientY };
    act(begun);
  };
  control.addEventListener("pointerdown", ({ pointerId }) => {
    if (bouncing.has(pointerId)) return;
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
    if (!event.isPrimary && touch && !control.disabled) tapped(event);
  });
  control.addEventListener("click", (event) => { // browsers give a control what touched the glass beside it: no tap
    if (event.pointerType !== "touch" || touch) tapped(event);
  });
}

function isInside(control, { clientX, clientY }) {
  const { left, right, top, bottom } = control.getBoundingClientRect();
  return left <= clientX && clientX <= right && top <= clientY && clientY <= bottom;
}

// The same control, drawn anew: what bounces is not told which of the two it meets.
export function handOver(old, control) {
  if (acted.has(old)) acted.set(control, acted.get(old));
}

// The same drawing, at once or as soon as no finger is on a control; once, with what is true then.
export const afterTouches = (draw) => () => {
  waiting.delete(draw);
  if (!isTouched()) return draw();
  waiting.add(draw);
  return wake();
};

export const forgetDrawings = () => waiting.clear(); // another screen is shown

function isTouched() {
  const now = performance.now();
  for (const [pointer, until] of fingers) if (until <= now) fingers.delete(pointer);
  return fingers.size > 0;
}

function wake() {
  clearTimeout(waking);
  if (isTouched()) waking = setTimeout(wake, Math.max(...fingers.values()) - performance.now() + 1);
  else for (const draw of [...waiting]) if (waiting.delete(draw)) draw();
}

function bounces({ pointerType, clientX, clientY }) {
  return pointerType === "touch" && performance.now() - newest.at < DEAD_MS && Math.hypot(clientX - newest.x, clientY - newest.y) < NEAR_PX;
}

addEventListener("pointerdown", (event) => {
  const { pointerId, target } = event;
  if (bounces(event)) bouncing.add(pointerId);
  else bouncing.delete(pointerId);
  if (target.closest?.(CONTROLS)) fingers.set(pointerId, performance.now() + TOUCH_MS);
}, true);
addEventListener("pointerup", ({ pointerId }) => {
  if (!fingers.has(pointerId)) return;
  fingers.set(pointerId, performance.now() + CLICK_MS);
  wake();
}, true);
addEventListener("click", (event) => { // of a control that is no tap (a digit, a box) too
  if (!bouncing.delete(event.pointerId)) return;
  event.stopImmediatePropagation();
  event.preventDefault();
}, true);
for (const end of ["click", "pointercancel"]) {
  addEventListener(end, ({ pointerId }) => { if (fingers.delete(pointerId)) wake(); });
}
