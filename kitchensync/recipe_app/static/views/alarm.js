// Alarms that a cook must not miss: red, full width, until touched. The reasons are for the operator.

import { button, h } from "/static/core/page.js";
import { t } from "/static/core/words.js";
import { sheet } from "/static/views/frame.js";

const CALL = { camera: "alarm.camera", headset: "alarm.headset", recording: "alarm.recording", stopped: "alarm.stopped" };

const CALM_MS = 10_000; // an alarm that returns within this time is the same one

export class Alarm {
  constructor() {
    Object.assign(this, { shown: "", touched: "", reasons: [], calmSince: null });
    this.element = h("section", { class: "alarm", role: "alert" });
  }

  hear({ alarm = "", reasons = [] }) {
    this.calmSince = alarm ? null : (this.calmSince ?? performance.now());
    if (!alarm && performance.now() - this.calmSince > CALM_MS) this.touched = "";
    if (!alarm || alarm === this.touched) return;
    this.reasons = reasons;
    if (alarm !== this.shown) this.say(alarm);
  }

  say(alarm) {
    this.shown = alarm;
    this.element.replaceChildren(button(t(CALL[alarm] ?? CALL.recording), () => this.leave(), { class: "call" }),
      button(t("details"), () => sheet(t("details.operator"), (close) => [h("ul", {}, this.reasons.map((why) => h("li", {}, why))),
        h("p", { class: "actions" }, button(t("back"), close, { class: "cancel" }))]), { class: "small" }));
    this.place();
  }

  place() { // on top of an open sheet: below it, touches do not work
    const home = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
    if (!this.shown) return;
    if (this.element.parentElement !== home) {
      home.append(this.element);
      if (home !== document.body) home.addEventListener("close", () => this.place(), { once: true }); // it must not close with the sheet
    }
    document.documentElement.style.setProperty("--alarm", `${this.element.offsetHeight}px`); // content below makes room
  }

  leave() {
    this.touched = this.shown;
    this.close();
  }

  close() {
    this.shown = "";
    this.element.remove();
    document.documentElement.style.removeProperty("--alarm");
  }
}

// Messages of devices and servers hold addresses and names: folded until the operator opens them.
export const forOperator = (reasons) => h("details", {}, h("summary", {}, t("details.operator")), h("ul", {}, reasons.map((why) => h("li", {}, why))));
