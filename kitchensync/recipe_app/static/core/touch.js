// A tap on a control has the time of its first touch and acts when the finger is lifted inside the control. Ignored are a
// second tap on the same control within 400 ms (a drop of water, a bounce), even after redrawing, and a second touch at the
// same place on anything: a sheet may have opened under the finger. Redrawing under a finger would lose its tap, so it waits.

import { touchNow } from "/static/core/clock.js";

const DEAD_MS = 400;
const NEAR_PX = 32; // a bouncing finger stays within its own width
const TOUCH_MS = 1000; // a longer touch is a drop of water
const CLICK_MS = 50; // browsers send the click a little after the finger is lifted
const CONTROLS = "button, label, input, textarea, summary, a";
const acted = new WeakMap(); // control -> time of its last tap
const bouncing = new Set(); // pointers that touched where another had just acted
let newest = { at: -Infinity, x: 0, y: 0 }; // time and place of the last tap
const fingers = new Map(); // pointer -> time until which redrawing waits for it
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
      if (!isInside(control, event) || end === "pointercancel") touch = null; // the pointer was cancelled
    });
  }
  control.addEventListener("pointerup", (event) => { // with a drop already on the glass a second touch gets no click
    if (!event.isPrimary && touch && !control.disabled) tapped(event);
  });
  control.addEventListener("click", (event) => { // browsers assign touches beside a control to it: these are no taps
    if (event.pointerType !== "touch" || touch) tapped(event);
  });
}

function isInside(control, { clientX, clientY }) {
  const { left, right, top, bottom } = control.getBoundingClientRect();
  return left <= clientX && clientX <= right && top <= clientY && clientY <= bottom;
}

// The same control after redrawing: a bounce on either one is ignored.
export function handOver(old, control) {
  if (acted.has(old)) acted.set(control, acted.get(old));
}

// Redraws now, or once no finger is on a control; only once, with the state at that time.
export const afterTouches = (draw) => () => {
  waiting.delete(draw);
  if (!isTouched()) return draw();
  waiting.add(draw);
  return wake();
};

export const forgetDrawings = () => waiting.clear(); // another screen is shown by now

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
addEventListener("click", (event) => { // also for controls without taps (digits, boxes)
  if (!bouncing.delete(event.pointerId)) return;
  event.stopImmediatePropagation();
  event.preventDefault();
}, true);
for (const end of ["click", "pointercancel"]) {
  addEventListener(end, ({ pointerId }) => { if (fingers.delete(pointerId)) wake(); });
}
