// Covers the recipe: a privacy pause (logged), or a lock for wiping the screen (not logged).

import { button, h } from "/static/core/page.js";
import { t } from "/static/core/words.js";

const BETWEEN_MS = 5000;

export class Cover {
  constructor(recording, resume) {
    Object.assign(this, { recording, resume, locked: false, first: -Infinity });
    this.element = h("section", { class: "cover", hidden: true });
  }

  get isPaused() { return this.recording.state.pauses.at(-1)?.end === null; }
  get isUp() { return this.locked || this.isPaused; }

  lock() {
    this.locked = true;
    this.draw();
  }

  draw() {
    const shown = this.locked ? "lock" : this.isPaused ? "pause" : "";
    this.element.hidden = !shown;
    for (const other of this.element.parentElement?.children ?? []) if (other !== this.element) other.inert = Boolean(shown);
    if (this.element.dataset.shown === shown) return;
    this.element.dataset.shown = shown;
    this.element.replaceChildren(...(shown === "lock" ? this.targets() : shown === "pause" ? this.paused() : []));
  }

  paused() {
    return [h("h1", {}, t("pause.now")), h("p", {}, t(this.recording.bundle.pause === "drop" ? "pause.now.drop" : "pause.now.hint")), button(t("pause.resume"), this.resume, { class: "done" })];
  }

  targets() { // a wet cloth touches one place repeatedly, but not two distant buttons in order
    return [button("1", () => { this.first = performance.now(); }, { class: "cancel first" }),
      h("p", {}, t("pause.unlock")),
      button("2", () => {
        if (performance.now() - this.first > BETWEEN_MS) return;
        this.locked = false;
        this.first = -Infinity;
        this.draw();
      }, { class: "cancel second" })];
  }
}
