// Player for a recording's video, in the cook's review and at the desk, controlled by touch or keys.

import { momentOf, pictureAt } from "/static/core/film.js";
import { opened } from "/static/core/load_film.js";
import { button, h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { duration, t } from "/static/core/words.js";

const FAR_S = 10;

export class FilmPlayer {
  // `changed` is called when times can be shown, `moved` when the frame changes; until then a line shows the progress.
  constructor(base, changed, { moved = () => null, absent = () => null, hidden = "film.hidden" } = {}) {
    Object.assign(this, { base, changed, moved, hidden, film: null });
    this.status = h("p", { role: "status" });
    this.element = h("section", { class: "own-film", hidden: true, onkeydown: (event) => this.#key(event) }, h("h2", {}, t("film.title")), this.status);
    ask(`${base}/film`).then(({ state }) => {
      if (state === "absent") return;
      this.element.hidden = false;
      this.#open().catch((problem) => { this.status.textContent = problem.message; });
    }).catch(absent); // no video without network
  }

  async #open() {
    const { video, front, facts, film } = await opened(this.base, this.status);
    Object.assign(this, { facts, film });
    const press = (label, name, act) => button(label, act, { class: "quiet", title: t(name) });
    this.turn = button("", () => this.film.play(), { class: "primary", id: "film-play" });
    const sound = button(t("film.sound"), () => { video.muted = !video.muted; sound.setAttribute("aria-pressed", String(!video.muted)); }, { class: "quiet", "aria-pressed": "true" });
    this.slider = h("input", { type: "range", min: "0", max: String(facts.frames - 1), value: "0", "aria-label": t("film.place"), oninput: ({ target }) => { video.pause(); this.film.go(Number(target.value)); } });
    this.clock = h("span", { class: "hint" });
    const far = Math.round(FAR_S * this.film.fps);
    this.element.replaceChildren(h("h2", {}, t("film.title")),
      h("div", { class: "films", tabindex: "0", role: "group", "aria-label": t("film.keys") }, [video, front].filter(Boolean)), this.slider,
      h("p", { class: "actions start" }, press("−10 s", "film.back", () => this.film.step(-far)), press("−1", "film.picture_back", () => this.film.step(-1)), this.turn,
        press("+1", "film.picture_on", () => this.film.step(1)), press("+10 s", "film.on", () => this.film.step(far)), sound, this.clock), this.status);
    this.film.onFrame(() => this.#draw());
    for (const what of ["play", "pause"]) video.addEventListener(what, () => this.#draw());
    this.element.film = this.film; // lets tests read the current frame
    this.#draw();
    this.changed();
  }

  #draw() {
    const { video, shown, fps, frames } = this.film;
    this.turn.textContent = t(video.paused ? "film.play" : "film.stop");
    this.slider.value = String(shown);
    this.slider.setAttribute("aria-valuetext", duration(shown / fps));
    this.clock.textContent = `${duration(shown / fps)} / ${duration(frames / fps)}`;
    this.status.textContent = this.facts.hidden.some(([first, last]) => first <= shown && shown <= last) ? t(this.hidden) : "";
    this.moved();
  }

  now() { return this.film && momentOf(this.facts.taken_ns, this.film.shown); } // ns of the capture clock; null if unknown

  shows(at_ns) { return this.film !== null && at_ns !== null && at_ns !== undefined && pictureAt(this.facts.taken_ns, at_ns) !== null; }

  go(at_ns, { focus = true } = {}) { // a time of the capture clock
    this.film.video.pause();
    this.film.go(pictureAt(this.facts.taken_ns, at_ns));
    if (!focus) return;
    this.element.scrollIntoView({ block: "nearest" });
    this.element.querySelector(".films").focus({ preventScroll: true });
  }

  #key(event) {
    if (!this.film || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("button, input")) return;
    const many = event.shiftKey ? Math.round(FAR_S * this.film.fps) : 1;
    const acts = { Space: () => this.film.play(), ArrowLeft: () => this.film.step(-many), ArrowRight: () => this.film.step(many) };
    if (!acts[event.code]) return;
    event.preventDefault();
    acts[event.code]();
  }
}
