// Builds elements from data. Text stays text: nothing here makes markup from a string.

import { forgetDrawings, handOver, onTap } from "/static/core/touch.js";

export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "tap") onTap(element, value);
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "value" || key === "checked" || key === "disabled" || key === "hidden") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const button = (label, tap, more = {}) =>
  h("button", { type: "button", ...more, tap }, ...(Array.isArray(label) ? label : [label]));

export function show(screen, ...children) {
  const root = document.getElementById("screen");
  forgetDrawings();
  document.body.dataset.screen = screen;
  root.replaceChildren(...children.flat().filter(Boolean));
  return root;
}

// Redraws and keeps the focus on the same control; a bounce on it is still recognised.
export function redraw(root, ...children) {
  const held = document.activeElement?.dataset?.key;
  const before = new Map([...root.querySelectorAll("[data-key]")].map((control) => [control.dataset.key, control]));
  root.replaceChildren(...children.flat().filter(Boolean));
  for (const control of root.querySelectorAll("[data-key]")) handOver(before.get(control.dataset.key), control);
  if (held) root.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus({ preventScroll: true, focusVisible: false });
}
