// Timers from the text of a step: the shorter end of a range is set, the longer one is shown. No sound: microphones hear it.

import { touchNow } from "/static/core/clock.js";
import { durations } from "/static/core/durations.js";
import { button, h } from "/static/core/page.js";
import { duration, number, t } from "/static/core/words.js";

export class Timers {
  constructor(recording, changed, { words, at, placeOf }) { // how its steps stand on the screen
    Object.assign(this, { words, at, placeOf });
    this.recording = recording;
    this.changed = changed;
    this.key = `timers ${recording.id}`;
    this.set = JSON.parse(localStorage.getItem(this.key) ?? "[]"); // only what is shown; the log has the touches
  }

  place(node) { return this.placeOf(node); }

  offered(node) { // of what is planned the tablet finds them itself: it was written here
    const { planned, words } = this.words(node);
    return planned ? durations(words) : this.recording.bundle.timers[node] ?? [];
  }

  chips(node) {
    const offered = this.offered(node);
    return offered.length > 0 && h("p", { class: "chips" }, offered.map((timer) => button(
      `▶ ${duration(timer.seconds)}${timer.most_seconds > timer.seconds ? `–${duration(timer.most_seconds)}` : ""}`,
      (touch) => this.start(node, timer.seconds, touch), { class: "timer-chip", "aria-label": t("timer.start", { time: timer.text, place: this.place(node) }) })));
  }

  async start(node, seconds, touch) {
    await this.recording.act(touch, { kind: "timer", body: this.at(node, { seconds, action: "start" }) });
    this.keep([...this.set.filter((one) => one.node !== node), { node, seconds, ends: touch.wall_ms + seconds * 1000, rang: false }]);
  }

  async stop(node, touch) {
    const { seconds } = this.set.find((one) => one.node === node);
    await this.recording.act(touch, { kind: "timer", body: this.at(node, { seconds, action: "stop" }) });
    this.keep(this.set.filter((one) => one.node !== node));
  }

  keep(set) {
    this.set = set;
    localStorage.setItem(this.key, JSON.stringify(set));
    this.changed();
  }

  tick() {
    for (const timer of this.set.filter((one) => !one.rang && one.ends <= Date.now())) {
      timer.rang = true;
      this.recording.act(touchNow(), { kind: "timer", body: this.at(timer.node, { seconds: timer.seconds, action: "rang" }) });
      this.keep(this.set);
    }
    for (const shown of document.querySelectorAll(".running-timer .left")) {
      const timer = this.set.find((one) => String(one.node) === shown.dataset.node);
      if (timer && !timer.rang) shown.textContent = duration((timer.ends - Date.now()) / 1000);
    }
  }

  running() {
    return this.set.map(({ node, ends, rang }) => h("div", { class: rang ? "running-timer rang" : "running-timer" },
      h("span", { role: rang ? "alert" : "timer" }, rang ? t("timer.over", { place: this.place(node) }) : h("span", { class: "left", "data-node": node }, duration((ends - Date.now()) / 1000))),
      !rang && h("span", { class: "place" }, t("follow.step", { place: this.place(node) })),
      button(rang ? t("ok") : t("timer.stop"), (touch) => this.stop(node, touch), { class: "small", "aria-label": `${t("timer.stop")} ${number(this.place(node))}` })));
  }
}
