// The moments of one error on the video, and the keys that mark them.

import { pictureAt } from "/static/core/film.js";
import { button, h } from "/static/core/page.js";
import { t } from "/static/core/words.js";

const LOOP_S = 3, FAR_S = 10;
const MOMENTS = { b: "at", e: "end", p: "point_of_no_return", n: "noticed_at", c: "corrected_at" };
const NOT_KEYS = "select, textarea, summary, a, input:not([type=radio])";

export class Moments {
  // `put(error, moment, frame)` saves a moment, `move(rows)` selects another error.
  constructor({ film, facts }, put, move) {
    Object.assign(this, { film, facts, put, move, error: null });
    this.element = h("section", { class: "moments" });
    addEventListener("keydown", (event) => this.#key(event));
  }

  draw(error, state) {
    Object.assign(this, { error, state, closed: state.complete ? !state.rules : !state.asked });
    const held = document.activeElement?.dataset.key;
    this.element.replaceChildren(h("h2", {}, error.step || t("error.no_step")), h("p", { class: "inline" }, this.#timestamps()), ...Object.entries(MOMENTS).map(([key, moment]) => this.#moment(key, moment)));
    if (held) this.element.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
  }

  // The moments of an error, as one line.
  summary(error, state) {
    const marked = this.#marked(error, state);
    return Object.values(MOMENTS).filter((moment) => moment in marked).map((moment) => `${t(`judge.moment.${moment}`)} ${this.#text(marked[moment])}`).join(" · ");
  }

  // Plays the time that the tablet logged for an error; false if the video does not show it.
  show(error) {
    const touch = this.#touch(error), start = touch?.start ?? touch?.end, end = touch?.end ?? start; // either may be open
    if (!touch) return false;
    this.film.around(Math.round((start + end) / 2), Math.max(FAR_S, (end - start) / this.film.fps));
    return true;
  }

  #touch(error) { return this.facts.touches.find(({ node }) => node === error.node); }
  #marked(error, state) { return (state.complete ? state.final_moments : state.moments)[error.error_id] ?? {}; }

  #text(frame) {
    if (frame === null) return t("judge.none");
    return t("judge.frame", { seconds: (frame / this.film.fps).toFixed(2), frame: String(frame) });
  }

  #frame(frame, key, words = this.#text(frame)) {
    return frame === null ? h("span", { "data-key": key }, words) : button(words, () => this.film.around(frame, LOOP_S), { class: "quiet", "data-key": key });
  }

  #timestamps() {
    const { film, facts, error } = this, touch = this.#touch(error);
    const tablet = error.tablet_ns === null ? null : pictureAt(facts.taken_ns, error.tablet_ns);
    const shown = [["tablet", tablet, error.tablet_bound_s * film.fps], ["step_start", touch?.start, touch?.doubt], ["step_end", touch?.end, touch?.doubt]];
    return shown.filter(([, frame]) => frame !== null && frame !== undefined)
      .map(([name, frame, bound]) => this.#frame(frame, name, t(`judge.timestamp.${name}`, { frame: this.#text(frame), bound: ((bound ?? 0) / film.fps).toFixed(2) })));
  }

  #moment(key, moment) {
    const { error, state, film } = this, marked = this.#marked(error, state), letter = key.toUpperCase();
    const disputed = (state.disputed ?? []).some((one) => one.item === error.error_id && one.question === moment);
    const given = disputed ? state.marked.map((one) => one[error.error_id]?.[moment] ?? null) : [];
    const set = (words, frame, name) => button(words, () => this.put(error, moment, frame()), { class: "quiet", disabled: this.closed, "data-key": `${name} ${moment}` });
    return h("p", { class: disputed ? "inline disputed" : "inline", "data-moment": moment },
      set(`${t(`judge.moment.${moment}`)} (${letter})`, () => film.seen, "set"), set(`${t("judge.none")} (⇧${letter})`, () => null, "none"),
      moment in marked ? this.#frame(marked[moment], `at ${moment}`) : h("span", { class: "hint" }, "–"),
      given.map((frame, person) => this.#frame(frame, `${person} ${moment}`)));
  }

  #key(event) {
    const { film, error } = this, { target } = event;
    if (!error || event.ctrlKey || event.metaKey || event.altKey || target.matches(NOT_KEYS)) return;
    if (target.matches("input") && (event.code === "Space" || event.code.startsWith("Arrow"))) return; // choose an answer
    if (target.matches("button") && event.code === "Space") return;
    const letter = [event.key.toLowerCase(), event.code.replace("Key", "").toLowerCase()].find((one) => one in MOMENTS || "jk".includes(one)); // event.code for keyboards with other letters
    const frames = event.shiftKey ? Math.round(FAR_S * film.fps) : 1;
    const acts = { Space: () => film.play(), ArrowLeft: () => film.step(-frames), ArrowRight: () => film.step(frames), ArrowUp: () => this.move(-1), ArrowDown: () => this.move(1), Escape: () => { film.loop = null; }, j: () => this.move(1), k: () => this.move(-1) };
    const act = letter in MOMENTS ? () => this.#set(MOMENTS[letter], event.shiftKey) : acts[letter] ?? acts[event.code];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #set(moment, isNone) {
    if (!this.closed) this.put(this.error, moment, isNone ? null : this.film.seen);
  }
}

export { LOOP_S };
