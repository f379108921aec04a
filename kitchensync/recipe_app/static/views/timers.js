// Timers from the text of a step: set to the shorter end of a range, showing the longer one. Silent because of the microphones.

import { touchNow } from "/static/core/clock.js";
import { durations } from "/static/core/durations.js";
import { button, h } from "/static/core/page.js";
import { duration, number, t } from "/static/core/words.js";

const MORE_S = 60;

export class Timers {
  constructor(recording, changed, { words, at, placeOf }) { // functions for texts and places of steps on the screen
    Object.assign(this, { words, at, placeOf });
    this.recording = recording;
    this.changed = changed;
    this.key = `timers ${recording.id}`;
    this.set = JSON.parse(localStorage.getItem(this.key) ?? "[]"); // only for display; the log has the touches
  }

  place(node) { return this.placeOf(node); }

  offered(node) { // planned texts were written on the tablet, so it finds their durations itself
    const { planned, words } = this.words(node);
    return planned ? durations(words) : this.recording.bundle.timers[node] ?? [];
  }

  chips(node) {
    const offered = this.offered(node);
    return offered.length > 0 && h("p", { class: "chips" }, offered.map((timer) => button(
      `▶ ${duration(timer.seconds)}${timer.most_seconds > timer.seconds ? `–${duration(timer.most_seconds)}` : ""}`,
      (touch) => this.start(node, timer.seconds, touch), { class: "timer-chip", title: t("timer.start", { time: timer.text, place: this.place(node) }) })));
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

  async lengthen(node, touch) { // adds a minute; an expired timer runs for another minute
    const timer = this.set.find((one) => one.node === node);
    const seconds = timer.seconds + MORE_S;
    await this.recording.act(touch, { kind: "timer", body: this.at(node, { seconds, action: "lengthen" }) });
    const ends = (timer.rang ? touch.wall_ms : timer.ends) + MORE_S * 1000;
    const left = timer.left === undefined ? {} : { left: timer.left + MORE_S * 1000 };
    this.keep(this.set.map((one) => (one === timer ? { ...one, seconds, ends, rang: false, ...left } : one)));
  }

  async hold(node, touch) { // pauses the timer or continues it
    const { left, ...timer } = this.set.find((one) => one.node === node);
    await this.recording.act(touch, { kind: "timer", body: this.at(node, { seconds: timer.seconds, action: left === undefined ? "pause" : "resume" }) });
    const next = left === undefined ? { ...timer, left: Math.max(timer.ends - touch.wall_ms, 0) } : { ...timer, ends: touch.wall_ms + left };
    this.keep(this.set.map((one) => (one.node === node ? next : one)));
  }

  get isUp() { return this.set.some(({ rang }) => rang); }

  tick() {
    for (const timer of this.set.filter((one) => !one.rang && one.left === undefined && one.ends <= Date.now())) {
      timer.rang = true;
      this.recording.act(touchNow(), { kind: "timer", body: this.at(timer.node, { seconds: timer.seconds, action: "rang" }) });
      this.keep(this.set);
    }
    for (const shown of document.querySelectorAll(".running-timer .left")) {
      const timer = this.set.find((one) => String(one.node) === shown.dataset.node);
      if (timer && !timer.rang) shown.textContent = duration((timer.left ?? timer.ends - Date.now()) / 1000);
    }
  }

  running() {
    return this.set.map(({ node, ends, rang, left }) => h("div", { class: rang ? "running-timer rang" : "running-timer" },
      h("span", { role: rang ? "alert" : "timer" }, rang ? t("timer.over", { place: this.place(node) }) : h("span", { class: "left", "data-node": node }, duration((left ?? ends - Date.now()) / 1000))),
      !rang && h("span", { class: "place" }, t("follow.step", { place: this.place(node) })),
      button(t("timer.more"), (touch) => this.lengthen(node, touch), { class: "small", "data-key": `more-${node}`, title: `${t("timer.more")}, ${t("follow.step", { place: this.place(node) })}` }),
      !rang && button(t(left === undefined ? "timer.hold" : "timer.go"), (touch) => this.hold(node, touch), { class: "small", "data-key": `wait-${node}`, title: `${t(left === undefined ? "timer.hold" : "timer.go")}, ${t("follow.step", { place: this.place(node) })}` }),
      button(rang ? t("ok") : t("timer.stop"), (touch) => this.stop(node, touch), { class: "small", title: `${t("timer.stop")} ${number(this.place(node))}` })));
  }
}
